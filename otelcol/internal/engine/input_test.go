package engine

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
	o "github.com/otelcomcount/otelcomcount/otelcol/internal/otlptest"
)

// Named by the entries of CASES.md: reports about other components, each turned
// into what must hold here.

func TestB21NegativeAmounts(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		c.consume(o.New().Service("s").Delta("m", o.Point{Value: 3}, o.Point{Value: -5}, o.Point{Value: 4}).
			Delta("f", o.Point{Value: 0.5}, o.Point{Value: -0.25}, o.Point{Value: 0.25}).
			Cumulative("c", o.Point{At: 1, Value: -7}).MD)
		c.flush()
		assert.EqualValues(t, 7, f.truth("s:", "m"))
		assert.EqualValues(t, 750_000, f.truth("s:", "f:f"))
		assert.EqualValues(t, 3, c.dropped("negative"))
	})
}

func TestB22NotFiniteAmountsPoisonNothing(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		c.consume(o.New().Service("s").
			Delta("m", o.Point{Value: 2.5}, o.Point{Value: math.NaN()}, o.Point{Value: math.Inf(1)}, o.Point{Value: math.Inf(-1)}, o.Point{Value: 1.0}).
			Cumulative("c", o.Point{At: 1, Value: 10.0}, o.Point{At: 2, Value: math.NaN()}, o.Point{At: 3, Value: math.Inf(1)}, o.Point{At: 4, Value: 12.5}).MD)
		c.flush()
		assert.EqualValues(t, 3_500_000, f.truth("s:", "m:f"))
		assert.EqualValues(t, 2_500_000, f.truth("s:", "c:f"))
		assert.EqualValues(t, 5, c.dropped("not_finite"))
	})
}

func TestB30SeriesIdentity(t *testing.T) {
	t.Run("instances", func(t *testing.T) {
		inFleet(t, func(f *fleet) {
			c := f.start()
			b := o.New()
			for i, v := range []int{1000, 2000, 1005, 2003} {
				b.Resource(map[string]any{"service.name": "s", "service.instance.id": string(rune('a' + i%2))}).
					Cumulative("m", o.Point{Start: 1, At: 10 + i, Value: v})
			}
			c.consume(b.MD)
			c.flush()
			assert.EqualValues(t, 8, f.truth("s:", "m"))
		})
	})
	t.Run("scopes", func(t *testing.T) {
		inFleet(t, func(f *fleet) {
			c := f.start()
			c.consume(o.New().Service("s").
				Scope("a").Cumulative("m", o.Point{Start: 1, At: 10, Value: 1000}).
				Scope("b").Cumulative("m", o.Point{Start: 1, At: 11, Value: 2000}).
				Scope("a").Cumulative("m", o.Point{Start: 1, At: 20, Value: 1005}).
				Scope("b").Cumulative("m", o.Point{Start: 1, At: 21, Value: 2003}).MD)
			c.flush()
			assert.EqualValues(t, 8, f.truth("s:", "m"))
		})
	})
	t.Run("attributes", func(t *testing.T) {
		inFleet(t, func(f *fleet) {
			c := f.start()
			a := map[string]any{"k": "a", "l": int64(1)}
			b := map[string]any{"k": "a", "l": "1"}
			c.consume(o.New().Service("s").Cumulative("m",
				o.Point{Start: 1, At: 10, Value: 1000, Attrs: a}, o.Point{Start: 1, At: 10, Value: 2000, Attrs: b},
				o.Point{Start: 1, At: 11, Value: 1005, Attrs: a}, o.Point{Start: 1, At: 11, Value: 2003, Attrs: b}).MD)
			c.flush()
			assert.EqualValues(t, 8, f.truth("s:", "m"))
		})
	})
	t.Run("two writers of one identity", func(t *testing.T) {
		inFleet(t, func(f *fleet) {
			c := f.start()
			b := o.New()
			for i, v := range []int{1000, 2000, 1005, 2003, 1010, 2006} {
				b.Service("s").Cumulative("m", o.Point{Start: 1 + i%2, At: 10 + i, Value: v})
			}
			c.consume(b.MD)
			c.flush()
			assert.EqualValues(t, 6, f.truth("s:", "m"), "the later process counts, the other one does not")
			assert.EqualValues(t, 1, c.dropped("several_writers"))
			assert.EqualValues(t, 2, c.dropped("out_of_order"))
			assert.Equal(t, 1, c.logs.FilterMessageSnippet("several writers").Len())
		})
	})
}

