package counter

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// "After Close the readings that are still waiting are delivered": Drain waits for
// them.
func TestDrainWaitsForTheLastReadings(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		var told atomic.Int64
		slow := make(chan struct{})
		g.OnTick(func([]Reading) {
			<-slow
			told.Add(1)
		})
		c.Add(1)
		sleep(5 * second)
		require.NoError(t, g.Shutdown(t.Context()))
		assert.Zero(t, told.Load())

		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		require.ErrorIs(t, g.Drain(ctx), context.DeadlineExceeded)

		close(slow)
		require.NoError(t, g.Drain(t.Context()))
		assert.GreaterOrEqual(t, told.Load(), int64(5))
	})
}

func TestDrainWithoutCloseDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *memStore, g *Group) {
		g.OnTick(func([]Reading) {})
		require.NoError(t, g.Drain(t.Context()))
	})
}

// WithoutFirst: "so that it does not take the place of one that does."
func TestOnlyThoseThatReportAreFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, quiet *Group) {
		loud, err := NewGroup(nil, second, WithStore(m))
		require.NoError(t, err)
		defer loud.Close()
		var firsts [2]map[int64]int
		for i, g := range []*Group{quiet, loud} {
			firsts[i] = map[int64]int{}
			defer g.OnTick(func(readings []Reading) {
				for _, r := range readings {
					if r.Total.First {
						firsts[i][r.Total.Interval]++
					}
				}
			})()
			mustCounter(t, g, "c").Add(1)
		}
		for range 20 {
			mustCounter(t, quiet, "c").Add(1)
			mustCounter(t, loud, "c").Add(1)
			sleep(second)
		}
		synctest.Wait()
		assert.Empty(t, firsts[0])
		assert.GreaterOrEqual(t, len(firsts[1]), 18)
		for interval, n := range firsts[1] {
			assert.Equal(t, 1, n, "interval %d", interval)
		}
	}, WithoutFirst())
}
