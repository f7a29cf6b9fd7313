// Package counter counts locally and knows what the whole group counted.
//
// Every participant of a distributed system adds to a [Counter] in its own
// process. Once an interval the group's loop sends what was added to Redis, in
// one round trip, and the answer brings the group's total. Reading that total is
// a load from memory:
//
//	requests, err := counter.New(rdb, "requests", time.Second)
//	...
//	defer requests.Shutdown(ctx)
//	if requests.Add(1) > budget {
//		shed()
//	}
//
// # The number
//
// Count = max(Closed, Buffer). Closed is the group's total over the last closed
// interval; Buffer is what this participant counted and does not yet know to have
// arrived. Neither says more than was counted, and the larger is the closer one.
// Count is made for thresholds: every unit in it was really counted, is in it
// once, and was counted within the last 2 + carry intervals ([WithCarry]). Mostly
// that is the closed interval; while Redis cannot be reached, Buffer holds several,
// and a threshold for one interval may be crossed by ordinary traffic. Where that
// matters, look at Closed and Known of [Total]. While Closed is not known, Count is Buffer: before
// the first answer, when the interval before has no total, when nothing has
// refreshed it for two intervals, and after Close. [Total] tells what Count is
// made from.
//
// # The promise, in the order in which it binds
//
//  1. Never overstated. No amount is counted twice, and a participant adds to an
//     interval at most once: under lost, late and repeated messages, reconnects,
//     failovers, moving slots, and clock steps of participants.
//  2. Never in the way. Nothing that counts or reads waits for Redis, or fails
//     for it. Memory is bounded whatever Redis does.
//  3. Losses are few, and every one is reported with its amount.
//
// Outside the promise are: eviction of live keys (use maxmemory-policy
// noeviction), active-active replication, a failover to a host whose clock is
// more than a quarter of an interval (at most 500 ms) behind, a server clock
// stepped back by more than one interval, and a middlebox that repeats commands
// across a failover or after an error reply.
//
// # How a flush goes
//
// Intervals are numbered by the server's clock, floor(time / interval), read
// inside the script. A flush declares the interval that it is meant for and is
// applied only then. Each leaves a mark with its sequence number, so that it is
// applied at most once; a refusal leaves a fence, so that it stays refused. A
// flush whose answer is lost is set aside and asked about with the next one. What
// is proven not to have arrived leaves again, [WithCarry] times.
//
// A participant flushes at a phase of the interval that is its own. A counter is
// flushed every interval, also with amount 0, until it has been idle for ten;
// then it rests until it is used again. One that was never added to never talks
// to Redis.
//
// # Logs
//
// With [WithLogger]; every message has a name: the counter's, or the callback's.
//
//	error  flush failed              error, dropped, cause
//	error  amount dropped            error, dropped
//	error  callback panicked         panic
//	warn   total went stale          after
//	warn   server clock stepped back
//	warn   server may evict live keys  policy, want
//	warn   too many series           limit
//	info   counter started           interval, prefix, store
//	info   flush recovered
//	info   counter stopped
//	debug  flush completed           interval, amount, count
//	debug  script loaded             sha
//
// A flush that failed with dropped 0 has lost nothing yet; one that goes on failing
// the same way is logged once, until it has recovered. Losses are logged each time:
// their error is the reason (see Metrics), their cause the failure that was logged
// before, if it goes on. An amount dropped is one that is none (NaN, a negative one of
// a float counter) or does not fit. go-redis has a log of its own, see
// [redis.SetLogger].
//
// # Metrics
//
// With [WithMeterProvider], under the scope of this package's path:
//
//	comcount.flushes            {flush}    parts of counters sent, by outcome
//	comcount.flush.duration     s          round trip of a flush
//	comcount.dropped            1          amounts given up, by reason: "not applied in
//	                                       time", "may have been counted", "closed",
//	                                       "passes int64", "not a finite amount >= 0"
//	comcount.intervals.skipped  {interval} ticks that could not send anything
//	comcount.series             {series}   counters flushed every interval
//	comcount.totals.stale       {total}    totals that nothing refreshed for two intervals
//	comcount.clock.steps        {step}     steps back of the server's clock, by handling
package counter