func TestB35FirstCumulativePoint(t *testing.T) {
	inFleet(t, func(f *fleet) {
		start := -3600 // an hour ago
		point := func(at, value int) pmetric.Metrics {
			return o.New().Service("s").Cumulative("m", o.Point{Start: start, At: at, Value: value}).MD
		}
		a := f.start()
		a.consume(point(1, 1000))
		a.flush()
		assert.Zero(t, f.truth("s:", "m"))
		a.consume(point(2, 1010))
		a.flush()
		assert.EqualValues(t, 10, f.truth("s:", "m"))
		require.NoError(t, a.Shutdown(f.t.Context()))

		restarted := f.start()
		restarted.consume(point(3, 1020))
		restarted.consume(point(4, 1025))
		restarted.flush()
		assert.EqualValues(t, 15, f.truth("s:", "m"))
		assert.EqualValues(t, 1, restarted.dropped("initial"))

		// A start that is not known.
		restarted.consume(o.New().Service("s").Cumulative("u", o.Point{At: 1, Value: 7}).MD)
		restarted.flush()
		assert.Zero(t, f.truth("s:", "u"))
	})
}

func TestB35NewStreamsCountWholeWithAuto(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(configured(func(c *config.Config) { c.InitialValue = config.Auto }))
		now := int(time.Now().Unix() - o.Epoch)
		for range 2 {
			c.consume(o.New().Service("s").Cumulative("m", o.Point{Start: now + 1, At: now + 2, Value: 7}).MD)
		}
		c.flush()
		assert.EqualValues(t, 7, f.truth("s:", "m"))
	})
}

func TestB37Resets(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		steps := []struct {
			o.Point
			counts int64
		}{
			{o.Point{Start: 1, At: 10, Value: 100}, 0},
			{o.Point{Start: 1, At: 20, Value: 105}, 5},
			{o.Point{Start: 25, At: 30, Value: 3}, 3}, // a new start: counts from there
			{o.Point{Start: 25, At: 40, Value: 8}, 5},
			{o.Point{Start: 1, At: 45, Value: 110}, 0}, // an old start, late
			{o.Point{Start: 25, At: 50, Value: 6}, 0},  // an unexplained fall
			{o.Point{Start: 25, At: 60, Value: 9}, 3},
		}
		var want int64
		for i, s := range steps {
			c.consume(o.New().Service("s").Cumulative("m", s.Point).MD)
			c.flush()
			want += s.counts
			assert.Equal(t, want, f.truth("s:", "m"), "step %d", i)
		}
		assert.EqualValues(t, 1, c.dropped("reset"))
	})
}

func TestB38OrderInsideABatch(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		c.consume(o.New().Service("s").
			Delta("d", o.Point{Start: 2, At: 3, Value: 3}, o.Point{Start: 1, At: 2, Value: 2}, o.Point{At: 1, Value: 1}).
			Cumulative("c", o.Point{At: 3, Value: 30}, o.Point{At: 2, Value: 20}, o.Point{At: 1, Value: 10}).MD)
		c.consume(o.New().Service("s").Cumulative("c", o.Point{At: 4, Value: 35}).MD)
		c.flush()
		assert.EqualValues(t, 6, f.truth("s:", "d"))
		assert.EqualValues(t, 25, f.truth("s:", "c"))

		// The same, spread over resources as a batching processor leaves it.
		b := o.New()
		for at := 3; at > 0; at-- {
			b.Service("s").Cumulative("b", o.Point{At: at, Value: at * 10})
		}
		c.consume(b.MD)
		c.flush()
		assert.EqualValues(t, 20, f.truth("s:", "b"))

		// Documented: a delta point that comes twice counts twice.
		for range 2 {
			c.consume(o.New().Service("s").Delta("twice", o.Point{Start: 1, At: 2, Value: 1}).MD)
		}
		c.flush()
		assert.EqualValues(t, 2, f.truth("s:", "twice"))
	})
}

func TestB39DeltaStartTimesMeanNothing(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		b := o.New().Service("s").
			Delta("m", o.Point{Start: 1, At: 10, Value: 1}, o.Point{Start: 10, At: 20, Value: 2}, o.Point{Start: 25, At: 30, Value: 4},
				o.Point{Start: 30, At: 30, Value: 8}, o.Point{At: 40, Value: 16}).
			Sum("updown", pmetric.AggregationTemporalityDelta, false, o.Point{Value: 1}).
			Sum("updown", pmetric.AggregationTemporalityCumulative, false, o.Point{Value: 1}).
			Sum("unspecified", pmetric.AggregationTemporalityUnspecified, true, o.Point{Value: 1}, o.Point{Value: 1})
		b.Metric("gauge").SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
		b.Metric("histogram").SetEmptyHistogram().DataPoints().AppendEmpty().SetCount(1)
		b.Metric("exponential").SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetCount(1)
		b.Metric("summary").SetEmptySummary().DataPoints().AppendEmpty().SetCount(1)
		b.Metric("empty")
		c.consume(b.MD)
		c.flush()
		assert.EqualValues(t, 31, f.truth("s:", "m"))
		assert.EqualValues(t, 6, c.dropped("not_a_monotonic_sum"))
		assert.EqualValues(t, 2, c.dropped("temporality"))
		for _, name := range []string{"updown", "unspecified", "gauge", "histogram", "exponential", "summary"} {
			assert.Empty(t, f.totals("s:", name), name)
		}
	})
}

