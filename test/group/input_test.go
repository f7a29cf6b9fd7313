package group

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestMistakesAreErrorsBeforeAnythingIsSent(t *testing.T) {
	stub := redistest.NewStub(t, func([]string) string { return redistest.Pass })
	rdb := stub.Client()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": stub.Addr}})
	defer ring.Close()
	var none *redis.Client
	for what, create := range map[string]func() (*counter.Counter, error){
		"client is nil":         func() (*counter.Counter, error) { return counter.New(nil, "n", time.Second) },
		"the Redis client":      func() (*counter.Counter, error) { return counter.New(none, "n", time.Second) },
		"Ring":                  func() (*counter.Counter, error) { return counter.New(ring, "n", time.Second) },
		"interval is 0s":        func() (*counter.Counter, error) { return counter.New(rdb, "n", 0) },
		"interval is -1s":       func() (*counter.Counter, error) { return counter.New(rdb, "n", -time.Second) },
		"interval is 9ms":       func() (*counter.Counter, error) { return counter.New(rdb, "n", 9*time.Millisecond) },
		"interval is 1.5ms":     func() (*counter.Counter, error) { return counter.New(rdb, "n", 1500*time.Microsecond) },
		"interval is 10.5ms":    func() (*counter.Counter, error) { return counter.New(rdb, "n", 10500*time.Microsecond) },
		"interval is 25h0m0s":   func() (*counter.Counter, error) { return counter.New(rdb, "n", 25*time.Hour) },
		"name is empty":         func() (*counter.Counter, error) { return counter.New(rdb, "", time.Second) },
		`"}" begins`:            func() (*counter.Counter, error) { return counter.New(rdb, "}", time.Second) },
		`"}{" begins`:           func() (*counter.Counter, error) { return counter.New(rdb, "}{", time.Second) },
		"has 300 bytes":         func() (*counter.Counter, error) { return counter.New(rdb, strings.Repeat("n", 300), time.Second) },
		"U+000A":                func() (*counter.Counter, error) { return counter.New(rdb, "a\nb", time.Second) },
		"U+0000":                func() (*counter.Counter, error) { return counter.New(rdb, "a\x00b", time.Second) },
		"not valid UTF-8":       func() (*counter.Counter, error) { return counter.New(rdb, "a\xffb", time.Second) },
		`ends with ":f"`:        func() (*counter.Counter, error) { return counter.New(rdb, "a:f", time.Second) },
		`prefix "{}" has a '{'`: func() (*counter.Counter, error) { return counter.New(rdb, "n", time.Second, counter.WithPrefix("{}")) },
		`prefix "p{" has a '{'`: func() (*counter.Counter, error) { return counter.New(rdb, "n", time.Second, counter.WithPrefix("p{")) },
		"prefix \"a\\x00b\"": func() (*counter.Counter, error) {
			return counter.New(rdb, "n", time.Second, counter.WithPrefix("a\x00b"))
		},
	} {
		c, err := create()
		require.Error(t, err, what)
		assert.Nil(t, c, what)
		assert.ErrorContains(t, err, what)
	}
	g, err := counter.NewGroup(rdb, time.Second)
	require.NoError(t, err)
	defer g.Close()
	_, err = g.WithPrefix("{}")
	require.Error(t, err)
	_, err = g.FloatCounter("}")
	require.Error(t, err)
	assert.Zero(t, stub.Accepted(), "connections")
}

