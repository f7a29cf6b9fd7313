// Package exact counts by key, exactly: sign-in attempts per address, uses against
// a licence, seats sold. The numbers live in Redis, an add is one atomic step there
// and returns the new count, and it can be refused at a maximum.
//
// It is the other side of package counter, whose group counter costs nothing on
// the calling path but is a lower bound of what a group counts now. Where the exact
// number decides, and a round trip per add is fair, use this package.
//
//	seats, err := exact.Open(rdb, "seats", exact.Max(300))
//	sold, err := seats.Add(ctx, "matinee", 2, exact.ID(orderID))
//	if errors.Is(err, exact.ErrMax) { // sold out; nothing was changed
//
// # What holds
//
//   - Every add is counted, once, or refused. [Counters.Add] returns the new count;
//     adds and reads of a key are linearizable on one primary.
//   - A refusal ([ErrMax], [ErrLimit], [ErrIDReused]) changes nothing: no count, no
//     key, no window.
//   - Counts are exact over the whole of int64.
//   - With [TTL] a window starts with a key's first add and does not slide. The add
//     and its expiry are one step: no key ever lacks it.
//   - Nothing is sent twice by itself, whatever the client's retries are set to,
//     unless the server's answer proves that it was not executed. An add without an
//     answer ends with [ErrUnknown]. With [ID] it can be repeated until there is one,
//     and counts once.
//
// # Modes
//
//	mode               an add                             a crash of the process loses        joins a transaction
//	default            one round trip, atomic in Redis    nothing that an add has returned    yes, with AddTx
//	WaitReplicas(n,t)  and n replicas have it             nothing that an add has returned    no
//	FlushEvery(d)      a number in memory, written        what was accepted since the last    no
//	                   every d                            batch that Redis confirmed: at
//	                                                      most d while Redis answers, and
//	                                                      the length of an outage
//
// What a crash or failover of Redis loses is a matter of its persistence and
// replication. Replication is asynchronous: a primary answers before its replicas
// have the write, and a failover forgets what they did not have. With WaitReplicas
// an add returns only when n replicas have it. A failover can still lose it where
// the replica that takes over is not one of those; Redis promotes the one that is
// furthest, if it can be reached. A single server keeps across a restart what it had
// written to its append-only file: with "appendfsync always" all that it answered,
// with "everysec" all but the last second or two, with snapshots only what is older
// than the last one, with nothing nothing. A count that is lost takes the ids and
// markers of its adds along, so that a repeat counts again rather than not at all.
//
// Redis must not evict: set maxmemory-policy to noeviction. Any other policy may
// drop counts, or ids, before their time. Active-active replication (several
// primaries that merge) is not supported, for a script there decides by what one of
// them knows.
//
// # FlushEvery
//
// Adds are kept in memory and written every d, for each key with one call that
// carries a number of the writer's own. Redis remembers the last one per writer and
// key for 24 hours, so that a batch is repeated until it is known to have landed,
// through restarts of Redis and lost answers, and lands once. One that stays without
// an answer for 23 hours is dropped and reported as "may have been counted".
//
// Add returns the best known count: what Redis held at the last batch of this key,
// and what was added here since. A maximum is kept by each process on that count:
// before a key is known, processes together may accept up to their number times the
// maximum. What was accepted is written even if the maximum has been passed
// meanwhile, so that the count tells the truth. A batch that does not fit into an
// int64 is dropped and reported. A window starts when the first batch lands.
//
// At most 100,000 keys wait to be written; above that Add returns [ErrFull] and
// counts nothing. Counts of as many other keys are remembered; of more, some are
// forgotten, and unknown until their next batch has landed.
//
// # In Redis
//
//	prefix name:{key}              string, the count
//	prefix name:{key}:id:<id>      string, what the add with this id did
//	prefix name:{key}:w:<writer>   string, the last batch of a writer of FlushEvery
//
// The hash tag is the key, so that the keys of a counter spread over a cluster; %, {
// and } in keys and ids are written as %25, %7B and %7D. While a slot moves, adds
// that need two keys ([ID], batches of FlushEvery) may be refused with
// [ErrNotExecuted] (TRYAGAIN) until it has moved.
//
// It takes Redis 6.0 or newer, or what speaks its protocol and runs its scripts. An
// account needs these commands on the keys "<prefix><name>:{*":
//
//	ACL SETUSER app on >secret ~seats:{* +eval +evalsha +get +set +pttl +incrby +del
//
// With AddTx also MULTI and EXEC, with WaitReplicas WAIT, in a cluster ASKING, and
// what the client itself asks a cluster.
package exact
