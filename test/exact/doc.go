// Package exact tests counter/exact against real Redis servers: standalone, a
// cluster of three, Sentinel; with proxies that lose answers, servers that restart,
// and processes that are killed.
//
// The ordinary run takes about a minute and a half. The linearizability check and
// the test of killed processes run longer, or over more rounds, by flags:
//
//	go test ./test/exact -run Linearizable -rounds 50
//	go test ./test/exact -run Killed -for 60s
package exact
