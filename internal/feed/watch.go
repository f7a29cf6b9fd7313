package feed

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/otelcomcount/otelcomcount/counter"
)

// watches are the watches of all instruments. One of an instrument that has not
// counted yet waits for it.
type watches struct {
	active atomic.Int64

	mu      sync.Mutex
	waiting map[string][]*watch
}

type watch struct {
	high, low int64
	fn        func(counter.Total, bool)

	mu      sync.Mutex
	stopped bool
	stop    func() // of the counter's, once there is one
}

// Watch is [counter.Counter.Watch] of an instrument's grand total; of a float
// instrument in units of [counter.Resolution].
func (f *Feed) Watch(name string, high, low int64, fn func(counter.Total, bool)) (stop func()) {
	if low > high {
		panic(fmt.Sprintf("%s: Watch of %q with low %d above high %d: want low <= high", f.config.Name, name, low, high))
	}
	w := &watch{high: high, low: low, fn: fn}
	ws := &f.watches
	ws.active.Add(1)
	ws.mu.Lock()
	in := f.lookup(name)
	if in == nil {
		if ws.waiting == nil {
			ws.waiting = map[string][]*watch{}
		}
		ws.waiting[name] = append(ws.waiting[name], w)
	}
	ws.mu.Unlock()
	if in != nil {
		w.attach(in.grand.units)
	}
	return func() { ws.end(name, w) }
}

// Watching reports whether there is any watch.
func (f *Feed) Watching() bool { return f.watches.active.Load() > 0 }

// attach starts the watches that waited for an instrument. It comes after the
// instrument can be looked up.
func (ws *watches) attach(name string, c *counter.Counter) {
	ws.mu.Lock()
	waiting := ws.waiting[name]
	delete(ws.waiting, name)
	ws.mu.Unlock()
	for _, w := range waiting {
		w.attach(c)
	}
}

func (w *watch) attach(c *counter.Counter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.stop = c.Watch(w.high, w.low, w.fn)
	}
}

func (ws *watches) end(name string, w *watch) {
	w.mu.Lock()
	first, stop := !w.stopped, w.stop
	w.stopped = true
	w.mu.Unlock()
	if !first {
		return
	}
	ws.active.Add(-1)
	if stop != nil {
		stop()
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.waiting[name] = slices.DeleteFunc(ws.waiting[name], func(o *watch) bool { return o == w })
	if len(ws.waiting[name]) == 0 {
		delete(ws.waiting, name)
	}
}
