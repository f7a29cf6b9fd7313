package reader

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// defaultInterval suits decisions within seconds.
const defaultInterval = 5 * time.Second

// Option sets what [New] leaves open.
type Option interface{ apply(*feed.Config) }

type option func(*feed.Config)

func (o option) apply(c *feed.Config) { o(c) }

// WithInterval sets how often the group's totals are closed: whole milliseconds,
// 10 ms to 24 h, by default 5 s. All participants must have the same: one with
// another counts apart from them, and nothing warns of it.
func WithInterval(d time.Duration) Option {
	return option(func(c *feed.Config) { c.Interval = d })
}

// WithGroup names the group, whose participants share totals; "shop" is also the group
// of a service named shop without a namespace. By default it is
// the service: service.namespace and service.name of the provider's resource. A
// service without a name shares totals with its like, which is warned of.
func WithGroup(name string) Option {
	return option(func(c *feed.Config) { c.Group = &name })
}

// WithInstruments chooses instruments by name; * stands for any characters, ? for
// one. A name that a view has changed is the changed one. By default all
// monotonic instruments count. What is left out is collected all the same; a
// view with a drop aggregation spares that, for all readers.
func WithInstruments(patterns ...string) Option {
	return option(func(c *feed.Config) { c.Instruments = append(c.Instruments, patterns...) })
}

// WithLogger has the reader report what it does: what package counter does, and
//
//	error  amount dropped           name, error, dropped
//	warn   instrument not counted   name, error
//	warn   service has no name      prefix, want
//
// The default is silence.
func WithLogger(l *slog.Logger) Option {
	return option(func(c *feed.Config) { c.Logger = l })
}

// WithMeterProvider has the reader measure itself: what package counter does, and
// comcount.input.dropped, how many amounts of instruments could not be counted, by
// reason (such as "negative amount"), which its log tells one by one. It may be the provider that
// the reader is registered with, by way of otel.GetMeterProvider. The default is
// none.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return option(func(c *feed.Config) { c.MeterProvider = mp })
}

// WithCarry sets how often an amount that is proven not to have arrived may be
// sent again before it is given up and reported: 0 to 10, by default 2.
func WithCarry(times int) Option {
	return option(func(c *feed.Config) { c.Carry = times })
}

// WithMaxSeries bounds how many attribute sets are in use at a time, over all
// instruments; by default 10,000. It is the SDK's cardinality limit for this
// reader, too. What is counted in further sets goes to the grand totals only,
// which is reported once for each name.
func WithMaxSeries(n int) Option {
	return option(func(c *feed.Config) { c.MaxSeries = n })
}
