// Package faults counts for as long as it is told to while everything fails that a
// network may do: closed connections, lost requests and replies, late and repeated
// commands, cut streams, added latency, paused servers, forgotten scripts, moving
// slots, participants that leave and come.
//
//	make faults FOR=10m        standalone and cluster, at the same time
//
//	go -C test/faults test -count=1 -timeout 0 -run Soak/cluster -v -for 1h -seed 7
//
// A run only records what happens: the traffic and the participants write down what
// was offered, reported as dropped, and seen; MONITOR tells what the servers did.
// Once the faults are over and all participants have flushed, [History.Validate]
// looks for what breaks the promise. A failed run prints its seed, which repeats the
// choice of faults, though not their exact moments.
package faults
