package reader

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

func TestOtherInstrumentsAreNeverTouched(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		ctx := t.Context()
		ud, err := a.meter.Int64UpDownCounter("updown")
		require.NoError(t, err)
		h, err := a.meter.Int64Histogram("histogram")
		require.NoError(t, err)
		g, err := a.meter.Float64Gauge("gauge")
		require.NoError(t, err)
		_, err = a.meter.Int64ObservableUpDownCounter("oupdown", metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(5)
			return nil
		}))
		require.NoError(t, err)
		_, err = a.meter.Int64ObservableGauge("ogauge", metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(5)
			return nil
		}))
		require.NoError(t, err)
		for range 5 {
			ud.Add(ctx, 1)
			h.Record(ctx, 1)
			g.Record(ctx, 1)
			sleep(second)
		}
		a.flush()
		assert.Empty(t, b.server.Keys())
	})
}

func TestB22_NoNumberNeverPoisonsASum(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var logged log
		a := b.replica(logged.option())
		require.NoError(t, a.reader.RegisterGauges(a.provider))
		ctx := t.Context()
		f1, f2, f3 := a.floatCounter("f1"), a.floatCounter("f2"), a.floatCounter("f3")
		f1.Add(ctx, 1)
		f1.Add(ctx, math.NaN())
		f1.Add(ctx, 5)
		f2.Add(ctx, math.Inf(1))
		f3.Add(ctx, 2.5)
		a.flush()
		f1.Add(ctx, 3)
		a.flush()
		assert.EqualValues(t, 3_000_000, b.truth("shop:{f1:f}"))
		assert.Zero(t, b.truth("shop:{f2:f}"))
		assert.EqualValues(t, 2_500_000, b.truth("shop:{f3:f}"))
		for range 40 {
			sleep(second / 10)
			for _, name := range []string{"f1", "f2", "f3"} {
				for _, v := range gauge[float64](a, name+".group") {
					assert.False(t, math.IsNaN(v) || math.IsInf(v, 0))
				}
			}
		}
		assert.NotEmpty(t, logged.with("level=ERROR", "name=f1"))
		assert.NotEmpty(t, logged.with("level=ERROR", "name=f2"))
	})
}

func TestB23_FloatsAreExact(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a, c := b.replica(), b.replica()
		require.NoError(t, c.reader.RegisterGauges(c.provider))
		ca, cc := a.floatCounter("paid"), c.floatCounter("paid")
		sleep(second - second/20) // early in an interval
		ca.Add(t.Context(), 0.1)
		a.flush()
		cc.Add(t.Context(), 0.2)
		c.flush()
		for key := range b.intervals("shop:{paid:f}") {
			assert.Positive(t, b.server.TTL(key))
		}
		assert.EqualValues(t, 300_000, b.truth("shop:{paid:f}"), "in units of 1e-6")
		sum := 0.0
		seen := map[int64]bool{}
		for range 40 {
			sleep(second / 10)
			total := c.reader.Total("paid")
			if total.Known && !seen[total.Interval] {
				seen[total.Interval] = true
				g := gauge[float64](c, "paid.group")[set()]
				assert.InDelta(t, float64(total.Closed)/1e6, g, 1e-9)
				sum += g
			}
		}
		assert.InDelta(t, 0.3, sum, 1e-9)

		for range 1000 {
			ca.Add(t.Context(), 0.1234567) // the remainders are carried
			sleep(second / 100)
		}
		a.flush()
		assert.InDelta(t, 300_000+123_456_700, b.truth("shop:{paid:f}"), 1)
	})
}

func TestB21_NegativeAmountsAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var logged log
		a := b.replica(logged.option())
		ctx := t.Context()
		c, f, neighbour := a.counter("c"), a.floatCounter("f"), a.counter("neighbour")
		part := metric.WithAttributes(attribute.Bool("b", true))
		c.Add(ctx, 10)
		c.Add(ctx, -3) // the SDK adds them up
		a.flush()
		assert.EqualValues(t, 7, b.truth("shop:{c}"))

		c.Add(ctx, -3)
		c.Add(ctx, 1, part)
		f.Add(ctx, -0.5)
		neighbour.Add(ctx, 2)
		a.flush()
		assert.EqualValues(t, 8, b.truth("shop:{c}"))
		assert.EqualValues(t, 1, b.part("shop:{c}", "b=true"))
		assert.Zero(t, b.truth("shop:{f:f}"))
		assert.EqualValues(t, 2, b.truth("shop:{neighbour}"))
		assert.Len(t, logged.with(`level=ERROR msg="amount dropped" name=c`, "dropped=-3"), 1)
		sleep(2 * second) // the counter reports with its tick
		assert.NotEmpty(t, logged.with("level=ERROR", "name=f "), "%v", logged.lines)
	})
}

func TestSumThatWrappedAroundIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var logged log
		a := b.replica(logged.option())
		c, neighbour := a.counter("c"), a.counter("neighbour")
		c.Add(t.Context(), math.MaxInt64)
		c.Add(t.Context(), 1)
		neighbour.Add(t.Context(), 2)
		a.flush()
		assert.Zero(t, b.truth("shop:{c}"))
		assert.EqualValues(t, 2, b.truth("shop:{neighbour}"))
		assert.Len(t, logged.with(`msg="amount dropped" name=c`, fmt.Sprint("dropped=", int64(math.MinInt64))), 1)
	})
}

func TestB31_InstrumentsOfOneNameCountOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		ctx := t.Context()
		other := a.provider.Meter("app", metric.WithInstrumentationVersion("2"))
		late, err := other.Int64Counter("req")
		require.NoError(t, err)
		count := func() {
			a.counter("mix").Add(ctx, 1)
			a.floatCounter("mix").Add(ctx, 2.5)
			a.counter("d", metric.WithDescription("x")).Add(ctx, 1)
			a.counter("d", metric.WithDescription("y")).Add(ctx, 2)
			a.counter("Req").Add(ctx, 1)
			a.counter("req").Add(ctx, 2)
			late.Add(ctx, 4)
		}
		for range 20 {
			count()
			sleep(second / 2)
		}
		a.flush()
		assert.EqualValues(t, 20, b.truth("shop:{mix}"))
		assert.EqualValues(t, 50_000_000, b.truth("shop:{mix:f}"))
		assert.EqualValues(t, 60, b.truth("shop:{d}"))
		// The SDK takes names that differ by case for one within a meter.
		assert.EqualValues(t, 60, b.truth("shop:{Req}"))
		assert.EqualValues(t, 80, b.truth("shop:{req}"))
		// One key holds 3 of each second, and no more: one add of what was merged.
		for key, n := range b.intervals("shop:{d}") {
			assert.LessOrEqual(t, n, int64(12), key)
		}
	})
}

func TestTwoObservablesOfOneNameHaveBaselinesOfTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		one := a.observable("bytes")
		a.meter = a.provider.Meter("another")
		two := a.observable("bytes")
		for _, v := range [][2]int64{{1000, 2000}, {1005, 2003}, {1005, 2003}, {1006, 2004}} {
			one.set(v[0])
			two.set(v[1])
			a.flush()
		}
		assert.EqualValues(t, 10, b.truth("shop:{bytes}"))
	})
}

func TestViews(t *testing.T) {
	match := func(name string) sdkmetric.Instrument { return sdkmetric.Instrument{Name: name} }
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(sdkmetric.WithView(
			sdkmetric.NewView(match("a1"), sdkmetric.Stream{Name: "a"}),
			sdkmetric.NewView(match("a2"), sdkmetric.Stream{Name: "a"}),
			sdkmetric.NewView(match("dropped"), sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}),
			sdkmetric.NewView(match("filtered"), sdkmetric.Stream{AttributeFilter: attribute.NewAllowKeysFilter("route")}),
			sdkmetric.NewView(match("histogrammed"), sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 10}}),
			sdkmetric.NewView(match("summed"), sdkmetric.Stream{Aggregation: sdkmetric.AggregationSum{}}),
			sdkmetric.NewView(match("updown"), sdkmetric.Stream{Aggregation: sdkmetric.AggregationSum{}}),
		))
		ctx := t.Context()
		a.counter("a1").Add(ctx, 1)
		a.counter("a2").Add(ctx, 2)
		a.counter("dropped").Add(ctx, 1)
		filtered := a.counter("filtered")
		for i := range 3 {
			filtered.Add(ctx, 1, metric.WithAttributes(attribute.String("route", "/x"), attribute.Int("user", i)))
		}
		a.counter("histogrammed").Add(ctx, 1)
		h, err := a.meter.Int64Histogram("summed")
		require.NoError(t, err)
		h.Record(ctx, 7)
		ud, err := a.meter.Int64UpDownCounter("updown")
		require.NoError(t, err)
		ud.Add(ctx, 1)
		a.flush()
		assert.EqualValues(t, 3, b.truth("shop:{a}"))
		assert.EqualValues(t, 3, b.truth("shop:{filtered}"))
		assert.EqualValues(t, 3, b.part("shop:{filtered}", `route="/x"`))
		assert.EqualValues(t, 7, b.truth("shop:{summed}"), "a histogram that a view turns into a sum counts")
		for _, name := range []string{"a1", "a2", "dropped", "histogrammed", "updown"} {
			assert.Empty(t, b.intervals("shop:{"+name+"}"), name)
		}
	})
}

func TestOwnInstrumentsNeverComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		// Whatever a view makes of them.
		sums := func(i sdkmetric.Instrument) (sdkmetric.Stream, bool) {
			s := sdkmetric.Stream{Name: i.Name, Unit: i.Unit}
			switch i.Kind {
			case sdkmetric.InstrumentKindCounter, sdkmetric.InstrumentKindHistogram, sdkmetric.InstrumentKindObservableCounter:
				s.Aggregation = sdkmetric.AggregationSum{}
			case sdkmetric.InstrumentKindGauge, sdkmetric.InstrumentKindObservableGauge:
				s.Aggregation = sdkmetric.AggregationLastValue{}
			}
			return s, true
		}
		a := b.replica(sdkmetric.WithView(sums))
		require.NoError(t, a.reader.RegisterGauges(a.provider))
		c := a.counter("c")
		ours, err := a.provider.Meter("github.com/otelcomcount/otelcomcount/counter").Int64Counter("ours")
		require.NoError(t, err)
		for range 100 {
			c.Add(t.Context(), 1)
			ours.Add(t.Context(), 1) // our own telemetry
			sleep(second / 10)
		}
		a.flush()
		for _, key := range b.server.Keys() {
			assert.True(t, strings.HasPrefix(key, "shop:{c}:"), key)
		}
		assert.EqualValues(t, 100, b.truth("shop:{c}"))
	})
}

func TestB53_OverflowGoesToTheGrandTotal(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var logged log
		a := b.replica(WithMaxSeries(2), logged.option())
		c := a.counter("c")
		part := func(i int) metric.AddOption { return metric.WithAttributes(attribute.Int("i", i)) }
		for i := range 5 {
			c.Add(t.Context(), int64(i+1), part(i))
		}
		a.flush()
		assert.EqualValues(t, 15, b.truth("shop:{c}"))
		c.Add(t.Context(), 9, part(4))
		a.flush()
		assert.EqualValues(t, 24, b.truth("shop:{c}"))
		assert.Zero(t, b.part("shop:{c}", "otel.metric.overflow=true"))
		assert.EqualValues(t, 1, b.part("shop:{c}", "i=0"))
		assert.Len(t, logged.with(`msg="too many series"`, "name=c"), 1)
	})
}

func TestNoSeriesAtAll(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(WithMaxSeries(0))
		c, o := a.counter("c"), a.observable("o")
		part := attribute.Int("i", 1)
		for i := range int64(5) {
			o.set(10+i, part)
			c.Add(t.Context(), 1, metric.WithAttributes(part))
			a.flush()
		}
		assert.EqualValues(t, 5, b.truth("shop:{c}"))
		assert.EqualValues(t, 4, b.truth("shop:{o}"))
	})
}

// Many sets may be observed: what is above the limit counts for the grand total.
func TestObservableAboveTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(WithMaxSeries(3))
		o := a.observable("o")
		for round := range int64(4) {
			for i := range 50 {
				o.set(1000+round, attribute.Int("i", i))
			}
			a.flush()
		}
		assert.EqualValues(t, 150, b.truth("shop:{o}"))
	})
}

func TestInstrumentNameThatIsNoneOfACounters(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var logged log
		a := b.replica(logged.option())
		c, _ := a.meter.Int64Counter("}") // an error, but the SDK counts all the same
		neighbour := a.counter("neighbour")
		for range 3 {
			c.Add(t.Context(), 1)
			neighbour.Add(t.Context(), 1)
			a.flush()
		}
		assert.EqualValues(t, 3, b.truth("shop:{neighbour}"))
		assert.Len(t, logged.with(`msg="instrument not counted" name=}`), 1)
		assert.Len(t, logged.with(`msg="amount dropped" name=}`, "dropped=1"), 3)
	})
}
