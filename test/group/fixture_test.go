package group

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/internal/leaktest"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" { // see child
		if err := beChild(); err != nil {
			fmt.Println(err)
		}
		return
	}
	leaktest.Main(m)
}

// record follows a counter's totals on the server, past the life of its keys: it
// reads each interval's total once the interval is over.
type record struct {
	rdb      redis.UniversalClient
	key      string
	interval time.Duration
	stop     chan struct{}
	done     chan struct{}

	mu     sync.Mutex
	totals map[int64]int64
	last   int64
	err    error
}

func follow(t *testing.T, rdb redis.UniversalClient, prefix, name string, interval time.Duration) *record {
	t.Helper()
	r := &record{
		rdb: rdb, key: fmt.Sprintf("%s{%s}:", prefix, name), interval: interval,
		stop: make(chan struct{}), done: make(chan struct{}), totals: map[int64]int64{},
	}
	r.last = r.now(t.Context()) - 1
	go r.run()
	t.Cleanup(r.end)
	return r
}

func (r *record) now(ctx context.Context) int64 {
	cmd := redis.NewTimeCmd(ctx, "time")
	if err := r.at(ctx).Process(ctx, cmd); err != nil {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		return r.last + 1
	}
	return cmd.Val().UnixMilli() / r.interval.Milliseconds()
}

// at is the server that holds the counter.
func (r *record) at(ctx context.Context) redis.UniversalClient {
	if c, ok := r.rdb.(*redis.ClusterClient); ok {
		if master, err := c.MasterForKey(ctx, r.key); err == nil {
			return master
		}
	}
	return r.rdb
}

func (r *record) run() {
	defer close(r.done)
	ticker := time.NewTicker(r.interval / 4)
	defer ticker.Stop()
	for {
		r.read(context.Background())
		select {
		case <-r.stop:
			return
		case <-ticker.C:
		}
	}
}

// read reads the intervals that have closed since the last time. Keys live for
// three intervals at least; to come later than that is an error of the test.
func (r *record) read(ctx context.Context) {
	n := r.now(ctx)
	if n-r.last > 3 && r.interval*3 >= time.Second {
		r.mu.Lock()
		r.err = fmt.Errorf("recorder came %d intervals late", n-r.last)
		r.mu.Unlock()
	}
	for i := r.last + 1; i < n; i++ {
		v, err := r.rdb.Get(ctx, r.key+strconv.FormatInt(i, 10)).Int64()
		if err == nil {
			r.mu.Lock()
			r.totals[i] = v
			r.mu.Unlock()
		}
		r.last = i
	}
}

func (r *record) end() {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	<-r.done
}

// finish waits until all that has been sent is in a closed interval, and returns
// the totals by interval and their sum.
func (r *record) finish(t *testing.T) (totals map[int64]int64, sum int64) {
	t.Helper()
	time.Sleep(3 * r.interval)
	r.end()
	r.read(t.Context())
	require.NoError(t, r.err)
	for _, v := range r.totals {
		sum += v
	}
	return r.totals, sum
}

// losses is a log handler that adds up what is reported as lost.
type losses struct {
	slog.Handler
	mu    sync.Mutex
	total int64
	why   map[string]int64 // by error; 0 for errors without a loss
	of    map[string]int64 // by counter
}

func newLosses() *losses {
	return &losses{Handler: slog.DiscardHandler, why: map[string]int64{}, of: map[string]int64{}}
}

func (l *losses) Enabled(context.Context, slog.Level) bool { return true }

func (l *losses) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var why, name string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "name":
			name = a.Value.String()
		case "error":
			why = a.Value.String()
		case "dropped":
			l.total += a.Value.Int64()
			l.why[why] += a.Value.Int64()
			l.of[name] += a.Value.Int64()
		}
		return true
	})
	return nil
}

func (l *losses) sum() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// by returns what a counter's losses add up to.
func (l *losses) by(name string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[name]
}

// because returns what was lost for a reason.
func (l *losses) because(why string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why[why]
}

// told reports whether an error with this text was logged.
func (l *losses) told(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for why := range l.why {
		if strings.Contains(why, text) {
			return true
		}
	}
	return false
}

// participants are groups with one counter each, that all count on the same.
type participants struct {
	groups   []*counter.Group
	counters []*counter.Counter
	losses   *losses
	added    int64
}

func join(t *testing.T, n int, client func() redis.UniversalClient, prefix, name string, interval time.Duration) *participants {
	t.Helper()
	p := &participants{losses: newLosses()}
	for range n {
		g, err := counter.NewGroup(client(), interval, counter.WithPrefix(prefix), counter.WithLogger(slog.New(p.losses)))
		require.NoError(t, err)
		t.Cleanup(g.Close)
		c, err := g.Counter(name)
		require.NoError(t, err)
		p.groups = append(p.groups, g)
		p.counters = append(p.counters, c)
	}
	return p
}

// count adds to all counters, at uneven rates, until enough says so.
func (p *participants) count(t *testing.T, enough func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for i := 0; !enough(); i++ {
		if time.Now().After(deadline) {
			t.Error("the faults never came") // not Fatal: some count in goroutines
			return
		}
		for k, c := range p.counters {
			n := int64((i + k) % 4)
			c.Add(n)
			p.added += n
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// countFor is count for some intervals.
func (p *participants) countFor(t *testing.T, intervals int, interval time.Duration) {
	t.Helper()
	until := time.Now().Add(time.Duration(intervals) * interval)
	p.count(t, func() bool { return time.Now().After(until) })
}

func (p *participants) flush(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, g := range p.groups {
		require.NoError(t, g.Flush(ctx))
	}
}

// known returns an error unless all counters know the group's total.
func known(counters ...*counter.Counter) error {
	for _, c := range counters {
		if total := c.Total(); !total.Known {
			return fmt.Errorf("a total is not known yet: %+v", total)
		}
	}
	return nil
}

func clusterClient(c *redistest.Cluster) func() redis.UniversalClient {
	return func() redis.UniversalClient { return c.Client() }
}
