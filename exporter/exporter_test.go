package exporter

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/counter"
)

func TestReplicasKnowTheGroupsTotal(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a, c := b.replica(), b.replica()
		ca, cc := a.counter("c"), c.counter("c")
		k := metric.WithAttributes(attribute.String("k", "v"))
		var over atomic.Bool
		defer a.exporter.Watch("c", 20, 20, func(_ counter.Total, o bool) { over.Store(o) })()
		assert.False(t, a.exporter.Total("c").Known)
		for range 100 {
			ca.Add(t.Context(), 1, k)
			cc.Add(t.Context(), 2)
			sleep(second)
		}
		total := a.exporter.Total("c")
		assert.True(t, total.Known)
		assert.EqualValues(t, 2, total.Participants)
		assert.InDelta(t, 30, total.Closed, 10)
		assert.InDelta(t, 10, a.exporter.Total("c", attribute.String("k", "v")).Closed, 10)
		assert.True(t, over.Load())
		require.NoError(t, a.provider.Shutdown(t.Context()))
		require.NoError(t, c.provider.Shutdown(t.Context()))
		assert.EqualValues(t, 300, b.truth("shop:{c}"))
	})
}

// In each temporality that the next exporter may ask for: a counter counts all,
// an observable one what it rises by from its first observation on, also past an
// observation that was missed.
func TestCountsByAnyTemporality(t *testing.T) {
	for name, temporality := range map[string]sdkmetric.TemporalitySelector{
		"none":       nil,
		"cumulative": sdkmetric.CumulativeTemporalitySelector,
		"delta":      sdkmetric.DeltaTemporalitySelector,
		"low memory": sdkmetric.LowMemoryTemporalitySelector,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				var opts []any
				if temporality != nil {
					opts = append(opts, WithNext(&next{temporality: temporality}))
				}
				a := b.replica(opts...)
				c := a.counter("c")
				values := []int64{1000, 1005, -1, 1007, 3, 3, 8}
				k := attribute.String("disk", "a")
				i := 0
				sleep(time.Microsecond) // real clocks move on by themselves
				a.observable("o", func() int64 { return values[i] }, metric.WithAttributeSet(attribute.NewSet(k)))
				sleep(time.Microsecond)
				f, err := a.meter.Float64Counter("f")
				require.NoError(t, err)
				for i = range values {
					c.Add(t.Context(), 10)
					if i == 3 {
						c.Add(t.Context(), 1, metric.WithAttributeSet(attribute.NewSet(k)))
					}
					f.Add(t.Context(), 0.25)
					sleep(time.Microsecond)
					a.flush()
				}
				assert.EqualValues(t, 71, b.truth("shop:{c}"))
				assert.EqualValues(t, 1, b.part("shop:{c}", `disk="a"`))
				assert.EqualValues(t, 5+2+3+5, b.truth("shop:{o}"))
				assert.EqualValues(t, 5+2+3+5, b.part("shop:{o}", `disk="a"`))
				assert.EqualValues(t, 1_750_000, b.truth("shop:{f:f}"))
			})
		})
	}
}

func TestKeepsTheNextExportersWishes(t *testing.T) {
	n := &next{temporality: sdkmetric.LowMemoryTemporalitySelector}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	e, err := New(rdb, WithNext(n))
	require.NoError(t, err)
	alone, err := New(rdb)
	require.NoError(t, err)
	for k := sdkmetric.InstrumentKindCounter; k <= sdkmetric.InstrumentKindGauge; k++ {
		assert.Equal(t, n.Temporality(k), e.Temporality(k))
		assert.Equal(t, n.Aggregation(k), e.Aggregation(k))
	}
	assert.Equal(t, metricdata.DeltaTemporality, alone.Temporality(sdkmetric.InstrumentKindCounter))
	assert.Equal(t, metricdata.CumulativeTemporality, alone.Temporality(sdkmetric.InstrumentKindObservableCounter))
	assert.Equal(t, sdkmetric.AggregationDrop{}, alone.Aggregation(sdkmetric.InstrumentKindHistogram))
}

