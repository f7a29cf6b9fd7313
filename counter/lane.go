package counter

import (
	"slices"
	"time"
)

// minPatience is how long a call is waited for at least before its outcome
// counts as unknown.
const minPatience = 250 * time.Millisecond

// lane is all counters whose keys one server holds, with that server's clock
// and one flight. All times are local, since the start of the loop.
type lane struct {
	server   string
	clock    clock
	accounts []*account

	call    *call         // in the air
	hanging *call         // given up, but it may still answer
	due     time.Duration // of the next tick
	parting time.Duration // no earlier parting flush
	last    int64         // the interval of the last tick
	failed  bool          // the server could not be reached last time
	alarm   time.Duration // when a total goes stale or a running interval ends; 0: never
	policy  bool          // its eviction policy has been looked at

	preparing bool // BeforeTick functions run for the next tick
	prepared  bool // they have run
}

// call is one round trip, made on a goroutine of its own.
type call struct {
	lane     *lane
	sent     time.Duration
	deadline time.Duration
	highest  ServerTime // the latest time known as it left
	late     bool       // it was given up before it answered
	waited   bool       // a tick has passed meanwhile

	accounts []*account // of a lookup or probe

	tick    bool     // a flush of all that the lane has
	again   bool     // a flush that was refused once
	batches []*batch // of a flush, one per share
	shares  []Share
}

func (ln *lane) add(a *account) {
	a.lane = ln
	ln.accounts = append(ln.accounts, a)
}

func (ln *lane) remove(a *account) {
	ln.accounts = slices.DeleteFunc(ln.accounts, func(o *account) bool { return o == a })
	a.lane = nil
}

// rotate lets another counter stand for the lane.
func (ln *lane) rotate() {
	if len(ln.accounts) > 1 {
		ln.accounts = append(ln.accounts[1:len(ln.accounts):len(ln.accounts)], ln.accounts[0])
	}
}

// empty reports whether the lane can be dropped.
func (ln *lane) empty() bool {
	return len(ln.accounts) == 0 && ln.call == nil && ln.hanging == nil
}

// key names the counter that stands for the lane in reports.
func (ln *lane) key() seriesKey {
	if len(ln.accounts) == 0 {
		return seriesKey{}
	}
	return ln.accounts[0].grand.key
}

// ready reports whether a flush can leave.
func (ln *lane) ready() bool { return ln.call == nil && ln.clock.known }

// overdue reports whether the call in the air has had no answer for too long. At
// most one call is given up at a time; a second one is waited for (rule 6).
func (ln *lane) overdue(now time.Duration) bool {
	return ln.call != nil && ln.hanging == nil && now >= ln.call.deadline
}

// eachBatch calls fn for each batch of the lane that has cells.
func (ln *lane) eachBatch(fn func(*batch)) {
	for _, a := range ln.accounts {
		for _, b := range a.batches {
			if len(b.cells) > 0 {
				fn(b)
			}
		}
	}
}

// schedule sets the next tick.
func (ln *lane) schedule(now, length time.Duration) {
	if ln.clock.known {
		ln.due = ln.clock.due(now, ln.last)
	} else {
		ln.due = now + length
	}
	ln.prepared = false
}

// wakeAt makes the lane look at its totals at that time.
func (ln *lane) wakeAt(at time.Duration) {
	if ln.alarm == 0 || at < ln.alarm {
		ln.alarm = at
	}
}

// next is when the lane has to be looked at again.
func (ln *lane) next(lead, wait time.Duration) time.Duration {
	next := ln.due
	switch {
	case ln.preparing:
		next = ln.due + wait
	case !ln.prepared && ln.clock.known:
		next = ln.due - lead
	}
	if ln.call != nil && ln.hanging == nil {
		next = min(next, ln.call.deadline)
	}
	if ln.parting != 0 {
		next = min(next, ln.parting)
	}
	if ln.alarm != 0 {
		next = min(next, ln.alarm)
	}
	return next
}
