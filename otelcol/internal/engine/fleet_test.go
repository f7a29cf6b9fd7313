package engine

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
)

// fleet is collectors on one Redis, all in a bubble of virtual time. No key of the
// Redis ever expires, so that a test can add up all that was counted.
type fleet struct {
	t     *testing.T
	redis *miniredis.Miniredis
	down  sync.Map // "down": the network does not answer

	collectors []*collector
}

// collector is one of them, with one pipeline.
type collector struct {
	*Member
	f         *fleet
	engine    *Engine
	sink      *consumertest.MetricsSink
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	rdb       *redis.Client
}

func inFleet(t *testing.T, test func(f *fleet)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		f := &fleet{t: t, redis: miniredis.NewMiniRedis()}
		time.Sleep(time.Millisecond) // so that the test's times are not those of the ticks
		test(f)
		f.down.Clear()
		for _, c := range f.collectors {
			assert.NoError(t, c.Shutdown(t.Context()))
			assert.NoError(t, c.rdb.Close())
			assert.NoError(t, c.telemetry.Shutdown(context.Background()))
		}
		f.redis.Close()
		time.Sleep(time.Minute)
	})
}

// start starts a collector. The interval is a second; set changes the rest.
func (f *fleet) start(set ...func(*Settings)) *collector {
	f.t.Helper()
	c := f.prepare(set...)
	require.NoError(f.t, c.Start(f.t.Context()))
	return c
}

// prepare is start without Start.
func (f *fleet) prepare(set ...func(*Settings)) *collector {
	f.t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", // an address that is no name: go-redis looks names up
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if _, down := f.down.Load("down"); down {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return f.redis.Dial()
		},
		DialTimeout: 500 * time.Millisecond, ContextTimeoutEnabled: true,
	})
	store, err := counter.NewStore(rdb)
	require.NoError(f.t, err)
	core, logs := observer.New(zap.DebugLevel)
	c := &collector{f: f, sink: &consumertest.MetricsSink{}, logs: logs, rdb: rdb, telemetry: componenttest.NewTelemetry()}
	s := Settings{Config: config.Default(), Scope: "test", Telemetry: c.telemetry.NewTelemetrySettings(), Store: store}
	s.Telemetry.Logger = zap.New(core)
	s.Config.Interval = time.Second
	for _, fn := range set {
		fn(&s)
	}
	c.Member = NewShared().Join(&s, s, consumer.Metrics(c.sink))
	c.engine = c.Member.engine
	f.collectors = append(f.collectors, c)
	return c
}

func emit(e Emit) func(*Settings) { return func(s *Settings) { s.Emit = e } }

// configured changes the configuration.
func configured(fn func(*config.Config)) func(*Settings) { return func(s *Settings) { fn(&s.Config) } }

// consume counts a request, as a component does whose next one accepts it.
func (c *collector) consume(md pmetric.Metrics) {
	c.f.t.Helper()
	md.MarkReadOnly()
	b, err := c.Extract(md)
	require.NoError(c.f.t, err)
	defer b.Release()
	b.Commit()
}

// flush waits until what was counted has arrived.
func (c *collector) flush() {
	c.f.t.Helper()
	require.NoError(c.f.t, c.engine.group.Flush(c.f.t.Context()))
}

// truth is the sum of a counter's totals of all intervals, as Redis has it.
func (f *fleet) truth(prefix, name string) (sum int64) {
	f.t.Helper()
	for interval := range f.totals(prefix, name) {
		sum += f.totals(prefix, name)[interval]
	}
	return sum
}

// totals are a counter's totals, by interval.
func (f *fleet) totals(prefix, name string) map[int64]int64 {
	f.t.Helper()
	totals := map[int64]int64{}
	for _, key := range f.redis.DB(0).Keys() {
		rest, ok := strings.CutPrefix(key, prefix+"{"+name+"}:")
		interval, err := strconv.ParseInt(rest, 10, 64)
		if !ok || err != nil {
			continue
		}
		value, err := f.redis.Get(key)
		require.NoError(f.t, err)
		totals[interval], err = strconv.ParseInt(value, 10, 64)
		require.NoError(f.t, err)
	}
	return totals
}

// dropped is how many points were not counted for a reason.
func (c *collector) dropped(reason string) int64 {
	return c.measured("otelcol_comcount_datapoints_dropped", reason)
}

// measured is the value of one of the component's own metrics.
func (c *collector) measured(name, reason string) int64 {
	m, err := c.telemetry.GetMetric(name)
	if err != nil {
		return 0
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		if v, _ := p.Attributes.Value("reason"); v.AsString() == reason {
			return p.Value
		}
	}
	return 0
}

// gauge is a point that came out downstream.
type gauge struct {
	name     string
	resource map[string]any
	attrs    map[string]any
	value    any
	end      int64 // of its interval: Unix milliseconds
}

// gauges are all points that came out so far.
func (c *collector) gauges() (all []gauge) {
	for _, md := range c.sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, p := range m.Gauge().DataPoints().All() {
						g := gauge{name: m.Name(), resource: rm.Resource().Attributes().AsRaw(), attrs: p.Attributes().AsRaw(), end: p.Timestamp().AsTime().UnixMilli()}
						if g.value = p.IntValue(); p.ValueType() == pmetric.NumberDataPointValueTypeDouble {
							g.value = p.DoubleValue()
						}
						all = append(all, g)
					}
				}
			}
		}
	}
	return all
}
