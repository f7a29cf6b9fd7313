package exact

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// adding matches what adds.
var adding = redistest.Command("INCRBY", "EVAL", "EVALSHA")

// network is a server or a cluster behind proxies.
type network struct {
	place
	proxies []*redistest.Proxy
}

// networks runs a test behind proxies, with go-redis' default options but for a
// short ReadTimeout.
func networks(t *testing.T, test func(t *testing.T, n network)) {
	const timeout = 300 * time.Millisecond
	t.Run("standalone", func(t *testing.T) {
		proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
		client := proxy.Client(func(o *redis.Options) { o.ReadTimeout = timeout })
		test(t, network{place{client, "", "standalone"}, []*redistest.Proxy{proxy}})
	})
	t.Run("cluster", func(t *testing.T) {
		c := redistest.StartProxiedCluster(t, 3)
		client := c.Client(func(o *redis.ClusterOptions) { o.ReadTimeout = timeout })
		n := network{place: place{client, "", "cluster"}}
		for _, node := range c.Nodes {
			n.proxies = append(n.proxies, node.Proxy)
		}
		test(t, n)
	})
}

func (n network) inject(f redistest.Fault) (heal func()) {
	for _, p := range n.proxies {
		p.Inject(f)
	}
	return func() {
		for _, p := range n.proxies {
			p.Heal()
		}
	}
}

func (n network) count() func() int {
	var counts []func() int
	for _, p := range n.proxies {
		counts = append(counts, p.Count(adding))
	}
	return func() int {
		sum := 0
		for _, c := range counts {
			sum += c()
		}
		return sum
	}
}

// "Our own sends are never repeated by the client library; a lost reply returns
// ErrUnknown." After it the count holds the add or not, never twice.
func TestB01AddWithoutAnswerIsSentOnceAndUnknown(t *testing.T) {
	t.Parallel()
	modes := map[string][]exact.Option{"plain": nil, "script": {exact.TTL(time.Hour), exact.Max(1000)}}
	faults := []struct {
		fault redistest.Fault
		want  int64
	}{
		{redistest.Fault{Kind: redistest.Close}, 5},
		{redistest.Fault{Kind: redistest.Close, Times: 1}, 5},
		{redistest.Fault{Kind: redistest.Stall}, 5},
		{redistest.Fault{Kind: redistest.CutReply, Bytes: 2}, 5},
		{redistest.Fault{Kind: redistest.Drop}, 0},
		{redistest.Fault{Kind: redistest.CutRequest, Bytes: 20}, 0},
	}
	networks(t, func(t *testing.T, n network) {
		for mode, opts := range modes {
			for i, f := range faults {
				key := fmt.Sprint(mode, i)
				c := n.open(t, "b01", opts...)
				mustAdd(t, c, "warm"+key, 1)
				f.fault.Match = adding
				heal, sent := n.inject(f.fault), n.count()
				_, err := c.Add(t.Context(), key, 5)
				heal()
				require.ErrorIs(t, err, exact.ErrUnknown, "%+v", f)
				require.Equal(t, 1, sent(), "%+v", f)
				eventually(t, c, key, f.want)
			}
		}
	})
}

