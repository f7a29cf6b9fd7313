package counter

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// watches are the watches of one counter.
type watches struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*watch]
}

// watch compares a counter's Count with two thresholds, on a goroutine of its own.
type watch struct {
	counter   *Counter
	high, low int64
	fn        func(Total, bool)
	changed   chan struct{}
	stop      chan struct{}
	once      sync.Once
}

// Watch calls fn with over = true once Count has reached high, and with false
// once it is back below low (low <= high, else Watch panics). It calls at once if
// Count has reached high already.
//
// fn runs on a goroutine of the watch's own, one call at a time; a slow or
// panicking fn delays nothing else. Count is looked at when an answer comes, and
// every tenth of an interval (at least 10 ms), so that the participant's own
// buffer is enough to cross. A watch keeps its counter awake; it does not start
// one that was never added to.
//
// While the group's total is not known, Count is this participant's own buffer. So an
// outage may bring a call with false though load has not fallen, and what is caught up
// after it one with true. Where that matters, do not act on a call without t.Known.
//
// stop does not wait for a running call, and may be called by fn. Close of the
// counter or its group ends the watch.
func (c *Counter) Watch(high, low int64, fn func(t Total, over bool)) (stop func()) {
	if low > high {
		panic(fmt.Sprintf("counter: Watch of %q with low %d above high %d: want low <= high", c.key.name, low, high))
	}
	w := &watch{counter: c, high: high, low: low, fn: fn, changed: make(chan struct{}, 1), stop: make(chan struct{})}
	c.watches.add(w)
	if c.ended.Load() {
		w.end() // Close may have been too early to see it
	}
	c.touch()
	go w.run(max(c.group.interval/10, 10*time.Millisecond))
	return func() {
		c.watches.remove(w)
		w.end()
	}
}

func (ws *watches) add(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	list := append(slices.Clone(ws.all()), w)
	ws.list.Store(&list)
}

func (ws *watches) remove(w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(ws.all()), func(o *watch) bool { return o == w })
	ws.list.Store(&list)
}

func (ws *watches) all() []*watch {
	if list := ws.list.Load(); list != nil {
		return *list
	}
	return nil
}

// end ends all watches of a counter.
func (ws *watches) end() {
	for _, w := range ws.all() {
		w.end()
	}
}

// nudge has the counter's watches look again.
func (c *Counter) nudge() {
	for _, w := range c.watches.all() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

func (w *watch) end() { w.once.Do(func() { close(w.stop) }) }

func (w *watch) run(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	over := false
	for {
		if t := w.counter.Total(); over && t.Count < w.low || !over && t.Count >= w.high {
			over = !over
			w.call(t, over)
		}
		select {
		case <-ticker.C:
		case <-w.changed:
		case <-w.stop:
		case <-w.counter.group.done:
			return
		}
		select {
		case <-w.stop:
			return
		default:
		}
	}
}

func (w *watch) call(t Total, over bool) {
	defer func() {
		if v := recover(); v != nil {
			w.counter.group.report.panicked("Watch", v)
		}
	}()
	w.fn(t, over)
}
