package exporter

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

func (b *bubble) client() *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1", // no name, for go-redis looks names up
		Dialer: func(context.Context, string, string) (net.Conn, error) { return b.server.Dial() },
	})
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// replica is a process of a service with a PeriodicReader of 10 s before the
// exporter.
type replica struct {
	*bubble
	exporter *Exporter
	provider *sdkmetric.MeterProvider
	meter    metric.Meter
}

func (b *bubble) replica(opts ...any) *replica {
	b.Helper()
	eopts := []Option{WithInterval(10 * second)}
	ropts := []sdkmetric.PeriodicReaderOption{sdkmetric.WithInterval(10 * second)}
	for _, o := range opts {
		switch o := o.(type) {
		case Option:
			eopts = append(eopts, o)
		case sdkmetric.PeriodicReaderOption:
			ropts = append(ropts, o)
		default:
			b.Fatalf("no option: %T", o)
		}
	}
	e, err := New(b.client(), eopts...)
	require.NoError(b, err)
	p := sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e, ropts...)))
	b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return &replica{bubble: b, exporter: e, provider: p, meter: p.Meter("app")}
}

func (r *replica) counter(name string, opts ...metric.Int64CounterOption) metric.Int64Counter {
	c, err := r.meter.Int64Counter(name, opts...)
	require.NoError(r, err)
	return c
}

// observable is an observable counter that observes what the function returns,
// if that is not negative.
func (r *replica) observable(name string, value func() int64, opts ...metric.ObserveOption) {
	_, err := r.meter.Int64ObservableCounter(name, metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		if v := value(); v >= 0 {
			o.Observe(v, opts...)
		}
		return nil
	}))
	require.NoError(r, err)
}

// flush has what was counted exported and settled.
func (r *replica) flush() {
	r.Helper()
	require.NoError(r, r.provider.ForceFlush(r.Context()))
}

// truth is what Redis holds of a counter, over all intervals.
func (b *bubble) truth(name string) (sum int64) {
	for _, key := range b.server.Keys() {
		if !strings.HasPrefix(key, name+":") || strings.HasSuffix(key, ":by") {
			continue
		}
		text, err := b.server.Get(key)
		require.NoError(b, err)
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(b, err)
		sum += n
	}
	return sum
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

// next is an exporter that keeps what comes.
type next struct {
	temporality sdkmetric.TemporalitySelector

	mu        sync.Mutex
	batches   []metricdata.ResourceMetrics
	err       error
	hang      bool // until the context ends
	flushes   int
	shutdowns int
}

func (n *next) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return n.temporality(k)
}

func (n *next) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	if k == sdkmetric.InstrumentKindHistogram {
		return sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 20, MaxScale: 20}
	}
	return sdkmetric.DefaultAggregationSelector(k)
}

func (n *next) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	kept := *rm
	kept.ScopeMetrics = slices.Clone(rm.ScopeMetrics)
	for i := range kept.ScopeMetrics {
		kept.ScopeMetrics[i].Metrics = slices.Clone(kept.ScopeMetrics[i].Metrics)
	}
	n.batches = append(n.batches, kept)
	return n.err
}

func (n *next) ForceFlush(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flushes++
	return n.err
}

func (n *next) Shutdown(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shutdowns++
	return n.err
}

// metric returns a metric of the last batch, or nil.
func (n *next) metric(name string) *metricdata.Metrics {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.batches) == 0 {
		return nil
	}
	for _, sm := range n.batches[len(n.batches)-1].ScopeMetrics {
		for _, m := range sm.Metrics {
			if m.Name == name {
				return &m
			}
		}
	}
	return nil
}

// log collects what is logged, a line for each record.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) option() Option { return WithLogger(slog.New(slog.NewTextHandler(l, nil))) }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

// with returns the lines that hold this.
func (l *log) with(part string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	return lines
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
