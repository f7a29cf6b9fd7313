package redistest_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// behindProxy returns a proxy before a server of the test's own, a client that
// goes through it and never sends twice, and one that goes around it.
func behindProxy(t *testing.T) (p *redistest.Proxy, through, around *redis.Client) {
	t.Helper()
	s := redistest.Start(t)
	p = redistest.NewProxy(t, s.Addr)
	through = p.Client(func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, 200*time.Millisecond })
	return p, through, s.Client()
}

func TestProxyPassesEverythingOn(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr)
			c := p.Client(func(o *redis.Options) { o.Protocol = protocol })
			scripts := p.Count(redistest.ScriptWithKeys)
			pipe := c.Pipeline()
			for i := range 1000 {
				pipe.Set(t.Context(), strconv.Itoa(i), "v\r\n"+strconv.Itoa(i), 0)
				pipe.Get(t.Context(), strconv.Itoa(i))
			}
			cmds, err := pipe.Exec(t.Context())
			require.NoError(t, err)
			for i := range 1000 {
				require.Equal(t, "v\r\n"+strconv.Itoa(i), cmds[2*i+1].(*redis.StringCmd).Val())
			}
			require.NoError(t, c.Eval(t.Context(), "return redis.call('TIME')", nil).Err())
			require.NoError(t, c.Eval(t.Context(), "return redis.call('GET', KEYS[1])", []string{"1"}).Err())
			require.NoError(t, c.ConfigGet(t.Context(), "*").Err()) // a map in RESP3

			require.Equal(t, 1000, p.Seen("set"))
			require.Equal(t, 2000, p.Forwarded("GET", "SET"))
			require.Equal(t, 2, p.Seen("EVAL"))
			require.Equal(t, 1, scripts())
			require.Equal(t, 2, p.Accepted(), "go-redis has a pool of its own for pipelines")
		})
	}
}

