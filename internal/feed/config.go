package feed

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Config is what the options of reader and exporter set.
type Config struct {
	Name          string        // of the package that has the feed
	Interval      time.Duration // of the group
	Group         *string       // nil: after the resource's service
	Instruments   []string      // patterns; none: all
	Logger        *slog.Logger
	MeterProvider metric.MeterProvider
	Carry         int
	MaxSeries     int
	Store         counter.Store // in place of Redis, in tests

	// Ambiguous says that sums do not show by their temporality whether they are
	// those of counters or of observable ones. Births then tells.
	Ambiguous bool
}

// Scope is the instrumentation scope of the package's gauges and telemetry.
func (c *Config) Scope() string { return module + "/" + c.Name }

// NewConfig returns the defaults.
func NewConfig(name string, interval time.Duration) Config {
	return Config{
		Name:          name,
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
		errs = append(errs, fmt.Errorf("%s: group is empty, want a name", c.Name))
	}
	for _, p := range c.Instruments {
		if p == "" {
			errs = append(errs, fmt.Errorf("%s: instrument pattern is empty, want a name, with * and ? as wildcards", c.Name))
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
