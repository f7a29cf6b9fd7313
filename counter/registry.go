package counter

import (
	"runtime"
	"sync"
	"weak"

	"go.opentelemetry.io/otel/attribute"
)

// seriesKey names a counter within a group.
type seriesKey struct {
	prefix, name string
	set          string // the canonical attribute set
	grand        bool   // no attributes: the grand total
}

func (k seriesKey) grandKey() seriesKey {
	return seriesKey{prefix: k.prefix, name: k.name, grand: true}
}

// registry finds the one counter of a name and set. It holds counters weakly: a
// counter is kept alive by whoever uses it and, while it is awake, by the loop.
// So a million attribute sets that come and go do not pile up, and still nobody
// meets two counters for one set.
type registry struct {
	limit int // of series in use at a time

	mu       sync.Mutex
	counters map[seriesKey]weak.Pointer[Counter]
	excess   map[seriesKey]*Counter // by grand total: one stands for all above the limit
	ended    map[seriesKey]bool     // closed one by one
	closed   bool
	series   int // in use, or not yet used
	watchers []*instruments
}

// place is a series' claim on the limit. It is apart from its counter so that
// the claim can be given back once the counter is gone.
type place struct {
	key   seriesKey
	taken bool
}

func newRegistry(limit int) *registry {
	return &registry{
		limit:    limit,
		counters: map[seriesKey]weak.Pointer[Counter]{},
		excess:   map[seriesKey]*Counter{},
		ended:    map[seriesKey]bool{},
	}
}

// find returns the counter of a key and makes it if there is none. Above the
// limit it returns the one that stands for all further series of the name; fresh
// says that it was made by this call.
func (r *registry) find(g *Group, key seriesKey, attrs attribute.Set) (c *Counter, fresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.ended[key] || r.ended[key.grandKey()] {
		return nil, false, ErrClosed
	}
	if c := r.counters[key].Value(); c != nil {
		return c, false, nil
	}
	grand := r.counters[key.grandKey()].Value()
	if grand == nil {
		grand = newCounter(g, key.grandKey(), attribute.Set{})
		grand.grand = grand
		r.add(grand)
	}
	if key.grand {
		return grand, true, nil
	}
	if r.series >= r.limit || len(key.set) > maxBytes {
		c, fresh = r.beyond(grand)
		return c, fresh, nil
	}
	c = newCounter(g, key, attrs)
	c.grand = grand
	r.add(c)
	return c, true, nil
}

func newCounter(g *Group, key seriesKey, attrs attribute.Set) *Counter {
	c := &Counter{group: g, key: key, attrs: attrs, place: &place{key: key}}
	c.view.Store(&unknown)
	c.float.units = c
	return c
}

func (r *registry) add(c *Counter) {
	r.counters[c.key] = weak.Make(c)
	r.claim(c.place)
	runtime.AddCleanup(c, r.forget, c.place)
	for _, in := range r.watchers {
		in.add(c)
	}
}

// observe tells in of the counters that there are, and of all to come.
func (r *registry) observe(in *instruments) []*Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers = append(r.watchers, in)
	return r.alive()
}

func (r *registry) alive() []*Counter {
	var all []*Counter
	for _, p := range r.counters {
		if c := p.Value(); c != nil {
			all = append(all, c)
		}
	}
	return all
}

func (r *registry) claim(p *place) {
	if !p.key.grand && !p.taken {
		p.taken = true
		r.series++
	}
}

func (r *registry) release(p *place) {
	if p.taken {
		p.taken = false
		r.series--
	}
}

// beyond returns the counter that stands for a name's series above the limit.
func (r *registry) beyond(grand *Counter) (c *Counter, fresh bool) {
	if c := r.excess[grand.key]; c != nil {
		return c, false
	}
	c = newCounter(grand.group, seriesKey{prefix: grand.key.prefix, name: grand.key.name}, attribute.Set{})
	c.grand = grand
	c.excess = true
	c.queued.Store(true) // the loop never takes it up
	c.touched.Store(true)
	r.excess[grand.key] = c
	return c, true
}

// awake and rest note that the loop has taken a counter up, or put it to rest.
func (r *registry) awake(c *Counter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claim(c.place)
}

func (r *registry) rest(c *Counter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(c.place)
}

// forget drops the entry of a counter that nobody holds any more.
func (r *registry) forget(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(p)
	if r.counters[p.key].Value() == nil { // else it was made anew meanwhile
		delete(r.counters, p.key)
	}
}

// end has the registry answer a counter's name with ErrClosed from now on, and
// returns the counters that end with it.
func (r *registry) end(c *Counter) []*Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[c.key] = true
	ended := []*Counter{c}
	if c == c.grand {
		for key, p := range r.counters {
			if part := p.Value(); part != nil && !key.grand && key.grandKey() == c.key {
				ended = append(ended, part)
			}
		}
	}
	return ended
}

// close has the registry answer every name with ErrClosed, and returns all
// counters that are held anywhere.
func (r *registry) close() []*Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.alive()
}