func TestNextGetsEveryBatchAndTheGauges(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		n := &next{temporality: sdkmetric.CumulativeTemporalitySelector}
		a := b.replica(WithNext(n))
		k := attribute.String("k", "v")
		c := a.counter("c", metric.WithUnit("{call}"))
		f, err := a.meter.Float64Counter("f", metric.WithUnit("s"))
		require.NoError(t, err)
		h, err := a.meter.Int64Histogram("h")
		require.NoError(t, err)
		c.Add(t.Context(), 1)
		sleep(10*second + second/100)
		assert.NotNil(t, n.metric("c"))
		assert.Nil(t, n.metric("c.group"), "no gauge while the total is unknown")
		for range 60 {
			c.Add(t.Context(), 1, metric.WithAttributeSet(attribute.NewSet(k)))
			f.Add(t.Context(), 0.5)
			h.Record(t.Context(), 1)
			sleep(second)
		}
		sleep(second)
		assert.IsType(t, metricdata.ExponentialHistogram[int64]{}, n.metric("h").Data)
		sum := n.metric("c").Data.(metricdata.Sum[int64])
		assert.Equal(t, metricdata.CumulativeTemporality, sum.Temporality)

		group, series, seconds := n.metric("c.group"), n.metric("c.group.series"), n.metric("f.group")
		require.NotNil(t, group)
		require.NotNil(t, series)
		require.NotNil(t, seconds)
		assert.Equal(t, "{call}", group.Unit)
		assert.Equal(t, "{call}", series.Unit)
		assert.Equal(t, "s", seconds.Unit)
		points := series.Data.(metricdata.Gauge[int64]).DataPoints
		require.Len(t, points, 1)
		assert.Equal(t, attribute.NewSet(k), points[0].Attributes)
		assert.InDelta(t, 10, points[0].Value, 10)
		assert.InDelta(t, 10, group.Data.(metricdata.Gauge[int64]).DataPoints[0].Value, 10)
		assert.InDelta(t, 5, seconds.Data.(metricdata.Gauge[float64]).DataPoints[0].Value, 5)
		assert.Zero(t, b.truth("shop:{c.group}"), "gauges are no input")
		assert.Zero(t, b.truth("shop:{h}"))
	})
}

// A PeriodicReader with a maximum batch size splits a collection.
func TestGaugesComeOnceACollection(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		n := &next{temporality: sdkmetric.CumulativeTemporalitySelector}
		a := b.replica(WithNext(n), sdkmetric.WithMaxExportBatchSize(1))
		for range 50 {
			for _, name := range []string{"a", "b", "c"} {
				a.counter(name).Add(t.Context(), 1)
			}
			sleep(second)
		}
		gauges := map[string]int{}
		for _, batch := range n.batches {
			for _, sm := range batch.ScopeMetrics {
				for _, m := range sm.Metrics {
					gauges[m.Name]++
				}
			}
		}
		assert.Positive(t, gauges["a.group"])
		assert.LessOrEqual(t, gauges["a.group"], gauges["a"])
		a.flush()
		for _, name := range []string{"a", "b", "c"} {
			assert.EqualValues(t, 50, b.truth("shop:{"+name+"}"))
		}
	})
}

func TestB44_NextThatFailsLosesNothingOfOurs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		boom := errors.New("boom")
		n := &next{temporality: sdkmetric.CumulativeTemporalitySelector, err: boom}
		a := b.replica(WithNext(n))
		c := a.counter("c")
		c.Add(t.Context(), 60)
		require.ErrorIs(t, a.provider.ForceFlush(t.Context()), boom)
		c.Add(t.Context(), 40)
		require.ErrorIs(t, a.provider.Shutdown(t.Context()), boom)
		assert.EqualValues(t, 100, b.truth("shop:{c}"))
		assert.Equal(t, 1, n.shutdowns)
		require.ErrorIs(t, a.exporter.Export(t.Context(), &metricdata.ResourceMetrics{}), sdkmetric.ErrExporterShutdown)
		require.ErrorIs(t, a.exporter.ForceFlush(t.Context()), sdkmetric.ErrExporterShutdown)
		require.ErrorIs(t, a.exporter.Shutdown(t.Context()), sdkmetric.ErrExporterShutdown)
		assert.Equal(t, 1, n.shutdowns)
	})
}

func TestForceFlushReachesBoth(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		n := &next{temporality: sdkmetric.CumulativeTemporalitySelector}
		a := b.replica(WithNext(n))
		a.counter("c").Add(t.Context(), 1)
		a.flush()
		assert.EqualValues(t, 1, b.truth("shop:{c}"))
		assert.Equal(t, 1, n.flushes)
	})
}