// Names that look dangerous and are accepted have all their keys in one slot, and
// none in common. A counter's keys live for seconds here: it is read right away.
func TestB33_NamesWithBracesKeepTheirKeysInOneSlot(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	rdb := cluster.Client()
	g, err := counter.NewGroup(rdb, 5*time.Second)
	require.NoError(t, err)
	defer g.Close()
	test := redistest.Prefix(t)
	type named struct {
		c      *counter.Counter
		key    string // what its keys begin with
		amount int64
	}
	var all []named
	for _, prefix := range []string{"", "}", "a}", "*"} {
		view, err := g.WithPrefix(test + prefix)
		require.NoError(t, err)
		for _, name := range []string{
			"a", "a}b", "{", "{}", "{a", "{a}", "a{b}c", "{{", "a}", "a}:1", "a:1", "a:by", ":", " ", "a b", "*", "[a]",
			"%00", "\u00e9", "#", "!", "@", strings.Repeat("n", 255),
		} {
			c, err := view.Counter(name)
			require.NoError(t, err, name)
			part, err := view.Counter(name, attribute.String("}", "{"))
			require.NoError(t, err)
			n := named{c: c, key: test + prefix + "{" + name + "}:", amount: int64(1 + len(all))}
			part.Add(n.amount)
			all = append(all, n)
		}
		f, err := view.FloatCounter("a")
		require.NoError(t, err)
		f.Add(0.25)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, g.Flush(ctx))
	for _, n := range all {
		n.c.Add(1000)
	}
	require.NoError(t, g.Flush(ctx), "ahead: to the next interval")

	var keys []string
	for _, node := range cluster.Nodes {
		here, err := node.Client().Keys(ctx, "*").Result()
		require.NoError(t, err)
		keys = append(keys, here...)
	}
	owned := map[string]string{}
	for _, n := range all {
		slot, sum, count := cluster.Slot(n.key+"1"), int64(0), 0
		for _, key := range keys {
			rest, ours := strings.CutPrefix(key, n.key)
			number, hash := strings.CutSuffix(rest, ":by")
			if _, err := strconv.ParseInt(number, 10, 64); !ours || err != nil || len(number) < 5 {
				continue // of a counter whose name begins like this one's key
			}
			assert.Empty(t, owned[key], "%q is also a key of %q", key, n.key)
			owned[key] = n.key
			assert.Equal(t, slot, cluster.Slot(key), "slot of %q", key)
			if !hash {
				v, err := rdb.Get(ctx, key).Int64()
				require.NoError(t, err)
				sum += v
				count++
			}
		}
		assert.Equal(t, n.amount+1000, sum, "in the keys %q", n.key)
		assert.Equal(t, 2, count, "intervals in the keys %q", n.key)
	}
	assert.Len(t, keys, 4*len(all)+8, "and four float counters")
}

// The key of an interval outlives the one in which it is read.
func TestB52_KeysLiveAsLongAsTheyAreRead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Client(t)
	for _, interval := range []time.Duration{10 * time.Millisecond, time.Minute, 24 * time.Hour} {
		prefix := redistest.Prefix(t)
		c, err := counter.New(rdb, "n", interval, counter.WithPrefix(prefix))
		require.NoError(t, err)
		c.Add(1)
		require.NoError(t, c.Flush(t.Context()))
		keys, err := rdb.Keys(t.Context(), prefix+"*").Result()
		require.NoError(t, err)
		if interval > time.Second { // else a slow machine may find none
			assert.Len(t, keys, 2)
		}
		for _, key := range keys {
			life, err := rdb.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
			if life == -2 { // it has just ended
				continue
			}
			assert.GreaterOrEqual(t, life, 2*interval, "of %q", key)
			assert.LessOrEqual(t, life, max(5*interval, time.Second), "of %q", key)
		}
		c.Close()
	}
}

// trips counts a client's round trips that carry scripts with keys.
type trips struct{ n, calls atomic.Int64 }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.count(cmd)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.count(cmds...)
		return next(ctx, cmds)
	}
}

func (h *trips) count(cmds ...redis.Cmder) {
	scripts := 0
	for _, cmd := range cmds {
		if strings.HasPrefix(strings.ToLower(cmd.Name()), "eval") && len(cmd.Args()) > 5 { // no probe
			scripts++
		}
	}
	if scripts > 0 {
		h.n.Add(1)
		h.calls.Add(int64(scripts))
	}
}

