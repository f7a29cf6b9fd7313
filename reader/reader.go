package reader

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// manualReader is embedded under a name of our own: the SDK's Reader interface
// is sealed, and through an exported field others could collect, and so take
// away, what is to be counted.
type manualReader = sdkmetric.ManualReader

// Reader is a [sdkmetric.Reader] that counts for a group. It serves one
// MeterProvider; a second one that it is registered with gets nothing from it,
// which the SDK logs.
//
// All methods may be called from any number of goroutines, and from callbacks of
// instruments.
type Reader struct {
	*manualReader

	feed     *feed.Feed
	interval time.Duration
	loop     loop

	down atomic.Bool   // Shutdown was called
	done chan struct{} // closed when it has ended
	err  error         // of Shutdown; set before done is closed

	gauges atomic.Pointer[[]*gauges]
}

var _ sdkmetric.Reader = (*Reader)(nil)

// New returns a reader to be registered with a MeterProvider. The client stays
// the caller's: Shutdown does not close it.
//
// New fails on a nil client, a [redis.Ring], a [redis.AutoPipeliner], and options
// out of bounds. It does not talk to Redis; nothing does before something was
// counted. A reader must be shut down, be it registered or not: it has a goroutine.
func New(rdb redis.UniversalClient, opts ...Option) (*Reader, error) {
	cfg := feed.NewConfig("reader", defaultInterval)
	for _, o := range opts {
		if o != nil {
			o.apply(&cfg)
		}
	}
	f, err := feed.New(rdb, cfg)
	if err != nil {
		return nil, err
	}
	r := &Reader{
		manualReader: sdkmetric.NewManualReader(
			sdkmetric.WithTemporalitySelector(feed.Temporality),
			sdkmetric.WithAggregationSelector(feed.Aggregation),
			sdkmetric.WithCardinalityLimitSelector(limit(cfg.MaxSeries)),
		),
		feed:     f,
		interval: cfg.Interval,
		loop:     newLoop(),
		done:     make(chan struct{}),
	}
	r.gauges.Store(&[]*gauges{})
	f.BeforeTick(r.beforeTick)
	go r.run()
	return r, nil
}

// limit keeps the SDK's memory within that of the group. Of observable counters
// the SDK keeps nothing from one collection to the next; with a limit their
// overflow would hold now these series, now those, and say nothing.
func limit(maxSeries int) sdkmetric.CardinalityLimitSelector {
	return func(kind sdkmetric.InstrumentKind) (int, bool) {
		if kind == sdkmetric.InstrumentKindObservableCounter {
			return 0, false
		}
		return maxSeries + 1, false // one of them is the overflow
	}
}

// Total returns what is known of an instrument's group total, or of the part
// with these attributes: all of them, as they come out of the provider's views.
// It never waits.
//
// Nothing is known of an instrument that has not counted yet. Amounts of a float
// instrument are in units of [counter.Resolution]. Where an int and a float
// instrument have one name, it is that of the first.
func (r *Reader) Total(instrument string, attrs ...attribute.KeyValue) counter.Total {
	r.wantMore()
	return r.feed.Total(instrument, attrs)
}

// Watch calls fn with over = true once an instrument's grand total, its Count,
// has reached high, and with false once it is back below low (low <= high, else
// Watch panics). See [counter.Counter.Watch], also for what an outage does to it.
// The instrument need not have counted yet. For a float instrument high and low are
// in units of [counter.Resolution].
func (r *Reader) Watch(instrument string, high, low int64, fn func(t counter.Total, over bool)) (stop func()) {
	stop = r.feed.Watch(instrument, high, low, fn)
	r.wake()
	return stop
}

// errCollect is what Collect returns.
var errCollect = errors.New("reader: what this reader collects goes to its group; use a reader of your own")

// Collect always fails: what it would take from the reader would not be counted.
func (r *Reader) Collect(context.Context, *metricdata.ResourceMetrics) error { return errCollect }

// MarshalLog is how the SDK's log shows the reader.
func (r *Reader) MarshalLog() any {
	return struct {
		Type     string
		Interval time.Duration
	}{"comcount/reader", r.interval}
}