// A next exporter that hangs keeps our amounts from nothing, and a Redis that
// stalls keeps nothing from the next exporter.
func TestNeitherSpendsTheOthersTime(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		n := &next{temporality: sdkmetric.CumulativeTemporalitySelector, hang: true}
		a := b.replica(WithNext(n))
		a.counter("c").Add(t.Context(), 1)
		sleep(25 * second)
		assert.EqualValues(t, 1, b.truth("shop:{c}"))
	})
	inBubble(t, func(t *testing.T, _ *bubble) {
		n := &next{temporality: sdkmetric.CumulativeTemporalitySelector}
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: 5 * second, Dialer: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }()
			return client, nil
		}})
		defer rdb.Close()
		e, err := New(rdb, WithNext(n), WithInterval(second), WithGroup("shop"))
		require.NoError(t, err)
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e)))
		c, err := p.Meter("app").Int64Counter("c")
		require.NoError(t, err)
		c.Add(t.Context(), 1)
		for _, call := range []func(context.Context) error{p.ForceFlush, p.Shutdown} {
			ctx, cancel := context.WithTimeout(t.Context(), second/10)
			began := time.Now()
			require.ErrorIs(t, call(ctx), context.DeadlineExceeded)
			assert.LessOrEqual(t, time.Since(began), 3*second/10)
			cancel()
		}
		assert.Equal(t, 1, n.flushes)
		assert.Equal(t, 1, n.shutdowns)
		sleep(10 * second)
	})
}

func TestB42_KeepsNoReferenceIntoTheBatch(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		e, err := New(b.client(), WithInterval(second), WithGroup("shop"))
		require.NoError(t, err)
		point := func(i int, v int64) metricdata.DataPoint[int64] {
			return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(attribute.Int("i", i)), Value: v, Time: time.Now()}
		}
		delta := metricdata.Sum[int64]{Temporality: metricdata.DeltaTemporality, IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{point(1, 10)}}
		whole := metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{point(1, 100)}}
		rm := &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{{Name: "d", Data: delta}, {Name: "w", Data: whole}}}}}
		export := func(d, w int64) {
			delta.DataPoints[0], whole.DataPoints[0] = point(1, d), point(1, w)
			rm.ScopeMetrics[0].Metrics[0].Name, rm.ScopeMetrics[0].Metrics[1].Name = "d", "w"
			require.NoError(t, e.Export(t.Context(), rm))
			// Garbage, while the flush is pending.
			delta.DataPoints[0], whole.DataPoints[0] = point(2, -1), point(2, -1)
			rm.ScopeMetrics[0].Metrics[0].Name, rm.ScopeMetrics[0].Metrics[1].Name = "x", "y"
		}
		export(10, 100)
		export(5, 107)
		require.NoError(t, e.Shutdown(t.Context()))
		assert.EqualValues(t, 15, b.truth("shop:{d}"))
		assert.EqualValues(t, 15, b.part("shop:{d}", "i=1"))
		assert.EqualValues(t, 7, b.truth("shop:{w}"))
	})
}

func TestPeriodLongerThanTheIntervalIsWarnedOf(t *testing.T) {
	for name, tt := range map[string]struct {
		interval time.Duration
		want     int
	}{"equal": {10 * second, 0}, "longer": {20 * second, 0}, "shorter": {5 * second, 1}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				var logged log
				a := b.replica(WithInterval(tt.interval), logged.option())
				a.counter("c").Add(t.Context(), 1)
				sleep(100 * second)
				assert.Len(t, logged.with("interval is shorter than the period"), tt.want)
			})
		})
	}
}

func TestBatchOfAnotherServiceIsNotCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var logged log
		a := b.replica(logged.option())
		a.counter("c").Add(t.Context(), 1)
		a.flush()
		other := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(a.exporter)))
		defer func() { _ = other.Shutdown(context.Background()) }()
		c, err := other.Meter("app").Int64Counter("c")
		require.NoError(t, err)
		c.Add(t.Context(), 100)
		require.NoError(t, other.ForceFlush(t.Context()))
		assert.EqualValues(t, 1, b.truth("shop:{c}"))
		assert.Len(t, logged.with("batch of another service"), 1)
	})
}

func TestNewRefuses(t *testing.T) {
	_, err := New(nil)
	require.Error(t, err)
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	_, err = New(rdb, WithInterval(time.Millisecond), WithGroup(""))
	require.ErrorContains(t, err, "interval")
	require.ErrorContains(t, err, "exporter: group is empty")
}
