package script

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Proven reports whether err proves that the server did not execute the command
// that ended with it: nothing was written, or the answer is one that only the
// server's own refusal can be. Any other error may hide an execution: EOF,
// timeouts, contexts, other texts, no error at all.
//
// Servers refuse single commands inside a script with some of the same words.
// That proves nothing about what the script wrote before. So Proven is only for
// scripts that either take back or answer themselves whatever happens after
// their first write.
//
// Err alone may be out of date after a pipeline in a cluster: ask
// [Cmd.NotExecuted] where there is a Cmd.
func Proven(err error) bool {
	if err == nil {
		return false
	}
	// No connection was there to write to. A dial error may be wrapped in the
	// deadline that ended it, so it comes before the contexts.
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return true
	}
	// A context may end while go-redis waits for a connection or while it waits for
	// the answer. Its error does not tell which.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var answer redis.Error
	return errors.As(err, &answer) && refusal(answer.Error())
}

// refusal reports whether text is an answer that a server gives instead of
// executing a command.
func refusal(text string) bool {
	code, rest, _ := strings.Cut(text, " ")
	switch code {
	case "NOSCRIPT", // the script is not cached
		"MOVED", "ASK", // another server of the cluster has the slot, or the key
		"TRYAGAIN",    // some of the keys are there, some here
		"CROSSSLOT",   // the keys are of several slots
		"CLUSTERDOWN", // some slots have no server
		"LOADING",     // the server reads its data
		"READONLY",    // a replica
		"MASTERDOWN",  // a replica without its master
		"NOREPLICAS",  // fewer replicas than min-replicas-to-write
		"MISCONF",     // writes are stopped as snapshots fail
		"OOM",         // writes are stopped as memory is used up
		"BUSY",        // another script is running
		"NOPERM", "NOAUTH", "WRONGPASS":
		return true
	case "ERR":
		return plain(rest)
	}
	return plain(text)
}

// plain is refusal for an answer without a code of its own.
func plain(text string) bool {
	switch {
	case strings.HasPrefix(text, "NOSCRIPT "), // Kvrocks
		strings.HasPrefix(text, "max number of clients reached"),
		// The ACL, as scripts see it: until Redis 7.0, since 7.2.
		strings.HasPrefix(text, "The user executing the script can't "),
		strings.HasPrefix(text, "ACL failure in script"):
		return true
	case strings.HasPrefix(text, "Error running script"), strings.HasPrefix(text, "@user_script"):
		// Redis 6 wraps the error of a command, raised or returned:
		// "Error running script (call to f_<sha>): @user_script:1: @user_script: 1: -READONLY You can't ...".
		if strings.Contains(text, ": The user executing the script can't ") {
			return true
		}
		for _, code := range [...]string{"READONLY", "OOM", "MISCONF", "NOREPLICAS", "MASTERDOWN", "NOPERM"} {
			if strings.Contains(text, ": -"+code+" ") {
				return true
			}
		}
	}
	return false
}
