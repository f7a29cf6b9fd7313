package counter

import (
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Defaults and bounds of the options.
const (
	defaultCarry     = 2
	maxCarry         = 10
	defaultMaxSeries = 10_000
)

// Option sets what [New] and [NewGroup] leave open.
type Option interface{ apply(config) config }

type option func(config) config

func (o option) apply(c config) config { return o(c) }

type config struct {
	prefix    string
	logger    *slog.Logger
	provider  metric.MeterProvider
	store     Store
	carry     int
	open      bool
	maxSeries int
	noFirst   bool

	id    string  // of this participant
	phase float64 // where in an interval it flushes, in [0, 1)
}

func newConfig(opts []Option) (config, error) {
	c := config{
		logger:    slog.New(slog.DiscardHandler),
		provider:  noop.NewMeterProvider(),
		carry:     defaultCarry,
		maxSeries: defaultMaxSeries,
	}
	for _, o := range opts {
		if o != nil {
			c = o.apply(c)
		}
	}
	return c, errors.Join(c.validate()...)
}

func (c config) validate() (errs []error) {
	if err := validatePrefix(c.prefix); err != nil {
		errs = append(errs, err)
	}
	if c.carry < 0 || c.carry > maxCarry {
		errs = append(errs, fmt.Errorf("counter: carry is %d, want 0 to %d: how often an amount may be sent again", c.carry, maxCarry))
	}
	if c.maxSeries < 0 {
		errs = append(errs, fmt.Errorf("counter: max series is %d, want 0 or more: how many attribute sets a group keeps", c.maxSeries))
	}
	return errs
}

// WithPrefix puts a prefix before every key, to keep groups on one Redis apart.
// The default is none, as in the JavaScript library. [GroupName] makes one for a
// service.
func WithPrefix(prefix string) Option {
	return option(func(c config) config { c.prefix = prefix; return c })
}

// WithLogger has the group report what it does. Messages are constants, every
// value is an attribute, the counter's name always among them; a healthy counter
// never rises above Info. The default is silence. A handler that panics breaks
// nothing; one that blocks delays flushes, never an Add.
func WithLogger(l *slog.Logger) Option {
	return option(func(c config) config {
		if l != nil {
			c.logger = l
		}
		return c
	})
}

// WithMeterProvider has the group measure itself: see the package comment for
// the instruments. The default is none.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return option(func(c config) config {
		if mp != nil {
			c.provider = mp
		}
		return c
	})
}

// WithStore puts the group's totals elsewhere than in Redis. The client given to
// New or NewGroup may then be nil, and is not used.
func WithStore(s Store) Option {
	return option(func(c config) config { c.store = s; return c })
}

// WithCarry sets how often an amount that is proven not to have arrived may be
// sent again before it is given up and reported: 0 to 10, by default 2. The
// units of one interval were counted within 2 + carry intervals, so that an
// outage of minutes does not come back as one late spike.
func WithCarry(times int) Option {
	return option(func(c config) config { c.carry = times; return c })
}

// WithOpenInterval lets [Total.Open] enter Count: a burst then shows up to an
// interval earlier. Count is still a lower bound.
func WithOpenInterval() Option {
	return option(func(c config) config { c.open = true; return c })
}

// WithMaxSeries bounds how many attribute sets a group has in use at a time,
// over all its counters; by default 10,000. What is counted in further ones goes
// to their name's grand total only, which is reported once for each name. Sets
// that were idle for ten intervals make room. A set of more than 60 KiB is above
// any limit.
func WithMaxSeries(n int) Option {
	return option(func(c config) config { c.maxSeries = n; return c })
}

// WithoutFirst keeps this participant from asking for [Total.First]: for one that
// has [Group.OnTick] functions but does not report a group's total on behalf of
// all, so that it does not take the place of one that does.
func WithoutFirst() Option {
	return option(func(c config) config { c.noFirst = true; return c })
}
