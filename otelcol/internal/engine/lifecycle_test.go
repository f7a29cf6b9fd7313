package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
	o "github.com/otelcomcount/otelcomcount/otelcol/internal/otlptest"
)

func request(value int) pmetric.Metrics {
	return o.New().Service("s").Delta("m", o.Point{Value: value}).MD
}

func TestB44ShutdownFlushes(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		for range 10 {
			c.consume(request(10))
		}
		require.NoError(t, c.Shutdown(f.t.Context()))
		assert.Len(t, f.totals("s:", "m"), 1, "one flush")
		assert.EqualValues(t, 100, f.truth("s:", "m"))
		_, err := c.Extract(request(1))
		require.ErrorContains(t, err, "not running")
	})
}

func TestB44ShutdownWithAStalledRedis(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		f.down.Store("down", true)
		c.consume(request(100))
		ctx, cancel := context.WithTimeout(f.t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.Error(t, c.Shutdown(ctx))
		assert.LessOrEqual(t, time.Since(began), 500*time.Millisecond)
		assert.EqualValues(t, 100, c.reportedLost())
	})
}

// reportedLost adds up what the group reported as lost.
func (c *collector) reportedLost() (sum int64) {
	for _, e := range c.logs.FilterMessage("flush failed").All() {
		if n, ok := e.ContextMap()["dropped"].(int64); ok {
			sum += n
		}
	}
	return sum
}

func TestShutdownEndsWithoutADeadline(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		f.down.Store("down", true)
		c.consume(request(100))
		began := time.Now()
		_ = c.Shutdown(context.Background())
		assert.LessOrEqual(t, time.Since(began), maxShutdown)
		assert.EqualValues(t, 100, c.reportedLost())
	})
}

func TestB45ShutdownWithoutStart(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.prepare()
		_, err := c.Extract(request(1))
		require.ErrorContains(t, err, "not running")
		require.NoError(t, c.Shutdown(f.t.Context()))
		require.NoError(t, c.Shutdown(f.t.Context()))
	})
}

func TestB45StartAndShutdownTwice(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		require.NoError(t, c.Start(f.t.Context()))
		c.consume(request(1))
		require.NoError(t, c.Shutdown(f.t.Context()))
		require.NoError(t, c.Shutdown(f.t.Context()))
		assert.EqualValues(t, 1, f.truth("s:", "m"))
	})
}

// A Redis that cannot be reached is no reason not to start, and nothing waits.
func TestB45StartWithABadAddress(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.down.Store("down", true)
		c := f.start()
		began := time.Now()
		for range 100 {
			c.consume(request(1))
		}
		assert.Equal(t, began, time.Now(), "nothing waited")
		time.Sleep(1500 * time.Millisecond)
		f.down.Delete("down")
		time.Sleep(5 * time.Second)
		c.flush()
		assert.EqualValues(t, 100, f.truth("s:", "m"), "and nothing is lost in a short outage")
	})
}

// "Instances of one id share one Group, reference-counted, the last Shutdown
// flushes."
func TestB45InstancesOfOneIDCountTogether(t *testing.T) {
	inFleet(t, func(f *fleet) {
		template := f.prepare(emit(EmitOne))
		shared, cfg := NewShared(), new(config.Config)
		var members []*Member
		var sinks []*consumertest.MetricsSink
		for range 2 {
			sink := &consumertest.MetricsSink{}
			m := shared.Join(cfg, template.engine.settings, consumer.Metrics(sink))
			require.NoError(t, m.Start(f.t.Context()))
			members, sinks = append(members, m), append(sinks, sink)
		}
		require.Same(t, members[0].engine, members[1].engine)
		count := func(m *Member, name string) {
			b, err := m.Extract(o.New().Service("s").Delta(name, o.Point{Value: 1}).MD)
			require.NoError(t, err)
			b.Commit()
			b.Release()
		}
		for range 10 {
			count(members[0], "both")
			count(members[1], "both")
			count(members[1], "second")
			time.Sleep(time.Second)
		}
		names := func(i int) (both, second int) {
			for _, g := range (&collector{f: f, sink: sinks[i]}).gauges() {
				switch g.name {
				case "both.group":
					both++
				case "second.group":
					second++
				}
			}
			return both, second
		}
		// A total goes to the pipeline that its metric came through first.
		both, second := names(0)
		assert.Equal(t, 9, both)
		assert.Zero(t, second)
		both, second = names(1)
		assert.Zero(t, both)
		assert.Equal(t, 9, second)

		require.NoError(t, members[0].Shutdown(f.t.Context()))
		_, err := members[0].Extract(request(1))
		require.Error(t, err)
		count(members[1], "both")
		time.Sleep(3 * time.Second)
		both, _ = names(0)
		assert.Equal(t, 9, both, "nothing comes out of an instance that has ended")
		both, _ = names(1)
		assert.Equal(t, 3, both, "the other one stands in")

		count(members[1], "both")
		require.NoError(t, members[1].Shutdown(f.t.Context()))
		assert.EqualValues(t, 22, f.truth("s:", "both"))
		participants := map[string]bool{}
		for _, key := range f.redis.DB(0).Keys() {
			if fields, err := f.redis.HKeys(key); err == nil {
				for _, field := range fields {
					if field[0] == '@' {
						participants[field] = true
					}
				}
			}
		}
		assert.Len(t, participants, 1)
		assert.NotSame(t, members[0].engine, shared.Join(cfg, template.engine.settings, nil).engine)
	})
}

// The last flush of a collector may bring a total that nobody else reports.
func TestShutdownPassesTheLastTotalsOn(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(emit(EmitOne))
		c.consume(request(5))
		time.Sleep(1100 * time.Millisecond) // early in the second interval: before its tick
		c.consume(request(1))
		require.NoError(t, c.Shutdown(f.t.Context()))
		assert.Equal(t, map[int64]any{946684801000: int64(5)}, totalsOf(t, "m.group", c))
		n := len(c.gauges())
		time.Sleep(10 * time.Second)
		assert.Len(t, c.gauges(), n)
	})
}

