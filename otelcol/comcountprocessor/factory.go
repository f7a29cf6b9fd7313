package comcountprocessor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/engine"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/metadata"
)

const scopeName = "github.com/otelcomcount/otelcomcount/otelcol/comcountprocessor"

// NewFactory returns the factory of the processor. Instances that it makes from one
// configuration, as the Collector does for each pipeline, count together.
func NewFactory() processor.Factory {
	f := &factory{shared: engine.NewShared()}
	return processor.NewFactory(metadata.Type(), createDefaultConfig,
		processor.WithMetrics(f.createMetrics, metadata.Stability))
}

type factory struct{ shared *engine.Shared }

func (f *factory) createMetrics(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	c, ok := cfg.(*Config)
	if !ok {
		return nil, fmt.Errorf("comcount: configuration of type %T, want %T", cfg, c)
	}
	emit, err := c.emit()
	if err != nil {
		return nil, err
	}
	return &comcount{
		member: f.shared.Join(c, engine.Settings{
			Config: c.Counting, Emit: emit,
			Scope: scopeName, Version: metadata.Version, Telemetry: set.TelemetrySettings,
		}, next),
		next: next,
	}, nil
}
