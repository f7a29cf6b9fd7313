package counter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// The tests of this file are not in bubbles, so that the race detector always sees
// them. They run in real time, on intervals of 20 ms.
const brief = 20 * time.Millisecond

// crowd runs functions again and again, each on goroutines of its own, until it is
// sent home.
type crowd struct {
	wg   sync.WaitGroup
	home atomic.Bool
}

func (c *crowd) run(goroutines int, fn func()) {
	for range goroutines {
		c.wg.Go(func() {
			for !c.home.Load() {
				fn()
				runtime.Gosched()
			}
		})
	}
}

func (c *crowd) sendHome() {
	c.home.Store(true)
	c.wg.Wait()
}

// within returns a context that ends soon.
func within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// tally is what was added, by counter.
type tally struct{ added [4]atomic.Int64 }

// anyCounter returns one of a few counters, of all kinds.
func (a *tally) anyCounter(t *testing.T, g, view *Group) (*Counter, *atomic.Int64) {
	i := rand.N(4)
	if i == 3 {
		g = view
	}
	var attrs []attribute.KeyValue
	if k := rand.N(6); k > 0 {
		attrs = append(attrs, attribute.Int("k", k))
	}
	c, err := g.Counter(fmt.Sprint("c", i), attrs...)
	assert.NoError(t, err)
	return c, &a.added[i]
}

func TestGroupConcurrentSafe(t *testing.T) {
	m, log := newMemStore(), newLossLog()
	g, err := NewGroup(nil, brief, WithStore(m), WithLogger(slog.New(log)), WithMaxSeries(12))
	require.NoError(t, err)
	view := mustView(t, g, "view:")
	var a tally
	var told, crossed, prepared atomic.Int64
	var users crowd
	users.run(4, func() {
		c, added := a.anyCounter(t, g, view)
		n := rand.N(int64(5))
		c.Add(n)
		added.Add(n)
	})
	users.run(2, func() {
		c, _ := a.anyCounter(t, g, view)
		total := c.Total()
		assert.GreaterOrEqual(t, c.Count(), int64(0))
		assert.GreaterOrEqual(t, total.Buffer, int64(0))
		c.Peek()
		again, err := c.group.Counter(c.key.name)
		assert.NoError(t, err)
		assert.Same(t, c.grand, again)
	})
	users.run(1, func() {
		f, err := g.FloatCounter("f")
		assert.NoError(t, err)
		f.Add(0.5)
		f.Total()
	})
	users.run(1, func() {
		c, _ := a.anyCounter(t, g, view)
		stop := c.Watch(3, 1, func(Total, bool) { crossed.Add(1) })
		_ = c.Flush(within(brief / 2))
		stop()
	})
	users.run(1, func() {
		stopTick, stopBefore := view.OnTick(func([]Reading) { told.Add(1) }), g.BeforeTick(func() { prepared.Add(1) })
		_ = view.Flush(within(brief))
		stopTick()
		stopBefore()
	})
	users.run(1, func() {
		faults := []memFault{
			{}, {loseReply: true}, {loseRequest: true}, {after: brief}, {before: brief / 2}, {again: brief / 2}, {err: errors.New("refused")},
		}
		m.setFault(func(*Flush) memFault { return faults[rand.N(len(faults))] })
		time.Sleep(brief / 4)
	})
	until(t, func() bool { return told.Load() > 10 && crossed.Load() > 3 && prepared.Load() > 10 })
	users.sendHome()

	m.setFault(nil)
	require.NoError(t, g.Flush(within(10*second)))
	for i := range a.added {
		name, of := fmt.Sprint("c", i), g
		if i == 3 {
			of = view
		}
		assert.Zero(t, mustCounter(t, of, name).Peek().Total.Buffer)
		added, lost := a.added[i].Load(), log.losses[name]
		assert.LessOrEqual(t, m.sum(name), added-lost[lostTries])
		assert.GreaterOrEqual(t, m.sum(name), added-lost[lostTries]-lost[lostUnknown])
	}
	require.NoError(t, g.Shutdown(t.Context()))
}

