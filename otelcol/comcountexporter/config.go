package comcountexporter

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
)

// Config is the exporter's configuration.
type Config struct {
	// Counting is what the processor and the exporter have in common.
	Counting config.Config `mapstructure:",squash"`

	// SendingQueue and RetryOnFailure are the sections that other exporters have. They
	// are here to be refused with the reason, unless they say enabled: false.
	SendingQueue   map[string]any `mapstructure:"sending_queue"`
	RetryOnFailure map[string]any `mapstructure:"retry_on_failure"`
}

var _ component.Config = (*Config)(nil)

// Validate reports all that cannot work, by the keys of the file.
func (c *Config) Validate() error {
	return errors.Join(c.Counting.Validate(),
		refuse("sending_queue", c.SendingQueue), refuse("retry_on_failure", c.RetryOnFailure))
}

func refuse(key string, section map[string]any) error {
	if enabled, ok := section["enabled"].(bool); len(section) == 0 || ok && !enabled {
		return nil
	}
	return fmt.Errorf("%s is not supported: a batch that is sent again, or again after a restart, would be counted twice; "+
		"the exporter never waits for Redis, keeps what it has counted, and sends it with the next interval", key)
}

func createDefaultConfig() component.Config {
	return &Config{Counting: config.Default()}
}
