package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Config is what both components have in common. The keys of the YAML file are
// the mapstructure tags.
type Config struct {
	// Redis says where the group meets. There is no default: replicas that meet
	// at different servers count apart.
	Redis Redis `mapstructure:"redis"`

	// Interval is how often the group's totals are closed: whole milliseconds, 10 ms
	// to 24 h, by default a minute, as SDKs export by default. With one shorter than
	// the senders' own, each total holds only some of the senders.
	Interval time.Duration `mapstructure:"interval"`

	// Group names the group that all data counts in: the one of an SDK's reader with the
	// same name, and of [counter.GroupName] without a namespace. Empty, which is the
	// default: each service is a group of its own, by service.namespace and
	// service.name of the data's resource.
	Group string `mapstructure:"group"`

	// Metrics says which metrics are counted, by default all.
	Metrics Metrics `mapstructure:"metrics"`

	// Attributes are the keys of the data point attributes that make a series of
	// a counter. By default none: only grand totals are kept.
	Attributes []string `mapstructure:"attributes"`

	// ResourceAttributes are the same of the data's resource.
	ResourceAttributes []string `mapstructure:"resource_attributes"`

	// Carry is how often an amount that is proven not to have reached Redis is sent
	// again, 0 to 10, by default 2.
	Carry int `mapstructure:"carry"`

	// MaxSeries bounds the series in use at a time, by default 10,000. What is
	// counted in further ones goes to the grand totals only.
	MaxSeries int `mapstructure:"max_series"`

	// MaxStreams bounds how many cumulative streams of senders are remembered, by
	// default 100,000. Points of further ones are not counted.
	MaxStreams int `mapstructure:"max_streams"`

	// MaxStaleness is for how long a silent cumulative stream is remembered, by
	// default an hour. With 0 it is never forgotten.
	MaxStaleness time.Duration `mapstructure:"max_staleness"`

	// InitialValue says what the first point of a cumulative stream counts.
	InitialValue InitialValue `mapstructure:"initial_value"`
}

// InitialValue is what the first point of a cumulative stream counts.
type InitialValue string

// The initial values.
const (
	// Drop counts nothing: the point is the baseline of the next ones. The default.
	Drop InitialValue = "drop"
	// Auto counts the point if its stream began after this component.
	Auto InitialValue = "auto"
	// Keep counts the point.
	Keep InitialValue = "keep"
)

// Default returns the configuration of a file that sets nothing. It lacks a
// Redis, so it is not valid.
func Default() Config {
	return Config{
		Redis: Redis{
			DialTimeout:  5 * time.Second,
			ReadTimeout:  3 * time.Second,
			WriteTimeout: 3 * time.Second,
			TLS:          defaultTLS(),
		},
		Interval:     time.Minute,
		Carry:        2,
		MaxSeries:    10_000,
		MaxStreams:   100_000,
		MaxStaleness: time.Hour,
		InitialValue: Drop,
	}
}

// Validate reports all that cannot work, by the keys of the file. The section
// redis and metrics validate themselves.
func (c *Config) Validate() error {
	errs := []error{
		c.validateEngine("interval"),
		c.validateEngine("carry", counter.WithCarry(c.Carry)),
		c.validateEngine("max_series", counter.WithMaxSeries(c.MaxSeries)),
		c.validateAttributes(),
	}
	if c.MaxStreams < 0 {
		errs = append(errs, fmt.Errorf("max_streams is %d, want 0 or more", c.MaxStreams))
	}
	if c.MaxStaleness < 0 {
		errs = append(errs, fmt.Errorf("max_staleness is %v, want 0 (never) or more", c.MaxStaleness))
	}
	if !slices.Contains([]InitialValue{Drop, Auto, Keep}, c.InitialValue) {
		errs = append(errs, fmt.Errorf("initial_value is %q, want %q, %q or %q", c.InitialValue, Drop, Auto, Keep))
	}
	return errors.Join(errs...)
}

// validateEngine lets the engine judge one of its settings.
func (c *Config) validateEngine(key string, opts ...counter.Option) error {
	interval := time.Second
	if len(opts) == 0 {
		interval = c.Interval
	}
	nowhere := struct{ counter.Store }{}
	if _, err := counter.NewGroup(nil, interval, append(opts, counter.WithStore(nowhere))...); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// validateAttributes holds the attribute keys to one meaning each: the parts of a
// total do not tell whether an attribute was a resource's.
func (c *Config) validateAttributes() error {
	seen := map[string]bool{}
	for _, key := range slices.Concat(c.Attributes, c.ResourceAttributes) {
		if key == "" {
			return errors.New("attributes, resource_attributes: an attribute's key is empty")
		}
		if seen[key] {
			return fmt.Errorf("attributes, resource_attributes: %q comes twice", key)
		}
		seen[key] = true
	}
	return nil
}