// All at once while the group ends: nothing hangs, and what was promised for
// afterwards holds.
func TestGroupEndsConcurrentSafe(t *testing.T) {
	for range 20 {
		m := newMemStore()
		g, err := NewGroup(nil, brief, WithStore(m))
		require.NoError(t, err)
		view := mustView(t, g, "view:")
		c, part := mustCounter(t, g, "c"), mustCounter(t, g, "c", attribute.Int("k", 1))
		var added atomic.Int64
		var users crowd
		users.run(2, func() {
			c.Add(1)
			part.Add(1)
			added.Add(2)
		})
		users.run(1, func() {
			c.Total()
			part.Count()
			if other, err := view.Counter("d"); err != nil {
				assert.ErrorIs(t, err, ErrClosed)
			} else {
				other.Add(1)
			}
		})
		users.run(1, func() {
			c.Watch(1, 1, func(Total, bool) {})()
			view.OnTick(func([]Reading) {})()
			g.BeforeTick(func() {})()
		})
		users.run(1, func() {
			if err := c.Flush(within(brief)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				assert.ErrorIs(t, err, ErrClosed)
			}
		})
		until(t, func() bool { return added.Load() > 100 })
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				switch i % 3 {
				case 0:
					_ = g.Shutdown(within(brief))
				case 1:
					_ = view.Shutdown(within(brief / 4))
				case 2:
					time.Sleep(rand.N(brief))
					view.Close()
				}
			})
		}
		wg.Wait()
		users.sendHome()
		until(t, m.quiet) // what was under way may have come after Close
		sum, before := m.sum("c"), c.Count()
		assert.Equal(t, before+5, c.Add(5))
		assert.False(t, c.Total().Known)
		assert.LessOrEqual(t, sum, added.Load())
		_, err = view.Counter("e")
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, g.Shutdown(t.Context()))
		require.ErrorIs(t, g.Flush(t.Context()), ErrClosed)
		time.Sleep(brief / 4)
		assert.Equal(t, sum, m.sum("c"), "sent after Close")
	}
}

// Counters come, rest, are given up by their users, and close, one by one.
func TestCountersComeAndGoConcurrentSafe(t *testing.T) {
	m, log := newMemStore(), newLossLog()
	g, err := NewGroup(nil, minInterval, WithStore(m), WithLogger(slog.New(log)), WithMaxSeries(20))
	require.NoError(t, err)
	var added, closed atomic.Int64
	var users crowd
	users.run(4, func() {
		set := rand.N(30)
		c, err := g.Counter("kept", attribute.Int("k", set))
		if assert.NoError(t, err) {
			c.Add(1)
			added.Add(1)
		}
		time.Sleep(rand.N(minInterval))
	})
	users.run(1, func() {
		runtime.GC() // whoever nobody holds goes
		time.Sleep(minInterval)
	})
	var names atomic.Int64
	users.run(2, func() {
		name := fmt.Sprint("closed", names.Add(1)/8)
		grand, err := g.Counter(name)
		if err != nil {
			assert.ErrorIs(t, err, ErrClosed)
			return
		}
		part, err := g.Counter(name, attribute.Int("k", 1))
		if err != nil {
			assert.ErrorIs(t, err, ErrClosed)
			return
		}
		grand.Add(1)
		part.Add(1)
		if rand.N(2) == 0 {
			time.Sleep(rand.N(3 * minInterval))
		}
		switch rand.N(4) {
		case 0:
			grand.Close()
		case 1:
			part.Close()
		case 2:
			_ = grand.Shutdown(within(minInterval))
		}
		part.Add(1)
		closed.Add(1)
	})
	until(t, func() bool { return added.Load() > 300 && closed.Load() > 100 })
	users.sendHome()
	require.NoError(t, g.Flush(within(10*second)))
	// A tick of 10 ms may come too late on a busy machine. What it loses is reported.
	lost := log.losses["kept"]
	assert.LessOrEqual(t, m.sum("kept"), added.Load()-lost[lostTries])
	assert.GreaterOrEqual(t, m.sum("kept"), added.Load()-lost[lostTries]-lost[lostUnknown])
	g.Close()
}

// A watch is stopped while it calls, and its counter closes.
func TestWatchConcurrentSafe(t *testing.T) {
	g, err := NewGroup(nil, minInterval, WithStore(newMemStore()))
	require.NoError(t, err)
	defer g.Close()
	for round := range 50 {
		c := mustCounter(t, g, fmt.Sprint("c", round))
		var running, most, calls atomic.Int64
		var stops []func()
		for range 4 {
			var own atomic.Int64
			stops = append(stops, c.Watch(5, 5, func(Total, bool) {
				most.Store(max(most.Load(), own.Add(1)))
				running.Add(1)
				calls.Add(1)
				runtime.Gosched()
				running.Add(-1)
				own.Add(-1)
			}))
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 20 {
					c.Add(1)
				}
				stops[i]()
				stops[(i+1)%4]()
				if i == 0 {
					c.Close()
				}
			})
		}
		wg.Wait()
		until(t, func() bool { return running.Load() == 0 })
		assert.LessOrEqual(t, most.Load(), int64(1), "calls of one watch overlap")
	}
}