// What a count connector sends for configs/sampling-budget.yaml: one delta sum for
// each resource whose spans it saw, with the spans' own times.
func TestSpanCountsOfACountConnector(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(emit(EmitAll), configured(func(c *config.Config) { c.Group = "gateway" }))
		for i := range 5 {
			c.consume(o.New().
				Resource(map[string]any{"service.name": "a"}).Delta("trace.span.count", o.Point{Start: 50 - i, At: 60 - i, Value: 7}).
				Resource(map[string]any{"service.name": "b"}).Delta("trace.span.count", o.Point{Start: 55, At: 56, Value: 3}).MD)
		}
		time.Sleep(3 * time.Second)
		assert.EqualValues(t, 50, f.truth("gateway:", "trace.span.count"))
		require.NotEmpty(t, c.gauges())
		assert.Equal(t, "trace.span.count.group", c.gauges()[0].name)
		assert.EqualValues(t, 50, c.gauges()[0].value)
	})
}

func TestB41ReadOnlyDataIsNotTouched(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(configured(func(c *config.Config) {
			c.Attributes, c.ResourceAttributes = []string{"k", "l"}, []string{"host.name"}
		}))
		md := o.New().Resource(map[string]any{"service.name": "s", "host.name": "h"}).
			Delta("d", o.Point{Value: 1, Attrs: map[string]any{"k": "v", "l": []any{"a", int64(1)}}}).
			Cumulative("c", o.Point{At: 2, Value: 2}, o.Point{At: 1, Value: 1}, o.Point{At: 1, NoValue: true}, o.Point{}).MD
		var m pmetric.ProtoMarshaler
		want, err := m.MarshalMetrics(md)
		require.NoError(t, err)
		c.consume(md) // marks it read-only: a change would panic
		got, err := m.MarshalMetrics(md)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.EqualValues(t, 2, c.dropped("no_value"))
	})
}

func TestB42NothingIsKeptOfABatch(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(configured(func(c *config.Config) { c.Attributes = []string{"k"} }))
		request := func(value int) pmetric.Metrics {
			return o.New().Service("s").Cumulative("m", o.Point{Start: 1, At: value, Value: value, Attrs: map[string]any{"k": []any{"a", "b"}}}).MD
		}
		first := request(1000)
		b, err := c.Extract(first)
		require.NoError(t, err)
		garble(first)
		b.Commit()
		b.Release()
		c.consume(request(1010))
		c.flush()
		assert.EqualValues(t, 10, f.truth("s:", "m"))
		keys, err := f.redis.HKeys(f.redis.DB(0).Keys()[1])
		require.NoError(t, err)
		assert.Contains(t, keys, `k=["a","b"]`)
	})
}

// garble overwrites all of a request.
func garble(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		rm.Resource().Attributes().PutStr("service.name", "x")
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Scope().SetName("x")
			for _, m := range sm.Metrics().All() {
				m.SetName("x")
				for _, p := range m.Sum().DataPoints().All() {
					for _, v := range p.Attributes().All() {
						if s := v.Slice(); s.Len() > 0 {
							s.At(0).SetStr("x")
						}
					}
					p.Attributes().PutStr("x", "x")
					p.SetIntValue(1e9)
				}
			}
		}
	}
}

func TestB43LiveStreamsOutliveNewOnes(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(configured(func(c *config.Config) {
			c.MaxStreams, c.MaxStaleness = 1000, time.Minute
		}))
		const live = 100
		request := func(instance, at, value int) pmetric.Metrics {
			return o.New().Resource(map[string]any{"service.name": "s", "instance": int64(instance)}).
				Cumulative("m", o.Point{Start: 1, At: at, Value: value}).MD
		}
		for second := range 60 {
			for i := range live {
				c.consume(request(i, second+1, 1_000_000+second))
			}
			for i := range 50 {
				c.consume(request(1_000_000+second*50+i, 1, 1_000_000))
			}
			time.Sleep(time.Second)
		}
		c.flush()
		assert.EqualValues(t, live*59, f.truth("s:", "m"), "no live stream was forgotten")
		assert.EqualValues(t, 1000, c.engine.streams.Len())
		assert.EqualValues(t, live+60*50-1000, c.dropped("stream_limit"))
		assert.Equal(t, 1, c.logs.FilterMessageSnippet("too many cumulative streams").Len())

		time.Sleep(30 * time.Second) // the new ones have gone; the live ones not yet
		c.consume(request(0, 100, 1_000_100))
		c.flush()
		assert.EqualValues(t, live*59+41, f.truth("s:", "m"))
		time.Sleep(50 * time.Second)
		assert.EqualValues(t, 1, c.engine.streams.Len())
		c.consume(request(1, 100, 1_000_500)) // comes back: a baseline
		c.flush()
		assert.EqualValues(t, live*59+41, f.truth("s:", "m"))
	})
}
