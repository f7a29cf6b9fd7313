package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/exporter"
	"github.com/otelcomcount/otelcomcount/reader"
)

// collected is how many series a collection has in these rows.
const collected = 10_000

// sdkRows: what an Add of an SDK instrument costs with each way in, and what ours
// adds to a collection. Nothing is sent: the interval is an hour.
func sdkRows(t *testing.T) []Row {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	ours := func() sdkmetric.Reader {
		r, err := reader.New(rdb, reader.WithGroup("bench"), reader.WithInterval(time.Hour))
		must(t, err)
		return r
	}
	otlp := func() sdkmetric.Exporter {
		e, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL("http://127.0.0.1:1/v1/metrics"))
		must(t, err)
		return e
	}
	periodic := func(e sdkmetric.Exporter) sdkmetric.Reader {
		return sdkmetric.NewPeriodicReader(e, sdkmetric.WithInterval(time.Hour))
	}
	wrapped, err := exporter.New(rdb, exporter.WithGroup("bench"), exporter.WithInterval(time.Hour), exporter.WithNext(otlp()))
	must(t, err)
	g, err := counter.NewGroup(rdb, time.Hour, counter.WithPrefix("bench:"))
	must(t, err)
	t.Cleanup(g.Close)
	native, err := g.Counter("requests", attribute.String("route", "/"))
	must(t, err)

	alone := sdkAdd(t, periodic(otlp()))
	return []Row{
		{Name: "SDK Add, our reader alone, against OTLP", Unit: "ns", Ours: sdkAdd(t, ours()), Baseline: alone},
		{Name: "SDK Add, our reader and OTLP", Unit: "ns", Ours: sdkAdd(t, ours(), periodic(otlp())), Baseline: alone},
		{Name: "SDK Add, our exporter around OTLP", Unit: "ns", Ours: sdkAdd(t, periodic(wrapped)), Baseline: alone},
		{Name: "native Add, against SDK Add", Unit: "ns", Baseline: alone, Goal: AtMost(0.05), Ours: NsPerOp(func(b *testing.B) {
			for b.Loop() {
				native.Add(1)
			}
		})},
		{Name: "tick of 10k series, no flush, against Collect", Unit: "ns", Goal: AtMost(1.5), Ours: NsPerOp(tick(t, rdb, true)), Baseline: NsPerOp(tick(t, rdb, false))},
		{Name: "tick of 10k series, allocs per series", Goal: AtMost(1), Ours: AllocsPer(collected, tick(t, rdb, true))},
	}
}

// sdkAdd measures an Add of a provider with these readers.
func sdkAdd(t *testing.T, readers ...sdkmetric.Reader) Measure {
	t.Helper()
	var opts []sdkmetric.Option
	for _, r := range readers {
		opts = append(opts, sdkmetric.WithReader(r))
	}
	mp := sdkmetric.NewMeterProvider(opts...)
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = mp.Shutdown(over)
	})
	c, err := mp.Meter("bench").Int64Counter("requests")
	must(t, err)
	ctx, route := context.Background(), metric.WithAttributeSet(attribute.NewSet(attribute.String("route", "/")))
	return NsPerOp(func(b *testing.B) {
		for b.Loop() {
			c.Add(ctx, 1, route)
		}
	})
}

// tick measures a collection, and what brings it into the group.
func tick(t *testing.T, rdb *redis.Client, counting bool) func(b *testing.B) {
	t.Helper()
	e, err := exporter.New(rdb, exporter.WithGroup("bench"), exporter.WithInterval(time.Hour))
	must(t, err)
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Shutdown(over)
	})
	r := sdkmetric.NewManualReader(
		sdkmetric.WithTemporalitySelector(e.Temporality),
		sdkmetric.WithCardinalityLimitSelector(func(sdkmetric.InstrumentKind) (int, bool) { return 0, false }))
	c, err := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r)).Meter("bench").Int64Counter("requests")
	must(t, err)
	options := make([]metric.AddOption, collected)
	for i := range options {
		options[i] = metric.WithAttributeSet(attribute.NewSet(
			attribute.String("http.route", fmt.Sprint("/items/", i)),
			attribute.String("http.request.method", "GET"),
			attribute.Int("http.response.status_code", 200)))
	}
	ctx := context.Background()
	var batch metricdata.ResourceMetrics
	add := func() {
		for _, o := range options {
			c.Add(ctx, 1, o)
		}
	}
	collect := func(tb testing.TB) {
		must(tb, r.Collect(ctx, &batch))
		if counting {
			must(tb, e.Export(ctx, &batch))
		}
	}
	add()
	collect(t) // the first one makes the series
	return func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			add()
			b.StartTimer()
			collect(b)
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
