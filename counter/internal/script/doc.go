// Package script sends Lua scripts to Redis at most once.
//
// go-redis sends a command again after a network error, although the server may
// have run it already. A script that adds must not be sent that way. The commands
// of this package forbid it, whatever the options of the client, and can tell
// afterwards whether it is proven that they were not executed.
package script
