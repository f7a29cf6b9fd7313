package group

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// Millions of Adds, to a whole and its parts, while the group is shut down. What has
// landed, what was reported and what stays in the buffer is all that was added.
func TestAddsAcrossShutdown(t *testing.T) {
	t.Parallel()
	rdb, interval := redistest.Client(t), redistest.Interval(t)
	for _, end := range []func(*counter.Group, *losses){
		func(g *counter.Group, _ *losses) { g.Close() },
		func(g *counter.Group, _ *losses) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_ = g.Shutdown(ctx) // what is added all the time is lost
		},
	} {
		prefix, losses := redistest.Prefix(t), newLosses()
		r := follow(t, rdb, prefix, "n", interval)
		g, err := counter.NewGroup(rdb, interval, counter.WithPrefix(prefix), counter.WithLogger(slog.New(losses)))
		require.NoError(t, err)
		whole, err := g.Counter("n")
		require.NoError(t, err)
		counters := []*counter.Counter{whole, whole}
		for i := range 2 {
			part, err := g.Counter("n", attribute.Int("part", i))
			require.NoError(t, err)
			counters = append(counters, part)
		}
		var added atomic.Int64
		var adders sync.WaitGroup
		for _, c := range counters {
			adders.Go(func() {
				for i := range int64(300_000) {
					c.Add(i % 3)
					if i%1000 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
				added.Add(300_000)
			})
		}
		time.Sleep(3 * interval / 2)
		end(g, losses)
		adders.Wait()
		_, sum := r.finish(t)
		buffer := whole.Total().Buffer
		atClose := losses.sum()
		assert.LessOrEqual(t, sum, added.Load()-buffer+losses.because("may have been counted"))
		assert.GreaterOrEqual(t, sum, added.Load()-buffer)
		assert.LessOrEqual(t, atClose, buffer, "what was lost as it closed stays in the buffer: %v", losses.why)
		assert.Positive(t, sum)
	}
}

// Everything at once, for the race detector: no call may wait for another, panic, or
// lose what it should not.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	rdb, interval := redistest.Client(t), redistest.Interval(t)
	prefix, losses := redistest.Prefix(t), newLosses()
	newGroup := func() *counter.Group {
		g, err := counter.NewGroup(rdb, interval, counter.WithPrefix(prefix), counter.WithLogger(slog.New(losses)))
		require.NoError(t, err)
		t.Cleanup(g.Close)
		return g
	}
	groups := []*counter.Group{newGroup(), newGroup()} // of one process, on one counter
	r := follow(t, rdb, prefix, "n", interval)
	view := follow(t, rdb, prefix+"view:", "n", interval)
	var added, inView, calls atomic.Int64
	var work sync.WaitGroup
	until := time.Now().Add(10 * interval)
	repeat := func(do func(i int)) {
		work.Go(func() {
			for i := 0; time.Now().Before(until); i++ {
				do(i)
			}
		})
	}
	for _, g := range groups {
		whole, err := g.Counter("n")
		require.NoError(t, err)
		for range 2 {
			repeat(func(i int) {
				part, err := g.Counter("n", attribute.Int("part", i%50))
				if err != nil {
					panic(err)
				}
				part.Add(1)
				whole.Add(1)
				added.Add(2)
				part.Count()
				part.Total()
				if i%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			})
		}
		repeat(func(int) {
			v, err := g.WithPrefix(prefix + "view:")
			if err != nil {
				panic(err)
			}
			c, err := v.Counter("n")
			if err != nil {
				panic(err)
			}
			c.Add(1)
			inView.Add(1)
			time.Sleep(time.Millisecond)
		})
		repeat(func(i int) { // watches that come and go, and panic
			stop := whole.Watch(int64(i%3), 0, func(counter.Total, bool) {
				calls.Add(1)
				if i%10 == 0 {
					panic("of a Watch function")
				}
			})
			if i%2 == 0 {
				time.Sleep(time.Millisecond)
			}
			stop()
			stop()
		})
		repeat(func(int) {
			stop := g.OnTick(func([]counter.Reading) { calls.Add(1) })
			before := g.BeforeTick(func() { whole.Add(0) })
			time.Sleep(interval / 3)
			stop()
			before()
		})
		repeat(func(i int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*interval/7)
			defer cancel()
			if err := g.Flush(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				panic(err)
			}
		})
	}
	repeat(func(int) { // a group that lives for a moment
		g, err := counter.NewGroup(rdb, interval, counter.WithPrefix(prefix), counter.WithLogger(slog.New(losses)))
		if err != nil {
			panic(err)
		}
		c, err := g.Counter("n")
		if err != nil {
			panic(err)
		}
		c.Add(1)
		added.Add(1)
		ctx, cancel := context.WithTimeout(t.Context(), 2*interval)
		defer cancel()
		_ = g.Shutdown(ctx)
		c.Close()
	})
	work.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, g := range groups {
		require.NoError(t, g.Flush(ctx))
	}
	_, sum := r.finish(t)
	p := &participants{losses: losses, added: added.Load() + inView.Load()}
	_, viewed := view.finish(t)
	within(t, p, sum+viewed, 0)
	assert.LessOrEqual(t, viewed, inView.Load())
	assert.LessOrEqual(t, sum, added.Load())
	assert.Positive(t, calls.Load())
}

