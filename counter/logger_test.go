package counter

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// panicking is a log handler that panics, in one of its methods.
type panicking struct {
	slog.Handler
	enabled bool
}

func (p panicking) Enabled(context.Context, slog.Level) bool {
	if p.enabled {
		panic("a bug of the user")
	}
	return true
}

func (p panicking) Handle(context.Context, slog.Record) error { panic("a bug of the user") }

// "A handler that panics breaks nothing."
func TestALogHandlerThatPanicsBreaksNothing(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		onStore(t, func(t *testing.T, m *memStore) {
			log := slog.New(panicking{slog.DiscardHandler, enabled})
			g := m.join(t, "alice---", 0, WithLogger(log), WithMaxSeries(1))
			g.OnTick(func([]Reading) { panic("another") })
			g.BeforeTick(func() { panic("another") })
			c := mustCounter(t, g, "c")
			c.Watch(1, 1, func(Total, bool) { panic("another") })
			mustCounter(t, g, "c", attribute.Int("k", 1)).Add(1)
			mustCounter(t, g, "c", attribute.Int("k", 2)).Add(1) // too many
			mustFloat(t, g, "f").Add(math.NaN())
			flushes := 0
			m.setFault(func(*Flush) memFault { // losses, failures, a step, a stale total
				switch flushes++; flushes {
				case 3, 4, 5:
					return memFault{loseReply: true}
				case 8, 9, 10, 11, 12, 13, 14:
					return memFault{err: errors.New("refused")}
				case 16:
					m.skew -= 10 * second
				}
				return memFault{}
			})
			for range 30 {
				c.Add(1)
				sleep(second)
			}
			assert.Greater(t, m.sum("c"), int64(10))
			c.Add(5)
			before := m.sum("c")
			require.NoError(t, g.Flush(t.Context()))
			assert.GreaterOrEqual(t, m.sum("c"), before+5)
			c.Add(1)
			g.Close()
		})
	}
}
