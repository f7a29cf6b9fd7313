package engine

import (
	"context"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Emit says which replica passes a total on.
type Emit uint8

// Who emits.
const (
	// EmitNone: nobody.
	EmitNone Emit = iota
	// EmitOne: for each counter and interval the replica that is the first to flush in
	// the next one.
	EmitOne
	// EmitAll: each replica all that it knows.
	EmitAll
)

// emitter makes gauges of one service's totals. Its methods run one at a time, on
// the goroutine of the group's OnTick.
type emitter struct {
	engine  *Engine
	service *service
	stop    func()
	emitted map[metricKey]int64 // the last interval of which the total went out
}

// emit has a service's totals emitted, if any are. The lock of the targets is held.
func (e *Engine) emit(s *service) *emitter {
	if e.settings.Emit == EmitNone {
		return nil
	}
	em := &emitter{engine: e, service: s, emitted: map[metricKey]int64{}}
	em.stop = s.view.OnTick(em.tick)
	return em
}

func (em *emitter) close() {
	if em != nil {
		em.stop()
	}
}

// tick emits what a flush has brought.
func (em *emitter) tick(readings []counter.Reading) {
	var out gaugeSet
	for _, r := range readings {
		key := metricKey{name: r.Name, float: r.Float}
		switch {
		case !r.Total.Known:
		case r.Attributes.Len() > 0:
			if em.engine.settings.Emit == EmitAll && r.Total.Interval == em.emitted[key] {
				out.add(em, key, seriesSuffix, r.Attributes, r.Total.Interval, r.Total.Closed)
			}
		case r.Total.Interval > em.emitted[key] && (r.Total.First || em.engine.settings.Emit == EmitAll):
			em.emitted[key] = r.Total.Interval
			out.add(em, key, groupSuffix, attribute.Set{}, r.Total.Interval, r.Total.Closed)
			if em.engine.settings.Emit == EmitOne {
				em.parts(&out, key, r.Total.Interval)
			}
		}
	}
	out.send(em.engine)
}

// parts adds all series of a total, whoever counted them.
func (em *emitter) parts(out *gaugeSet, key metricKey, interval int64) {
	e := em.engine
	limit := e.config.MaxSeries
	if limit == 0 || len(e.config.Attributes) == 0 && len(e.config.ResourceAttributes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(e.emission, max(e.config.Interval, time.Second))
	defer cancel()
	t, err := newTarget(em.service.view, key, nil)
	if err != nil {
		return // the group is closed
	}
	grand := t.ints
	if key.float {
		grand = t.doubles.Units()
	}
	parts, err := grand.Parts(ctx, interval, limit)
	if err != nil {
		e.warnings.parts.warnError("the series of a total cannot be read", err)
	}
	for _, p := range parts {
		out.add(em, key, seriesSuffix, p.Attributes, interval, p.Value)
	}
}

// Suffixes of the gauges' names.
const (
	groupSuffix  = ".group"
	seriesSuffix = ".group.series"
)

// Attributes of the gauges.
const (
	groupAttribute    = "comcount.group"      // of the resource, where the configuration names the group
	instanceAttribute = "otelcol.instance.id" // of the points, where all replicas emit
)

// describe fills in the resource of a service's gauges.
func (e *Engine) describe(s *service, to pcommon.Map) {
	if s.key == (serviceKey{}) {
		to.PutStr(groupAttribute, e.config.Group)
		return
	}
	if s.key.namespace != "" {
		to.PutStr(serviceNamespace, s.key.namespace)
	}
	to.PutStr(serviceName, s.key.name)
}

// end is when an interval ends, by the server's clock.
func (e *Engine) end(interval int64) pcommon.Timestamp {
	length := e.config.Interval.Nanoseconds()
	if interval >= math.MaxInt64/length-1 {
		return math.MaxInt64
	}
	return pcommon.Timestamp((interval + 1) * length)
}

// notSent notes gauges that the next component did not take. Nobody sends them
// again: the next interval brings new ones.
func (e *Engine) notSent(err error, points int) {
	e.telemetry.emission(int64(points), err)
	if e.warnings.emission.due() {
		e.settings.Telemetry.Logger.Warn("totals were not accepted downstream", zap.Error(err), zap.Int("totals", points))
	}
}
