package feed

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Feed adds what an SDK collected to a group of counters.
//
// All methods may be called from any number of goroutines.
type Feed struct {
	config Config
	choice globs
	report *report
	base   *counter.Group
	births Births

	names   atomic.Pointer[map[string]*Instrument] // the first one of each name
	watches watches

	mu          sync.Mutex // one batch at a time; never held across I/O
	group       *counter.Group
	prefix      string
	resource    *resource.Resource
	instruments map[instrumentKey]*Instrument
	ints        map[streamKey]*stream[int64]
	floats      map[streamKey]*stream[float64]
	room        int       // for baselines
	round       uint32    // how often it was swept
	swept       time.Time // last
}

// New returns a feed to a group of its own. It does not talk to Redis.
func New(rdb redis.UniversalClient, cfg Config) (*Feed, error) {
	err := cfg.validate()
	base, gerr := counter.NewGroup(rdb, cfg.Interval, cfg.options()...)
	if err := errors.Join(err, gerr); err != nil {
		return nil, err
	}
	report, err := newReport(cfg)
	if err != nil {
		return nil, err
	}
	f := &Feed{
		config: cfg, choice: cfg.Instruments, report: report, base: base,
		instruments: map[instrumentKey]*Instrument{},
		ints:        map[streamKey]*stream[int64]{},
		floats:      map[streamKey]*stream[float64]{},
		room:        maxBaselines,
	}
	f.names.Store(&map[string]*Instrument{})
	if cfg.Group != nil {
		f.enter(counter.GroupName("", *cfg.Group))
	}
	return f, nil
}

// Temporality asks the SDK for deltas of counters, and for the sums of observable
// ones: as deltas these would report their whole value again after an
// observation that was missed.
func Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.LowMemoryTemporalitySelector(kind)
}

// Aggregation has the SDK keep nothing but counters.
func Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	switch kind {
	case sdkmetric.InstrumentKindCounter, sdkmetric.InstrumentKindObservableCounter:
		return sdkmetric.AggregationDefault{}
	default:
		return sdkmetric.AggregationDrop{}
	}
}

// Births is where the caller notes the SDK's questions for temporality, if it is
// [Config.Ambiguous].
func (f *Feed) Births() *Births { return &f.births }

// Scope is the instrumentation scope for gauges.
func (f *Feed) Scope() string { return f.config.Scope() }

// BeforeTick is [counter.Group.BeforeTick] of the group.
func (f *Feed) BeforeTick(fn func()) { f.base.BeforeTick(fn) }

// Flush is [counter.Group.Flush] of the group.
func (f *Feed) Flush(ctx context.Context) error { return f.base.Flush(ctx) }

// grace is how long a parting flush may take even where ctx is over already.
const grace = 200 * time.Millisecond

// Shutdown is [counter.Group.Shutdown] of the group, with a little time of its
// own: whoever was shut down before with the same ctx may have used it up.
func (f *Feed) Shutdown(ctx context.Context) error {
	ctx, cancel := AtLeast(ctx, grace)
	defer cancel()
	return f.base.Shutdown(ctx)
}

// AtLeast returns a context that ends with ctx, but not before d has passed.
func AtLeast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	early, stopEarly := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(early, func() {
		context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	})
	return longer, func() {
		stop()
		stopEarly()
		cancel(context.Canceled)
	}
}

// Total returns what is known of an instrument's total, or of the part with
// these attributes; of a float instrument in units of [counter.Resolution].
// Nothing is known of an instrument that has not counted yet.
func (f *Feed) Total(name string, attrs []attribute.KeyValue) counter.Total {
	if in := f.lookup(name); in != nil {
		return in.total(attrs)
	}
	return counter.Total{Open: -1}
}

// Instruments returns the instruments of which something was counted, the first
// one of each name.
func (f *Feed) Instruments() []*Instrument {
	return slices.Collect(maps.Values(*f.names.Load()))
}

func (f *Feed) lookup(name string) *Instrument { return (*f.names.Load())[name] }