// "A repeat returns the stored result and adds nothing."
func TestAddWithIDIsRepeatedUntilThereIsAnAnswer(t *testing.T) {
	t.Parallel()
	networks(t, func(t *testing.T, n network) {
		c := n.open(t, "repeat", exact.TTL(time.Hour), exact.Max(1_000_000))
		heal := n.inject(redistest.Fault{Kind: redistest.Close, Match: adding, Probability: 0.3, Seed: 1})
		defer heal()
		heal2 := n.inject(redistest.Fault{Kind: redistest.Drop, Match: adding, Probability: 0.3, Seed: 2})
		defer heal2()
		var wg sync.WaitGroup
		for caller := range 8 {
			wg.Go(func() {
				for i := range 25 {
					id := exact.ID(fmt.Sprint(caller, ":", i))
					for {
						_, err := c.Add(t.Context(), "k", 3, id)
						if err == nil {
							break
						}
						if !errors.Is(err, exact.ErrUnknown) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		heal()
		eventually(t, c, "k", 8*25*3)
	})
}

// B03: retries that an option struct switches back on.
func TestB03NoClientSendsTwice(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
	parse := func(query string) *redis.Options {
		o, err := redis.ParseURL("redis://" + proxy.Addr + query)
		require.NoError(t, err)
		return o
	}
	off := &redis.Options{Addr: proxy.Addr, MaxRetries: -1}
	first := redis.NewClient(off)
	defer first.Close()
	for name, options := range map[string]*redis.Options{
		"default":        {Addr: proxy.Addr},
		"off":            off,
		"of a client":    first.Options(),
		"url":            parse(""),
		"url, 0 retries": parse("?max_retries=0"),
		"url, off":       parse("?max_retries=-1"),
		"many":           {Addr: proxy.Addr, MaxRetries: 10},
		"RESP2":          {Addr: proxy.Addr, Protocol: 2},
	} {
		t.Run(name, func(t *testing.T) {
			client := redis.NewClient(options)
			defer client.Close()
			before := *client.Options()
			for mode, opts := range map[string][]exact.Option{"plain": nil, "script": {exact.TTL(time.Hour)}} {
				c := open(t, client, "b03"+mode, opts...)
				mustAdd(t, c, name, 1)
				sent := proxy.Count(adding)
				proxy.Inject(redistest.Fault{Kind: redistest.Close, Match: adding})
				_, err := c.Add(t.Context(), name, 1)
				proxy.Heal()
				require.ErrorIs(t, err, exact.ErrUnknown)
				require.Equal(t, 1, sent())
				eventually(t, c, name, 2)
			}
			require.Equal(t, before.MaxRetries, client.Options().MaxRetries, "the caller's options stay")
		})
	}
}

// B04, B47, B49: only an answer that proves that nothing was executed may be
// followed by another send, and none makes us panic.
func TestB04AnswersOfAnyKind(t *testing.T) {
	const many = 4
	for name, test := range map[string]struct {
		answer string
		want   error
		sends  int
	}{
		"NOSCRIPT":        {redistest.ErrorReply("NOSCRIPT No matching script. Please use EVAL."), exact.ErrNotExecuted, 2},
		"internal error":  {redistest.ErrorReply("ERR internal error"), exact.ErrUnknown, 1},
		"BUSY":            {redistest.ErrorReply("BUSY Redis is busy running a script."), exact.ErrNotExecuted, 1},
		"UNKILLABLE":      {redistest.ErrorReply("UNKILLABLE Sorry the script already executed write commands."), exact.ErrUnknown, 1},
		"LOADING":         {redistest.ErrorReply("LOADING Redis is loading the dataset in memory"), exact.ErrNotExecuted, many},
		"READONLY":        {redistest.ErrorReply("READONLY You can't write against a read only replica."), exact.ErrNotExecuted, many},
		"MASTERDOWN":      {redistest.ErrorReply("MASTERDOWN Link with MASTER is down"), exact.ErrNotExecuted, many},
		"CLUSTERDOWN":     {redistest.ErrorReply("CLUSTERDOWN The cluster is down"), exact.ErrNotExecuted, many},
		"TRYAGAIN":        {redistest.ErrorReply("TRYAGAIN Multiple keys request during rehashing of slot"), exact.ErrNotExecuted, many},
		"OOM":             {redistest.ErrorReply("OOM command not allowed when used memory > 'maxmemory'."), exact.ErrNotExecuted, 1},
		"NOPERM":          {redistest.ErrorReply("NOPERM this user has no permissions"), exact.ErrNotExecuted, 1},
		"hangup":          {redistest.Hangup, exact.ErrUnknown, 1},
		"silence":         {redistest.Silence, exact.ErrUnknown, 1},
		"truncated":       {"$20\r\nadded 0" + "\r\n", exact.ErrUnknown, 1},
		"garbage":         {"&%$ what\r\n", exact.ErrUnknown, 1},
		"nil":             {"$-1\r\n", exact.ErrUnknown, 1},
		"double":          {",3.5\r\n", exact.ErrUnknown, 1},
		"integer":         {":7\r\n", exact.ErrUnknown, 1},
		"empty array":     {"*0\r\n", exact.ErrUnknown, 1},
		"array":           {"*2\r\n$5\r\nadded\r\n:1\r\n", exact.ErrUnknown, 1},
		"nested error":    {"*1\r\n-ERR inside\r\n", exact.ErrUnknown, 1},
		"map":             {"%1\r\n$1\r\na\r\n:1\r\n", exact.ErrUnknown, 1},
		"other words":     {redistest.BulkReply("done 1 2"), exact.ErrUnknown, 1},
		"too few numbers": {redistest.BulkReply("added 1"), exact.ErrUnknown, 1},
		"too large":       {redistest.BulkReply("added 1 9223372036854775808"), exact.ErrUnknown, 1},
		"right":           {redistest.BulkReply("added 1 6"), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			stub := redistest.NewStub(t, func(args []string) string {
				if adding(args) {
					return test.answer
				}
				return redistest.Pass
			})
			client := stub.Client(func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
			c := open(t, client, "b04", exact.TTL(time.Hour))
			count, err := c.Add(t.Context(), "k", 5)
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.sends, stub.Seen("EVALSHA", "EVAL"))
			if test.want == nil {
				require.Equal(t, int64(6), count)
			}
		})
	}
}

// The same for the command that adds without a script.
func TestB49AnswersToIncrBy(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		want   error
	}{
		"nil":      {"$-1\r\n", exact.ErrUnknown},
		"text":     {redistest.BulkReply("6"), exact.ErrUnknown},
		"array":    {"*1\r\n:1\r\n", exact.ErrUnknown},
		"hangup":   {redistest.Hangup, exact.ErrUnknown},
		"internal": {redistest.ErrorReply("ERR internal error"), exact.ErrUnknown},
		"NOAUTH":   {redistest.ErrorReply("NOAUTH Authentication required."), exact.ErrNotExecuted},
		"right":    {":6\r\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			stub := redistest.NewStub(t, func(args []string) string {
				if adding(args) {
					return test.answer
				}
				return redistest.Pass
			})
			c := open(t, stub.Client(), "b49")
			_, err := c.Add(t.Context(), "k", 5)
			require.ErrorIs(t, err, test.want)
			require.Equal(t, 1, stub.Seen("INCRBY"))
		})
	}
}

