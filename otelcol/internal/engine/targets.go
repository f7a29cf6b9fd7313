package engine

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/drop"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
)

// Bounds of what senders can make an engine keep, beside max_series and
// max_streams.
const (
	maxServices = 1_000
	maxMetrics  = 10_000
)

// idle is after how many intervals without a point a target is let go. The group
// puts a counter to rest after ten.
const idle = 12

// targets finds the counter that a point goes to. What is found once is kept
// until it is idle.
type targets struct {
	engine *Engine

	mu       sync.RWMutex // held for map accesses only
	services map[serviceKey]*service
	metrics  int
	series   int
}

// serviceKey names a service; it is empty where the configuration names the group.
type serviceKey struct{ namespace, name string }

// service is a group's view on the counters of one service.
type service struct {
	key     serviceKey
	view    *counter.Group
	metrics map[metricKey]*metricTargets
	emitter *emitter // nil: nothing is emitted
}

type metricKey struct {
	name  string
	float bool
}

// metricTargets is the counter of a metric, and those of its series.
type metricTargets struct {
	grand  *target
	series map[identity.Key]*target

	// What its gauges are made of; all from the metric's first batch.
	unit, description string
	outlet            *Outlet
}

// target is a counter: one of the two.
type target struct {
	ints    *counter.Counter
	doubles *counter.FloatCounter
	used    atomic.Int64 // when, Unix nanoseconds
}

func newTargets(e *Engine) *targets {
	return &targets{engine: e, services: map[serviceKey]*service{}}
}

// use notes that a target is in use. Most calls only read, so that batches on
// several CPUs do not fight for it.
func (t *target) use(now int64) {
	if now-t.used.Load() > int64(time.Millisecond) {
		t.used.Store(now)
	}
}

func newTarget(view *counter.Group, key metricKey, attrs []attribute.KeyValue) (t *target, err error) {
	t = &target{}
	if key.float {
		t.doubles, err = view.FloatCounter(key.name, attrs...)
	} else {
		t.ints, err = view.Counter(key.name, attrs...)
	}
	return t, err
}

// metric returns the counters of a metric of a service, or why there are none.
func (ts *targets) metric(svc serviceKey, key metricKey, unit, description string, outlet *Outlet) (*metricTargets, drop.Reason) {
	ts.mu.RLock()
	if s := ts.services[svc]; s != nil {
		if m := s.metrics[key]; m != nil {
			ts.mu.RUnlock()
			return m, drop.None
		}
	}
	ts.mu.RUnlock()

	ts.mu.Lock()
	defer ts.mu.Unlock()
	s := ts.service(svc)
	if s == nil {
		return nil, drop.MetricLimit
	}
	if m := s.metrics[key]; m != nil {
		return m, drop.None
	}
	if ts.metrics >= maxMetrics {
		ts.engine.warnings.metrics.warn("too many metrics; points of further ones are not counted", maxMetrics)
		return nil, drop.MetricLimit
	}
	key.name = strings.Clone(key.name)
	grand, err := newTarget(s.view, key, nil)
	if err != nil {
		ts.engine.warnings.name.warnError("metric cannot be counted", err)
		return nil, drop.Name
	}
	m := &metricTargets{
		grand: grand, series: map[identity.Key]*target{},
		unit: strings.Clone(unit), description: strings.Clone(description), outlet: outlet,
	}
	grand.used.Store(time.Now().UnixNano())
	s.metrics[key] = m
	ts.metrics++
	return m, drop.None
}

// service returns a service's view, or nil if there are too many. The lock is held.
func (ts *targets) service(key serviceKey) *service {
	if s := ts.services[key]; s != nil {
		return s
	}
	if len(ts.services) >= maxServices {
		ts.engine.warnings.services.warn("too many services; points of further ones are not counted", maxServices)
		return nil
	}
	key = serviceKey{strings.Clone(key.namespace), strings.Clone(key.name)}
	prefix := counter.GroupName(key.namespace, key.name)
	if key == (serviceKey{}) {
		prefix = counter.GroupName("", ts.engine.config.Group)
	}
	view, err := ts.engine.group.WithPrefix(prefix)
	if err != nil {
		return nil // cannot be: every result of GroupName is a valid prefix
	}
	s := &service{key: key, view: view, metrics: map[metricKey]*metricTargets{}}
	s.emitter = ts.engine.emit(s)
	ts.services[key] = s
	return s
}

// find returns the counter of a series, or nil and whether there is room for it.
func (ts *targets) find(m *metricTargets, key identity.Key) (t *target, room bool) {
	ts.mu.RLock()
	t, room = m.series[key], ts.series < ts.engine.config.MaxSeries
	ts.mu.RUnlock()
	if t == nil && !room {
		ts.engine.warnings.series.warn("too many series; further ones count in their grand totals only", ts.engine.config.MaxSeries)
	}
	return t, room
}

// add returns the counter of a new series. If there is no room, or the metric was
// let go meanwhile, it returns nil: then only the grand total counts.
func (ts *targets) add(svc serviceKey, mk metricKey, m *metricTargets, key identity.Key, attrs []attribute.KeyValue) *target {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s := ts.services[svc]
	if s == nil || s.metrics[mk] != m {
		return nil
	}
	if t := m.series[key]; t != nil {
		return t
	}
	if ts.series >= ts.engine.config.MaxSeries {
		return nil
	}
	t, err := newTarget(s.view, mk, attrs)
	if err != nil {
		return nil
	}
	t.used.Store(time.Now().UnixNano())
	m.series[key] = t
	ts.series++
	return t
}

// sweep lets go of what was not used since the given time.
func (ts *targets) sweep(before time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	idle := func(t *target) bool { return t.used.Load() < before.UnixNano() }
	for sk, s := range ts.services {
		for mk, m := range s.metrics {
			for k, t := range m.series {
				if idle(t) {
					delete(m.series, k)
					ts.series--
				}
			}
			if idle(m.grand) && len(m.series) == 0 {
				delete(s.metrics, mk)
				ts.metrics--
			}
		}
		if len(s.metrics) == 0 {
			delete(ts.services, sk)
			s.emitter.close()
		}
	}
}

// describe returns what a metric's gauges are made of.
func (ts *targets) describe(s *service, key metricKey) (unit, description string, outlet *Outlet) {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	if m := s.metrics[key]; m != nil {
		return m.unit, m.description, m.outlet
	}
	return "", "", nil
}

// serviceOf returns the service that a resource belongs to.
func (e *Engine) serviceOf(r pcommon.Resource) serviceKey {
	if e.config.Group != "" {
		return serviceKey{}
	}
	text := func(key string) string {
		if v, ok := r.Attributes().Get(key); ok {
			return v.AsString()
		}
		return ""
	}
	key := serviceKey{namespace: text(serviceNamespace), name: text(serviceName)}
	if key.name == "" {
		key.name = unknownService
	}
	return key
}

// The names that OpenTelemetry's conventions give.
const (
	serviceNamespace = "service.namespace"
	serviceName      = "service.name"
	unknownService   = "unknown_service"
	serviceInstance  = "service.instance.id"
)
