package comcountexporter

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/engine"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/metadata"
)

const scopeName = "github.com/otelcomcount/otelcomcount/otelcol/comcountexporter"

// NewFactory returns the factory of the exporter. Instances that it makes from one
// configuration count together.
func NewFactory() exporter.Factory {
	f := &factory{shared: engine.NewShared()}
	return exporter.NewFactory(metadata.Type(), createDefaultConfig,
		exporter.WithMetrics(f.createMetrics, metadata.Stability))
}

type factory struct{ shared *engine.Shared }

func (f *factory) createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	c, ok := cfg.(*Config)
	if !ok {
		return nil, fmt.Errorf("comcount: configuration of type %T, want %T", cfg, c)
	}
	m := f.shared.Join(c, engine.Settings{
		Config: c.Counting, Emit: engine.EmitNone,
		Scope: scopeName, Version: metadata.Version, Telemetry: set.TelemetrySettings,
	}, nil)
	// No queue and no retry: see Config. No timeout: nothing waits.
	return exporterhelper.NewMetrics(ctx, set, cfg,
		func(_ context.Context, md pmetric.Metrics) error { return count(m, md) },
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithStart(func(ctx context.Context, _ component.Host) error { return m.Start(ctx) }),
		exporterhelper.WithShutdown(m.Shutdown),
	)
}

// count counts a request.
func count(m *engine.Member, md pmetric.Metrics) error {
	batch, err := m.Extract(md)
	if err != nil {
		return err
	}
	defer batch.Release()
	batch.Commit()
	return nil
}