// slow is a next component that takes its time.
type slow struct{ *consumertest.MetricsSink }

func (s *slow) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	time.Sleep(1500 * time.Millisecond)
	return s.MetricsSink.ConsumeMetrics(ctx, md)
}

// Totals that wait for a slow downstream come out before Shutdown returns.
func TestShutdownWaitsForASlowDownstream(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.prepare(emit(EmitOne))
		c.outlet.next = &slow{c.sink}
		require.NoError(t, c.Start(f.t.Context()))
		for range 6 {
			c.consume(request(1))
			time.Sleep(time.Second)
		}
		require.NoError(t, c.Shutdown(f.t.Context()))
		assert.Len(t, totalsOf(t, "m.group", c), 5)
	})
}

// stuck is a next component that does not answer.
type stuck struct {
	consumertest.Consumer
	release chan struct{}
}

func (s *stuck) ConsumeMetrics(context.Context, pmetric.Metrics) error {
	<-s.release
	return nil
}

// A downstream that hangs delays neither counting nor the end.
func TestShutdownWithAStuckDownstream(t *testing.T) {
	inFleet(t, func(f *fleet) {
		next := &stuck{release: make(chan struct{})}
		c := f.prepare(emit(EmitOne))
		c.outlet.next = next
		require.NoError(t, c.Start(f.t.Context()))
		for range 10 {
			c.consume(request(1))
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, 10, f.truth("s:", "m"))
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
		close(next.release)
	})
}

// What is passed on only after Shutdown has given up waiting is reported.
func TestCommitAfterShutdownIsReported(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		b, err := c.Extract(o.New().Service("s").Delta("m", o.Point{Value: 1}, o.Point{Value: 2}).Cumulative("c", o.Point{At: 1, Value: 1}).MD)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
		defer cancel()
		require.NoError(t, c.Shutdown(ctx))
		b.Commit()
		b.Release()
		assert.EqualValues(t, 3, c.dropped("shutdown"))
		assert.Zero(t, f.truth("s:", "m"))
	})
}

func TestShutdownWaitsForThoseInside(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start()
		b, err := c.Extract(request(3))
		require.NoError(t, err)
		go func() {
			time.Sleep(time.Second)
			b.Commit()
			b.Release()
		}()
		require.NoError(t, c.Shutdown(f.t.Context()))
		assert.EqualValues(t, 3, f.truth("s:", "m"))
	})
}

func TestIdleTargetsAreLetGo(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(emit(EmitOne), configured(func(c *config.Config) { c.Attributes = []string{"k"} }))
		for i := range 100 {
			c.consume(o.New().Service("idle").Delta("m", o.Point{Value: 1, Attrs: map[string]any{"k": int64(i)}}).MD)
		}
		for range 20 {
			c.consume(o.New().Service("live").Delta("m", o.Point{Value: 1, Attrs: map[string]any{"k": "v"}}).MD)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		ts := c.engine.targets
		ts.mu.RLock()
		defer ts.mu.RUnlock()
		assert.Len(t, ts.services, 1)
		assert.Equal(t, 1, ts.metrics)
		assert.Equal(t, 1, ts.series)
	})
}

func TestSeriesAboveTheLimitCountInTheGrandTotal(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(configured(func(c *config.Config) { c.Attributes, c.MaxSeries = []string{"k"}, 10 }))
		for i := range 100 {
			c.consume(o.New().Service("s").Delta("m", o.Point{Value: 1, Attrs: map[string]any{"k": int64(i % 20)}}).MD)
		}
		c.flush()
		assert.EqualValues(t, 100, f.truth("s:", "m"))
		assert.EqualValues(t, 50, c.measured("otelcol_comcount_datapoints_without_series", ""))
		assert.Equal(t, 1, c.logs.FilterMessageSnippet("too many series").Len())
		assert.EqualValues(t, 100, c.measured("otelcol_comcount_datapoints_counted", ""))
	})
}

func TestNamesThatCannotBeCounted(t *testing.T) {
	inFleet(t, func(f *fleet) {
		c := f.start(configured(func(c *config.Config) { c.Metrics.Exclude = []string{"no.*"} }))
		c.consume(o.New().Service("s").Delta("", o.Point{Value: 1}).Delta("m:f", o.Point{Value: 1}).
			Delta("}", o.Point{Value: 1}).Delta("no.thing", o.Point{Value: 1}).Delta("m", o.Point{Value: 2}).MD)
		c.flush()
		assert.EqualValues(t, 3, c.dropped("name"))
		assert.EqualValues(t, 2, f.truth("s:", "m"))
		assert.Empty(t, f.totals("s:", "no.thing"))
	})
}

func TestServicesAndMetricsAreBounded(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.down.Store("down", true) // a pipe in memory bears no flush of that size
		c := f.start()
		b := o.New()
		for i := range maxServices + 5 {
			b.Service(string(rune(0x4e00+i))).Delta("m", o.Point{Value: 1})
		}
		c.consume(b.MD)
		assert.EqualValues(t, 5, c.dropped("metric_limit"))
		assert.Equal(t, 1, c.logs.FilterMessageSnippet("too many services").Len())
		b = o.New().Service(string(rune(0x4e00)))
		for i := range maxMetrics {
			b.Delta(string(rune(0x4e00+i)), o.Point{Value: 1})
		}
		c.consume(b.MD)
		assert.EqualValues(t, 5+maxServices, c.dropped("metric_limit"))
		_ = c.Shutdown(f.t.Context())
	})
}
