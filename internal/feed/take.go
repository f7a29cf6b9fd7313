package feed

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// module is the path under which all instrumentation scopes are our own.
const module = "github.com/otelcomcount/otelcomcount"

// Take adds a batch's monotonic sums to their counters. It does not wait for
// Redis, and keeps no reference into the batch.
func (f *Feed) Take(batch *metricdata.ResourceMetrics) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.join(batch.Resource) {
		return // reported
	}
	now := time.Now()
	for i := range batch.ScopeMetrics {
		sm := &batch.ScopeMetrics[i]
		if own(sm.Scope.Name) {
			continue
		}
		for j := range sm.Metrics {
			m := &sm.Metrics[j]
			switch sum := m.Data.(type) {
			case metricdata.Sum[int64]:
				take(&intake[int64]{f, &sm.Scope, m, now, f.ints, (*Instrument).addInt}, &sum)
			case metricdata.Sum[float64]:
				take(&intake[float64]{f, &sm.Scope, m, now, f.floats, (*Instrument).addFloat}, &sum)
			}
		}
	}
	f.sweep(now)
}

// own reports whether an instrumentation scope is ours: gauges and telemetry of
// ours never come back as input, whatever a view makes of them.
func own(scope string) bool {
	rest, ok := strings.CutPrefix(scope, module)
	return ok && (rest == "" || rest[0] == '/')
}

// intake is what it takes to count a metric in a kind of number.
type intake[N number] struct {
	*Feed
	scope   *instrumentation.Scope
	metric  *metricdata.Metrics
	now     time.Time
	streams map[streamKey]*stream[N]
	add     func(*Instrument, *report, *series, N)
}

func take[N number](t *intake[N], sum *metricdata.Sum[N]) {
	if !sum.IsMonotonic || len(sum.DataPoints) == 0 || !t.choice.match(t.metric.Name) {
		return
	}
	_, float := any(N(0)).(float64)
	in := t.instrument(t.metric.Name, t.metric.Unit, float)
	switch sum.Temporality {
	case metricdata.DeltaTemporality:
		for i := range sum.DataPoints {
			t.count(in, &sum.DataPoints[i].Attributes, sum.DataPoints[i].Value)
		}
	case metricdata.CumulativeTemporality:
		t.rises(in, sum)
	default:
		in.once(t.report, reasonTemporality)
	}
}

// count adds an amount to the series of an attribute set.
func (t *intake[N]) count(in *Instrument, set *attribute.Set, amount N) {
	if in.refused {
		t.report.lost(in.Name, reasonName, amount)
		return
	}
	s := in.part(set)
	s.used = t.now
	t.add(in, t.report, s, amount)
}

// rises counts what cumulative sums rose by.
func (t *intake[N]) rises(in *Instrument, sum *metricdata.Sum[N]) {
	var start time.Time
	var s *stream[N]
	for i := range sum.DataPoints {
		p := &sum.DataPoints[i]
		if s == nil || p.StartTime != start {
			start = p.StartTime
			s = t.stream(start, in.Float)
		}
		if !s.counted && isOverflow(&p.Attributes) {
			// Which series are in it differs from time to time, so that its sum
			// says nothing about what they rose by.
			in.once(t.report, reasonOverflow)
			continue
		}
		amount, what := s.observe(&p.Attributes, p.Value, t.now, t.room)
		switch what {
		case still:
			continue
		case homeless:
			in.once(t.report, reasonHomeless)
			continue
		case opened:
			t.room--
		}
		t.count(in, &p.Attributes, amount)
	}
}

// stream returns the metric's cumulative sums since a start.
func (t *intake[N]) stream(start time.Time, float bool) *stream[N] {
	key := newStreamKey(t.scope, t.metric, start, float)
	s := t.streams[key]
	if s == nil {
		s = &stream[N]{counted: t.config.Ambiguous && t.births.counted(start)}
		t.streams[key] = s
	}
	return s
}

// addInt adds an amount to a series. The SDK's counters take negative amounts,
// and wrap around at the end of int64.
func (in *Instrument) addInt(report *report, s *series, n int64) {
	if n < 0 {
		report.lost(in.Name, reasonNegative, n)
		return
	}
	s.units.Add(n)
}

// addFloat adds an amount to a series, whose counter refuses what is none.
func (*Instrument) addFloat(_ *report, s *series, x float64) { s.float.Add(x) }
