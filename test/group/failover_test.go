package group

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// within checks a total against what was added: never more, and what is missing was
// reported, but for so much.
func within(t *testing.T, p *participants, sum, unreported int64) {
	t.Helper()
	surely := p.losses.sum() - p.losses.because("may have been counted")
	assert.LessOrEqual(t, sum, p.added-surely, "never counted twice; errors: %v", p.losses.why)
	assert.GreaterOrEqual(t, sum, p.added-p.losses.sum()-unreported, "each loss is reported; errors: %v", p.losses.why)
}

// Others left keys for ever when a process died between two commands.
func TestB16_KilledProcessesLeaveNoKeyForEver(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, prefix := server.Client(), redistest.Prefix(t)
	seen := 0
	for i := range 25 {
		c := startChild(t, server.Addr, prefix, 20*time.Millisecond)
		time.Sleep(time.Duration(i*7%60) * time.Millisecond)
		c.kill()
		keys, err := rdb.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		seen += len(keys)
		for _, key := range keys {
			life, err := rdb.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
			assert.NotEqualValues(t, -1, life, "%q has no TTL", key)
		}
	}
	assert.Positive(t, seen)
}

// A process that stands still for some intervals has its flushes come late, its
// answers wait, and its timers fire all at once.
func TestStoppedProcessKeepsThePromise(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	r := follow(t, server.Client(), prefix, "n", interval)
	// A flush is on its way for most of the time, so that it is stopped in the middle.
	proxy := redistest.NewProxy(t, server.Addr)
	proxy.Inject(redistest.Fault{Kind: redistest.Delay, Delay: interval * 2 / 3})
	c := startChild(t, proxy.Addr, prefix, interval)
	for i := range 5 {
		time.Sleep(interval + time.Duration(i)*interval/8)
		c.signal(t, syscall.SIGSTOP)
		time.Sleep(3 * interval)
		c.signal(t, syscall.SIGCONT)
	}
	added, lost, unsure := c.leave(t)
	_, sum := r.finish(t)
	assert.Positive(t, sum)
	assert.LessOrEqual(t, sum, added-(lost-unsure), "never counted twice")
	assert.GreaterOrEqual(t, sum, added-lost, "each loss is reported")
	t.Log("added", added, "lost", lost, "which may have been counted", unsure)
}

// disturb counts on a server while something is done to it each half interval.
func disturb(t *testing.T, do func(admin *redis.Client) error) (p *participants, sum int64) {
	t.Helper()
	server := redistest.Start(t)
	admin := server.Client()
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	r := follow(t, server.Client(), prefix, "n", interval)
	p = join(t, 5, func() redis.UniversalClient { return server.Client() }, prefix, "n", interval)
	p.countFor(t, 3, interval)
	for range 12 {
		require.NoError(t, do(admin))
		until := time.Now().Add(interval / 2)
		p.count(t, func() bool { return time.Now().After(until) })
	}
	p.countFor(t, 3, interval)
	p.flush(t)
	_, sum = r.finish(t)
	return p, sum
}

func TestForgottenScriptsCostNothing(t *testing.T) {
	t.Parallel()
	p, sum := disturb(t, func(admin *redis.Client) error { return admin.ScriptFlush(t.Context()).Err() })
	assert.Equal(t, p.added, sum)
	assert.Zero(t, p.losses.sum())
}

func TestKilledConnections(t *testing.T) {
	t.Parallel()
	p, sum := disturb(t, func(admin *redis.Client) error {
		return admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err()
	})
	within(t, p, sum, 0)
}

// What was counted before FLUSHALL is gone; nothing is added again to repair it.
func TestFlushedServer(t *testing.T) {
	t.Parallel()
	p, sum := disturb(t, func(admin *redis.Client) error { return admin.FlushAll(t.Context()).Err() })
	assert.LessOrEqual(t, sum, p.added)
	assert.Zero(t, p.losses.sum(), "errors: %v", p.losses.why)
	for _, c := range p.counters {
		assert.LessOrEqual(t, c.Count(), p.added)
		assert.GreaterOrEqual(t, c.Total().Buffer, int64(0))
	}
}

