package counter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
)

// Group is a process's part of a group of processes: any number of counters that
// share one tick, one participant identity and the connections of one client. All its counters that live on one server
// are flushed in one round trip an interval.
//
// All methods may be called from any number of goroutines.
type Group struct {
	*engine
	prefix string
}

// engine is what all views of a group share.
type engine struct {
	config    config
	interval  time.Duration
	store     Store
	storeName string
	registry  *registry
	report    *reporter
	hooks     hooks

	mu      sync.Mutex // never held across I/O
	woken   []*Counter
	running bool
	closed  bool

	signal      chan struct{} // something was woken
	events      chan func(*loop)
	stop        chan struct{}
	done        chan struct{}
	lostAtClose int64 // set before done is closed
}

// NewGroup returns a group without counters. See [New] for the arguments and
// what is refused.
func NewGroup(rdb redis.UniversalClient, interval time.Duration, opts ...Option) (*Group, error) {
	cfg, err := newConfig(opts)
	err = errors.Join(err, validateInterval(interval))
	store, storeName := cfg.store, fmt.Sprintf("%T", cfg.store)
	if store == nil {
		var serr error
		store, serr = NewStore(rdb)
		storeName, err = "redis", errors.Join(err, serr)
	}
	if err != nil {
		return nil, err
	}
	report, err := newReporter(cfg)
	if err != nil {
		return nil, err
	}
	if s, ok := store.(*redisStore); ok {
		own := *s // it may be in other groups, too
		own.loaded = report.loaded
		store = &own
	}
	if cfg.id == "" {
		cfg.id, cfg.phase = newIdentity()
	}
	return &Group{prefix: cfg.prefix, engine: &engine{
		config: cfg, interval: interval, store: store, storeName: storeName,
		registry: newRegistry(cfg.maxSeries), report: report,
		signal: make(chan struct{}, 1), events: make(chan func(*loop)),
		stop: make(chan struct{}), done: make(chan struct{}),
	}}, nil
}

// newIdentity draws a participant's name, which is new at every start, and where
// in an interval it flushes.
func newIdentity() (id string, phase float64) {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	for i, c := range b {
		b[i] = letters[c%32]
	}
	n, _ := rand.Int(rand.Reader, big.NewInt(1<<20))
	return string(b[:]), float64(n.Int64()) / (1 << 20)
}

// Counter returns the group's counter of a name and attribute set: always the
// same one. Without attributes it is the name's grand total over all sets.
//
// A name has 1 to 255 bytes of UTF-8 without control characters, does not begin
// with `}` and does not end with ":f". After Close, and for a counter that was
// closed, Counter returns [ErrClosed].
func (g *Group) Counter(name string, attrs ...attribute.KeyValue) (*Counter, error) {
	if err := validateName(name); err != nil {
		return nil, err
	}
	return g.find(name, attrs)
}

// FloatCounter is like Counter for amounts that are not whole. An int and a
// float counter of one name do not share a total.
func (g *Group) FloatCounter(name string, attrs ...attribute.KeyValue) (*FloatCounter, error) {
	if err := validateName(name); err != nil {
		return nil, err
	}
	c, err := g.find(name+floatSuffix, attrs)
	if err != nil {
		return nil, err
	}
	return c.asFloat(), nil
}

func (g *Group) find(name string, attrs []attribute.KeyValue) (*Counter, error) {
	key := seriesKey{prefix: g.prefix, name: name, grand: len(attrs) == 0}
	var set attribute.Set
	if !key.grand {
		set = attribute.NewSet(attrs...)
		key.set = encodeSet(set)
	}
	c, fresh, err := g.registry.find(g, key, set)
	if err != nil {
		return nil, fmt.Errorf("counter %q: %w", name, err)
	}
	if fresh && c.excess {
		g.report.exceeded(c.key, g.config.maxSeries)
	}
	return c, nil
}

// WithPrefix returns a view of the group whose counters have a prefix of their
// own, on the same tick, participant and connections. Flush, Shutdown and Close
// of any view act on the whole; [Group.OnTick] of a view is told of its counters
// only.
func (g *Group) WithPrefix(prefix string) (*Group, error) {
	if err := validatePrefix(prefix); err != nil {
		return nil, err
	}
	return &Group{engine: g.engine, prefix: prefix}, nil
}

// Flush waits until all that was counted in the group before the call is
// settled. See [Counter.Flush].
func (g *Group) Flush(ctx context.Context) error {
	g.hooks.runWithin(ctx, g.report)
	return g.awaitSettled(ctx, nil)
}

// Shutdown sends what is left and closes the group. See [Counter.Shutdown].
func (g *Group) Shutdown(ctx context.Context) error {
	g.hooks.runWithin(ctx, g.report)
	a, err := g.awaitSent(ctx, nil)
	g.Close()
	if errors.Is(err, ErrClosed) {
		return nil
	}
	if lost := g.lostAtClose + a.lost.Load(); lost != 0 {
		return errors.Join(lostError(lost), err)
	}
	return nil
}

// Close stops the group and all its counters at once and gives up what is not sent.
// To end a program, use [Group.Shutdown]. See [Counter.Close].
func (g *Group) Close() {
	g.mu.Lock()
	first, running := !g.closed, g.running
	g.closed = true
	g.mu.Unlock()
	if !first {
		<-g.done
		return
	}
	for _, c := range g.registry.close() {
		c.queued.Store(true) // nothing takes it up any more
	}
	if running {
		close(g.stop)
		<-g.done
	} else {
		close(g.done)
	}
	g.hooks.close()
}

// wake has the loop take a counter up, and starts it if it does not run yet.
func (e *engine) wake(c *Counter) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.woken = append(e.woken, c)
	if !e.running {
		e.running = true
		go newLoop(e).run()
	}
	e.mu.Unlock()
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// takeWoken returns what has been woken since the last time.
func (e *engine) takeWoken() []*Counter {
	e.mu.Lock()
	defer e.mu.Unlock()
	woken := e.woken
	e.woken = nil
	return woken
}

func (e *engine) state() (running, closed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running, e.closed
}
