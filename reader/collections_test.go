package reader

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Collections run the application's callbacks, so there are no more of them than
// said.
func TestCollectionsAreFew(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(WithInterval(2 * second))
		o := a.observable("o")
		during := func(d time.Duration) int {
			before := o.count()
			sleep(d)
			return o.count() - before
		}
		sleep(3 * second)
		assert.InDelta(t, 10, during(20*second), 1, "one an interval while nothing counts")

		c := a.counter("c")
		c.Add(t.Context(), 1)
		sleep(5 * second)
		assert.InDelta(t, 5, during(10*second), 1, "one before each tick")

		before := o.count()
		a.reader.Total("c")
		sleep(second / 10)
		assert.Equal(t, 1, o.count()-before, "soon after Total")
		assert.LessOrEqual(t, during(2*second-second/5), 11, "every tenth of an interval within the one after Total")
		sleep(second)
		assert.InDelta(t, 5, during(10*second), 1, "no more after that")

		stop := a.reader.Watch("c", 100, 100, func(counter.Total, bool) {})
		assert.InDelta(t, 50+5, during(10*second), 6, "every tenth of an interval and before each tick while there is a watch")
		stop()
		sleep(second)
		assert.InDelta(t, 5, during(10*second), 1)
	})
}

func TestExtraCollectionsAreNotFasterThanTheirGap(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(WithInterval(400 * time.Millisecond))
		o := a.observable("o")
		defer a.reader.Watch("o", 100, 100, func(counter.Total, bool) {})()
		sleep(2 * second)
		before := o.count()
		sleep(10 * second)
		assert.LessOrEqual(t, o.count()-before, 100+25)
	})
}

// What was counted just before a tick leaves with it.
func TestAmountsLeaveWithTheTick(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		c := a.counter("c")
		var counted atomic.Int64
		done := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-done:
					return
				default:
				}
				c.Add(t.Context(), 1)
				counted.Add(1)
				time.Sleep(time.Millisecond)
			}
		}()
		sleep(5 * second)
		for range 5 {
			before := b.truth("shop:{c}")
			for b.truth("shop:{c}") == before {
				time.Sleep(time.Millisecond)
			}
			assert.LessOrEqual(t, counted.Load()-b.truth("shop:{c}"), int64(10))
		}
		close(done)
		<-ended
	})
}

func TestWatchCrossesByTheOwnBuffer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(WithInterval(10 * second))
		c := a.counter("c")
		var over atomic.Bool
		stop := a.reader.Watch("c", 100, 50, func(_ counter.Total, o bool) { over.Store(o) })
		defer stop()
		b.server.SetError("LOADING") // nothing lands
		c.Add(t.Context(), 99)
		sleep(2*second + second/10)
		assert.False(t, over.Load())
		c.Add(t.Context(), 1)
		sleep(2*second + second/10)
		assert.True(t, over.Load(), "long before the next tick")
		b.server.SetError("")
		sleep(40 * second)
		assert.False(t, over.Load())
	})
}

func TestUnknownTotalIsNotObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		require.NoError(t, a.reader.RegisterGauges(a.provider))
		assert.Equal(t, counter.Total{Open: -1}, a.reader.Total("c"))
		a.counter("c").Add(t.Context(), 1)
		sleep(3 * second)
		assert.Contains(t, gauge[int64](a, "c.group"), set())
		b.server.SetError("LOADING")
		sleep(4 * second)
		assert.False(t, a.reader.Total("c").Known)
		assert.Nil(t, gauge[int64](a, "c.group"))
		b.server.SetError("")
	})
}
