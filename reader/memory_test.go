package reader

import (
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/counter"
)

func TestIdleSeriesLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		require.NoError(t, a.reader.RegisterGauges(a.provider))
		c := a.counter("c")
		live, idle := attribute.String("k", "live"), attribute.String("k", "idle")
		c.Add(t.Context(), 1, metric.WithAttributes(idle))
		for range 5 {
			c.Add(t.Context(), 1, metric.WithAttributes(live))
			sleep(second)
		}
		assert.Len(t, gauge[int64](a, "c.group.series"), 2)
		for range 12 {
			c.Add(t.Context(), 1, metric.WithAttributes(live))
			sleep(second)
		}
		assert.Len(t, gauge[int64](a, "c.group.series"), 1)
		in := a.reader.feed.Instruments()[0]
		parts := 0
		in.Parts(func(attribute.Set, int64) { parts++ })
		assert.Equal(t, 1, parts)
		assert.Equal(t, counter.Total{Open: -1}, a.reader.Total("c", idle))

		c.Add(t.Context(), 7, metric.WithAttributes(idle))
		a.flush()
		assert.EqualValues(t, 8, b.part("shop:{c}", `k="idle"`), "it comes back")
	})
}

// A series stays while somebody asks for its total.
func TestSeriesThatIsAskedForStays(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		k := attribute.String("k", "v")
		a.counter("c").Add(t.Context(), 1, metric.WithAttributes(k))
		for range 30 {
			sleep(second)
			a.reader.Total("c", k)
		}
		assert.True(t, a.reader.Total("c", k).Known)
	})
}

// 300,000 attribute sets in a minute, as an hour has a million and more.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	inBubble(t, func(t *testing.T, b *bubble) {
		var logged log
		a := b.replica(WithMaxSeries(500), logged.option())
		c, o := a.counter("c"), a.observable("o")
		n := 0
		for range 60 {
			o.clear()
			for range 5000 {
				n++
				k := attribute.Int("n", n)
				c.Add(t.Context(), 1, metric.WithAttributes(k))
				if n%10 == 0 {
					o.set(int64(n), k)
				}
			}
			sleep(second)
		}
		a.flush()
		assert.EqualValues(t, n, b.truth("shop:{c}"))
		for _, in := range a.reader.feed.Instruments() {
			parts := 0
			in.Parts(func(attribute.Set, int64) { parts++ })
			assert.LessOrEqual(t, parts, 500)
		}
		assert.Len(t, logged.with(`msg="too many series"`, "name=c"), 1)
	})
}

// The SDK's own limit is 2000 sets for each instrument; above that it merges them.
// Over TCP: a pipe in memory has no room for a pipeline this long.
func TestB53_SeriesUpToTheLimitAreTheirOwn(t *testing.T) {
	const series = 2500
	server := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	r, err := New(rdb, WithGroup("shop"), WithInterval(second), WithMaxSeries(series))
	require.NoError(t, err)
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))
	c, err := p.Meter("app").Int64Counter("c")
	require.NoError(t, err)
	for i := range series {
		c.Add(t.Context(), 1, metric.WithAttributes(attribute.Int("i", i)))
	}
	require.NoError(t, p.Shutdown(t.Context()))
	b := &bubble{T: t, server: server}
	assert.EqualValues(t, series, b.truth("shop:{c}"))
	for i := range series {
		require.EqualValues(t, 1, b.part("shop:{c}", fmt.Sprint("i=", i)))
	}
}
