package counter

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// ticks are the readings that an OnTick function got.
type ticks struct {
	mu  sync.Mutex
	got [][]Reading
}

func (c *ticks) note(readings []Reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, readings)
}

func (c *ticks) list() [][]Reading {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// intervals returns the closed intervals of a counter that were told.
func (c *ticks) intervals() (ns []int64) {
	for _, readings := range c.list() {
		if readings[0].Total.Known {
			ns = append(ns, readings[0].Total.Interval)
		}
	}
	return ns
}

// contiguous reports whether intervals follow on each other.
func contiguous(ns []int64) bool {
	for i, n := range ns {
		if n != ns[0]+int64(i) {
			return false
		}
	}
	return true
}

// "After each applied flush", with what is in it, as it is named.
func TestOnTickTellsOfEachAppliedFlush(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0)
		var got ticks
		g.OnTick(got.note)
		set := attribute.Int("k", 1)
		c, part, f := mustCounter(t, g, "c"), mustCounter(t, g, "c", set), mustFloat(t, g, "f")
		c.Add(1)
		part.Add(2)
		f.Add(1.5)
		sleep(1500 * time.Millisecond)
		require.Len(t, got.list(), 2)
		byName := map[string]Reading{}
		for _, r := range got.list()[1] {
			byName[r.Name+r.Attributes.Encoded(attribute.DefaultEncoder())] = r
		}
		require.Len(t, byName, 3)
		assert.EqualValues(t, 3, byName["c"].Total.Closed)
		assert.EqualValues(t, 2, byName["ck=1"].Total.Closed)
		assert.Equal(t, attribute.NewSet(set), byName["ck=1"].Attributes)
		assert.EqualValues(t, 1_500_000, byName["f"].Total.Closed)
		assert.True(t, byName["f"].Float)
		assert.False(t, byName["c"].Float)

		m.setFault(func(*Flush) memFault { return memFault{err: errors.New("refused")} })
		sleep(3 * second)
		assert.Len(t, got.list(), 2, "not applied")
	})
}

// "One call at a time, in the order of the ticks. A function so slow that 64 ticks
// wait for it misses the oldest."
func TestOnTickThatIsSlowMissesTheOldest(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0)
		var slow, quick ticks
		blocked := make(chan struct{})
		g.OnTick(func(readings []Reading) {
			slow.note(readings)
			<-blocked
		})
		g.OnTick(quick.note)
		c := mustCounter(t, g, "c")
		for range 100 {
			c.Add(1)
			sleep(second)
		}
		require.Len(t, slow.list(), 1)
		assert.True(t, contiguous(quick.intervals()), "the other one waits: %v", quick.intervals())
		assert.Len(t, quick.list(), 100)
		close(blocked)
		told := slow.intervals()
		require.Len(t, told, queueLength)
		assert.True(t, contiguous(told), "%v", told)
		assert.Equal(t, quick.intervals()[98], told[len(told)-1], "the latest is missing")
		assert.Equal(t, int64(100), m.sum("c"))
	})
}

// "A panic in fn is reported and ends nothing."
func TestOnTickThatPanicsEndsNothing(t *testing.T) {
	log := newLossLog()
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0, WithLogger(slog.New(log)))
		var panics, good ticks
		g.OnTick(func(readings []Reading) {
			panics.note(readings)
			panic("a bug of the user")
		})
		g.OnTick(good.note)
		mustCounter(t, g, "c").Add(1)
		sleep(5 * second)
		assert.Len(t, panics.list(), 5)
		assert.Len(t, good.list(), 5)
		assert.Equal(t, 5, log.msgs["callback panicked"])
	})
}

// "OnTick of a view is told of its counters only."
func TestOnTickOfAViewIsToldOfItsCountersOnly(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0)
		views := map[string]*Group{"": g}
		told := map[string]*ticks{"": {}, "a:": {}, "b:": {}}
		for _, prefix := range []string{"a:", "b:"} {
			view, err := g.WithPrefix(prefix)
			require.NoError(t, err)
			views[prefix] = view
		}
		amount := map[string]int64{"": 1, "a:": 2, "b:": 4}
		for prefix, view := range views {
			view.OnTick(told[prefix].note)
			mustCounter(t, view, "c").Add(amount[prefix])
		}
		sleep(1500 * time.Millisecond)
		for prefix := range views {
			got := told[prefix].list()
			require.Len(t, got, 2, prefix)
			require.Len(t, got[1], 1)
			assert.Equal(t, amount[prefix], got[1][0].Total.Closed)
		}
	})
}

