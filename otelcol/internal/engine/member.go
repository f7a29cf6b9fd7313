package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// errNotRunning is returned for data that comes before Start or after Shutdown.
var errNotRunning = errors.New("comcount: not running: data came before Start or after Shutdown")

// Shared keeps the engines of a factory: one for each component of the
// configuration, however many pipelines it is in. It is safe for concurrent use.
type Shared struct {
	mu      sync.Mutex
	engines map[any]*Engine
}

// NewShared returns one without engines.
func NewShared() *Shared { return &Shared{engines: map[any]*Engine{}} }

// Join returns an instance of the component with this configuration, which is a
// pointer. The first one makes the engine. Gauges go to next; nil for none.
func (s *Shared) Join(cfg any, settings Settings, next consumer.Metrics) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.engines[cfg]
	if e == nil {
		e = New(settings)
		s.engines[cfg] = e
	}
	m := &Member{engine: e, outlet: Outlet{next: next}}
	m.leave = func() (last bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.members) > 1 {
			e.members = slices.DeleteFunc(e.members, func(o *Member) bool { return o == m })
			return false
		}
		delete(s.engines, cfg) // m stays a member: the last gauges go through it
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.members = append(e.members, m)
	return m
}

// Member is the instance of a component in one pipeline. All methods may be called
// from any number of goroutines.
type Member struct {
	engine *Engine
	gate   gate   // of those that extract and commit
	outlet Outlet // where its gauges go
	leave  func() (last bool)
	once   sync.Once
}

// Start makes the engine run, if no other member has. It does not dial.
func (m *Member) Start(ctx context.Context) error {
	if err := m.engine.start(ctx); err != nil {
		return err
	}
	m.gate.unlock()
	m.outlet.gate.unlock()
	return nil
}

// Shutdown ends this instance; the last one sends what is left and ends the engine.
// It returns when ctx ends, or after ten seconds, and reports what was lost. Without
// a Start before it, and when it is called again, it does nothing.
func (m *Member) Shutdown(ctx context.Context) (err error) {
	m.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, maxShutdown)
		defer cancel()
		m.gate.close(ctx)
		if m.leave() {
			err = m.engine.stop(ctx)
		}
		m.outlet.gate.close(ctx)
	})
	return err
}

// Extract reads a request. The caller must Release the batch, and Commit it before
// that if the request was accepted. It keeps no reference to md, does not change it,
// and waits for nothing.
func (m *Member) Extract(md pmetric.Metrics) (*Batch, error) {
	if !m.gate.enter() {
		return nil, errNotRunning
	}
	b := m.engine.batches.Get().(*Batch)
	b.member = m
	b.read(md)
	return b, nil
}

// Outlet is where gauges go.
type Outlet struct {
	next consumer.Metrics
	gate gate
}

// send passes gauges on. It reports whether the outlet was open.
func (o *Outlet) send(ctx context.Context, md pmetric.Metrics) (open bool, err error) {
	if o == nil || o.next == nil || !o.gate.enter() {
		return false, nil
	}
	defer o.gate.leave()
	return true, o.next.ConsumeMetrics(ctx, md)
}
