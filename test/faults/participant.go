package faults

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter"
)

// patience is how long a participant may take to settle what it has counted, once
// the faults are over. It is long since machines are slow, not since that takes so
// long.
const patience = time.Minute

// participant is a group in use: one goroutine adds to its counters.
type participant struct {
	rdb   redis.UniversalClient
	group *counter.Group
	stop  chan struct{}
	work  sync.WaitGroup
}

// join starts a participant with a client of its own, which it owns. It counts in
// all histories' counters, and records in them.
func join(t *testing.T, rdb redis.UniversalClient, interval time.Duration, seed uint64, prefix string, histories map[string]*History) *participant {
	t.Helper()
	group, err := counter.NewGroup(rdb, interval,
		counter.WithPrefix(prefix), counter.WithLogger(slog.New(drops{histories: histories})))
	if err != nil {
		t.Fatal(err)
	}
	group.OnTick(func(readings []counter.Reading) {
		for _, r := range readings {
			if r.Total.Known && r.Attributes.Len() == 0 {
				histories[r.Name].Seen(r.Total.Interval, r.Total.Closed, r.Total.Own)
			}
		}
	})
	p := &participant{rdb: rdb, group: group, stop: make(chan struct{})}
	for i, name := range slices.Sorted(maps.Keys(histories)) {
		c, err := group.Counter(name)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		p.work.Go(func() { p.count(c, histories[name], rnd) })
	}
	return p
}

// count adds at uneven rates until the participant leaves.
func (p *participant) count(c *counter.Counter, history *History, rnd *rand.Rand) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-timer.C:
			n := rnd.Int64N(100)
			history.Offered(n)
			c.Add(n)
			timer.Reset(time.Duration(rnd.ExpFloat64() * float64(5*time.Millisecond)))
		}
	}
}

// rest ends the participant's counting.
func (p *participant) rest() {
	close(p.stop)
	p.work.Wait()
}

// leave shuts the participant down, which reports what it could not settle.
func (p *participant) leave(within time.Duration) {
	p.rest()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_ = p.group.Shutdown(ctx) // what it lost is in the log too
	_ = p.rdb.Close()
}

// drops is a log handler that records reported losses.
type drops struct {
	histories map[string]*History
}

func (drops) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (d drops) WithAttrs([]slog.Attr) slog.Handler             { return d }
func (d drops) WithGroup(string) slog.Handler                  { return d }

func (d drops) Handle(_ context.Context, r slog.Record) error {
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
	if h := d.histories[name]; h != nil && dropped != 0 {
		h.Dropped(why, dropped)
	}
	return nil
}
