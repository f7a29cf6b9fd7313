package comcountprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/engine"
)

// comcount is the processor in one pipeline.
type comcount struct {
	member *engine.Member
	next   consumer.Metrics
}

// Capabilities implements the Collector's interface: data passes on unchanged.
func (*comcount) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start implements the Collector's interface. It does not dial.
func (p *comcount) Start(ctx context.Context, _ component.Host) error { return p.member.Start(ctx) }

// Shutdown implements the Collector's interface, see [engine.Member.Shutdown].
func (p *comcount) Shutdown(ctx context.Context) error { return p.member.Shutdown(ctx) }

// ConsumeMetrics passes data on, and counts it if it was accepted, or refused for
// good: then nobody sends it again. What was refused for now comes once more.
func (p *comcount) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	batch, err := p.member.Extract(md) // before next, to which the data then belongs
	if err != nil {
		return err
	}
	defer batch.Release()
	err = p.next.ConsumeMetrics(ctx, md)
	if err == nil || consumererror.IsPermanent(err) {
		batch.Commit()
	}
	return err
}
