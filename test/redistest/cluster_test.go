package redistest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestClusterServesAllSlots(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := cluster.Client()
	for i := range 100 {
		require.NoError(t, c.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err())
	}
	for node, n := range cluster.Nodes {
		name := cluster.NameOn(node, "name")
		require.Equal(t, node, cluster.Owner("{"+name+"}:1"))
		// The node itself answers, not a redirect.
		require.NoError(t, n.Client().Set(t.Context(), name, 1, 0).Err())
	}
}

func TestClusterOutlivesAPausedNode(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	c := cluster.Client(func(o *redis.ClusterOptions) { o.ReadTimeout, o.MaxRedirects = 200*time.Millisecond, -1 })
	a, b := cluster.NameOn(0, "a"), cluster.NameOn(1, "b")
	require.NoError(t, c.Incr(t.Context(), a).Err())
	cluster.Nodes[1].Pause()
	require.Error(t, c.Incr(t.Context(), b).Err())
	require.NoError(t, c.Incr(t.Context(), a).Err())
	cluster.Nodes[1].Resume()
	require.NoError(t, c.Incr(t.Context(), b).Err())
}

func TestClusterNodeRestarts(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	name := cluster.NameOn(1, "b")
	cluster.Nodes[1].Kill()
	cluster.Nodes[1].Restart()
	redistest.Eventually(t, 30*time.Second, func() error {
		return cluster.Client().Incr(t.Context(), name).Err()
	})
}

func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	c := cluster.Client()
	name := cluster.NameOn(0, "name")
	key := func(n int) string { return fmt.Sprintf("{%s}:%d", name, n) }
	require.NoError(t, c.Set(t.Context(), key(1), "one", 0).Err())
	require.NoError(t, c.Set(t.Context(), key(2), "two", 0).Err())

	move := cluster.BeginMove(name, 1)
	old := cluster.Nodes[0].Client()
	require.Equal(t, "one", old.Get(t.Context(), key(1)).Val())
	require.ErrorContains(t, old.Get(t.Context(), key(3)).Err(), "ASK")
	require.ErrorContains(t, old.MGet(t.Context(), key(1), key(3)).Err(), "TRYAGAIN")
	move.Keys(key(1))
	require.ErrorContains(t, old.Get(t.Context(), key(1)).Err(), "ASK")
	require.Equal(t, "one", c.Get(t.Context(), key(1)).Val(), "the client follows")
	require.Equal(t, 0, cluster.Owner(name))

	move.Finish()
	require.Equal(t, 1, cluster.Owner(name))
	require.ErrorContains(t, old.Get(t.Context(), key(1)).Err(), "MOVED")
	require.Equal(t, "two", cluster.Nodes[1].Client().Get(t.Context(), key(2)).Val())
	require.Equal(t, "two", c.Get(t.Context(), key(2)).Val())
}

func TestProxiedClusterGoesThroughItsProxies(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartProxiedCluster(t, 2)
	c := cluster.Client(func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })
	for node, n := range cluster.Nodes {
		name := cluster.NameOn(node, "name")
		require.NoError(t, c.Incr(t.Context(), name).Err())
		require.Equal(t, 1, n.Proxy.Seen("INCR"))
	}
	// Redirects name the proxies too.
	err := cluster.Nodes[0].Client().Incr(t.Context(), cluster.NameOn(1, "x")).Err()
	require.ErrorContains(t, err, cluster.Nodes[1].Proxy.Addr)

	move := cluster.BeginMove(cluster.NameOn(0, "name"), 1)
	move.Finish()
	require.NoError(t, cluster.Client().Incr(t.Context(), cluster.NameOn(1, "name")).Err())
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for _, sentinels := range []int{1, 3} {
		t.Run(fmt.Sprint(sentinels), func(t *testing.T) {
			s := redistest.StartSentinel(t, sentinels)
			c := s.Client()
			require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
			require.NoError(t, c.Wait(t.Context(), 1, 10*time.Second).Err())
			require.Same(t, s.Primary, s.PrimaryNow())

			s.Failover()
			require.Same(t, s.Replica, s.PrimaryNow())
			redistest.Eventually(t, 30*time.Second, func() error { return c.Set(t.Context(), "k2", "v", 0).Err() })
			require.Equal(t, "v", s.Replica.Client().Get(t.Context(), "k").Val())
		})
	}
}

func TestSentinelFindsAKilledPrimary(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	s.Primary.Kill()
	s.AwaitPrimary(s.Replica)
	require.NoError(t, s.Client().Set(t.Context(), "k", "v", 0).Err())
}

func TestReplicaFollows(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t)
	require.NoError(t, primary.Client().Set(t.Context(), "k", "v", 0).Err())
	replica := primary.Replica()
	require.Equal(t, "v", replica.Client().Get(t.Context(), "k").Val())
	err := replica.Client().Set(t.Context(), "k", "v", 0).Err()
	require.True(t, strings.HasPrefix(err.Error(), "READONLY"), err)
}
