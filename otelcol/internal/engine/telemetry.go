package engine

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/drop"
)

// telemetry is what an engine tells the Collector about itself, beside what the
// group of counters tells.
type telemetry struct {
	counted metric.Int64Counter
	dropped metric.Int64Counter
	apart   metric.Int64Counter
	emitted metric.Int64Counter
	failed  metric.Int64Counter

	reasons [drop.Count]metric.AddOption
	streams metric.Registration
}

func newTelemetry(set component.TelemetrySettings, scope string, streams func() int64) (*telemetry, error) {
	m := set.MeterProvider.Meter(scope)
	t := &telemetry{}
	var errs [6]error
	t.counted, errs[0] = m.Int64Counter("otelcol_comcount_datapoints_counted", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Number of data points that were counted."))
	t.dropped, errs[1] = m.Int64Counter("otelcol_comcount_datapoints_dropped", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Number of data points that were passed on but not counted, by reason."))
	t.apart, errs[2] = m.Int64Counter("otelcol_comcount_datapoints_without_series", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Number of counted data points that went to a grand total only, for max_series."))
	t.emitted, errs[3] = m.Int64Counter("otelcol_comcount_totals_emitted", metric.WithUnit("{total}"),
		metric.WithDescription("Number of totals that were passed on as gauges."))
	t.failed, errs[4] = m.Int64Counter("otelcol_comcount_totals_failed", metric.WithUnit("{total}"),
		metric.WithDescription("Number of totals that the next component did not accept."))
	tracked, err := m.Int64ObservableUpDownCounter("otelcol_comcount_streams_tracked", metric.WithUnit("{stream}"),
		metric.WithDescription("Number of cumulative streams that are remembered."))
	errs[5] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("own telemetry: %w", err)
	}
	t.streams, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(tracked, streams())
		return nil
	}, tracked)
	if err != nil {
		return nil, fmt.Errorf("own telemetry: %w", err)
	}
	for r := range t.reasons {
		t.reasons[r] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", drop.Reason(r).String())))
	}
	return t, nil
}

// batch reports what became of the points of a batch.
func (t *telemetry) batch(counted, apart int64, dropped *[drop.Count]int64) {
	ctx := context.Background()
	if counted > 0 {
		t.counted.Add(ctx, counted)
	}
	if apart > 0 {
		t.apart.Add(ctx, apart)
	}
	for r, n := range dropped {
		if n > 0 {
			t.dropped.Add(ctx, n, t.reasons[r])
		}
	}
}

// emission reports what became of gauges.
func (t *telemetry) emission(points int64, err error) {
	if err != nil {
		t.failed.Add(context.Background(), points)
		return
	}
	t.emitted.Add(context.Background(), points)
}

func (t *telemetry) close() error { return t.streams.Unregister() }
