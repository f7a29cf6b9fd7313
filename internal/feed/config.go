package feed

import (
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Config is what the options of reader and exporter set.
type Config struct {
	Scope         string        // of the feed's own telemetry
	Interval      time.Duration // of the group
	Group         *string       // nil: after the resource's service
	Instruments   []string      // patterns; none: all
	Logger        *slog.Logger
	MeterProvider metric.MeterProvider
	Carry         int
	MaxSeries     int
	Store         counter.Store // in place of Redis, in tests

	// Ambiguous says that cumulative sums are not only those of observable
	// counters; see Births.
	Ambiguous bool
}

// NewConfig returns the defaults.
func NewConfig(scope string, interval time.Duration) Config {
	return Config{
		Scope:         scope,
		Interval:      interval,
		Logger:        slog.New(slog.DiscardHandler),
		MeterProvider: noop.NewMeterProvider(),
		Carry:         2,
		MaxSeries:     10_000,
	}
}

func (c *Config) validate() error {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MeterProvider == nil {
		c.MeterProvider = noop.NewMeterProvider()
	}
	var errs []error
	if c.Group != nil && *c.Group == "" {
		errs = append(errs, errors.New("comcount: group is empty, want a name"))
	}
	for _, p := range c.Instruments {
		if p == "" {
			errs = append(errs, errors.New("comcount: instrument pattern is empty, want a name, with * and ? as wildcards"))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) options() []counter.Option {
	opts := []counter.Option{
		counter.WithLogger(c.Logger),
		counter.WithMeterProvider(c.MeterProvider),
		counter.WithCarry(c.Carry),
		counter.WithMaxSeries(c.MaxSeries),
	}
	if c.Store != nil {
		opts = append(opts, counter.WithStore(c.Store))
	}
	return opts
}
