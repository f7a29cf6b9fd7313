package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/jsclient"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// counterRows: what counting and reading cost, beside a bare atomic add.
func counterRows(t *testing.T) []Row {
	g, err := counter.NewGroup(redistest.Client(t), time.Second, counter.WithPrefix(redistest.Prefix(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	grand, series := use(t, g), use(t, g, attribute.String("route", "/"))
	var bare atomic.Int64
	add := NsPerOp(func(b *testing.B) {
		for b.Loop() {
			bare.Add(1)
		}
	})
	return []Row{
		{Name: "Add, against a bare atomic add", Unit: "ns", Baseline: add, Goal: AtMost(2.5), Ours: NsPerOp(func(b *testing.B) {
			for b.Loop() {
				grand.Add(1)
			}
		})},
		{Name: "Add, all cores at once", Unit: "ns", Baseline: NsPerOp(func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					bare.Add(1)
				}
			})
		}), Ours: NsPerOp(func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					grand.Add(1)
				}
			})
		})},
		{Name: "Add to a series and its total", Unit: "ns", Baseline: add, Ours: NsPerOp(func(b *testing.B) {
			for b.Loop() {
				series.Add(1)
			}
		})},
		{Name: "Add, allocations", Goal: AtMost(0), Ours: func(*testing.T) float64 {
			return testing.AllocsPerRun(100_000, func() { grand.Add(1) })
		}},
		{Name: "Count", Unit: "ns", Goal: AtMost(5), Ours: NsPerOp(func(b *testing.B) {
			for b.Loop() {
				grand.Count()
			}
		})},
		{Name: "Total", Unit: "ns", Goal: AtMost(40), Ours: NsPerOp(func(b *testing.B) {
			for b.Loop() {
				grand.Total()
			}
		})},
	}
}

// use returns a counter that is awake.
func use(t *testing.T, g *counter.Group, attrs ...attribute.KeyValue) *counter.Counter {
	t.Helper()
	c, err := g.Counter("requests", attrs...)
	if err != nil {
		t.Fatal(err)
	}
	c.Add(1)
	redistest.Eventually(t, 30*time.Second, func() error {
		if total := c.Total(); !total.Known {
			return fmt.Errorf("not known yet: %+v", total)
		}
		return nil
	})
	return c
}

// flushRows: a flush of many series, beside a bare pipeline of as many INCRBY.
func flushRows(t *testing.T) []Row {
	rdb := redistest.Client(t)
	var rows []Row
	for _, series := range []int{1, 100, 10_000} {
		ours := flushBenchmark(t, rdb, series)
		baseline := NsPerOp(func(b *testing.B) {
			prefix := redistest.Prefix(b)
			for b.Loop() {
				pipe := rdb.Pipeline()
				for i := range series {
					pipe.IncrBy(context.Background(), fmt.Sprint(prefix, i), 1)
				}
				if _, err := pipe.Exec(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
		rows = append(rows, Row{Name: fmt.Sprintf("flush of %d series, against INCRBY", series), Unit: "ns", Ours: NsPerOp(ours), Baseline: baseline})
		if series == 10_000 {
			rows = append(rows, Row{Name: "flush, allocations per series", Ours: AllocsPer(series, ours), Goal: AtMost(2)})
		}
	}
	return rows
}

// flushBenchmark flushes all series of one counter, engine and store together. An
// interval is a day long, so that each flush but the first is of a new counter's
// next sequence number: what is measured is a participant of its own each time.
func flushBenchmark(t *testing.T, rdb redis.UniversalClient, series int) func(b *testing.B) {
	t.Helper()
	store, err := counter.NewStore(rdb)
	if err != nil {
		t.Fatal(err)
	}
	const interval = 24 * time.Hour
	prefix := redistest.Prefix(t)
	id := 0
	return func(b *testing.B) {
		b.ReportAllocs()
		shares := shares(prefix, series, time.Now().UnixMilli()/interval.Milliseconds())
		for b.Loop() {
			id++
			results := store.Flush(context.Background(), &counter.Flush{Participant: fmt.Sprintf("%08d", id), Interval: interval, Shares: shares})
			for _, r := range results {
				if r.Outcome != counter.Applied {
					b.Fatal(r.Outcome, r.Err)
				}
			}
		}
	}
}

func shares(prefix string, series int, n int64) (shares []counter.Share) {
	for k := 0; series > 0; k++ {
		s := counter.Share{Prefix: prefix, Name: "flushed", Batch: k, Interval: n, Seq: 1}
		for range min(series, 499) {
			s.Series = append(s.Series, fmt.Sprintf(`route="/%d",status=200`, series))
			s.Amounts = append(s.Amounts, 1)
			s.Amount++
			series--
		}
		shares = append(shares, s)
	}
	return shares
}

// coverageRows: the share of intervals that a participant leaves out, beside the
// JavaScript library's rule, "one interval after the reply", on the same servers.
func coverageRows(*testing.T) []Row {
	const interval, intervals = 100 * time.Millisecond, 600
	var rows []Row
	for _, delay := range []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond} {
		rows = append(rows, Row{
			Name: fmt.Sprintf("intervals left out, round trip +%v", delay), Unit: "%", Slow: true, Goal: AtMost(0),
			Ours: func(t *testing.T) float64 {
				return leftOut(t, interval, intervals, delay, func(rdb redis.UniversalClient, prefix string) func() {
					c, err := counter.New(rdb, "requests", interval, counter.WithPrefix(prefix))
					if err != nil {
						t.Fatal(err)
					}
					c.Add(1)
					stop := keepBusy(func() { c.Add(1) })
					return func() { stop(); c.Close() }
				})
			},
			Baseline: func(t *testing.T) float64 {
				return leftOut(t, interval, intervals, delay, func(rdb redis.UniversalClient, prefix string) func() {
					p := jsclient.Start(t, rdb, prefix, "requests", interval)
					stop := keepBusy(func() { p.Add(1) })
					return func() { stop(); p.Stop() }
				})
			},
		})
	}
	return rows
}

// leftOut runs one participant through a network with a delay, and returns the
// percentage of intervals without its key.
func leftOut(t *testing.T, interval time.Duration, intervals int, delay time.Duration, start func(redis.UniversalClient, string) (stop func())) float64 {
	t.Helper()
	server := redistest.Start(t)
	defer server.Stop()
	proxy := redistest.NewProxy(t, server.Addr)
	defer proxy.Close()
	if delay > 0 {
		proxy.Inject(redistest.Fault{Kind: redistest.Delay, Delay: delay})
	}
	direct, prefix := server.Client(), redistest.Prefix(t)
	stop := start(proxy.Client(), prefix)
	time.Sleep(5 * interval) // past the probe
	first := running(t, direct, interval)
	seen := 0
	for n := first; n < first+int64(intervals); {
		now := running(t, direct, interval)
		for ; n < now && n < first+int64(intervals); n++ {
			count, err := direct.Exists(t.Context(), fmt.Sprintf("%s{requests}:%d", prefix, n)).Result()
			if err != nil {
				t.Fatal(err)
			}
			seen += int(count)
		}
		time.Sleep(interval / 4)
	}
	stop()
	return 100 * float64(intervals-seen) / float64(intervals)
}

func running(t *testing.T, rdb *redis.Client, interval time.Duration) int64 {
	t.Helper()
	now, err := rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.UnixMilli() / interval.Milliseconds()
}

// keepBusy calls fn every few milliseconds until stopped.
func keepBusy(fn func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fn()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
