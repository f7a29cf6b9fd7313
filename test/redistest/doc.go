// Package redistest gives tests real Redis servers, and everything that can go
// wrong between a client and a server.
//
//   - [Start] runs a redis-server of the test's own on 127.0.0.1. It can be
//     stopped, killed, paused and started again on the same port and directory.
//   - [Server.Replica], [StartSentinel], [StartCluster] and [StartProxiedCluster] run
//     several: fail over, kill or pause one, move a slot.
//   - [NewProxy] puts a network before a server that closes connections, swallows,
//     delays and repeats, and counts what was sent.
//   - [NewStub] answers commands with whatever bytes a test wants.
//   - [URL] is for tests that share a server: REDIS_URL where it is set, else a
//     server of their own. Such tests take their keys' prefix from [Prefix].
//   - [Interval] is the length of an interval in tests against real servers.
//
// Where redis-server is missing, tests skip on a laptop and fail where the
// environment variable CI is set, so that a green CI has run them.
//
// Whatever a function of this package starts is stopped and waited for in the
// test's Cleanup. Functions that fail the test (all that take or keep a
// testing.TB) must be called from the test's own goroutine, as FailNow must.
package redistest
