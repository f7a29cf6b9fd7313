package exporter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/exporter"
)

// Put the exporter around the one that is there already: there is still one
// pipeline, and what it exports has the group's totals in it.
func Example() {
	ctx := context.Background()
	server := miniredis.NewMiniRedis() // in place of your Redis
	_ = server.Start()
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()

	const period = time.Minute
	e, err := exporter.New(rdb, exporter.WithGroup("shop"), exporter.WithInterval(period), exporter.WithNext(yourExporter()))
	if err != nil {
		panic(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e, sdkmetric.WithInterval(period))))
	defer func() { _ = provider.Shutdown(ctx) }()

	requests, _ := provider.Meter("shop").Int64Counter("http.requests")
	requests.Add(ctx, 1024)

	_ = provider.ForceFlush(ctx) // by itself once a minute

	fmt.Println("not yet with the group:", e.Total("http.requests").Buffer)
	// Output: not yet with the group: 0
}

// yourExporter stands for the exporter that is there already, such as OTLP's.
func yourExporter() sdkmetric.Exporter { return silent{} }

type silent struct{}

func (silent) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

func (silent) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (silent) Export(context.Context, *metricdata.ResourceMetrics) error { return nil }
func (silent) ForceFlush(context.Context) error                          { return nil }
func (silent) Shutdown(context.Context) error                            { return nil }
