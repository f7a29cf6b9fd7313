package reader

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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
