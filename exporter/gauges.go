package exporter

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// withGauges returns a batch with the group's totals added. The batch itself
// stays as it is.
func withGauges(batch *metricdata.ResourceMetrics, f *feed.Feed) *metricdata.ResourceMetrics {
	instruments := f.Instruments()
	slices.SortFunc(instruments, func(a, b *feed.Instrument) int { return cmp.Compare(a.Name, b.Name) })
	now := time.Now()
	var gauges []metricdata.Metrics
	for _, in := range instruments {
		if in.Float {
			gauges = appendGauges(gauges, in, now, feed.Amount)
		} else {
			gauges = appendGauges(gauges, in, now, func(units int64) int64 { return units })
		}
	}
	if len(gauges) == 0 {
		return batch
	}
	return &metricdata.ResourceMetrics{
		Resource: batch.Resource,
		ScopeMetrics: append(slices.Clip(batch.ScopeMetrics), metricdata.ScopeMetrics{
			Scope: instrumentation.Scope{Name: f.Scope()}, Metrics: gauges,
		}),
	}
}

// appendGauges appends an instrument's totals, as far as they are known.
func appendGauges[N int64 | float64](gauges []metricdata.Metrics, in *feed.Instrument, now time.Time, amount func(int64) N) []metricdata.Metrics {
	if closed, known := in.Grand(); known {
		gauges = append(gauges, metricdata.Metrics{
			Name: in.GroupName(), Description: feed.GroupDescription, Unit: in.Unit,
			Data: metricdata.Gauge[N]{DataPoints: []metricdata.DataPoint[N]{{Time: now, Value: amount(closed)}}},
		})
	}
	var parts []metricdata.DataPoint[N]
	in.Parts(func(set attribute.Set, closed int64) {
		parts = append(parts, metricdata.DataPoint[N]{Attributes: set, Time: now, Value: amount(closed)})
	})
	if len(parts) > 0 {
		gauges = append(gauges, metricdata.Metrics{
			Name: in.SeriesName(), Description: feed.SeriesDescription, Unit: in.Unit,
			Data: metricdata.Gauge[N]{DataPoints: parts},
		})
	}
	return gauges
}
