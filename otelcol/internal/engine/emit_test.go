package engine

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
	o "github.com/otelcomcount/otelcomcount/otelcol/internal/otlptest"
)

// totalsOf are a gauge's values by the end of their interval in milliseconds, over all
// collectors. No interval may come twice.
func totalsOf(t *testing.T, name string, cs ...*collector) map[int64]any {
	t.Helper()
	totals := map[int64]any{}
	for _, c := range cs {
		for _, g := range c.gauges() {
			if g.name == name {
				assert.NotContains(t, totals, g.end, "a total that was emitted twice")
				totals[g.end] = g.value
			}
		}
	}
	return totals
}

// "Of all replicas at most one emits a counter's total of an interval, exactly one
// in intervals without a fault."
func TestEmitOneEmitsEachTotalOnce(t *testing.T) {
	inFleet(t, func(f *fleet) {
		replicas := []*collector{f.start(emit(EmitOne)), f.start(emit(EmitOne)), f.start(emit(EmitOne))}
		for i := range 40 {
			for j, c := range replicas {
				if i%(j+1) == 0 {
					c.consume(o.New().Service("s").Delta("m", o.Point{Value: j + 1}).MD)
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		got := totalsOf(t, "m.group", replicas...)
		want := f.totals("s:", "m")
		assert.GreaterOrEqual(t, len(got), 20)
		intervals := slices.Sorted(maps.Keys(want))
		for _, n := range intervals[:len(intervals)-1] { // the last one may still be open
			assert.Equal(t, want[n], got[(n+1)*1000], "interval %d", n)
		}
		emitted := int64(0)
		for _, c := range replicas {
			emitted += c.measured("otelcol_comcount_totals_emitted", "")
		}
		assert.EqualValues(t, len(got), emitted)
	})
}

// "With the metric's unit and description, stamped with the end of N, under a
// resource of the group."
func TestGaugesSayWhatTheyAre(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(emit(EmitOne))
		c.consume(o.New().Resource(map[string]any{"service.name": "s", "service.namespace": "n", "host.name": "h"}).
			Delta("m", o.Point{Value: 3, Attrs: map[string]any{"k": "v"}}, o.Point{Value: 0.5}).MD)
		time.Sleep(3 * time.Second)
		require.NotEmpty(t, c.sink.AllMetrics())
		rm := c.sink.AllMetrics()[0].ResourceMetrics()
		require.Equal(t, 1, rm.Len())
		assert.Equal(t, map[string]any{"service.namespace": "n", "service.name": "s"}, rm.At(0).Resource().Attributes().AsRaw())
		assert.Equal(t, "test", rm.At(0).ScopeMetrics().At(0).Scope().Name())
		ms := rm.At(0).ScopeMetrics().At(0).Metrics()
		require.Equal(t, 2, ms.Len(), "one of integers, one of fractions")
		values := map[any]bool{}
		for _, m := range ms.All() {
			assert.Equal(t, "m.group", m.Name())
			assert.Equal(t, "{request}", m.Unit())
			assert.Equal(t, "Requests.", m.Description())
		}
		for _, g := range c.gauges() {
			values[g.value] = true
			assert.Empty(t, g.attrs)
		}
		assert.Contains(t, values, int64(3))
		assert.Contains(t, values, 0.5)
	})
}

func TestUnknownTotalsAreNotEmitted(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(emit(EmitAll))
		f.down.Store("down", true)
		c.consume(o.New().Service("s").Delta("m", o.Point{Value: 3}).MD)
		time.Sleep(5 * time.Second)
		assert.Empty(t, c.gauges())
	})
}

// "It emits all series of the interval's hash, not only those it knows."
func TestEmitOneEmitsTheSeriesOfAll(t *testing.T) {
	inFleet(t, func(f *fleet) {
		set := configured(func(c *config.Config) {
			c.Attributes, c.ResourceAttributes = []string{"k"}, []string{"host.name"}
		})
		replicas := []*collector{f.start(emit(EmitOne), set), f.start(emit(EmitOne), set)}
		for range 20 {
			for i, c := range replicas {
				c.consume(o.New().Resource(map[string]any{"service.name": "s", "host.name": []any{"a", "b"}[i]}).
					Delta("m", o.Point{Value: 1, Attrs: map[string]any{"k": "x"}}, o.Point{Value: 2, Attrs: map[string]any{"k": int64(i), "other": "y"}}).MD)
			}
			time.Sleep(time.Second)
		}
		totals := totalsOf(t, "m.group", replicas...)
		type series struct {
			host, k any
			end     int64
		}
		seen := map[series]int64{}
		for _, c := range replicas {
			for _, g := range c.gauges() {
				if g.name == "m.group.series" {
					key := series{g.resource["host.name"], g.attrs["k"], g.end}
					assert.NotContains(t, seen, key)
					seen[key] = g.value.(int64)
					assert.Equal(t, "s", g.resource["service.name"])
					assert.Len(t, g.attrs, 1)
				}
			}
		}
		for end, total := range totals {
			var sum int64
			for key, n := range seen {
				if key.end == end {
					sum += n
				}
			}
			assert.Equal(t, total, sum, "all parts of the total")
		}
		assert.Len(t, totals, 19)
		assert.Len(t, seen, 4*19)
	})
}

