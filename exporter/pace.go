package exporter

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// pace tells collections apart and measures the time between them.
type pace struct {
	interval time.Duration

	mu     sync.Mutex
	last   time.Time // of the last collection
	slow   int       // how many periods in a row were too long
	warned bool
}

// note returns whether a batch is the first of its collection; a PeriodicReader
// with a maximum batch size splits one. And it returns the period, once, if that
// is longer than the interval.
func (p *pace) note(batch *metricdata.ResourceMetrics) (first bool, tooLong time.Duration) {
	at := collectedAt(batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && !at.After(p.last) {
		return false, 0
	}
	period := at.Sub(p.last)
	known := !p.last.IsZero()
	p.last = time.Now() // all of the collection is before
	if !known || period <= p.interval+p.interval/10 {
		p.slow = 0
		return true, 0
	}
	// One long period may be a machine that slept.
	if p.slow++; p.slow < 2 || p.warned {
		return true, 0
	}
	p.warned = true
	return true, period
}

// collectedAt returns when a batch was collected, or the time where it does not
// say.
func collectedAt(batch *metricdata.ResourceMetrics) time.Time {
	var latest time.Time
	for i := range batch.ScopeMetrics {
		for j := range batch.ScopeMetrics[i].Metrics {
			if at := pointTime(batch.ScopeMetrics[i].Metrics[j].Data); at.After(latest) {
				latest = at
			}
		}
	}
	if latest.IsZero() {
		return time.Now()
	}
	return latest
}

// pointTime returns the time of the first point.
func pointTime(data metricdata.Aggregation) time.Time {
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		return first(data.DataPoints).Time
	case metricdata.Sum[float64]:
		return first(data.DataPoints).Time
	case metricdata.Gauge[int64]:
		return first(data.DataPoints).Time
	case metricdata.Gauge[float64]:
		return first(data.DataPoints).Time
	case metricdata.Histogram[int64]:
		return first(data.DataPoints).Time
	case metricdata.Histogram[float64]:
		return first(data.DataPoints).Time
	case metricdata.ExponentialHistogram[int64]:
		return first(data.DataPoints).Time
	case metricdata.ExponentialHistogram[float64]:
		return first(data.DataPoints).Time
	default:
		return time.Time{}
	}
}

func first[P any](points []P) (p P) {
	if len(points) > 0 {
		return points[0]
	}
	return p
}