func TestProxyCloseHidesTheReply(t *testing.T) {
	p, c, around := behindProxy(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	fault := p.Inject(redistest.Fault{Kind: redistest.Close, Match: redistest.Command("incr"), Times: 1})

	require.ErrorIs(t, c.Incr(t.Context(), "k").Err(), io.EOF)
	require.Equal(t, "1", around.Get(t.Context(), "k").Val(), "the server has run it")
	require.Equal(t, 1, fault.Hits())
	require.EqualValues(t, 2, c.Incr(t.Context(), "k").Val(), "only one is hit")
	require.Equal(t, 1, fault.Hits())
}

// A pipeline over a plain connection: go-redis reports one error for all of it.
func TestProxyCloseInAPipeline(t *testing.T) {
	p, _, around := behindProxy(t)
	p.Inject(redistest.Fault{Kind: redistest.Close, Match: redistest.Command("GET"), Times: 1})
	require.Equal(t, ":1\r\n", talk(t, p.Addr, "INCR k", "GET k", "INCR k"), "the replies before it arrive")
	redistest.Eventually(t, 10*time.Second, func() error {
		return equal("2", around.Get(t.Context(), "k").Val()) // what is behind it runs
	})
}

// With go-redis' defaults a lost reply makes it send again: the reason why the
// proxy exists.
func TestProxyShowsThatDefaultClientsSendTwice(t *testing.T) {
	p, _, around := behindProxy(t)
	p.Inject(redistest.Fault{Kind: redistest.Close, Match: redistest.Command("INCRBY"), Times: 1})
	require.NoError(t, p.Client().IncrBy(t.Context(), "k", 7).Err())
	require.Equal(t, "14", around.Get(t.Context(), "k").Val())
	require.Equal(t, 2, p.Seen("INCRBY"))
}

func TestProxyStallSwallowsReplies(t *testing.T) {
	p, c, around := behindProxy(t)
	p.Inject(redistest.Fault{Kind: redistest.Stall, Match: redistest.Command("INCR"), Times: 1})
	require.ErrorContains(t, c.Incr(t.Context(), "k").Err(), "timeout")
	require.Equal(t, "1", around.Get(t.Context(), "k").Val())
	require.NoError(t, c.Get(t.Context(), "k").Err(), "a new connection is not stalled")
}

func TestProxyLateComesAfterTheClientHasLeft(t *testing.T) {
	p, c, around := behindProxy(t)
	const late = 500 * time.Millisecond
	start := time.Now()
	p.Inject(redistest.Fault{Kind: redistest.Late, Match: redistest.Command("INCR"), Times: 1, Delay: late})
	require.ErrorContains(t, c.Incr(t.Context(), "k").Err(), "timeout")
	require.NoError(t, c.Close())
	require.ErrorIs(t, around.Get(t.Context(), "k").Err(), redis.Nil)
	redistest.Eventually(t, 10*time.Second, func() error { return equal("1", around.Get(t.Context(), "k").Val()) })
	require.GreaterOrEqual(t, time.Since(start), late)
}

func TestProxyRepeatSendsOnceMore(t *testing.T) {
	p, c, around := behindProxy(t)
	p.Inject(redistest.Fault{
		Kind: redistest.Repeat, Match: redistest.Command("INCR"), Times: 1, Delay: 10 * time.Millisecond,
	})
	require.EqualValues(t, 1, c.Incr(t.Context(), "k").Val())
	redistest.Eventually(t, 10*time.Second, func() error { return equal("2", around.Get(t.Context(), "k").Val()) })
	require.Equal(t, 1, p.Seen("INCR"))
	require.Equal(t, 2, p.Forwarded("INCR"))
}

func TestProxyDropKeepsTheCommandFromTheServer(t *testing.T) {
	p, c, around := behindProxy(t)
	fault := p.Inject(redistest.Fault{Kind: redistest.Drop, Match: redistest.Command("GET")})

	require.Equal(t, ":1\r\n", talk(t, p.Addr, "INCR k", "GET k", "INCR k"), "what is before it runs")
	require.Zero(t, p.Forwarded("GET"))

	fault.Heal()
	require.Equal(t, "1", c.Get(t.Context(), "k").Val())
	require.Equal(t, "1", around.Get(t.Context(), "k").Val())
}

// What is lost in a long pipeline must not stop up the proxy.
func TestProxyLongPipelinesEnd(t *testing.T) {
	fails := func(t *testing.T, p *redistest.Proxy, c *redis.Client) {
		t.Helper()
		pipe := c.Pipeline()
		for range 10_000 {
			pipe.Incr(t.Context(), "k")
		}
		_, err := pipe.Exec(t.Context())
		require.Error(t, err)
		require.NoError(t, c.Close())
		p.Close()
	}
	for _, kind := range []redistest.Kind{redistest.Drop, redistest.Close, redistest.Stall, redistest.CutReply} {
		p, c, _ := behindProxy(t)
		p.Inject(redistest.Fault{Kind: kind, Match: redistest.Command("INCR"), Times: 1})
		fails(t, p, c)
	}
	s := redistest.NewStub(t, func(args []string) string {
		if args[0] == "incr" {
			return redistest.Hangup
		}
		return redistest.Pass
	})
	p := redistest.NewProxy(t, s.Addr)
	fails(t, p, p.Client(func(o *redis.Options) { o.MaxRetries = -1 }))
}

func TestProxyDelayAddsARoundTripOnce(t *testing.T) {
	p, c, _ := behindProxy(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	const delay = 50 * time.Millisecond
	p.Inject(redistest.Fault{Kind: redistest.Delay, Delay: delay})
	start := time.Now()
	pipe := c.Pipeline()
	for range 100 {
		pipe.Incr(t.Context(), "k")
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), delay)
	require.Less(t, time.Since(start), 50*delay, "the delays of a pipeline do not add up")
	require.Equal(t, 100, p.Forwarded("INCR"))

	// Other faults go with it.
	p.Inject(redistest.Fault{Kind: redistest.Close, Times: 1})
	start = time.Now()
	require.ErrorIs(t, c.Ping(t.Context()).Err(), io.EOF)
	require.GreaterOrEqual(t, time.Since(start), delay)
}

func TestProxyCuts(t *testing.T) {
	p, c, around := behindProxy(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	for i, test := range []struct {
		kind  redistest.Kind
		bytes int
		want  error
		value string
	}{
		{redistest.CutRequest, 0, io.EOF, ""},
		{redistest.CutRequest, 10, io.EOF, ""},
		{redistest.CutReply, 0, io.EOF, "1"},
		{redistest.CutReply, 2, io.EOF, "1"},
	} {
		key := strconv.Itoa(i)
		p.Inject(redistest.Fault{
			Kind: test.kind, Bytes: test.bytes, Match: redistest.Command("INCR"), Times: 1,
		})
		require.ErrorIs(t, c.Incr(t.Context(), key).Err(), test.want, "%v %d", test.kind, test.bytes)
		require.Equal(t, test.value, around.Get(t.Context(), key).Val(), "%v %d", test.kind, test.bytes)
	}
}

func TestProxyProbabilityIsRepeatable(t *testing.T) {
	_, _, around := behindProxy(t)
	run := func(seed uint64) (lost string) {
		p := redistest.NewProxy(t, around.Options().Addr)
		c := p.Client(func(o *redis.Options) { o.MaxRetries = -1 })
		p.Inject(redistest.Fault{
			Kind: redistest.Drop, Match: redistest.Command("GET"), Probability: 0.3, Seed: seed,
		})
		for range 50 {
			if err := c.Get(t.Context(), "k").Err(); err != nil && !errors.Is(err, redis.Nil) {
				lost += "x"
			} else {
				lost += "."
			}
		}
		return lost
	}
	one := run(1)
	require.Contains(t, one, "x")
	require.Contains(t, one, ".")
	require.Equal(t, one, run(1))
	require.NotEqual(t, one, run(2))
}

func TestProxyFaultsFollowEachOther(t *testing.T) {
	p, c, _ := behindProxy(t)
	require.NoError(t, c.Ping(t.Context()).Err())
	incr := redistest.Command("INCR")
	p.Inject(redistest.Fault{Kind: redistest.Close, Match: incr, Times: 1})
	p.Inject(redistest.Fault{Kind: redistest.Stall, Match: incr, Times: 1})
	require.ErrorIs(t, c.Incr(t.Context(), "k").Err(), io.EOF)
	require.ErrorContains(t, c.Incr(t.Context(), "k").Err(), "timeout")
	require.EqualValues(t, 3, c.Incr(t.Context(), "k").Val())

	p.Inject(redistest.Fault{Kind: redistest.Drop})
	require.Error(t, c.Ping(t.Context()).Err())
	p.Heal()
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestProxyDisconnectAndServerGone(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	c := p.Client()
	require.NoError(t, c.Ping(t.Context()).Err())
	p.Disconnect()
	require.NoError(t, c.Ping(t.Context()).Err(), "a new connection")
	require.Equal(t, 2, p.Accepted())

	s.Kill()
	require.Error(t, c.Ping(t.Context()).Err())
	s.Restart()
	require.NoError(t, c.Ping(t.Context()).Err())
}

func TestProxyCloseLeavesNothing(t *testing.T) {
	s := redistest.Start(t)
	before := goleak.IgnoreCurrent()
	p := redistest.NewProxy(t, s.Addr)
	c := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, ReadTimeout: 50 * time.Millisecond})
	p.Inject(redistest.Fault{Kind: redistest.Stall, Match: redistest.Command("GET")})
	p.Inject(redistest.Fault{Kind: redistest.Late, Match: redistest.Command("SET"), Delay: time.Hour})
	p.Inject(redistest.Fault{Kind: redistest.Repeat, Match: redistest.Command("INCR"), Delay: time.Hour})
	p.Inject(redistest.Fault{Kind: redistest.Delay, Match: redistest.Command("DEL"), Delay: time.Hour})
	for _, cmd := range []string{"GET k", "SET k", "INCR k", "DEL k"} {
		_ = c.Do(context.Background(), cmd[:len(cmd)-2], "k", 1).Err()
	}
	s.Pause()
	_ = c.Ping(context.Background()).Err()
	p.Close()
	p.Close()
	s.Resume()
	require.NoError(t, c.Close())
	goleak.VerifyNone(t, before)
}