// "`all`, with the collector's own instance id as attribute."
func TestEmitAll(t *testing.T) {
	inFleet(t, func(f *fleet) {
		instance := func(id string) func(*Settings) {
			return func(s *Settings) { s.Telemetry.Resource.Attributes().PutStr("service.instance.id", id) }
		}
		set := configured(func(c *config.Config) { c.Attributes = []string{"k"} })
		replicas := []*collector{f.start(emit(EmitAll), set, instance("one")), f.start(emit(EmitAll), set, instance("two"))}
		for range 10 {
			for i, c := range replicas {
				c.consume(o.New().Service("s").Delta("m", o.Point{Value: i + 1, Attrs: map[string]any{"k": int64(i)}}).MD)
			}
			time.Sleep(time.Second)
		}
		for i, c := range replicas {
			totals := totalsOf(t, "m.group", c)
			assert.Len(t, totals, 9)
			for end, total := range totals {
				assert.Equal(t, f.totals("s:", "m")[end/1000-1], total)
			}
			assert.Len(t, totalsOf(t, "m.group.series", c), 9)
			for _, g := range c.gauges() {
				assert.Equal(t, []any{"one", "two"}[i], g.attrs["otelcol.instance.id"])
				if g.name == "m.group.series" {
					assert.EqualValues(t, i, g.attrs["k"])
				}
			}
		}
	})
}

// Participants that do not report must not take the place of one that does.
func TestEmitOneAmongOthers(t *testing.T) {
	inFleet(t, func(f *fleet) {
		one := f.start(emit(EmitOne))
		others := []*collector{f.start(emit(EmitAll)), f.start(emit(EmitNone))}
		for range 20 {
			for _, c := range append(others, one) {
				c.consume(o.New().Service("s").Delta("m", o.Point{Value: 1}).MD)
			}
			time.Sleep(time.Second)
		}
		assert.Len(t, totalsOf(t, "m.group", one), 19)
		assert.Empty(t, others[1].gauges())
	})
}

func TestOneGroupByName(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(emit(EmitOne), configured(func(c *config.Config) { c.Group = "fleet" }))
		for _, service := range []string{"a", "b"} {
			c.consume(o.New().Service(service).Delta("m", o.Point{Value: 1}).MD)
		}
		time.Sleep(3 * time.Second)
		assert.EqualValues(t, 2, f.truth("fleet:", "m"))
		require.NotEmpty(t, c.gauges())
		assert.Equal(t, map[string]any{"comcount.group": "fleet"}, c.gauges()[0].resource)
	})
}

func TestServicesAreGroupsOfTheirOwn(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(emit(EmitOne))
		c.consume(o.New().
			Service("a").Delta("m", o.Point{Value: 1}).
			Service("a/b").Delta("m", o.Point{Value: 2}).
			Resource(map[string]any{"service.namespace": "a", "service.name": "b"}).Delta("m", o.Point{Value: 3}).
			Resource(nil).Delta("m", o.Point{Value: 4}).MD)
		time.Sleep(3 * time.Second)
		got := map[any]any{}
		for _, g := range c.gauges() {
			if g.value != int64(0) {
				got[[2]any{g.resource["service.namespace"], g.resource["service.name"]}] = g.value
			}
		}
		assert.Equal(t, map[any]any{
			[2]any{nil, "a"}: int64(1), [2]any{nil, "a/b"}: int64(2), [2]any{"a", "b"}: int64(3),
			[2]any{nil, "unknown_service"}: int64(4),
		}, got)
		assert.EqualValues(t, 2, f.truth("a%2Fb:", "m"))
		assert.EqualValues(t, 3, f.truth("a/b:", "m"))
	})
}

// What a reader in a process counts and what a collector counts is one series.
func TestSeriesAgreeWithThoseOfSDKs(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(configured(func(c *config.Config) { c.Attributes = []string{"strings", "ints", "mixed", "flag"} }))
		c.consume(o.New().Service("s").Delta("m", o.Point{Value: 1, Attrs: map[string]any{
			"strings": []any{"1", "2"}, "ints": []any{int64(1)}, "mixed": []any{"1", int64(2)}, "flag": true,
		}}).MD)
		sdk, err := c.engine.group.WithPrefix(counter.GroupName("", "s"))
		require.NoError(t, err)
		part, err := sdk.Counter("m", attribute.StringSlice("strings", []string{"1", "2"}), attribute.Int64Slice("ints", []int64{1}),
			attribute.KeyValue{Key: "mixed", Value: attribute.SliceValue(attribute.StringValue("1"), attribute.Int64Value(2))}, attribute.Bool("flag", true))
		require.NoError(t, err)
		part.Add(2)
		c.flush()
		grand, err := sdk.Counter("m")
		require.NoError(t, err)
		parts, err := grand.Parts(f.t.Context(), slices.Max(slices.Collect(maps.Keys(f.totals("s:", "m")))), 10)
		require.NoError(t, err)
		require.Len(t, parts, 1)
		assert.EqualValues(t, 3, parts[0].Value)
	})
}

func TestRefusedGaugesAreReported(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.prepare(emit(EmitOne))
		c.outlet.next = consumertest.NewErr(errors.New("no room"))
		require.NoError(t, c.Start(f.t.Context()))
		c.consume(o.New().Service("s").Delta("m", o.Point{Value: 1}).MD)
		time.Sleep(3500 * time.Millisecond)
		assert.Positive(t, c.measured("otelcol_comcount_totals_failed", ""))
		assert.Equal(t, 1, c.logs.FilterMessageSnippet("not accepted downstream").Len())
	})
}

// "Nothing from instrumentation scopes under our module path."
func TestOwnInstrumentsAreNotCounted(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		c.consume(o.New().Service("s").
			Scope(module+"/counter").Delta("m", o.Point{Value: 1}).
			Scope(module).Delta("m", o.Point{Value: 1}).
			Scope(module+"er").Delta("m", o.Point{Value: 5}).MD)
		c.flush()
		assert.EqualValues(t, 5, f.truth("s:", "m"))
		assert.EqualValues(t, 2, c.dropped("own"))
	})
}