// Keys that are evicted before their time are outside of the promise: the total may
// be too low, never too high.
func TestB57_EvictedKeys(t *testing.T) {
	t.Parallel()
	p, sum := disturb(t, func(admin *redis.Client) error {
		_ = admin.ConfigSet(t.Context(), "maxmemory-policy", "volatile-random").Err()
		used, err := admin.Info(t.Context(), "memory").Result()
		if err != nil {
			return err
		}
		var n int64
		_, after, _ := strings.Cut(used, "used_memory:")
		if _, err := fmt.Sscan(after, &n); err != nil {
			return err
		}
		if err := admin.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(n-1)).Err(); err != nil {
			return err
		}
		_ = admin.Set(t.Context(), "filler", strings.Repeat("x", 10_000), time.Second).Err() // evicts, or is refused
		return admin.ConfigSet(t.Context(), "maxmemory", "0").Err()
	})
	assert.LessOrEqual(t, sum, p.added)
	assert.Positive(t, sum)
}

// A failover can roll a key back. Nobody adds again what is missing.
func TestB48_ATotalThatIsRolledBack(t *testing.T) {
	t.Parallel()
	rdb, prefix := redistest.Client(t), redistest.Prefix(t)
	const interval = 2 * time.Second
	p := join(t, 2, func() redis.UniversalClient { return rdb }, prefix, "n", interval)
	ctx := t.Context()
	redistest.Eventually(t, time.Minute, func() error {
		p.counters[0].Add(10)
		require.NoError(t, p.groups[0].Flush(ctx))
		keys, err := rdb.Keys(ctx, prefix+"{n}:*[0-9]").Result()
		require.NoError(t, err)
		var key string
		for _, k := range keys {
			key = max(key, k)
		}
		if v, err := rdb.Get(ctx, key).Int64(); err != nil || v != 10 {
			return fmt.Errorf("%v in the interval, %w", v, err) // two came to one, or it has just ended
		}
		require.NoError(t, rdb.Set(ctx, key, 7, redis.KeepTTL).Err())
		p.counters[1].Add(1)
		require.NoError(t, p.groups[1].Flush(ctx))
		if v, err := rdb.Get(ctx, key).Int64(); err != nil || v != 8 {
			return fmt.Errorf("%v in the interval, %w", v, err)
		}
		var n int64
		_, err = fmt.Sscan(key[strings.LastIndexByte(key, ':')+1:], &n)
		require.NoError(t, err)
		for deadline := time.Now().Add(4 * interval); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			total := p.counters[0].Total()
			if total.Interval == n {
				assert.EqualValues(t, 8, total.Closed)
				assert.EqualValues(t, 10, total.Own, "what was acknowledged")
				return nil
			}
			if total.Interval > n {
				break
			}
		}
		return errors.New("the interval was not seen")
	})
	assert.Zero(t, p.losses.sum())
}

// One node of a cluster that stands still for a while takes nothing from the other.
func TestB46_OneNodeDownInAClusterFlush(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	here, there := cluster.NameOn(0, "here"), cluster.NameOn(1, "there")
	a := join(t, 1, clusterClient(cluster), prefix, here, interval)
	b, err := a.groups[0].Counter(there)
	require.NoError(t, err)
	ra := follow(t, cluster.Client(), prefix, here, interval)
	rb := follow(t, cluster.Client(), prefix, there, interval)
	var added int64
	count := func(intervals int) {
		until := time.Now().Add(time.Duration(intervals) * interval)
		a.count(t, func() bool { b.Add(1); added++; return time.Now().After(until) })
	}
	count(4)
	require.NoError(t, cluster.Nodes[1].Client().Do(t.Context(), "CLIENT", "PAUSE", (5*interval).Milliseconds(), "ALL").Err())
	a.counters[0].Add(1)
	a.added++
	b.Add(1)
	added++
	ctx, cancel := context.WithTimeout(t.Context(), 2*interval)
	defer cancel()
	require.ErrorIs(t, a.groups[0].Flush(ctx), context.DeadlineExceeded)
	count(10)
	a.flush(t)
	_, sum := ra.finish(t)
	assert.Equal(t, a.added, sum, "on the node that was up")
	assert.Zero(t, a.losses.by(here))
	rb.err = nil
	_, sum = rb.finish(t)
	assert.LessOrEqual(t, sum, added)
	assert.Positive(t, sum)
}

