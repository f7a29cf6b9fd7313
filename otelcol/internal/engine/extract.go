package engine

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/drop"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/stream"
)

// module begins the names of the instrumentation scopes of otelcomcount itself.
// In-process counters that are also exported must not be counted once more.
const module = "github.com/otelcomcount/otelcomcount"

// sum is what is known of a metric while it is read.
type sum struct {
	pmetric.Metric
	cumulative bool
	key        identity.Key // of its cumulative streams
	ints       found
	doubles    found
}

// found is the counters of a metric in one number type, once they were asked for.
type found struct {
	asked bool
	*metricTargets
	why drop.Reason
}

// read notes what a request says.
func (b *Batch) read(md pmetric.Metrics) {
	rms := md.ResourceMetrics()
	for i := range rms.Len() {
		rm := rms.At(i)
		b.enter(rm.Resource())
		sms := rm.ScopeMetrics()
		for j := range sms.Len() {
			sm := sms.At(j)
			b.scope, b.scoped = sm.Scope(), false
			own := ownScope(sm.Scope().Name())
			ms := sm.Metrics()
			for k := range ms.Len() {
				b.metric(ms.At(k), own)
			}
		}
	}
}

func ownScope(name string) bool {
	rest, ok := strings.CutPrefix(name, module)
	return ok && (rest == "" || rest[0] == '/')
}

// enter makes a resource the one that is read.
func (b *Batch) enter(r pcommon.Resource) {
	b.resource = resource{Resource: r, service: b.engine.serviceOf(r)}
	for _, key := range b.engine.config.ResourceAttributes {
		if v, ok := r.Attributes().Get(key); ok {
			b.resource.series = b.resource.series.Plus(b.hasher.Pair(key, v))
			b.resource.some = true
		}
	}
}

// streamKey returns the key that the streams of a metric share.
func (b *Batch) streamKey(m pmetric.Metric) identity.Key {
	if !b.resource.keyed {
		b.resource.key, b.resource.keyed = b.hasher.Map(b.resource.Attributes()), true
	}
	if !b.scoped {
		b.scopeKey, b.scoped = b.hasher.Scope(b.resource.key, b.scope), true
	}
	return b.hasher.Metric(b.scopeKey, m.Name(), m.Unit())
}

func (b *Batch) metric(pm pmetric.Metric, own bool) {
	if !b.engine.config.Metrics.Selects(pm.Name()) {
		return
	}
	if pm.Type() != pmetric.MetricTypeSum || !pm.Sum().IsMonotonic() {
		b.dropped[drop.NotASum] += pointsOf(pm)
		return
	}
	points := pm.Sum().DataPoints()
	m := sum{Metric: pm}
	switch pm.Sum().AggregationTemporality() {
	case pmetric.AggregationTemporalityDelta:
	case pmetric.AggregationTemporalityCumulative:
		m.cumulative = true
	default:
		b.dropped[drop.Temporality] += int64(points.Len())
		return
	}
	if own {
		b.dropped[drop.Own] += int64(points.Len())
		return
	}
	if m.cumulative && points.Len() > 0 {
		m.key = b.streamKey(pm)
	}
	for i := range points.Len() {
		if why := b.point(&m, points.At(i)); why != drop.None {
			b.dropped[why]++
		}
	}
}

// point notes a data point, or returns why it cannot count.
func (b *Batch) point(m *sum, p pmetric.NumberDataPoint) drop.Reason {
	if p.Flags().NoRecordedValue() {
		return drop.NoValue
	}
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		if p.IntValue() < 0 {
			return drop.Negative
		}
		t, why := b.target(m, &m.ints, false, p.Attributes())
		if why == drop.None {
			note(b, m, &b.ints, t, p, p.IntValue())
		}
		return why
	case pmetric.NumberDataPointValueTypeDouble:
		switch x := p.DoubleValue(); {
		case math.IsNaN(x) || math.IsInf(x, 0):
			return drop.NotFinite
		case x < 0:
			return drop.Negative
		}
		t, why := b.target(m, &m.doubles, true, p.Attributes())
		if why == drop.None {
			note(b, m, &b.doubles, t, p, p.DoubleValue())
		}
		return why
	default:
		return drop.NoValue
	}
}

func note[N stream.Number](b *Batch, m *sum, to *amounts[N], t *target, p pmetric.NumberDataPoint, value N) {
	if !m.cumulative {
		to.add(t, value)
		return
	}
	key := m.key.Join(b.hasher.Map(p.Attributes()))
	to.rise(t, key, stream.Point[N]{Start: uint64(p.StartTimestamp()), Time: uint64(p.Timestamp()), Value: value})
}

// target returns the counter that a point belongs to.
func (b *Batch) target(m *sum, f *found, float bool, attrs pcommon.Map) (*target, drop.Reason) {
	targets := b.engine.targets
	mk := metricKey{name: m.Name(), float: float}
	if !f.asked {
		f.asked = true
		f.metricTargets, f.why = targets.metric(b.resource.service, mk, m.Unit(), m.Description(), &b.member.outlet)
	}
	if f.why != drop.None {
		return nil, f.why
	}
	keys := b.engine.config.Attributes
	if len(keys) == 0 && !b.resource.some {
		return f.grand, drop.None
	}

	key, some := b.resource.series, b.resource.some
	for _, name := range keys {
		if v, ok := attrs.Get(name); ok {
			key, some = key.Plus(b.hasher.Pair(name, v)), true
		}
	}
	if !some {
		return f.grand, drop.None // it has none of the attributes
	}
	t, room := targets.find(f.metricTargets, key)
	if t == nil && room {
		t = targets.add(b.resource.service, mk, f.metricTargets, key, b.seriesOf(attrs))
	}
	if t == nil {
		b.apart++
		return f.grand, drop.None
	}
	return t, drop.None
}

// seriesOf returns the attributes of a point's series.
func (b *Batch) seriesOf(attrs pcommon.Map) []attribute.KeyValue {
	var series []attribute.KeyValue
	pick := func(keys []string, from pcommon.Map) {
		for _, key := range keys {
			if v, ok := from.Get(key); ok {
				series = append(series, attribute.KeyValue{Key: attribute.Key(key), Value: identity.Value(v)})
			}
		}
	}
	pick(b.engine.config.ResourceAttributes, b.resource.Attributes())
	pick(b.engine.config.Attributes, attrs)
	return series
}

// pointsOf is how many points a metric has.
func pointsOf(m pmetric.Metric) int64 {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return int64(m.Gauge().DataPoints().Len())
	case pmetric.MetricTypeSum:
		return int64(m.Sum().DataPoints().Len())
	case pmetric.MetricTypeHistogram:
		return int64(m.Histogram().DataPoints().Len())
	case pmetric.MetricTypeExponentialHistogram:
		return int64(m.ExponentialHistogram().DataPoints().Len())
	case pmetric.MetricTypeSummary:
		return int64(m.Summary().DataPoints().Len())
	default:
		return 0
	}
}
