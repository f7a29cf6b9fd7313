package counter

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
)

// Counter counts locally and knows the group's number. Without attributes it is
// its name's grand total over all attribute sets; with attributes it is its
// part, and what it adds also goes to the grand total.
//
// All methods may be called from any number of goroutines.
type Counter struct {
	// What an Add touches comes first, and shares a cache line.
	grand   *Counter // the grand total that this is a part of; itself if it is one
	counted atomic.Int64
	parts   atomic.Int64 // of a grand total: what its parts counted
	view    atomic.Pointer[view]
	excess  bool        // stands for all series above WithMaxSeries
	touched atomic.Bool // used since the last tick
	queued  atomic.Bool // has asked the loop to be taken up
	started atomic.Bool // has been added to
	ended   atomic.Bool // closed on its own

	group *Group
	key   seriesKey
	attrs attribute.Set
	alone bool // made by New: the group is its own

	overflowed atomic.Int64 // amounts that would have passed int64, not yet reported
	invalid    atomic.Int64 // how many amounts were none, of a float counter, not yet reported
	watches    watches

	place   *place       // the registry's
	cell    cell         // the loop's
	float   FloatCounter // the same, in fractions
	greeted bool         // the loop's: its start was reported
}

// New returns a counter in a group of its own.
//
// The interval is how often a counter is flushed, in whole milliseconds, from
// 10 ms to 24 h. Participants that share a name, a prefix and an interval share
// a total. One with another interval counts apart from them, and nothing warns of it:
// look at Participants of [Total]. The client stays the caller's: Close does not
// close it.
//
// New fails on a nil client, a [redis.Ring] (a rehash would part a total from
// its marks), a [redis.AutoPipeliner] (it may send a command twice), and a name,
// prefix or interval out of bounds. It does not talk to
// Redis; nothing does before the first Add.
func New(rdb redis.UniversalClient, name string, interval time.Duration, opts ...Option) (*Counter, error) {
	g, err := NewGroup(rdb, interval, opts...)
	if err != nil {
		return nil, err
	}
	c, err := g.Counter(name)
	if err != nil {
		return nil, err
	}
	c.alone = true
	return c, nil
}

// Add counts n and returns Count. It never waits and never fails. Negative
// amounts are allowed, but with them no bound is a lower bound any more. An Add
// that would pass int64 changes nothing and is reported as a loss.
//
// The first Add starts the counter; Add(0) does too. A counter that stands for the
// series above [WithMaxSeries] counts into its grand total only, and returns 0.
// After Close, Add goes on counting locally.
func (c *Counter) Add(n int64) int64 {
	if n == 0 {
		c.wakeUp()
		return c.Count()
	}
	if c.excess {
		c.grand.Add(n)
		return 0
	}
	var buffer int64
	if c.grand == c {
		own := c.counted.Add(n)
		buffer = own + c.parts.Load()
		if passed(buffer, n) || passed(own, n) {
			return c.undo(&c.counted, n)
		}
	} else {
		// To the grand total first: what a tick takes from a part has then
		// always been counted there.
		parts := c.grand.parts.Add(n)
		if passed(parts, n) || passed(parts+c.grand.counted.Load(), n) {
			return c.undo(&c.grand.parts, n)
		}
		buffer = c.counted.Add(n)
		if passed(buffer, n) { // others' negative amounts kept the grand total low
			c.counted.Add(-n)
			return c.undo(&c.grand.parts, n)
		}
	}
	v := c.view.Load()
	if !v.awake {
		c.asleep()
	}
	return v.count(buffer - v.settled)
}

// asleep sees to an amount that no tick is going to take.
func (c *Counter) asleep() {
	if !c.ended.Load() || c.grand == c {
		c.wakeUp()
		return
	}
	c.apart()
}

// end has a part that was closed count for itself only. It returns what it counted
// that no tick has taken.
func (c *Counter) end() (fresh int64) {
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	v := unknown
	v.settled = c.cell.settled
	// First this, then what was counted: an Add that is not among it finds the
	// counter asleep, and comes to apart.
	c.view.Store(&v)
	fresh = c.counted.Load() - c.cell.taken
	c.cell.taken += fresh
	c.cell.ended = true
	return fresh
}

