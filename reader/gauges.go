package reader

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// gauges shows the group's totals to a meter provider.
type gauges struct {
	reader *Reader
	meter  metric.Meter
	fresh  chan struct{} // there was a collection

	made          map[string]bool
	registrations []metric.Registration
}

// RegisterGauges has a meter provider export the group's last closed totals as
// observable gauges, of the instruments that have counted and of those that
// will: `<name>.group` is the grand total, `<name>.group.series` its parts with
// their attributes. They have the instrument's unit and kind of number. A total
// that is not known is not observed. Every process exports the same totals:
// aggregate them with max or last over processes, never with sum.
//
// The provider may be the one that the reader is registered with. After Shutdown
// RegisterGauges returns [sdkmetric.ErrReaderShutdown].
func (r *Reader) RegisterGauges(mp metric.MeterProvider) error {
	if mp == nil {
		return errors.New("reader: RegisterGauges got a nil MeterProvider")
	}
	select {
	case <-r.loop.stop:
		return sdkmetric.ErrReaderShutdown
	default:
	}
	g := &gauges{reader: r, meter: mp.Meter(r.feed.Scope()), fresh: make(chan struct{}, 1), made: map[string]bool{}}
	for {
		before := r.gauges.Load()
		after := append((*before)[:len(*before):len(*before)], g)
		if r.gauges.CompareAndSwap(before, &after) {
			break
		}
	}
	// On a goroutine of its own: the SDK holds locks while it calls callbacks,
	// and to make or remove an instrument takes them. It must not hold up
	// collections, nor Shutdown.
	go g.run()
	return nil
}

func (g *gauges) refresh() {
	select {
	case g.fresh <- struct{}{}:
	default:
	}
}

func (g *gauges) run() {
	for {
		for _, in := range g.reader.feed.Instruments() {
			if !g.made[in.Name] {
				g.made[in.Name] = true
				if err := g.make(in); err != nil {
					otel.Handle(err)
				}
			}
		}
		select {
		case <-g.fresh:
		case <-g.reader.done:
			for _, reg := range g.registrations {
				if err := reg.Unregister(); err != nil {
					otel.Handle(err)
				}
			}
			return
		}
	}
}

// make makes the gauges of an instrument.
func (g *gauges) make(in *feed.Instrument) error {
	if in.Float {
		return g.makeFloat(in)
	}
	return g.makeInt(in)
}

func (g *gauges) makeInt(in *feed.Instrument) error {
	unit := metric.WithUnit(in.Unit)
	group, err := g.meter.Int64ObservableGauge(in.GroupName(), unit, metric.WithDescription(feed.GroupDescription))
	series, serr := g.meter.Int64ObservableGauge(in.SeriesName(), unit, metric.WithDescription(feed.SeriesDescription))
	if err := errors.Join(err, serr); err != nil {
		return err
	}
	return g.register(in, group, series, func(o metric.Observer, closed int64) {
		o.ObserveInt64(group, closed)
	}, func(o metric.Observer, set attribute.Set, closed int64) {
		o.ObserveInt64(series, closed, metric.WithAttributeSet(set))
	})
}

func (g *gauges) makeFloat(in *feed.Instrument) error {
	unit := metric.WithUnit(in.Unit)
	group, err := g.meter.Float64ObservableGauge(in.GroupName(), unit, metric.WithDescription(feed.GroupDescription))
	series, serr := g.meter.Float64ObservableGauge(in.SeriesName(), unit, metric.WithDescription(feed.SeriesDescription))
	if err := errors.Join(err, serr); err != nil {
		return err
	}
	return g.register(in, group, series, func(o metric.Observer, closed int64) {
		o.ObserveFloat64(group, feed.Amount(closed))
	}, func(o metric.Observer, set attribute.Set, closed int64) {
		o.ObserveFloat64(series, feed.Amount(closed), metric.WithAttributeSet(set))
	})
}

// register has the provider's collections observe an instrument's totals; not
// the reader's own ones, which take no gauges.
func (g *gauges) register(
	in *feed.Instrument, group, series metric.Observable,
	grand func(metric.Observer, int64), part func(metric.Observer, attribute.Set, int64),
) error {
	reg, err := g.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		if ctx.Value(byReader{}) == g.reader {
			return nil
		}
		if closed, known := in.Grand(); known {
			grand(o, closed)
		}
		in.Parts(func(set attribute.Set, closed int64) { part(o, set, closed) })
		return nil
	}, group, series)
	if err == nil {
		g.registrations = append(g.registrations, reg)
	}
	return err
}
