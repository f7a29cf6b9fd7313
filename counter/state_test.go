package counter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"pgregory.net/rapid"

	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

// lossLog collects what groups report as lost, by counter and reason.
type lossLog struct {
	slog.Handler
	mu     sync.Mutex
	losses map[string]map[reason]int64
	msgs   map[string]int
}

func newLossLog() *lossLog {
	return &lossLog{Handler: slog.DiscardHandler, losses: map[string]map[reason]int64{}, msgs: map[string]int{}}
}

func (l *lossLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *lossLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.msgs[r.Message]++
	var name, why string
	var dropped int64
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "name":
			name = a.Value.String()
		case "error":
			why = a.Value.String()
		case "dropped":
			dropped = a.Value.Int64()
		}
		return true
	})
	if dropped != 0 {
		if l.losses[name] == nil {
			l.losses[name] = map[reason]int64{}
		}
		l.losses[name][reason(why)] += dropped
	}
	return nil
}

// sum is what was reported lost of a counter.
func (l *lossLog) sum(name string) (sum int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.losses[name] {
		sum += n
	}
	return sum
}

// cluster is a random history of participants, faults and clocks on one store.
type cluster struct {
	store  *memStore
	log    *lossLog
	groups []*Group
	added  map[string]int64
	seen   map[string]int

	started int
}

// withIdentity fixes what is drawn at random otherwise.
func withIdentity(id string, phase float64) Option {
	return option(func(c config) config { c.id, c.phase = id, phase; return c })
}

// DESIGN 2, promise 3: "Nothing disappears silently."
func TestAnyHistoryKeepsThePromise(t *testing.T) {
	bubbletest.SkipInShortRace(t)
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			c := &cluster{store: newMemStore(), log: newLossLog(), added: map[string]int64{}, seen: reached}
			c.start(t)
			t.Repeat(map[string]func(*rapid.T){
				"":        c.neverOverstated,
				"add":     c.add,
				"add2":    c.add,
				"advance": c.advance,
				"fault":   c.setFault,
				"flush":   c.flush,
				"start":   c.start,
				"close":   c.close,
				"step":    c.step,
			})
			c.finish(t)
		})
	})
	for _, state := range []string{"closed", "lost reply", "stepped", "shut down"} {
		if reached[state] == 0 && !testing.Short() { // -short draws few histories
			t.Errorf("no history reached %q: the test proves nothing of it", state)
		}
	}
}

func (c *cluster) reach(state string) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.seen[state]++
}

func (c *cluster) start(t *rapid.T) {
	if len(c.groups) >= 3 {
		t.Skip("enough participants")
	}
	g, err := NewGroup(nil, second, WithStore(c.store), WithLogger(slog.New(c.log)), WithCarry(rapid.IntRange(0, 3).Draw(t, "carry")),
		withIdentity(fmt.Sprint("participant", c.started), float64(rapid.IntRange(0, 9).Draw(t, "phase"))/10))
	c.started++
	if err != nil {
		t.Fatal(err)
	}
	c.groups = append(c.groups, g)
}

func (c *cluster) pick(t *rapid.T) (*Group, int) {
	if len(c.groups) == 0 {
		t.Skip("no participant")
	}
	i := rapid.IntRange(0, len(c.groups)-1).Draw(t, "participant")
	return c.groups[i], i
}

func (c *cluster) add(t *rapid.T) {
	g, _ := c.pick(t)
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	var attrs []attribute.KeyValue
	if k := rapid.IntRange(0, 2).Draw(t, "series"); k > 0 {
		attrs = append(attrs, attribute.Int("k", k))
	}
	ctr, err := g.Counter(name, attrs...)
	if err != nil {
		t.Fatal(err)
	}
	n := rapid.Int64Range(0, 5).Draw(t, "n")
	ctr.Add(n)
	c.added[name] += n
}

func (c *cluster) advance(t *rapid.T) {
	d := rapid.IntRange(0, 3000).Draw(t, "ms")
	time.Sleep(time.Duration(d)*time.Millisecond + time.Microsecond)
	synctest.Wait()
}

func (c *cluster) setFault(t *rapid.T) {
	kind := rapid.SampledFrom([]string{"none", "lose request", "lose reply", "refuse", "delay", "late reply"}).Draw(t, "fault")
	ms := time.Duration(rapid.IntRange(1, 2500).Draw(t, "delay ms")) * time.Millisecond
	k := rapid.IntRange(1, 3).Draw(t, "every")
	n := 0
	c.store.setFault(func(*Flush) memFault {
		if n++; n%k != 0 {
			return memFault{}
		}
		switch kind {
		case "lose request":
			return memFault{loseRequest: true}
		case "lose reply":
			c.reach("lost reply")
			return memFault{loseReply: true}
		case "refuse":
			return memFault{err: errors.New("dial tcp: refused")}
		case "delay":
			return memFault{before: ms}
		case "late reply":
			return memFault{after: ms}
		}
		return memFault{}
	})
}

func (c *cluster) flush(t *rapid.T) {
	g, _ := c.pick(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rapid.IntRange(1, 2000).Draw(t, "timeout"))*time.Millisecond)
	defer cancel()
	_ = g.Flush(ctx)
}

func (c *cluster) close(t *rapid.T) {
	g, i := c.pick(t)
	c.groups = append(c.groups[:i:i], c.groups[i+1:]...)
	if rapid.Bool().Draw(t, "shutdown") {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = g.Shutdown(ctx)
		c.reach("shut down")
	} else {
		g.Close()
		c.reach("closed")
	}
}

func (c *cluster) step(t *rapid.T) {
	ms := rapid.OneOf(rapid.IntRange(-900, 900), rapid.IntRange(-20000, 5000)).Draw(t, "step ms")
	c.store.step(time.Duration(ms) * time.Millisecond)
	c.reach("stepped")
}

func (c *cluster) neverOverstated(t *rapid.T) {
	for name, added := range c.added {
		if sum := c.store.sum(name); sum > added {
			t.Fatalf("overstated")
		}
	}
}

// finish heals everything, lets all settle, and accounts for each unit.
func (c *cluster) finish(t *rapid.T) {
	c.store.setFault(nil)
	time.Sleep(20 * time.Second)
	for _, g := range c.groups {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := g.Flush(ctx); err != nil {
			t.Fatalf("a flush without faults does not end")
		}
		cancel()
		g.Close()
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
	c.neverOverstated(t)
	for name, added := range c.added {
		sum, maybe, gone := c.store.sum(name), int64(0), int64(0)
		for why, n := range c.log.losses[name] {
			if why == lostUnknown || why == lostClosed {
				maybe += n
			} else {
				gone += n
			}
		}
		if sum > added-gone || sum < added-gone-maybe {
			t.Log(fmt.Sprintf("%s: added %d, in the store %d, reported %v", name, added, sum, c.log.losses[name]))
			t.Fatalf("unaccounted")
		}
	}
}
