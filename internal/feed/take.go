package feed

import (
	"slices"
	"strings"
	"time"

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
	for i := range batch.ScopeMetrics {
		sm := &batch.ScopeMetrics[i]
		if own(sm.Scope.Name) {
			continue
		}
		for j := range sm.Metrics {
			m := &sm.Metrics[j]
			switch sum := m.Data.(type) {
			case metricdata.Sum[int64]:
				take(&intake[int64]{f, &sm.Scope, m, f.ints, (*Instrument).addInt}, &sum)
			case metricdata.Sum[float64]:
				take(&intake[float64]{f, &sm.Scope, m, f.floats, (*Instrument).addFloat}, &sum)
			}
		}
	}
	f.sweep(time.Now())
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
	streams map[streamKey]*stream[N]
	add     func(*Instrument, *report, *series, N)
}

func take[N number](t *intake[N], sum *metricdata.Sum[N]) {
	if !sum.IsMonotonic || len(sum.DataPoints) == 0 || !t.choice.match(t.metric.Name) {
		return
	}
	_, float := any(N(0)).(float64)
	in := t.instrument(t.metric.Name, t.metric.Unit, float)
	switch {
	case sum.Temporality == metricdata.CumulativeTemporality, t.observes(in, sum):
		t.rises(in, sum)
	case sum.Temporality == metricdata.DeltaTemporality:
		t.changes(in, sum.DataPoints)
	default:
		in.once(t.report, reasonTemporality)
	}
}

// lookahead is how many series are looked up at a time. No lookup begins while an
// atomic add before it waits for memory, so the adds of some series come after the
// lookups of all of them.
const lookahead = 32

// changes counts amounts.
func (t *intake[N]) changes(in *Instrument, points []metricdata.DataPoint[N]) {
	var found [lookahead]*series
	for points := range slices.Chunk(points, lookahead) {
		for i := range points {
			found[i] = in.part(&points[i].Attributes)
		}
		for i := range points {
			t.count(in, found[i], points[i].Value)
		}
	}
}

// count adds an amount to a series.
func (t *intake[N]) count(in *Instrument, s *series, amount N) {
	if in.refused {
		t.report.lost(in.Name, reasonName, amount)
		return
	}
	s.used = t.round
	t.add(in, t.report, s, amount)
}

// observes reports whether deltas are those of an observable counter, as far as
// can be told: if its first observation was in the first collection.
func (t *intake[N]) observes(in *Instrument, sum *metricdata.Sum[N]) bool {
	if !t.config.Ambiguous || sum.Temporality != metricdata.DeltaTemporality {
		return false
	}
	return t.stream(in, sum, &sum.DataPoints[0]).parent == observable
}

// rises counts what sums rose by since the last time.
func (t *intake[N]) rises(in *Instrument, sum *metricdata.Sum[N]) {
	var start time.Time
	var s *stream[N]
	for i := range sum.DataPoints {
		p := &sum.DataPoints[i]
		if s == nil || p.StartTime != start {
			start = p.StartTime
			s = t.stream(in, sum, p)
		}
		if s.parent != counting && isOverflow(&p.Attributes) {
			// Which series are in it differs from time to time, so that its sum
			// says nothing about what they rose by.
			in.once(t.report, reasonOverflow)
			continue
		}
		value := p.Value
		if sum.Temporality == metricdata.DeltaTemporality {
			value = s.whole(p)
		}
		amount, what := s.observe(p, value, t.round, t.room)
		switch what {
		case still:
			continue
		case homeless:
			in.once(t.report, reasonHomeless)
			continue
		case opened:
			t.room--
		}
		t.count(in, in.part(&p.Attributes), amount)
	}
}

// stream returns the sums that a point belongs to.
func (t *intake[N]) stream(in *Instrument, sum *metricdata.Sum[N], p *metricdata.DataPoint[N]) *stream[N] {
	start := p.StartTime
	if sum.Temporality == metricdata.DeltaTemporality {
		start = time.Time{} // it moves on with every collection
	}
	key := newStreamKey(t.scope, t.metric, start, in.Float)
	s := t.streams[key]
	if s == nil {
		s = &stream[N]{}
		if t.config.Ambiguous {
			s.parent = t.births.parent(p.StartTime)
		}
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
