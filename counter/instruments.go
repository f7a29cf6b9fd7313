package counter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// groupSuffix names the gauge of a group's total after its counter.
const groupSuffix = ".group"

// instruments shows a group's counters to OpenTelemetry.
type instruments struct {
	meter  metric.Meter
	prefix string
	limit  int // of counters kept alive for their sums
	report *reporter
	fresh  chan struct{}

	mu       sync.Mutex // not held while an instrument is made: the SDK has locks of its own
	counters map[string][]*Counter
	kept     int
	unmade   []*Counter // grand totals without instruments
}

// RegisterInstruments has a meter provider export the counters of this view of
// the group, those that exist and those to come: what this participant counted
// as an observable counter under the counter's own name, with its attributes;
// and the group's last closed total, while it is known, as an observable gauge
// `<name>.group`, not its parts. They have no unit. So a hot loop that adds to a
// [Counter] needs no SDK instrument beside it.
//
// It returns the errors of the instruments it makes at once; later ones are
// logged. Counters are kept alive for their sums, up to [WithMaxSeries] of them.
// The sums go on being exported after Close. Negative amounts do not belong in a
// counter that is exported: its sum must not fall.
func (g *Group) RegisterInstruments(mp metric.MeterProvider) error {
	if mp == nil {
		return errors.New("counter: RegisterInstruments got a nil MeterProvider")
	}
	in := &instruments{
		meter: mp.Meter(scope), prefix: g.prefix, limit: g.config.maxSeries, report: g.report,
		fresh: make(chan struct{}, 1), counters: map[string][]*Counter{},
	}
	for _, c := range g.registry.observe(in) {
		in.add(c)
	}
	err := in.make()
	go in.run(g.done)
	return err
}

// add notes a counter. It is called with the registry's lock held.
func (in *instruments) add(c *Counter) {
	if c.key.prefix != in.prefix || c.excess {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.grand == c {
		in.unmade = append(in.unmade, c)
	}
	if in.kept < in.limit || c.grand == c {
		in.kept++
		in.counters[c.key.name] = append(in.counters[c.key.name], c)
	}
	select {
	case in.fresh <- struct{}{}:
	default:
	}
}

// run makes instruments for counters to come: on a goroutine of its own, since
// the caller of Group.Counter may be in an SDK callback, where making one
// deadlocks.
func (in *instruments) run(done <-chan struct{}) {
	for {
		select {
		case <-in.fresh:
			if err := in.make(); err != nil {
				in.report.failed(seriesKey{prefix: in.prefix}, err.Error(), 0)
			}
		case <-done:
			return
		}
	}
}

func (in *instruments) make() error {
	in.mu.Lock()
	unmade := in.unmade
	in.unmade = nil
	in.mu.Unlock()
	var errs []error
	for _, grand := range unmade {
		name, float := strings.CutSuffix(grand.key.name, floatSuffix)
		if float {
			errs = append(errs, in.makeFloat(name, grand))
		} else {
			errs = append(errs, in.makeInt(name, grand))
		}
	}
	return errors.Join(errs...)
}

func (in *instruments) makeInt(name string, grand *Counter) error {
	_, err := in.meter.Int64ObservableCounter(name, metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		in.sums(grand, func(c *Counter, sum int64) { o.Observe(sum, metric.WithAttributeSet(c.attrs)) })
		return nil
	}))
	_, gerr := in.meter.Int64ObservableGauge(name+groupSuffix, metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		if t := grand.read(); t.Known {
			o.Observe(t.Closed)
		}
		return nil
	}))
	return errors.Join(err, gerr)
}

func (in *instruments) makeFloat(name string, grand *Counter) error {
	_, err := in.meter.Float64ObservableCounter(name, metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
		in.sums(grand, func(c *Counter, sum int64) { o.Observe(float64(sum)/perUnit, metric.WithAttributeSet(c.attrs)) })
		return nil
	}))
	_, gerr := in.meter.Float64ObservableGauge(name+groupSuffix, metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
		if t := grand.read(); t.Known {
			o.Observe(float64(t.Closed) / perUnit)
		}
		return nil
	}))
	return errors.Join(err, gerr)
}

// sums calls fn with what each counter of a name counted here. What was added to
// the grand total itself stands for the empty attribute set.
func (in *instruments) sums(grand *Counter, fn func(*Counter, int64)) {
	in.mu.Lock()
	counters := slices.Clone(in.counters[grand.key.name])
	in.mu.Unlock()
	for _, c := range counters {
		if sum := c.counted.Load(); c != grand || sum != 0 || len(counters) == 1 {
			fn(c, sum)
		}
	}
}
