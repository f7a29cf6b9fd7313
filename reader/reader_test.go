package reader

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/counter"
)

func TestReplicasKnowTheGroupsTotal(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a, c := b.replica(), b.replica()
		require.NoError(t, a.reader.RegisterGauges(a.provider))
		route := attribute.String("route", "/x")
		ca, cc := a.counter("http.requests", metric.WithUnit("{request}")), c.counter("http.requests", metric.WithUnit("{request}"))
		for range 100 {
			ca.Add(t.Context(), 1, metric.WithAttributes(route))
			cc.Add(t.Context(), 2)
			sleep(second / 10)
		}
		total := a.reader.Total("http.requests")
		assert.True(t, total.Known)
		assert.InDelta(t, 30, total.Closed, 6)
		assert.EqualValues(t, 2, total.Participants)
		assert.InDelta(t, 10, a.reader.Total("http.requests", route).Closed, 2)
		assert.InDelta(t, 30, gauge[int64](a, "http.requests.group")[set()], 6)
		parts := gauge[int64](a, "http.requests.group.series")
		assert.Len(t, parts, 1)
		assert.InDelta(t, 10, parts[set(route)], 2)

		require.NoError(t, a.provider.Shutdown(t.Context()))
		require.NoError(t, c.provider.Shutdown(t.Context()))
		assert.EqualValues(t, 300, b.truth("shop:{http.requests}"))
		assert.EqualValues(t, 100, b.part("shop:{http.requests}", `route="/x"`))
	})
}

func TestUnknownTotalIsNotObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		require.NoError(t, a.reader.RegisterGauges(a.provider))
		assert.Equal(t, counter.Total{Open: -1}, a.reader.Total("c"))
		c := a.counter("c")
		c.Add(t.Context(), 1)
		sleep(3 * second)
		assert.Contains(t, gauge[int64](a, "c.group"), set())
		b.server.SetError("LOADING")
		sleep(4 * second)
		assert.False(t, a.reader.Total("c").Known)
		assert.Nil(t, gauge[int64](a, "c.group"))
		b.server.SetError("")
	})
}

func TestForceFlushSettlesWhatWasCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		c := a.counter("c")
		for range 5 {
			c.Add(t.Context(), 3)
			require.NoError(t, a.provider.ForceFlush(t.Context()))
		}
		assert.EqualValues(t, 15, b.truth("shop:{c}"))
		assert.EqualValues(t, 0, a.reader.Total("c").Buffer)
	})
}

func TestShutdownLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		c := a.counter("c")
		c.Add(t.Context(), 1)
		sleep(3 * second)
		c.Add(t.Context(), 2)
		require.NoError(t, a.reader.Shutdown(t.Context()))
		assert.EqualValues(t, 3, b.truth("shop:{c}"))
		assert.ErrorIs(t, a.reader.Shutdown(t.Context()), sdkmetric.ErrReaderShutdown)
		assert.ErrorIs(t, a.reader.ForceFlush(t.Context()), sdkmetric.ErrReaderShutdown)
		assert.False(t, a.reader.Total("c").Known)
	})
}

func TestShutdownWithASpentContext(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		a.counter("c").Add(t.Context(), 2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, a.provider.Shutdown(ctx))
		assert.EqualValues(t, 2, b.truth("shop:{c}"))
	})
}

func TestLifeBeforeRegistration(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		r, err := New(b.client(), WithInterval(second))
		require.NoError(t, err)
		require.ErrorIs(t, r.ForceFlush(t.Context()), sdkmetric.ErrReaderNotRegistered)
		assert.False(t, r.Total("c").Known)
		stop := r.Watch("c", 1, 1, func(counter.Total, bool) {})
		defer stop()
		sleep(5 * second)
		require.NoError(t, r.Shutdown(t.Context()))
		assert.Empty(t, b.server.Keys())
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
