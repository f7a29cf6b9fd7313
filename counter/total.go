package counter

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// Total is what a participant knows of a group's number. All of it is from one
// moment; reading it never waits.
type Total struct {
	// Count is the larger of Closed, where known, and Buffer: a lower bound of
	// what the group counts now (see the package comment).
	Count int64

	// Closed is the group's total over the last closed interval, as the last
	// answer brought it; 0 while it is not Known.
	Closed int64

	// Known says that Closed, Own, Participants, First, Interval and At hold.
	// They do from the first answer on, until nothing has refreshed them for two
	// intervals, and not after Close.
	Known bool

	// Open is what the running interval held right after this participant's last
	// flush: a lower bound that shows a burst up to an interval earlier than
	// Closed. It is -1 where it is not known: before the first flush, once that
	// interval has ended, and for counters with attributes.
	Open int64

	// Buffer is what this participant counted and does not yet know to have
	// reached the group.
	Buffer int64

	// Own is this participant's part of Closed, a lower bound of it.
	Own int64

	// Participants is how many distinct participants flushed in the closed
	// interval. Those that speak only the JavaScript library's protocol are not
	// among them.
	Participants int64

	// First says that this participant was the first to flush in the interval
	// after the closed one: of all that ask, at most one is told so. Where only
	// one of a group shall report a total, the first reports it. Participants ask
	// while they have an [Group.OnTick] function, unless [WithoutFirst] is set.
	First bool

	// Interval is the closed interval's number: floor(server time / interval).
	Interval int64

	// At is when the answer came, by the local clock.
	At time.Time
}

// Reading is a counter's total at a tick, as given to [Group.OnTick].
type Reading struct {
	Name       string
	Attributes attribute.Set // empty for the name's grand total
	Float      bool          // amounts are in units of [Resolution]
	Total      Total
}
