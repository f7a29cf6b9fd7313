package counter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// queueLength is how many ticks' readings wait for a slow OnTick function.
const queueLength = 64

// hooks are the functions of the application around a tick.
type hooks struct {
	mu      sync.Mutex
	before  []*func()
	after   []*listener
	leaving []*listener // told to end by Close
	closed  bool
}

// listener calls one OnTick function, one call at a time, on a goroutine of its own.
type listener struct {
	prefix string
	fn     func([]Reading)
	queue  chan []Reading
	stop   chan struct{}
	done   chan struct{} // closed after the last call
	off    atomic.Bool   // stopped by the user: no further call begins
	once   sync.Once
}

// OnTick has fn called after each flush that was applied, with the totals of
// the counters in it: outside the loop, one call at a time, in the order of the
// ticks. A function so slow that 64 ticks wait for it misses the oldest. A panic
// in fn is reported and ends nothing.
//
// stop does not wait for a running call, and may be called by fn; no further call
// begins. After Close the readings that are still waiting are delivered, then no
// more; see [Group.Drain].
//
// While a group's view has an OnTick function its participant asks for
// [Total.First], unless [WithoutFirst] says otherwise.
func (g *Group) OnTick(fn func([]Reading)) (stop func()) {
	l := &listener{prefix: g.prefix, fn: fn, queue: make(chan []Reading, queueLength), stop: make(chan struct{}), done: make(chan struct{})}
	h := &g.hooks
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return func() {}
	}
	h.after = append(h.after, l)
	go l.run(g.report)
	return func() {
		h.mu.Lock()
		h.after = slices.DeleteFunc(slices.Clone(h.after), func(o *listener) bool { return o == l })
		h.mu.Unlock()
		l.off.Store(true)
		l.end()
	}
}

func (l *listener) end() { l.once.Do(func() { close(l.stop) }) }

func (l *listener) run(report *reporter) {
	defer close(l.done)
	for {
		select {
		case readings := <-l.queue:
			l.call(readings, report)
		case <-l.stop:
			for {
				select {
				case readings := <-l.queue:
					l.call(readings, report)
				default:
					return
				}
			}
		}
	}
}

func (l *listener) call(readings []Reading, report *reporter) {
	if l.off.Load() {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			report.panicked("OnTick", v)
		}
	}()
	l.fn(readings)
}

// tell queues readings; the oldest make room.
func (l *listener) tell(readings []Reading) {
	for {
		select {
		case l.queue <- readings:
			return
		default:
		}
		select {
		case <-l.queue:
		default:
		}
	}
}

// Drain waits, after Close or Shutdown, until the OnTick functions have been told of
// all flushes and have returned. Without a Close before, it does nothing. If ctx
// ends first, it returns its cause. It must not be called by an OnTick function.
func (g *Group) Drain(ctx context.Context) error {
	g.hooks.mu.Lock()
	leaving := g.hooks.leaving
	g.hooks.mu.Unlock()
	for _, l := range leaving {
		select {
		case <-l.done:
		case <-ctx.Done():
			return fmt.Errorf("counter: an OnTick function has not returned: %w", context.Cause(ctx))
		}
	}
	return nil
}

// BeforeTick has fn called before a tick takes what was counted, so that a
// source that is read rather than told can be read just in time. It runs outside
// the loop; a tick waits for it for at most a quarter of an interval. Flush and
// Shutdown of the group call it too, and wait for it as long as their context
// allows. Calls may overlap.
func (g *Group) BeforeTick(fn func()) (stop func()) {
	h := &g.hooks
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = append(h.before, &fn)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.before = slices.DeleteFunc(slices.Clone(h.before), func(o *func()) bool { return o == &fn })
	}
}

func (h *hooks) preparers() []*func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.before
}

func (h *hooks) listeners() []*listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.after
}

// listens reports whether anybody wants the readings of a prefix.
func (h *hooks) listens(prefix string) bool {
	return slices.ContainsFunc(h.listeners(), func(l *listener) bool { return l.prefix == prefix })
}

// run calls what is to be called before a tick.
func (h *hooks) run(report *reporter) {
	for _, fn := range h.preparers() {
		func() {
			defer func() {
				if v := recover(); v != nil {
					report.panicked("BeforeTick", v)
				}
			}()
			(*fn)()
		}()
	}
}

// runWithin is run, for as long as ctx allows: a function that takes longer ends by
// itself.
func (h *hooks) runWithin(ctx context.Context, report *reporter) {
	if len(h.preparers()) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.run(report)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (h *hooks) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, l := range h.after {
		l.end()
	}
	h.before, h.after, h.leaving = nil, nil, h.after
}
