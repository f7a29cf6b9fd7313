package counter

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// "Afterwards Add goes on counting locally", of a part: what it counts from then on
// is in no grand total.
func TestAPartThatIsClosedCountsForItselfOnly(t *testing.T) {
	for name, life := range map[string]func(part *Counter){
		"never added to": func(*Counter) {},
		"awake":          func(part *Counter) { part.Add(1); sleep(3 * second) },
		"at rest":        func(part *Counter) { part.Add(1); sleep(20 * second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *memStore, g *Group) {
				grand, part := mustCounter(t, g, "c"), mustCounter(t, g, "c", attribute.Int("k", 1))
				other := mustCounter(t, g, "c", attribute.Int("k", 2))
				life(part)
				before := m.sum("c")
				part.Close()
				part.Close()
				for range 3 {
					assert.Positive(t, part.Add(7))
					other.Add(1)
					sleep(second)
				}
				sleep(2 * second)
				assert.Equal(t, before+3, m.sum("c"))
				assert.EqualValues(t, 21, part.Count())
				assert.False(t, part.Total().Known)
				assert.Zero(t, grand.Total().Buffer)
			})
		})
	}
}

// What was added a moment before is lost, and reported, as what is older is.
func TestCloseReportsWhatNoTickHasTaken(t *testing.T) {
	for name, attrs := range map[string][]attribute.KeyValue{"grand total": nil, "part": {attribute.Int("k", 1)}} {
		for _, after := range []time.Duration{0, 3 * second, 20 * second} {
			t.Run(name+" after "+after.String(), func(t *testing.T) {
				log := newLossLog()
				inBubble(t, func(t *testing.T, m *memStore, g *Group) {
					grand, c := mustCounter(t, g, "c"), mustCounter(t, g, "c", attrs...)
					mustCounter(t, g, "other").Add(1)
					c.Add(0)
					sleep(after)
					c.Add(5)
					c.Close()
					sleep(3 * second)
					assert.Zero(t, m.sum("c"))
					assert.Equal(t, map[reason]int64{lostClosed: 5}, log.losses["c"])
					if c != grand {
						assert.Zero(t, grand.Total().Buffer)
					}
				}, WithLogger(slog.New(log)))
			})
		}
	}
}

func TestCloseAmidAddsLosesNothingUnreportedConcurrentSafe(t *testing.T) {
	for round := range 50 {
		m, log := newMemStore(), newLossLog()
		g, err := NewGroup(nil, minInterval, WithStore(m), WithLogger(slog.New(log)))
		require.NoError(t, err)
		grand, part := mustCounter(t, g, "c"), mustCounter(t, g, "c", attribute.Int("k", 1))
		var added atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 2000 {
					part.Add(1)
					added.Add(1)
				}
			})
		}
		for added.Load() < int64(100*round) {
			runtime.Gosched()
		}
		part.Close()
		wg.Wait()
		require.NoError(t, grand.Flush(t.Context()))
		require.Zero(t, grand.Total().Buffer, "the grand total has what its part counted for itself")
		// Counted, reported, or still with the part; what was in the air may be twice among them.
		sure := m.sum("c") + log.losses["c"][lostClosed] + part.Count()
		require.GreaterOrEqual(t, added.Load(), sure)
		require.LessOrEqual(t, added.Load(), sure+log.losses["c"][lostUnknown])
		g.Close()
	}
}

// "What could not be sent, or is not known to have arrived, is lost; it is reported
// and makes the error": also what was given up while Shutdown waited.
func TestShutdownTellsWhatWasGivenUpMeanwhile(t *testing.T) {
	for name, shutdown := range map[string]func(context.Context, *Group, *Counter) error{
		"group":   func(ctx context.Context, g *Group, _ *Counter) error { return g.Shutdown(ctx) },
		"counter": func(ctx context.Context, _ *Group, c *Counter) error { return c.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *memStore, g *Group) {
				m.setFault(func(*Flush) memFault { return memFault{err: errors.New("dial")} })
				c, neighbour := mustCounter(t, g, "c"), mustCounter(t, g, "neighbour")
				neighbour.Add(0)
				c.Add(5)
				assert.ErrorContains(t, shutdown(context.Background(), g, c), "amount of 5 ")
			})
		})
		t.Run(name+", whose context ends", func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *memStore, g *Group) {
				m.setFault(func(*Flush) memFault { return memFault{err: errors.New("dial")} })
				c := mustCounter(t, g, "c")
				c.Add(5)
				ctx, cancel := context.WithTimeout(t.Context(), second/2)
				defer cancel()
				assert.ErrorContains(t, shutdown(ctx, g, c), "amount of 5 ")
			})
		})
	}
}
