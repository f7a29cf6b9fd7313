package engine

import (
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
)

// gaugeSet is the gauges of one tick, by where they go.
type gaugeSet struct{ outlets map[*Outlet]*gauges }

// gauges are what goes to one outlet.
type gauges struct {
	md        pmetric.Metrics
	points    int
	resources map[string]pmetric.MetricSlice
	metrics   map[gaugeKey]pmetric.NumberDataPointSlice
}

type gaugeKey struct {
	resource string // see textOf
	metricKey
	suffix string
}

// add adds a gauge of a service's counter. Attrs are those of a series.
func (g *gaugeSet) add(em *emitter, key metricKey, suffix string, attrs attribute.Set, interval, units int64) {
	e := em.engine
	unit, description, outlet := e.targets.describe(em.service, key)
	to := g.outlets[outlet]
	if to == nil {
		to = &gauges{
			md:        pmetric.NewMetrics(),
			resources: map[string]pmetric.MetricSlice{},
			metrics:   map[gaugeKey]pmetric.NumberDataPointSlice{},
		}
		if g.outlets == nil {
			g.outlets = map[*Outlet]*gauges{}
		}
		g.outlets[outlet] = to
	}
	ofResource, ofPoint := e.split(attrs)
	gauge := gaugeKey{textOf(ofResource), key, suffix}
	points, ok := to.metrics[gauge]
	if !ok {
		m := to.resource(em, gauge.resource, ofResource).AppendEmpty()
		m.SetName(key.name + suffix)
		m.SetUnit(unit)
		m.SetDescription(description)
		points = m.SetEmptyGauge().DataPoints()
		to.metrics[gauge] = points
	}
	p := points.AppendEmpty()
	to.points++
	p.SetTimestamp(e.end(interval))
	if key.float {
		p.SetDoubleValue(float64(units) / (1 / counter.Resolution))
	} else {
		p.SetIntValue(units)
	}
	putAll(ofPoint, p.Attributes())
	if e.settings.Emit == EmitAll {
		p.Attributes().PutStr(instanceAttribute, e.instance)
	}
}

// resource returns the metrics of a resource.
func (to *gauges) resource(em *emitter, text string, attrs attribute.Set) pmetric.MetricSlice {
	if ms, ok := to.resources[text]; ok {
		return ms
	}
	rm := to.md.ResourceMetrics().AppendEmpty()
	em.engine.describe(em.service, rm.Resource().Attributes())
	putAll(attrs, rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(em.engine.settings.Scope)
	sm.Scope().SetVersion(em.engine.settings.Version)
	to.resources[text] = sm.Metrics()
	return sm.Metrics()
}

// split parts the attributes of a series into those of the resource and those of
// the point.
func (e *Engine) split(attrs attribute.Set) (ofResource, ofPoint attribute.Set) {
	if attrs.Len() == 0 || len(e.config.ResourceAttributes) == 0 {
		return attribute.Set{}, attrs
	}
	ofResource, rest := attribute.NewSetWithFiltered(attrs.ToSlice(), func(kv attribute.KeyValue) bool {
		return slices.Contains(e.config.ResourceAttributes, string(kv.Key))
	})
	return ofResource, attribute.NewSet(rest...)
}

// textOf tells sets of attributes apart. (Their Distinct does not: it is a hash
// that different arrays may share.)
func textOf(attrs attribute.Set) string {
	var b []byte
	for _, kv := range attrs.ToSlice() {
		b = strconv.AppendQuote(b, string(kv.Key))
		b = strconv.AppendInt(b, int64(kv.Value.Type()), 10)
		b = strconv.AppendQuote(b, kv.Value.String())
	}
	return string(b)
}

func putAll(attrs attribute.Set, to pcommon.Map) {
	for _, kv := range attrs.ToSlice() {
		identity.Put(kv.Value, to.PutEmpty(string(kv.Key)))
	}
}

// send passes all on. What an instance that has ended would have sent goes to
// another one.
func (g *gaugeSet) send(e *Engine) {
	for outlet, to := range g.outlets {
		open, err := outlet.send(e.emission, to.md)
		for _, other := range e.outlets() {
			if open {
				break
			}
			open, err = other.send(e.emission, to.md)
		}
		switch {
		case err != nil:
			e.notSent(err, to.points)
		case open:
			e.telemetry.emission(int64(to.points), nil)
		}
	}
}

// outlets returns those of all members.
func (e *Engine) outlets() []*Outlet {
	e.mu.Lock()
	defer e.mu.Unlock()
	outlets := make([]*Outlet, 0, len(e.members))
	for _, m := range e.members {
		outlets = append(outlets, &m.outlet)
	}
	return outlets
}
