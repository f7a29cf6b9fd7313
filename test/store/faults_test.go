package store

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// readTimeout replaces go-redis' default of 3 s, for the tests' sake. All other
// options are the defaults unless a case says so.
const readTimeout = 300 * time.Millisecond

// standalone are the ways to make a client of one server.
var standalone = map[string]func(t *testing.T, addr string) redis.UniversalClient{
	"default options": func(_ *testing.T, addr string) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout})
	},
	"many retries": func(_ *testing.T, addr string) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout, MaxRetries: 10})
	},
	"options taken from another client": func(t *testing.T, addr string) redis.UniversalClient {
		other := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout, MaxRetries: -1})
		t.Cleanup(func() { _ = other.Close() })
		return redis.NewClient(other.Options())
	},
	"a universal client": func(_ *testing.T, addr string) redis.UniversalClient {
		return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}, ReadTimeout: readTimeout, MaxRetries: -1})
	},
	"a URL": func(t *testing.T, addr string) redis.UniversalClient {
		options, err := redis.ParseURL("redis://" + addr + "/0?max_retries=0&read_timeout=" + readTimeout.String())
		require.NoError(t, err)
		return redis.NewClient(options)
	},
	"a pipeline pool": func(_ *testing.T, addr string) redis.UniversalClient {
		return redis.NewClient(&redis.Options{
			Addr: addr, ReadTimeout: readTimeout, PipelineReadBufferSize: 1 << 16, PipelineWriteBufferSize: 1 << 16,
		})
	},
	"obeying contexts": func(_ *testing.T, addr string) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: readTimeout, ContextTimeoutEnabled: true})
	},
	"a failover client": func(t *testing.T, addr string) redis.UniversalClient {
		host, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		sentinel := redistest.NewStub(t, func(args []string) string {
			if strings.EqualFold(args[0], "sentinel") && strings.EqualFold(args[1], "get-master-addr-by-name") {
				return redistest.ArrayReply(redistest.BulkReply(host), redistest.BulkReply(port))
			}
			return redistest.Pass
		})
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "main", SentinelAddrs: []string{sentinel.Addr}, ReadTimeout: readTimeout,
		})
	},
}

// clustered are the ways to make a client of a cluster.
var clustered = map[string]func(t *testing.T, addrs []string) redis.UniversalClient{
	"default options": func(_ *testing.T, addrs []string) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ReadTimeout: readTimeout})
	},
	"options used twice": func(t *testing.T, addrs []string) redis.UniversalClient {
		options := &redis.ClusterOptions{Addrs: addrs, ReadTimeout: readTimeout, MaxRedirects: -1}
		first := redis.NewClusterClient(options)
		t.Cleanup(func() { _ = first.Close() })
		return redis.NewClusterClient(options)
	},
	"a universal client": func(_ *testing.T, addrs []string) redis.UniversalClient {
		return redis.NewUniversalClient(&redis.UniversalOptions{
			Addrs: addrs, IsClusterMode: true, ReadTimeout: readTimeout, MaxRetries: -1,
		})
	},
}

// flushes are a flush of one call and one of three, to any server.
var flushes = map[string]func(f *fixture, name func(i int) string) []counter.Share{
	"one call": func(f *fixture, name func(int) string) []counter.Share {
		share := f.add(2, 5)
		share.Name = name(0)
		return []counter.Share{share}
	},
	"three calls": func(f *fixture, name func(int) string) []counter.Share {
		var shares []counter.Share
		for i := range 3 {
			share := f.add(2, 5)
			share.Name, share.Series, share.Amounts = name(i), make([]string, 400), make([]int64, 400)
			for j := range share.Series {
				share.Series[j] = fmt.Sprint("x=", j)
			}
			shares = append(shares, share)
		}
		return shares
	},
}

// lost are the ways to lose what the server has run.
var lost = map[string]redistest.Fault{
	"one reply cut off":   {Kind: redistest.Close, Match: redistest.Script, Times: 1},
	"all replies cut off": {Kind: redistest.Close, Match: redistest.Script},
	"no reply":            {Kind: redistest.Stall, Match: redistest.Script},
	"half a reply":        {Kind: redistest.CutReply, Match: redistest.Script, Bytes: 5},
}

// DESIGN 2, rule 10: "Sent at most once. go-redis re-sends commands after network errors (3 times by default; a
// cluster client even with MaxRetries -1, and option structs that are reused switch retries back on)."
//
// go-redis sends a command again whose reply was lost, and then says that all is
// well: B01 and B03 in the cases. Ours are sent once.
func TestALostReplyIsSentOnce(t *testing.T) {
	server := redistest.Start(t)
	for kind, client := range standalone {
		t.Run(kind, func(t *testing.T) {
			for flush, shares := range flushes {
				for how, fault := range lost {
					t.Run(flush+", "+how, func(t *testing.T) {
						t.Parallel()
						proxy := redistest.NewProxy(t, server.Addr)
						rdb := client(t, proxy.Addr)
						t.Cleanup(func() { _ = rdb.Close() })
						f := newFixture(t, server.Client())
						f.lose(rdb, shares(f, func(i int) string { return fmt.Sprint("n", i) }), proxy, fault)
					})
				}
			}
		})
	}
}

