package exporter

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// defaultInterval is the default period of a PeriodicReader. In a shorter one,
// all of a period would land in one interval, and nothing in others.
const defaultInterval = time.Minute

type config struct {
	feed.Config
	next sdkmetric.Exporter
}

// Option sets what [New] leaves open.
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

// WithInterval sets how often the group's totals are closed: whole milliseconds,
// 10 ms to 24 h, by default 60 s. It must be at least the period of the
// PeriodicReader; a longer period is warned of. All participants must have the
// same: one with another counts apart from them, and nothing warns of it.
func WithInterval(d time.Duration) Option {
	return option(func(c *config) { c.Interval = d })
}

// WithNext passes every batch on, as the next exporter wants it (its
// temporality, its aggregation), and adds the group's last closed totals to it
// as gauges: `<name>.group` is the grand total, `<name>.group.series` its parts
// with their attributes. A total that is not known is not in it. ForceFlush and
// Shutdown reach the next exporter too.
func WithNext(next sdkmetric.Exporter) Option {
	return option(func(c *config) { c.next = next })
}

// WithGroup names the group, whose participants share totals; "shop" is also the group
// of a service named shop without a namespace. By default it is
// the service: service.namespace and service.name of the provider's resource. A
// service without a name shares totals with its like, which is warned of.
func WithGroup(name string) Option {
	return option(func(c *config) { c.Group = &name })
}

// WithInstruments chooses instruments by name; * stands for any characters, ? for
// one. A name that a view has changed is the changed one. By default all
// monotonic instruments count. What is left out is passed on all the same.
func WithInstruments(patterns ...string) Option {
	return option(func(c *config) { c.Instruments = append(c.Instruments, patterns...) })
}

// WithLogger has the exporter report what it does: what package counter does,
// and
//
//	error  amount dropped                       name, error, dropped
//	warn   instrument not counted               name, error
//	warn   service has no name                  prefix, want
//	warn   batch of another service not counted prefix, other
//	warn   interval is shorter than the period  interval, period
//
// The default is silence.
func WithLogger(l *slog.Logger) Option {
	return option(func(c *config) { c.Logger = l })
}

// WithMeterProvider has the exporter measure itself: what package counter does, and
// comcount.input.dropped, how many amounts of instruments could not be counted, by
// reason (such as "negative amount"), which its log tells one by one. It may be the provider whose
// PeriodicReader has the exporter, by way of otel.GetMeterProvider. The default
// is none.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return option(func(c *config) { c.MeterProvider = mp })
}

// WithCarry sets how often an amount that is proven not to have arrived may be
// sent again before it is given up and reported: 0 to 10, by default 2.
func WithCarry(times int) Option {
	return option(func(c *config) { c.Carry = times })
}

// WithMaxSeries bounds how many attribute sets are in use at a time, over all
// instruments; by default 10,000. What is counted in further sets goes to the
// grand totals only, which is reported once for each name.
func WithMaxSeries(n int) Option {
	return option(func(c *config) { c.MaxSeries = n })
}
