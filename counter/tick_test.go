package counter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

const second = time.Second

// inBubble runs a test on virtual time with a group on a store in memory.
func inBubble(t *testing.T, test func(t *testing.T, m *memStore, g *Group), opts ...Option) {
	bubbletest.Run(t, func(t *testing.T) {
		m := newMemStore()
		g, err := NewGroup(nil, second, append(opts, WithStore(m))...)
		require.NoError(t, err)
		test(t, m, g)
		g.Close()
		time.Sleep(10 * second) // calls that are out come back
	})
}

func mustCounter(t *testing.T, g *Group, name string, attrs ...attribute.KeyValue) *Counter {
	t.Helper()
	c, err := g.Counter(name, attrs...)
	require.NoError(t, err)
	return c
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestCounterNeverAddedToSendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		stop := c.Watch(1, 1, func(Total, bool) {})
		defer stop()
		assert.Zero(t, c.Count())
		assert.False(t, c.Total().Known)
		sleep(5 * second)
		require.NoError(t, c.Flush(t.Context()))
		assert.Zero(t, m.callCount())
	})
}

func TestGroupTotalReachesEveryParticipant(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		other, err := NewGroup(nil, second, WithStore(m))
		require.NoError(t, err)
		defer other.Close()
		a, b := mustCounter(t, g, "c"), mustCounter(t, other, "c")
		a.Add(0)
		b.Add(0)
		sleep(3 * second)
		assert.EqualValues(t, 3, a.Add(3))
		assert.EqualValues(t, 4, b.Add(4))
		sleep(2 * second)
		assert.Equal(t, int64(7), m.sum("c"))
		var got []Total
		for _, c := range []*Counter{a, b} {
			got = append(got, c.Total())
		}
		assert.True(t, got[0].Known)
		assert.EqualValues(t, 2, got[0].Participants)
		assert.Equal(t, got[0].Closed, a.Count())
	})
}

func TestThousandAddsAreOneFlush(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		for range 1000 {
			c.Add(1)
		}
		sleep(second)
		assert.Equal(t, int64(1000), m.sum("c"))
		assert.Len(t, m.sent(), 1)
	})
}

// Six hundred intervals at each round trip, and none without this participant:
// rule 6, "a participant contributes to every interval for any stable round trip
// below an interval".
func TestEveryIntervalHasItsContribution(t *testing.T) {
	for _, net := range []struct{ interval, roundTrip time.Duration }{
		{100 * time.Millisecond, 0},
		{100 * time.Millisecond, 10 * time.Millisecond},
		{100 * time.Millisecond, 30 * time.Millisecond},
		{second, 300 * time.Millisecond},
		{second, 990 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(net.interval, " +", net.roundTrip), func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				m := newMemStore()
				m.fault = func(*Flush) memFault {
					return memFault{before: net.roundTrip / 2, after: net.roundTrip - net.roundTrip/2}
				}
				c, err := New(nil, "c", net.interval, WithStore(m))
				require.NoError(t, err)
				for range 6050 {
					c.Add(1)
					time.Sleep(net.interval / 10)
				}
				c.Close()
				time.Sleep(10 * second) // calls that are out come back
				byN := m.byInterval("c")
				first, last := slices.Min(slices.Collect(maps.Keys(byN))), slices.Max(slices.Collect(maps.Keys(byN)))
				assert.GreaterOrEqual(t, len(byN), 600)
				assert.Len(t, byN, int(last-first+1), "no interval between the first and the last is without us")
				for n, v := range byN {
					if n > first+1 { // the first tick need not be at the phase
						assert.InDelta(t, 10, v, 1, "interval %d", n)
					}
				}
			})
		})
	}
}

func TestShutdownLandsTheBufferInTheNextInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3 * second)
		for len(m.sent()) < 4 {
			sleep(10 * time.Millisecond)
		}
		last := m.sent()[len(m.sent())-1].Interval
		c.Add(5)
		before := time.Now()
		require.NoError(t, g.Shutdown(t.Context()))
		assert.Less(t, time.Since(before), 10*time.Millisecond)
		assert.Equal(t, int64(5), m.byInterval("c")[last+1])
		assert.Equal(t, int64(6), m.sum("c"))
		assert.False(t, c.Total().Known)
		assert.EqualValues(t, 2, c.Add(2))
		assert.ErrorIs(t, c.Flush(t.Context()), ErrClosed)
		_, err := g.Counter("c")
		assert.ErrorIs(t, err, ErrClosed)
	})
}

func TestCloseSendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(2 * second)
		calls := m.callCount()
		c.Add(5)
		g.Close()
		g.Close()
		sleep(5 * second)
		assert.Equal(t, calls, m.callCount())
		assert.EqualValues(t, 5, c.Count())
	})
}

func TestFlushUsesTheNextIntervalThenWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3 * second)
		for range 6 {
			c.Add(1)
			require.NoError(t, c.Flush(t.Context()))
			require.NoError(t, c.Flush(t.Context()))
		}
		assert.Equal(t, int64(7), m.sum("c"))
		seen := map[int64]bool{}
		for _, s := range m.sent() {
			if s.Mode != ModeRead {
				assert.False(t, seen[s.Interval], "twice in %d", s.Interval)
				seen[s.Interval] = true
			}
		}
	})
}

func TestLostReplyCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		n := 0
		m.fault = func(*Flush) memFault { n++; return memFault{loseReply: n%3 == 0, loseRequest: n%3 == 1} }
		for range 300 {
			c.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
		m.setFault(nil)
		require.NoError(t, c.Flush(t.Context()))
		assert.Equal(t, int64(300), m.sum("c"))
	})
}

func TestFlushReturnsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		hang := make(chan struct{})
		m.fault = func(*Flush) memFault { return memFault{hang: hang} }
		c := mustCounter(t, g, "c")
		c.Add(5)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := c.Flush(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx2, cancel2 := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel2()
		err = g.Shutdown(ctx2)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		t.Log(err)
		close(hang)
	})
}

func TestOutageDoesNotComeBackAsASpike(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3 * second)
		m.setFault(func(*Flush) memFault { return memFault{err: errors.New("dial")} })
		for range 600 {
			c.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
		m.setFault(nil)
		sleep(3 * second)
		for n, v := range m.byInterval("c") {
			assert.LessOrEqual(t, v, int64(40), "interval %d", n)
		}
		assert.Zero(t, c.Total().Buffer)
	})
}

func TestTotalGoesStale(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3 * second)
		require.True(t, c.Total().Known)
		m.setFault(func(*Flush) memFault { return memFault{loseRequest: true} })
		sleep(3100 * time.Millisecond)
		require.False(t, c.Total().Known)
	})
}

func TestIdleCounterRestsAndWakes(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c", attribute.String("k", "v"))
		c.Add(1)
		sleep(20 * second)
		assert.False(t, c.view.Load().awake)
		calls := m.callCount()
		sleep(20 * second)
		assert.Equal(t, calls, m.callCount())
		c.Add(2)
		sleep(3 * second)
		assert.Equal(t, int64(3), m.sum("c"))
		assert.True(t, c.view.Load().awake)
		sleep(20 * second)
		c.Count()
		sleep(1100 * time.Millisecond)
		assert.True(t, c.view.Load().awake)
	})
}

func TestManySeries(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		for i := range 1700 {
			mustCounter(t, g, "c", attribute.Int("i", i)).Add(int64(i))
		}
		sleep(3 * second)
		assert.Equal(t, int64(1699*1700/2), m.sum("c"))
		batches := map[int]bool{}
		for _, s := range m.sent() {
			batches[s.Batch] = true
			assert.LessOrEqual(t, len(s.Series), 500)
		}
		assert.Len(t, batches, 4)
		grand := mustCounter(t, g, "c")
		for _, s := range []*Counter{mustCounter(t, g, "c", attribute.Int("i", 1)), mustCounter(t, g, "c", attribute.Int("i", 1699)), grand} {
			assert.Zero(t, s.Total().Buffer)
		}
	})
}

func TestPeekKeepsNoCounterAwake(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *memStore, g *Group) {
		attr := attribute.String("k", "v")
		c, other := mustCounter(t, g, "c", attr), mustCounter(t, g, "c", attribute.Int("i", 1))
		c.Add(1)
		other.Add(1)
		for range 20 {
			sleep(second)
			c.Peek()
			other.Count()
		}
		assert.Equal(t, Reading{Name: "c", Attributes: attribute.NewSet(attr), Total: Total{Open: -1}}, c.Peek())
		assert.True(t, other.Peek().Total.Known)
	})
}

// probeStore permits some counters only.
type probeStore struct {
	*memStore
	denied string
}

func (p *probeStore) Probe(ctx context.Context, server, prefix, name string) (ServerTime, error) {
	if name == p.denied {
		return 0, errors.New("not permitted")
	}
	return p.memStore.Probe(ctx, server, prefix, name)
}

func TestOneForbiddenCounterDoesNotKeepTheOthers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		m := newMemStore()
		g, err := NewGroup(nil, second, WithStore(&probeStore{m, "forbidden"}))
		require.NoError(t, err)
		mustCounter(t, g, "forbidden").Add(1)
		mustCounter(t, g, "b").Add(2)
		mustCounter(t, g, "c").Add(3)
		sleep(5 * second)
		assert.Equal(t, int64(2), m.sum("b"))
		assert.Equal(t, int64(3), m.sum("c"))
		g.Close()
		sleep(second)
	})
}
