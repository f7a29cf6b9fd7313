package bench

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// exactRows: exact counters beside what a user would take instead. 64 callers share
// a client with go-redis' default options, and one key.
func exactRows(t *testing.T) []Row {
	const callers = 64
	rdb, prefix := redistest.Client(t), redistest.Prefix(t)
	ctx := context.Background()
	open := func(name string, opts ...exact.Option) *exact.Counters {
		c, err := exact.Open(rdb, name, append(opts, exact.Prefix(prefix))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	// shared lets the callers do the benchmark's operations between them.
	shared := func(do func() error) Measure {
		return OpsPerSecond(func(b *testing.B) {
			var wg sync.WaitGroup
			for caller := range callers {
				wg.Go(func() {
					for i := caller; i < b.N; i += callers {
						if err := do(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
	adder := func(c *exact.Counters) func() error {
		return func() error { _, err := c.Add(ctx, "k", 1); return err }
	}
	plain, limited := open("plain"), open("limited", exact.Max(1<<60), exact.TTL(time.Hour))
	incr := func() error { return rdb.Incr(ctx, prefix+"incr").Err() }

	limiter := redis_rate.NewLimiter(rdb)
	// So high that nothing is refused: both sides then do all their work.
	rate := redis_rate.Limit{Rate: 1 << 30, Burst: 1 << 30, Period: time.Hour}
	allow := func() error { _, err := limiter.Allow(ctx, prefix+"rate", rate); return err }

	flushed := open("flushed", exact.FlushEvery(time.Second))
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = "key" + strconv.Itoa(i)
	}
	var mu sync.Mutex
	bare := map[string]int64{}
	memory := func(add func(key string)) Measure {
		return NsPerOp(func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				add(keys[i%len(keys)])
			}
		})
	}
	return []Row{
		{
			Name: "Add, 64 callers, against INCR", Unit: "/s",
			Ours: shared(adder(plain)), Baseline: shared(incr), Goal: AtLeast(0.9),
		},
		{
			Name: "Add, Max and TTL, against redis_rate", Unit: "/s",
			Ours: shared(adder(limited)), Baseline: shared(allow), Goal: AtLeast(1.1),
		},
		{
			Name: "Add, FlushEvery, against map and mutex", Unit: "ns",
			Ours: memory(func(key string) {
				if _, err := flushed.Add(ctx, key, 1); err != nil {
					panic(err)
				}
			}),
			Baseline: memory(func(key string) {
				mu.Lock()
				bare[key]++
				mu.Unlock()
			}),
		},
	}
}
