// Package otlptest builds metrics for tests in few words.
package otlptest

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Epoch is the time that the times of points are counted from, in seconds since
// 1970. It is long before any test runs.
const Epoch = 1_000_000

// Point is a data point of a sum. Start and At are seconds since [Epoch]; 0 is not
// set. Value is an int, a float64, or nil for an empty point.
type Point struct {
	Start, At int
	Value     any
	Attrs     map[string]any
	NoValue   bool // the flag of a point without a recorded value
}

// Builder adds metrics to one request.
type Builder struct {
	MD    pmetric.Metrics
	scope pmetric.ScopeMetrics
}

// New returns an empty request.
func New() *Builder { return &Builder{MD: pmetric.NewMetrics()} }

// Resource begins a resource, with one scope that has no name.
func (b *Builder) Resource(attrs map[string]any) *Builder {
	rm := b.MD.ResourceMetrics().AppendEmpty()
	must(rm.Resource().Attributes().FromRaw(attrs))
	b.scope = rm.ScopeMetrics().AppendEmpty()
	return b
}

// Service begins a resource of a service.
func (b *Builder) Service(name string) *Builder {
	return b.Resource(map[string]any{"service.name": name})
}

// Scope begins a scope of the resource.
func (b *Builder) Scope(name string) *Builder {
	b.scope = b.MD.ResourceMetrics().At(b.MD.ResourceMetrics().Len() - 1).ScopeMetrics().AppendEmpty()
	b.scope.Scope().SetName(name)
	return b
}

// Delta adds a monotonic sum of delta points.
func (b *Builder) Delta(name string, points ...Point) *Builder {
	return b.Sum(name, pmetric.AggregationTemporalityDelta, true, points...)
}

// Cumulative adds a monotonic sum of cumulative points.
func (b *Builder) Cumulative(name string, points ...Point) *Builder {
	return b.Sum(name, pmetric.AggregationTemporalityCumulative, true, points...)
}

// Sum adds a sum.
func (b *Builder) Sum(name string, t pmetric.AggregationTemporality, monotonic bool, points ...Point) *Builder {
	m := b.Metric(name)
	m.SetUnit("{request}")
	m.SetDescription("Requests.")
	sum := m.SetEmptySum()
	sum.SetAggregationTemporality(t)
	sum.SetIsMonotonic(monotonic)
	for _, p := range points {
		p.fill(sum.DataPoints().AppendEmpty())
	}
	return b
}

// Metric adds a metric without data.
func (b *Builder) Metric(name string) pmetric.Metric {
	m := b.scope.Metrics().AppendEmpty()
	m.SetName(name)
	return m
}

func (p Point) fill(to pmetric.NumberDataPoint) {
	to.SetStartTimestamp(Time(p.Start))
	to.SetTimestamp(Time(p.At))
	to.SetFlags(to.Flags().WithNoRecordedValue(p.NoValue))
	switch v := p.Value.(type) {
	case nil:
	case int:
		to.SetIntValue(int64(v))
	case int64:
		to.SetIntValue(v)
	case float64:
		to.SetDoubleValue(v)
	default:
		panic(fmt.Sprintf("value of type %T", v))
	}
	must(to.Attributes().FromRaw(p.Attrs))
}

// Time returns a point's time.
func Time(second int) pcommon.Timestamp {
	if second == 0 {
		return 0
	}
	return pcommon.Timestamp((Epoch + second) * 1_000_000_000)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
