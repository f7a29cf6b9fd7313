package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// onCluster is a fixture on a cluster; it looks at keys through the cluster.
func onCluster(t *testing.T, cluster *redistest.Cluster) (*fixture, *redis.ClusterClient) {
	t.Helper()
	client := cluster.Client()
	store, err := counter.NewStore(client)
	require.NoError(t, err)
	f := newFixture(t, cluster.Nodes[0].Client())
	f.store = store
	return f, client
}

func TestTheServersOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	f, client := onCluster(t, cluster)
	for i, node := range cluster.Nodes {
		name := cluster.NameOn(i, "n")
		server, err := f.store.Server(t.Context(), f.prefix, name)
		require.NoError(t, err)
		assert.Equal(t, node.Addr(), server)
		policy, err := f.store.(interface {
			EvictionPolicy(ctx context.Context, prefix, name string) (string, error)
		}).EvictionPolicy(t.Context(), f.prefix, name)
		require.NoError(t, err)
		assert.Equal(t, "noeviction", policy)
	}
	require.NoError(t, client.Close())
	_, err := f.store.Server(t.Context(), f.prefix, "n")
	if err == nil { // it may still know
		assert.Equal(t, counter.NotApplied, f.one(f.add(1, 1)).Outcome)
	}
}

// Names with braces, and whatever else: all keys of a counter are in one slot: B33
// in the cases.
func TestNamesInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	f, client := onCluster(t, cluster)
	for i, name := range []string{"a}b", "{a", "a{b}c", "a b", "ü", "a:1", strings.Repeat("x", 255)} {
		f.name = name
		slot := cluster.Slot(f.totalKey(1))
		for _, key := range []string{f.totalKey(2), f.hashKey(1), f.hashKey(2), "{" + name + "}"} {
			assert.Equal(t, slot, cluster.Slot(key), key)
		}
		share := f.add(int64(i+1), 7)
		share.Series, share.Amounts = []string{"a=1"}, []int64{7}
		share.Questions = []counter.Question{{Interval: f.n - 1, Seq: 1}}
		result := f.one(share)
		assert.Equal(t, counter.Applied, result.Outcome, "%s: %v", name, result.Err)
		assert.EqualValues(t, 7, result.Open)
		assert.Equal(t, "7", client.Get(t.Context(), f.totalKey(f.n)).Val())
	}
}

// Scripts are cached by each server on its own.
func TestManyCountersInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartProxiedCluster(t, 3)
	f, client := onCluster(t, cluster)
	var calls []func() int
	for _, node := range cluster.Nodes {
		calls = append(calls, node.Proxy.Count(redistest.Script))
	}
	const counters = 3000
	for round := range 2 {
		var shares []counter.Share
		for i := range int64(counters) {
			share := f.add(i+1, i)
			share.Name = fmt.Sprint(round, "-", i)
			shares = append(shares, share)
		}
		for i, result := range f.flush(shares...) {
			require.Equal(t, counter.Applied, result.Outcome, result.Err)
			require.EqualValues(t, i, result.Open)
			server, err := f.store.Server(t.Context(), f.prefix, shares[i].Name)
			require.NoError(t, err)
			require.Equal(t, server, result.Server, "the flush named no server")
		}
	}
	sent := 0
	for _, n := range calls {
		sent += n()
	}
	assert.Less(t, sent, 5*counters, "a server's counters are sent again until it has the script")
	f.name = "1-2999"
	assert.Equal(t, "2999", client.Get(t.Context(), f.totalKey(f.n)).Val())
}