// "A counter never incremented opens no connection"; "a thousand Adds before the
// first flush are one round trip"; "Close sends nothing"; "Shutdown right after a tick
// lands its buffer in N+1".
func TestWhatIsSentAndWhatIsNot(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	const interval = 5 * time.Second
	start := func(name string) (*counter.Counter, *trips) {
		rdb, hook := proxy.Client(), &trips{}
		rdb.AddHook(hook)
		c, err := counter.New(rdb, name, interval)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c, hook
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	idle, _ := start("idle")
	stop := idle.Watch(1, 1, func(counter.Total, bool) {})
	defer stop()
	idle.Count()
	idle.Total()
	require.NoError(t, idle.Flush(ctx))
	require.NoError(t, idle.Shutdown(ctx))
	assert.Zero(t, proxy.Accepted(), "connections")

	c, hook := start("busy")
	for range 1000 {
		c.Add(1)
	}
	require.NoError(t, c.Flush(ctx))
	assert.EqualValues(t, 1, hook.n.Load(), "round trips of a thousand Adds")

	// What was counted after that goes ahead, since the running interval is spent.
	for range 3 {
		c.Add(1)
	}
	require.NoError(t, c.Shutdown(ctx))
	assert.LessOrEqual(t, hook.n.Load(), int64(3), "Shutdown sends once, or again where an interval has ended just then")
	sums := map[string]int64{}
	keys, err := server.Client().Keys(ctx, "{busy}:*[0-9]").Result()
	require.NoError(t, err)
	for _, key := range keys {
		v, err := server.Client().Get(ctx, key).Int64()
		require.NoError(t, err)
		sums[key] = v
	}
	require.Len(t, sums, 2, "an interval each: %v", sums)
	for _, v := range sums {
		assert.Contains(t, []int64{1000, 3}, v)
	}

	closed, hook := start("closed")
	closed.Add(1)
	require.NoError(t, closed.Flush(ctx))
	sent, scripts := hook.n.Load(), proxy.Seen("evalsha", "eval")
	closed.Add(5)
	closed.Close()
	closed.Add(5)
	require.ErrorIs(t, closed.Flush(ctx), counter.ErrClosed)
	require.NoError(t, closed.Shutdown(ctx))
	assert.Equal(t, sent, hook.n.Load(), "Close sends nothing")
	assert.Equal(t, scripts, proxy.Seen("evalsha", "eval"))
	assert.EqualValues(t, 10, closed.Count(), "it counts on by itself")
}

// "10,000 attribute sets of one counter flush in one pipeline, no script call above
// 50 ms on the server (SLOWLOG), every total read back."
func TestB50_TenThousandAttributeSetsFlushTogether(t *testing.T) {
	t.Parallel()
	const sets, limit, interval = 10_000, 50 * time.Millisecond, 3 * time.Second
	server := redistest.Start(t, "--slowlog-log-slower-than", fmt.Sprint(limit.Microseconds()))
	rdb, hook := server.Client(), &trips{}
	rdb.AddHook(hook)
	g, err := counter.NewGroup(rdb, interval)
	require.NoError(t, err)
	defer g.Close()
	grand, err := g.Counter("http.requests")
	require.NoError(t, err)
	parts := make([]*counter.Counter, sets)
	for i := range parts {
		parts[i], err = g.Counter("http.requests", attribute.String("http.route", "/items/"+strconv.Itoa(i)), attribute.Int("http.status", 200))
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	readBack := func() error {
		if total := grand.Total(); total.Closed != sets*(sets+1)/2 || total.Own != total.Closed {
			return fmt.Errorf("the grand total is %+v", total)
		}
		for i, c := range parts {
			if total := c.Total(); !total.Known || total.Closed != int64(i+1) || total.Own != total.Closed {
				return fmt.Errorf("the total of set %d is %+v", i, total)
			}
		}
		return nil
	}
	// A slow machine may stop the server in the middle of a call, or an interval may
	// end in the middle of a flush: one quiet flush is enough.
	redistest.Eventually(t, time.Minute, func() error {
		require.NoError(t, rdb.SlowLogReset(ctx).Err())
		for i, c := range parts {
			c.Add(int64(i + 1))
		}
		trips, calls := hook.n.Load(), hook.calls.Load()
		require.NoError(t, g.Flush(ctx))
		trips, calls = hook.n.Load()-trips, hook.calls.Load()-calls
		slow, err := rdb.SlowLogGet(ctx, -1).Result()
		require.NoError(t, err)
		for _, entry := range slow {
			if strings.HasPrefix(strings.ToLower(entry.Args[0]), "eval") {
				return fmt.Errorf("a script call took %v", entry.Duration)
			}
		}
		if trips != 1 || calls > 22 {
			return fmt.Errorf("%d calls in %d round trips", calls, trips)
		}
		for end := time.Now().Add(3 * interval); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if err = readBack(); err == nil {
				return nil
			}
		}
		return err
	})
}
