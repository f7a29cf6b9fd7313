package counter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

func mustView(t require.TestingT, g *Group, prefix string) *Group {
	view, err := g.WithPrefix(prefix)
	require.NoError(t, err)
	return view
}

// API: "a view with its own namespace on the same tick, participant and connections;
// Flush, Shutdown and Close act on the whole".
func TestViewsAreNamespacesOnOneTick(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0, WithPrefix("default:"))
		a, b := mustView(t, g, "a:"), mustView(t, g, "b:")
		counters := []*Counter{mustCounter(t, g, "c"), mustCounter(t, a, "c"), mustCounter(t, b, "c", attribute.Int("k", 1))}
		for i, c := range counters {
			c.Add(int64(1) << i)
		}
		sleep(second)
		runs := m.ran()
		require.Len(t, runs, 3)
		amounts := map[string]int64{}
		for _, r := range runs {
			assert.Equal(t, "alice---", r.participant)
			assert.Equal(t, runs[0].local, r.local, "one round trip")
			amounts[r.Prefix] = r.Amount
		}
		assert.Equal(t, map[string]int64{"default:": 1, "a:": 2, "b:": 4}, amounts)

		assert.Same(t, counters[1], mustCounter(t, mustView(t, b, "a:"), "c"), "a view of a view has a prefix of its own")
		assert.NotSame(t, counters[0], counters[1])

		for i, c := range counters {
			c.Add(int64(1) << i)
		}
		require.NoError(t, a.Flush(t.Context()))
		for _, c := range counters {
			assert.Zero(t, c.Total().Buffer, "a flush of a view acts on the whole")
		}
		b.Close()
		for _, view := range []*Group{g, a, b} {
			_, err := view.Counter("c")
			require.ErrorIs(t, err, ErrClosed)
		}
	})
}

func TestAViewsPrefixIsValidated(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *memStore, g *Group) {
		for _, prefix := range []string{"{", "{}", "a{b}", "\x00", string(make([]byte, 300))} {
			view, err := g.WithPrefix(prefix)
			require.Error(t, err)
			assert.Nil(t, view)
		}
	})
}