// B25: contexts, as far as go-redis obeys them.
func TestB25Contexts(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
	client := proxy.Client(func(o *redis.Options) { o.ReadTimeout, o.ContextTimeoutEnabled = 30*time.Second, true })
	c := open(t, client, "b25", exact.TTL(time.Hour))
	mustAdd(t, c, "k", 1)
	sent := proxy.Count(adding)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Add(canceled, "k", 1)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, exact.ErrUnknown)
	require.Zero(t, sent(), "a context that has ended sends nothing")

	proxy.Inject(redistest.Fault{Kind: redistest.Stall, Match: adding})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = c.Add(ctx, "k", 1)
	require.ErrorIs(t, err, exact.ErrUnknown)
	require.Less(t, time.Since(start), 10*time.Second)
	require.Equal(t, 1, sent())
	proxy.Heal()
	eventually(t, c, "k", 2)
}

func TestDeleteWithoutAnswerIsUnknown(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
	c := open(t, proxy.Client(), "delete")
	mustAdd(t, c, "k", 1)
	deletes := proxy.Count(redistest.Command("DEL"))
	proxy.Inject(redistest.Fault{Kind: redistest.Close, Match: redistest.Command("DEL")})
	_, err := c.Delete(t.Context(), "k")
	require.ErrorIs(t, err, exact.ErrUnknown)
	require.Equal(t, 1, deletes(), "a repeat would answer that there was none")
	proxy.Heal()
	eventually(t, c, "k", 0)
}

// A lost answer to Get is no harm: the client asks again.
func TestGetIsRepeated(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
	c := open(t, proxy.Client(), "get")
	mustAdd(t, c, "k", 3)
	proxy.Inject(redistest.Fault{Kind: redistest.Close, Match: redistest.Script, Times: 2})
	count, err := c.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, int64(3), count)
}

// "It is repeated until it lands and lands once, through restarts of Redis and
// lost replies." Every kind of fault at once, and SCRIPT FLUSH.
func TestFlushEveryThroughFaults(t *testing.T) {
	t.Parallel()
	networks(t, func(t *testing.T, n network) {
		const writers, keys = 3, 20
		for i, kind := range []redistest.Kind{redistest.Close, redistest.Drop, redistest.Stall, redistest.Late, redistest.Repeat} {
			n.inject(redistest.Fault{Kind: kind, Match: adding, Probability: 0.02, Seed: uint64(i + 1), Delay: 500 * time.Millisecond})
		}
		var all []*exact.Counters
		for range writers {
			all = append(all, n.open(t, "faults", exact.FlushEvery(20*time.Millisecond)))
		}
		want := map[string]int64{}
		for start := time.Now(); time.Since(start) < 3*time.Second; {
			for i := range keys {
				key := strconv.Itoa(i)
				mustAdd(t, all[i%writers], key, int64(i+1))
				want[key] += int64(i + 1)
			}
			time.Sleep(5 * time.Millisecond)
		}
		redistest.Eventually(t, 30*time.Second, func() error { return n.rdb.ScriptFlush(t.Context()).Err() })
		for key, n := range want {
			mustAdd(t, all[0], key, n)
			want[key] += n
		}
		for _, p := range n.proxies {
			p.Heal()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for _, c := range all {
			require.NoError(t, c.Close(ctx))
		}
		// What is late or repeated arrives within its delay.
		time.Sleep(600 * time.Millisecond)
		for key, count := range want {
			// Connections that stall still do.
			redistest.Eventually(t, 30*time.Second, func() error {
				got, err := n.rdb.Get(t.Context(), n.key("faults", key)).Int64()
				return errors.Join(err, equal(count, got))
			})
		}
	})
}

// A batch that is still on its way as its key is deleted is not added afterwards.
func TestLateBatchDoesNotBringADeletedKeyBack(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
	client := proxy.Client(func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
	c := open(t, client, "late", exact.FlushEvery(20*time.Millisecond))
	mustAdd(t, c, "warm", 1)
	eventually(t, open(t, client, "late"), "warm", 1)
	late := proxy.Inject(redistest.Fault{Kind: redistest.Late, Match: adding, Times: 1, Delay: 2 * time.Second})
	lost := proxy.Inject(redistest.Fault{Kind: redistest.Drop, Match: adding}) // its repeats, until then
	mustAdd(t, c, "k", 5)
	redistest.Eventually(t, 10*time.Second, func() error {
		return equal(true, late.Hits() == 1 && lost.Hits() > 0)
	})
	lost.Heal()
	existed, err := c.Delete(t.Context(), "k")
	require.NoError(t, err)
	require.True(t, existed)
	time.Sleep(3 * time.Second)
	count, err := c.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, count)
}