// "Close of the counter or its group ends the watch", also of one that comes too late.
func TestWatchOfAClosedCounterEnds(t *testing.T) {
	t.Parallel()
	g, err := counter.NewGroup(redistest.Client(t), redistest.Interval(t), counter.WithPrefix(redistest.Prefix(t)))
	require.NoError(t, err)
	t.Cleanup(g.Close)
	c, err := g.Counter("n")
	require.NoError(t, err)
	c.Add(1)
	c.Close()
	var called atomic.Int64
	c.Watch(10, 10, func(counter.Total, bool) { called.Add(1) })
	time.Sleep(redistest.Interval(t)) // longer than a watch waits before it looks
	c.Add(100)
	time.Sleep(redistest.Interval(t))
	assert.Zero(t, called.Load())
}

// never is a store whose calls do not return, whatever becomes of their context.
type never struct {
	counter.Store
	hang chan struct{}
	sent atomic.Int64
	from int64 // the flush that hangs, and all after it
}

func (n *never) Flush(ctx context.Context, f *counter.Flush) []counter.Result {
	if n.sent.Add(1) >= n.from {
		<-n.hang
	}
	return n.Store.Flush(ctx, f)
}

// "A call without an answer after one interval is set aside and the loop goes on; at
// most one such abandoned call may still hang, then the lane waits for it."
func TestAStoreThatNeverReturns(t *testing.T) {
	t.Parallel()
	interval := redistest.Interval(t)
	inner, err := counter.NewStore(redistest.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }))
	require.NoError(t, err)
	store, losses := &never{Store: inner, hang: make(chan struct{}), from: 3}, newLosses()
	defer close(store.hang)
	c, err := counter.New(nil, "n", interval, counter.WithStore(store), counter.WithPrefix(redistest.Prefix(t)), counter.WithLogger(slog.New(losses)))
	require.NoError(t, err)
	var added int64
	for end := time.Now().Add(12 * interval); time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.Add(1)
		added++
	}
	assert.LessOrEqual(t, store.sent.Load(), int64(4), "two that landed, two that hang")
	assert.False(t, c.Total().Known)
	ctx, cancel := context.WithTimeout(t.Context(), interval)
	defer cancel()
	require.ErrorIs(t, c.Flush(ctx), context.DeadlineExceeded)
	before := losses.sum()
	assert.Positive(t, before, "what cannot leave is not kept for ever")
	buffer := c.Total().Buffer
	c.Close()
	assert.Equal(t, buffer, losses.sum()-before, "what it held is reported: %v", losses.why)
	assert.Less(t, losses.sum(), added, "and two flushes had landed")
}