// With several declared keys, some of them gone to the new server, a slot on its
// way answers TRYAGAIN: B07 in the cases.
// A wrapper hides that its client is one of a cluster: calls then hold counters of
// several slots.
func TestAClusterThatDoesNotShow(t *testing.T) {
	t.Parallel()
	f, client := onCluster(t, redistest.StartCluster(t, 2))
	store, err := counter.NewStore(struct{ redis.UniversalClient }{client})
	require.NoError(t, err)
	f.store = store
	var shares []counter.Share
	for i := range int64(20) {
		share := f.add(i+1, i+1)
		share.Name = fmt.Sprint("n", i)
		shares = append(shares, share)
	}
	for i, result := range f.flush(shares...) {
		assert.Equal(t, counter.Applied, result.Outcome, result.Err)
		assert.EqualValues(t, i+1, result.Open)
	}
}

func TestASlotThatMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	f, client := onCluster(t, cluster)
	f.name = cluster.NameOn(0, "n")
	from, to := cluster.Nodes[0].Addr(), cluster.Nodes[1].Addr()
	flush := func(seq int64) counter.Result {
		share := f.add(seq, 5)
		share.Batch = int(seq)
		return f.store.Flush(t.Context(), &counter.Flush{
			Server: from, Participant: alice, Interval: f.interval, Shares: []counter.Share{share},
		})[0]
	}
	total := func() string { return client.Get(t.Context(), f.totalKey(f.n)).Val() }
	require.Equal(t, counter.Applied, flush(1).Outcome)

	move := cluster.BeginMove(f.totalKey(f.n), 1)
	result := flush(2) // this interval's keys are here, the last one's nowhere
	f.wantFailed(counter.NotApplied, "TRYAGAIN", result)
	assert.Equal(t, "5", total())

	move.Keys(f.totalKey(f.n))
	f.wantFailed(counter.NotApplied, "TRYAGAIN", flush(3))

	move.Finish()
	result = flush(4) // follows MOVED
	require.Equal(t, counter.Applied, result.Outcome, result.Err)
	assert.EqualValues(t, 10, result.Open)
	assert.Equal(t, "10", total())
	redistest.Eventually(t, 10*time.Second, func() error {
		share := f.add(9, 0)
		share.Mode = counter.ModeRead
		result := f.store.Flush(t.Context(), &counter.Flush{
			Server: from, Participant: alice, Interval: f.interval, Shares: []counter.Share{share},
		})[0]
		if result.Server != to {
			return fmt.Errorf("server %q, want %q", result.Server, to)
		}
		return nil
	})
	result = f.one(f.add(5, 0))
	assert.Equal(t, to, result.Server)
}

// Many counters follow their slots in one pipeline.
func TestSlotsThatHaveMoved(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	f, client := onCluster(t, cluster)
	var shares []counter.Share
	for i := range int64(3) {
		share := f.add(i+1, 5)
		share.Name = cluster.NameOn(0, fmt.Sprint("n", i))
		shares = append(shares, share)
	}
	for _, result := range f.flush(shares...) {
		require.Equal(t, counter.Applied, result.Outcome, result.Err)
	}
	for i := range shares {
		f.name = shares[i].Name
		cluster.BeginMove(f.totalKey(f.n), 1).Finish()
		shares[i].Batch = 1
	}
	for i, result := range f.flush(shares...) {
		require.Equal(t, counter.Applied, result.Outcome, result.Err)
		f.name = shares[i].Name
		assert.Equal(t, "10", client.Get(t.Context(), f.totalKey(f.n)).Val())
	}
}

// A server that stalls keeps nothing of the others back.
func TestAStalledServerOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	f, _ := onCluster(t, cluster)
	share := func(node int, seq int64) counter.Share {
		share := f.add(seq, 5)
		share.Name = cluster.NameOn(node, "n")
		share.Batch = int(seq)
		return share
	}
	f.flush(share(0, 1), share(1, 1))
	cluster.Nodes[1].Pause()
	start := time.Now()
	assert.Equal(t, counter.Applied, f.one(share(0, 2)).Outcome)
	_, err := f.store.Probe(t.Context(), "", f.prefix, share(0, 1).Name)
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 3*time.Second, "not the stalled one's timeout")
	cluster.Nodes[1].Resume()
	assert.Equal(t, counter.Applied, f.one(share(1, 2)).Outcome)
}
