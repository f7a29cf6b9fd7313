package reader

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// BenchmarkCollection is what a tick costs without its flush, beside a bare
// collection of the same.
func BenchmarkCollection(b *testing.B) {
	for _, series := range []int{100, 10_000} {
		options := make([]metric.MeasurementOption, series)
		for i := range options {
			options[i] = metric.WithAttributeSet(attribute.NewSet(
				attribute.String("http.route", fmt.Sprint("/items/", i)), attribute.String("http.request.method", "GET"), attribute.Int("http.response.status_code", 200)))
		}
		count := func(c metric.Int64Counter) {
			for _, o := range options {
				c.Add(context.Background(), 1, o)
			}
		}
		b.Run(fmt.Sprintf("bare/series=%d", series), func(b *testing.B) {
			r := sdkmetric.NewManualReader(
				sdkmetric.WithTemporalitySelector(feed.Temporality),
				sdkmetric.WithCardinalityLimitSelector(limit(series)))
			c := instrument(b, r)
			var rm metricdata.ResourceMetrics
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				count(c)
				b.StartTimer()
				require.NoError(b, r.Collect(context.Background(), &rm))
			}
		})
		b.Run(fmt.Sprintf("reader/series=%d", series), func(b *testing.B) {
			rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			defer rdb.Close()
			r, err := New(rdb, WithInterval(time.Hour), WithMaxSeries(series))
			require.NoError(b, err)
			over, cancel := context.WithCancel(context.Background())
			cancel()
			defer func() { _ = r.Shutdown(over) }()
			c := instrument(b, r)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				count(c)
				b.StartTimer()
				require.NoError(b, r.request(context.Background()))
			}
		})
	}
}

func instrument(b *testing.B, r sdkmetric.Reader) metric.Int64Counter {
	c, err := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r)).Meter("app").Int64Counter("c")
	require.NoError(b, err)
	return c
}