// apart takes what a part counted since its end out of its grand total. It reports
// whether it has come to its end.
func (c *Counter) apart() bool {
	c.group.mu.Lock()
	defer c.group.mu.Unlock()
	if c.cell.ended && c != c.grand {
		n := c.counted.Load() - c.cell.taken
		c.cell.taken += n
		c.grand.parts.Add(-n)
	}
	return c.cell.ended
}

// passed reports whether adding n gave a sum that wrapped around.
func passed(sum, n int64) bool {
	before := sum - n
	return (before^sum)&(n^sum) < 0 // it has neither's sign
}

// undo takes back an amount that does not fit, and has it reported.
func (c *Counter) undo(from *atomic.Int64, n int64) int64 {
	from.Add(-n)
	c.reject(&c.overflowed, n)
	return c.Count()
}

// reject has an amount reported that was not counted, by the next tick.
func (c *Counter) reject(in *atomic.Int64, n int64) {
	if sum := in.Add(n); passed(sum, n) {
		in.Store(math.MaxInt64)
	}
	c.touched.Store(true)
	if !c.view.Load().awake {
		c.wakeUp()
	}
}

// Peek is Total for an onlooker: it does not count as use, so that whoever shows
// all totals keeps none awake. The reading has the counter's attributes; of a
// counter that stands for the series above [WithMaxSeries] it has none.
func (c *Counter) Peek() Reading {
	name, float := strings.CutSuffix(c.key.name, floatSuffix)
	return Reading{Name: name, Attributes: c.attrs, Float: float, Total: c.read()}
}

// Count returns the larger of the group's total over the last closed interval,
// where known, and this participant's own buffer.
func (c *Counter) Count() int64 {
	if !c.touched.Load() {
		c.touch()
	}
	v := c.view.Load()
	return v.count(c.buffer(v))
}

// Total returns Count and all that it is made from.
func (c *Counter) Total() Total {
	if !c.touched.Load() {
		c.touch()
	}
	return c.read()
}

// read is Total, without keeping the counter awake.
func (c *Counter) read() Total {
	v := c.view.Load()
	t := v.total
	t.Buffer = c.buffer(v)
	t.Count = v.count(t.Buffer)
	return t
}

func (c *Counter) buffer(v *view) int64 {
	return c.counted.Load() + c.parts.Load() - v.settled
}

// touch notes that the counter is in use, and wakes it if it was put to rest.
func (c *Counter) touch() {
	c.touched.Store(true)
	if c.started.Load() && !c.view.Load().awake {
		c.wakeUp()
	}
}

// wakeUp asks the loop to take the counter up, if nobody has yet.
func (c *Counter) wakeUp() {
	if c.queued.CompareAndSwap(false, true) {
		c.started.Store(true)
		c.group.wake(c)
	}
}

// Flush waits until all that was counted before the call is settled: known to
// have reached the group, or reported as lost. It does not wait for the tick; if
// this participant has flushed in the running interval already, the amount goes
// to the next one. It takes two intervals and more where an answer was lost.
// With nothing to settle it returns at once and sends nothing.
//
// If ctx ends first, the error wraps its cause and what is unsettled is kept:
// the next tick sends it. After Close, Flush returns [ErrClosed].
func (c *Counter) Flush(ctx context.Context) error { return c.group.awaitSettled(ctx, c) }

// Shutdown sends what is left, as Flush does, and closes the counter, whatever
// comes of it. What could not be sent, or is not known to have arrived, is lost;
// it is reported and makes the error. A second Shutdown, or one after Close,
// returns nil.
func (c *Counter) Shutdown(ctx context.Context) error {
	if c.alone {
		return c.group.Shutdown(ctx)
	}
	return c.group.shutdown(ctx, c)
}

// Close stops the counter at once and gives up what it has not sent: what is not
// known to have arrived is lost, and reported. To end a program, use
// [Counter.Shutdown]. Afterwards Add goes on counting locally, Count is the buffer,
// nothing is Known, and the group answers the counter's name with [ErrClosed]. Closing a grand total closes its parts too. Close may be called
// more than once.
//
// The group remembers which names were closed. Parts that come and go need no
// Close: one that nobody uses leaves memory by itself.
func (c *Counter) Close() {
	if c.alone {
		c.group.Close()
		return
	}
	c.group.closeCounter(c)
}
