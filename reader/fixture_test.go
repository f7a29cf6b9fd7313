package reader

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

const second = time.Second

// bubble is a Redis on virtual time, whose keys do not expire.
type bubble struct {
	*testing.T
	server *miniredis.Miniredis
}

func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	bubbletest.Run(t, func(t *testing.T) {
		b := &bubble{T: t, server: miniredis.NewMiniRedis()}
		t.Cleanup(b.server.Close)
		test(t, b)
	})
}

// client returns a client of the bubble's Redis. It is closed with the bubble.
func (b *bubble) client() *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1", // no name, for go-redis looks names up
		Dialer: func(context.Context, string, string) (net.Conn, error) { return b.server.Dial() },
	})
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// replica is a process of a service: a reader, the provider that it is
// registered with, and another reader of that provider.
type replica struct {
	*bubble
	reader   *Reader
	provider *sdkmetric.MeterProvider
	other    *sdkmetric.ManualReader
	meter    metric.Meter
}

func (b *bubble) replica(opts ...any) *replica {
	b.Helper()
	return b.replicaOn(b.client(), opts...)
}

// replicaOn returns a replica with a client of its own.
func (b *bubble) replicaOn(rdb *redis.Client, opts ...any) *replica {
	b.Helper()
	ropts := []Option{WithInterval(second)}
	popts := []sdkmetric.Option{sdkmetric.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop")))}
	for _, o := range opts {
		switch o := o.(type) {
		case Option:
			ropts = append(ropts, o)
		case sdkmetric.Option:
			popts = append(popts, o)
		default:
			b.Fatalf("no option: %T", o)
		}
	}
	r, err := New(rdb, ropts...)
	require.NoError(b, err)
	other := sdkmetric.NewManualReader()
	p := sdkmetric.NewMeterProvider(append(popts, sdkmetric.WithReader(r), sdkmetric.WithReader(other))...)
	b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return &replica{bubble: b, reader: r, provider: p, other: other, meter: p.Meter("app")}
}

func (r *replica) counter(name string, opts ...metric.Int64CounterOption) metric.Int64Counter {
	c, err := r.meter.Int64Counter(name, opts...)
	require.NoError(r, err)
	return c
}

func (r *replica) floatCounter(name string) metric.Float64Counter {
	c, err := r.meter.Float64Counter(name)
	require.NoError(r, err)
	return c
}

// observed is an observable counter that observes what the test sets. A missing
// value is not observed.
type observed[N int64 | float64] struct {
	mu     sync.Mutex
	values map[attribute.Set]N
	err    error
	calls  int
}

func (r *replica) observable(name string) *observed[int64] {
	o := &observed[int64]{values: map[attribute.Set]int64{}}
	_, err := r.meter.Int64ObservableCounter(name, metric.WithInt64Callback(func(_ context.Context, obs metric.Int64Observer) error {
		return o.each(func(v int64, set metric.ObserveOption) { obs.Observe(v, set) })
	}))
	require.NoError(r, err)
	return o
}

func (r *replica) floatObservable(name string) *observed[float64] {
	o := &observed[float64]{values: map[attribute.Set]float64{}}
	_, err := r.meter.Float64ObservableCounter(name, metric.WithFloat64Callback(func(_ context.Context, obs metric.Float64Observer) error {
		return o.each(func(v float64, set metric.ObserveOption) { obs.Observe(v, set) })
	}))
	require.NoError(r, err)
	return o
}

func (o *observed[N]) each(observe func(N, metric.ObserveOption)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	for set, v := range o.values {
		observe(v, metric.WithAttributeSet(set))
	}
	return o.err
}

func (o *observed[N]) set(v N, attrs ...attribute.KeyValue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.values[attribute.NewSet(attrs...)] = v
}

func (o *observed[N]) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.values)
}

func (o *observed[N]) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

func (o *observed[N]) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// flush has what was counted settled.
func (r *replica) flush() {
	r.Helper()
	require.NoError(r, r.reader.ForceFlush(r.Context()))
}

// truth is what Redis holds of a counter, over all intervals.
func (b *bubble) truth(name string) (sum int64) {
	for _, v := range b.intervals(name) {
		sum += v
	}
	return sum
}

// intervals is what Redis holds of a counter, by key.
func (b *bubble) intervals(name string) map[string]int64 {
	sums := map[string]int64{}
	for _, key := range b.server.Keys() {
		if !strings.HasPrefix(key, name+":") || strings.HasSuffix(key, ":by") {
			continue
		}
		text, err := b.server.Get(key)
		require.NoError(b, err)
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(b, err)
		sums[key] = n
	}
	return sums
}

// part is what Redis holds of a series, over all intervals.
func (b *bubble) part(name, field string) (sum int64) {
	for _, key := range b.server.Keys() {
		if strings.HasPrefix(key, name+":") && strings.HasSuffix(key, ":by") {
			n, _ := strconv.ParseInt(b.server.HGet(key, field), 10, 64)
			sum += n
		}
	}
	return sum
}

// log collects what is logged, a line for each record.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) option() Option {
	return WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// with returns the lines that hold all of these.
func (l *log) with(parts ...string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

// gauge collects with the replica's other reader and returns a gauge's points,
// by attributes; nil if there is none.
func gauge[N int64 | float64](r *replica, name string) map[attribute.Set]N {
	var rm metricdata.ResourceMetrics
	require.NoError(r, r.other.Collect(context.Background(), &rm))
	var points map[attribute.Set]N
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if m.Name != name {
				continue
			}
			g, ok := m.Data.(metricdata.Gauge[N])
			require.True(r, ok, "%T", m.Data)
			require.Nil(r, points, "two gauges %q", name)
			points = map[attribute.Set]N{}
			for _, p := range g.DataPoints {
				points[p.Attributes] = p.Value
			}
		}
	}
	return points
}

func set(attrs ...attribute.KeyValue) attribute.Set { return attribute.NewSet(attrs...) }

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