// "Stop does not wait for a running call, and may be called by fn." No further call
// begins.
func TestOnTickStops(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0)
		var inside, outside ticks
		var stop func()
		stop = g.OnTick(func(readings []Reading) {
			inside.note(readings)
			stop()
			stop()
		})
		running := make(chan struct{})
		stopOutside := g.OnTick(func(readings []Reading) {
			outside.note(readings)
			<-running
		})
		mustCounter(t, g, "c").Add(1)
		sleep(5 * second) // some ticks wait
		before := time.Now()
		stopOutside()
		assert.Equal(t, before, time.Now())
		close(running)
		sleep(5 * second)
		assert.Len(t, inside.list(), 1)
		assert.Len(t, outside.list(), 1)
	})
}

// "After Close the readings that are still waiting are delivered, then no more."
func TestOnTickAfterClose(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0)
		var got, none ticks
		running := make(chan struct{})
		g.OnTick(func(readings []Reading) {
			got.note(readings)
			<-running
		})
		mustCounter(t, g, "c").Add(1)
		sleep(5 * second)
		g.Close()
		g.OnTick(none.note)()
		close(running)
		sleep(5 * second)
		assert.Len(t, got.list(), 5)
		assert.Empty(t, none.list())
	})
}

// "BeforeTick has fn called before a tick takes what was counted"; "Flush and
// Shutdown of the group call it too".
func TestBeforeTickComesBeforeTheAmountsAreTaken(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0.5)
		c := mustCounter(t, g, "c")
		c.Add(0)
		sleep(3 * second)
		var read atomic.Int64 // of a source that is read
		stop := g.BeforeTick(func() {
			read.Add(1)
			c.Add(1)
		})
		from := len(m.ran())
		for range 5 {
			sleep(second)
			assert.Equal(t, read.Load(), m.sum("c"), "what was read just in time is not in the tick")
		}
		assert.EqualValues(t, 5, read.Load())
		for _, r := range m.ran()[from:] {
			assert.EqualValues(t, 1, r.Amount)
		}
		require.NoError(t, g.Flush(t.Context()))
		assert.EqualValues(t, 6, m.sum("c"))
		stop()
		stop()
		sleep(3 * second)
		assert.EqualValues(t, 6, m.sum("c"))

		g.BeforeTick(func() { c.Add(10) })
		require.NoError(t, g.Shutdown(t.Context()))
		assert.EqualValues(t, 16, m.sum("c"))
	})
}

// "A tick waits for it for at most a quarter of an interval."
func TestBeforeTickThatIsSlowDelaysATickByAQuarterAtMost(t *testing.T) {
	for _, takes := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 700 * time.Millisecond, 5 * second} {
		t.Run(takes.String(), func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				g := m.join(t, "alice---", 0.5) // at 575 ms
				c := mustCounter(t, g, "c")
				running, most := 0, 0
				var mu sync.Mutex
				g.BeforeTick(func() {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(takes)
					mu.Lock()
					running--
					mu.Unlock()
				})
				for range 20 {
					c.Add(1)
					sleep(second)
				}
				runs := m.ran()
				assert.GreaterOrEqual(t, len(runs), 19, "intervals were missed")
				for _, r := range runs[3:] {
					at := time.Duration(r.at%serverSecond) * time.Microsecond
					assert.GreaterOrEqual(t, at, 575*time.Millisecond-slack(second))
					assert.LessOrEqual(t, at, 575*time.Millisecond+slack(second))
				}
				assert.Equal(t, 1, most, "calls overlap")
			})
		})
	}
}

func TestBeforeTickThatPanicsEndsNothing(t *testing.T) {
	log := newLossLog()
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0, WithLogger(slog.New(log)))
		calls := 0
		g.BeforeTick(func() { panic("a bug of the user") })
		g.BeforeTick(func() { calls++ })
		mustCounter(t, g, "c").Add(1)
		sleep(5 * second)
		assert.Equal(t, int64(1), m.sum("c"))
		assert.Equal(t, calls, log.msgs["callback panicked"])
		assert.GreaterOrEqual(t, calls, 4)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		require.NoError(t, g.Flush(ctx))
	})
}
