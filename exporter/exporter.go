package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// Exporter is a [sdkmetric.Exporter] that counts for a group. It serves the
// PeriodicReader of one MeterProvider; batches of another service are not
// counted, which is reported.
//
// All methods may be called from any number of goroutines.
type Exporter struct {
	feed *feed.Feed
	next sdkmetric.Exporter // nil: none
	pace pace

	down atomic.Bool   // Shutdown was called
	done chan struct{} // closed when it has ended
}

var _ sdkmetric.Exporter = (*Exporter)(nil)

// New returns an exporter for a PeriodicReader. The client stays the caller's:
// Shutdown does not close it.
//
// New fails on a nil client, a [redis.Ring], a [redis.AutoPipeliner], and options
// out of bounds. It does not talk to Redis; nothing does before something was
// counted.
func New(rdb redis.UniversalClient, opts ...Option) (*Exporter, error) {
	cfg := config{Config: feed.NewConfig("exporter", defaultInterval)}
	for _, o := range opts {
		if o != nil {
			o.apply(&cfg)
		}
	}
	cfg.Ambiguous = cfg.next != nil
	f, err := feed.New(rdb, cfg.Config)
	if err != nil {
		return nil, err
	}
	return &Exporter{
		feed: f, next: cfg.next, pace: pace{interval: cfg.Interval},
		done: make(chan struct{}),
	}, nil
}

// Temporality is the next exporter's. Without one it is delta for counters and
// cumulative for observable ones.
func (e *Exporter) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	if e.next == nil {
		return feed.Temporality(kind)
	}
	e.feed.Births().Note(kind)
	return e.next.Temporality(kind)
}

// Aggregation is the next exporter's. Without one the SDK keeps nothing but
// counters.
func (e *Exporter) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	if e.next == nil {
		return feed.Aggregation(kind)
	}
	return e.next.Aggregation(kind)
}

// Export counts a batch, and passes it on. It never waits for Redis, and keeps no
// reference into the batch. The error is the next exporter's; ours counts
// whatever becomes of it. After Shutdown Export returns
// [sdkmetric.ErrExporterShutdown].
func (e *Exporter) Export(ctx context.Context, batch *metricdata.ResourceMetrics) error {
	if e.down.Load() {
		return sdkmetric.ErrExporterShutdown
	}
	e.feed.Take(batch)
	fresh, period := e.pace.note(batch)
	if period > 0 {
		e.feed.Warn("interval is shorter than the period",
			slog.Duration("interval", e.pace.interval), slog.Duration("period", period))
	}
	if e.next == nil {
		return nil
	}
	if fresh {
		batch = withGauges(batch, e.feed)
	}
	return e.next.Export(ctx, batch)
}

// Total returns what is known of an instrument's group total, or of the part
// with these attributes: all of them, as they come out of the provider's views.
// It never waits.
//
// Nothing is known of an instrument that has not counted yet. Amounts of a float
// instrument are in units of [counter.Resolution]. Where an int and a float
// instrument have one name, it is that of the first.
func (e *Exporter) Total(instrument string, attrs ...attribute.KeyValue) counter.Total {
	return e.feed.Total(instrument, attrs)
}

// Watch calls fn with over = true once an instrument's grand total, its Count,
// has reached high, and with false once it is back below low (low <= high, else
// Watch panics). See [counter.Counter.Watch], also for what an outage does to it.
// The instrument need not have counted yet. For a float instrument high and low are
// in units of [counter.Resolution].
func (e *Exporter) Watch(instrument string, high, low int64, fn func(t counter.Total, over bool)) (stop func()) {
	return e.feed.Watch(instrument, high, low, fn)
}

// ForceFlush waits until all that was exported before the call is settled: known
// to have reached the group, or reported as lost; and flushes the next exporter.
// If ctx ends first, the error wraps its cause, and what is unsettled goes with
// the next tick. After Shutdown it returns [sdkmetric.ErrExporterShutdown].
func (e *Exporter) ForceFlush(ctx context.Context) error {
	if e.down.Load() {
		return sdkmetric.ErrExporterShutdown
	}
	if e.next == nil {
		return e.feed.Flush(ctx)
	}
	return both(ctx, e.feed.Flush, e.next.ForceFlush)
}

// Shutdown sends what is left, and shuts the next exporter down, whatever comes
// of either. What could not be sent, or is not known to have arrived, is lost;
// it is reported and makes the error. After that nothing is known of totals.
//
// It returns when ctx ends, but the parting flush has 200 ms in any case:
// MeterProvider.Shutdown gives all readers one context, and one before may have
// used it up. A second Shutdown waits for the first and returns
// [sdkmetric.ErrExporterShutdown].
func (e *Exporter) Shutdown(ctx context.Context) error {
	if e.down.Swap(true) {
		select {
		case <-e.done:
			return sdkmetric.ErrExporterShutdown
		case <-ctx.Done():
			return fmt.Errorf("exporter: the exporter is not shut down yet: %w", context.Cause(ctx))
		}
	}
	defer close(e.done)
	if e.next == nil {
		return e.feed.Shutdown(ctx)
	}
	return both(ctx, e.feed.Shutdown, e.next.Shutdown)
}

// both calls two functions at a time, so that neither spends the other's time.
func both(ctx context.Context, ours, next func(context.Context) error) error {
	err := make(chan error, 1)
	go func() { err <- ours(ctx) }()
	return errors.Join(next(ctx), <-err)
}
