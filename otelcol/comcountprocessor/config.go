package comcountprocessor

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/engine"
)

// Config is the processor's configuration.
type Config struct {
	// Counting is what the processor and the exporter have in common.
	Counting config.Config `mapstructure:",squash"`

	// Emit says which replica passes the group's totals on, by default one.
	Emit Emit `mapstructure:"emit"`
}

// Emit says which replica passes the group's totals on.
type Emit string

// Who passes totals on.
const (
	// EmitOne has one replica pass on a counter's total of an interval: for exporters
	// that push.
	EmitOne Emit = "one"
	// EmitAll has each replica pass on all that it knows, with its own id: for exporters
	// that are scraped.
	EmitAll Emit = "all"
	// EmitNone has nobody pass anything on.
	EmitNone Emit = "none"
)

var _ component.Config = (*Config)(nil)

// Validate reports all that cannot work, by the keys of the file.
func (c *Config) Validate() error {
	_, err := c.emit()
	return errors.Join(c.Counting.Validate(), err)
}

func (c *Config) emit() (engine.Emit, error) {
	switch c.Emit {
	case EmitOne:
		return engine.EmitOne, nil
	case EmitAll:
		return engine.EmitAll, nil
	case EmitNone:
		return engine.EmitNone, nil
	default:
		return 0, fmt.Errorf("emit is %q, want %q, %q or %q", c.Emit, EmitOne, EmitAll, EmitNone)
	}
}

func createDefaultConfig() component.Config {
	return &Config{Counting: config.Default(), Emit: EmitOne}
}