// go-redis does not obey a context while it reads. Flush and Shutdown do.
func TestB25_FlushAndShutdownObeyTheirContexts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	rdb := proxy.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute })
	c, err := counter.New(rdb, "n", 5*time.Second)
	require.NoError(t, err)
	c.Add(1)
	require.NoError(t, c.Flush(t.Context()))
	proxy.Inject(redistest.Fault{Kind: redistest.Stall})
	sent := proxy.Count(redistest.ScriptWithKeys)
	began := time.Now()
	c.Add(5)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Flush(ctx), context.DeadlineExceeded)
	gone := errors.New("gone")
	cancelled, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { stop(gone) })
	require.ErrorIs(t, c.Flush(cancelled), gone)
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = c.Shutdown(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "amount of 5")
	assert.Less(t, time.Since(began), 30*time.Second, "long before the client's timeout")
	assert.LessOrEqual(t, sent(), 1, "nothing is sent again")
}

// Kill -9 of a server that keeps what it has acknowledged.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	const interval = time.Second // its keys outlive the restart
	prefix := redistest.Prefix(t)
	r := follow(t, server.Client(), prefix, "n", interval)
	p := join(t, 3, func() redis.UniversalClient { return server.Client() }, prefix, "n", interval)
	p.countFor(t, 2, interval)
	for range 2 {
		server.Kill()
		p.countFor(t, 1, interval/3)
		server.Restart()
		p.countFor(t, 2, interval)
	}
	p.flush(t)
	r.err = nil // it could not ask for the time
	_, sum := r.finish(t)
	within(t, p, sum, 0)
}

// "Outside of the promise" are writes that were acknowledged and not replicated:
// they are lost, but nothing else is, and nothing is counted twice.
func TestB48_KilledPrimaryIsFailedOver(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t, 1)
	const interval = time.Second
	prefix := redistest.Prefix(t)
	p := join(t, 2, func() redis.UniversalClient { return sentinel.Client() }, prefix, "n", interval)
	r := follow(t, sentinel.Client(), prefix, "n", interval)
	p.countFor(t, 3, interval)
	p.flush(t)
	require.NoError(t, sentinel.Primary.Client().Wait(t.Context(), 1, time.Minute).Err())
	replicated := p.added
	sentinel.Replica.Pause()
	p.countFor(t, 2, interval) // acknowledged, and never replicated
	sentinel.Primary.Kill()
	lost := p.added - replicated
	sentinel.Replica.Resume()
	sentinel.Failover()
	p.count(t, func() bool { return known(p.counters...) == nil })
	p.countFor(t, 2, interval)
	p.flush(t)
	r.err = nil
	_, sum := r.finish(t)
	within(t, p, sum, lost)
	assert.Greater(t, sum, replicated-lost, "counting went on")
}

// A slot that stays between two nodes answers TRYAGAIN. It is proven that nothing was
// counted; and nobody asks again and again.
func TestB07_ASlotThatIsNeitherHereNorThere(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartProxiedCluster(t, 2)
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	name := cluster.NameOn(0, "n")
	p := join(t, 1, clusterClient(cluster), prefix, name, interval)
	r := follow(t, cluster.Client(), prefix, name, interval)
	p.countFor(t, 4, interval)
	move := cluster.BeginMove("{"+name+"}", 1)
	var sent []func() int
	for _, n := range cluster.Nodes {
		sent = append(sent, n.Proxy.Count(redistest.Script))
	}
	const intervals = 6
	p.countFor(t, intervals, interval)
	// A flush, a probe, a parting; each is redirected or tried a few times.
	assert.LessOrEqual(t, sent[0]()+sent[1](), intervals*3*8)
	move.Finish()
	p.countFor(t, 4, interval)
	p.flush(t)
	_, sum := r.finish(t)
	within(t, p, sum, 0)
	assert.NoError(t, known(p.counters...))
}