// DESIGN 2, rule 10: "Tried on v9.23 against a proxy that swallows replies: one send, single and pipelined,
// standalone and cluster, with the user's client and settings untouched;"
func TestALostReplyIsSentOnceInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartProxiedCluster(t, 2)
	proxy := cluster.Nodes[1].Proxy
	for kind, client := range clustered {
		t.Run(kind, func(t *testing.T) {
			rdb := client(t, cluster.Addrs())
			t.Cleanup(func() { _ = rdb.Close() })
			for flush, shares := range flushes {
				for how, fault := range lost {
					t.Run(flush+", "+how, func(t *testing.T) {
						f := newFixture(t, cluster.Nodes[1].Client())
						f.lose(rdb, shares(f, func(i int) string { return cluster.NameOn(1, fmt.Sprint("n", i)) }), proxy, fault)
					})
				}
			}
		})
	}
}

// lose sends shares whose replies get lost, and then asks what became of them.
func (f *fixture) lose(rdb redis.UniversalClient, shares []counter.Share, proxy *redistest.Proxy, fault redistest.Fault) {
	f.Helper()
	store, err := counter.NewStore(rdb)
	require.NoError(f, err)
	f.store = store
	_, err = store.Probe(f.Context(), "", f.prefix, shares[0].Name) // the script is known
	require.NoError(f, err)

	calls := proxy.Count(redistest.Script)
	injected := proxy.Inject(fault)
	for _, result := range f.flush(shares...) {
		assert.Equal(f, counter.Unknown, result.Outcome)
		require.Error(f, result.Err)
	}
	injected.Heal()
	assert.Positive(f, injected.Hits())
	assert.LessOrEqual(f, calls(), len(shares), "sent once")

	// The server has run what reached it, or will: once. A share of its own tells.
	for _, share := range shares {
		share.Seq = 3
		assert.Contains(f, []counter.Outcome{counter.Used, counter.Applied}, f.one(share).Outcome)
		f.name = share.Name
		assert.Equal(f, "5", f.total(f.n))
	}
}

// What never reached the server is not known to have been lost either, as long as
// it may have been written.
func TestALostRequestIsUnknown(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	f := newFixture(t, server.Client())
	store, err := counter.NewStore(proxy.Client())
	require.NoError(t, err)
	f.store = store
	f.one(f.add(1, 0))
	calls := proxy.Count(redistest.Script)
	for _, fault := range []redistest.Fault{
		{Kind: redistest.Drop, Match: redistest.Script, Times: 1},
		{Kind: redistest.CutRequest, Match: redistest.Script, Times: 1, Bytes: 40},
	} {
		proxy.Inject(fault)
		share := f.add(2, 5)
		share.Batch = 1
		assert.Equal(t, counter.Unknown, f.one(share).Outcome)
	}
	assert.Equal(t, 2, calls())
	assert.Equal(t, "0", f.total(f.n))
}

func TestAServerThatIsDownIsNotApplied(t *testing.T) {
	server := redistest.Start(t)
	f := newFixture(t, server.Client())
	server.Stop()
	result := f.one(f.add(1, 5))
	assert.Equal(t, counter.NotApplied, result.Outcome, result.Err)
	result = f.one(f.add(1, 5))
	assert.Equal(t, counter.NotApplied, result.Outcome, result.Err)
	server.Restart()
	assert.Equal(t, counter.Applied, f.one(f.add(1, 5)).Outcome)
}

// A share that reaches the server twice, however late, counts once.
func TestARepeatedRequestCountsOnce(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	f := newFixture(t, server.Client())
	store, err := counter.NewStore(proxy.Client())
	require.NoError(t, err)
	f.store = store
	f.one(f.add(1, 0))
	proxy.Inject(redistest.Fault{Kind: redistest.Repeat, Match: redistest.Script, Delay: 10 * time.Millisecond, Times: 1})
	share := f.add(2, 5)
	share.Batch = 1
	assert.Equal(t, counter.Applied, f.one(share).Outcome)
	redistest.Eventually(t, 10*time.Second, func() error {
		if n := proxy.Forwarded("EVALSHA"); n < 3 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	assert.Equal(t, counter.Repeated, f.one(share).Outcome)
	assert.Equal(t, "5", f.total(f.n))
}

func TestTheUsersOptionsStayAsTheyAre(t *testing.T) {
	options := &redis.Options{Addr: "127.0.0.1:1", MaxRetries: 7}
	client := redis.NewClient(options)
	defer client.Close()
	before := *options
	_, err := counter.NewStore(client)
	require.NoError(t, err)
	assert.Equal(t, before.MaxRetries, options.MaxRetries)
	assert.Equal(t, 7, client.Options().MaxRetries)
}
