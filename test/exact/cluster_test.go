package exact

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// "One slot per key, so that a big set spreads over a cluster."
func TestKeysSpreadOverACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := open(t, cluster.Client(), "spread")
	owners := map[int]int{}
	for i := range 300 {
		key := strconv.Itoa(i)
		mustAdd(t, c, key, 1, exact.ID("x"))
		owners[cluster.Owner("spread:{"+key+"}")]++
		require.Equal(t, cluster.Slot(key), cluster.Slot("spread:{"+key+"}:id:x"))
	}
	for node := range 3 {
		require.Greater(t, owners[node], 50)
	}
}

// Each add during a resharding is counted once or refused: MOVED, ASK and TRYAGAIN
// prove that a command was not executed.
func TestAddsWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	for name, opts := range map[string][]exact.Option{
		"plain": nil, "script": {exact.TTL(time.Hour)}, "flush": {exact.FlushEvery(20 * time.Millisecond)},
		"replicas": {exact.WaitReplicas(1, time.Millisecond)}, // none has one: every add ends in ErrNotReplicated
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, cluster.Client(), "moving", opts...)
			key := cluster.NameOn(0, name)
			var added atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for caller := range 4 {
				wg.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						var opts []exact.AddOption
						if name != "flush" && caller%2 == 0 {
							opts = append(opts, exact.ID(fmt.Sprint(caller, ":", i)))
						}
						_, err := c.Add(t.Context(), key, 1, opts...)
						switch {
						case err == nil, errors.Is(err, exact.ErrNotReplicated):
							added.Add(1)
						case !errors.Is(err, exact.ErrNotExecuted):
							t.Error(err)
							return
						}
					}
				})
			}
			between := func() { time.Sleep(200 * time.Millisecond) }
			between()
			move := cluster.BeginMove(key, 1)
			between()
			move.Keys("moving:{" + key + "}")
			between()
			move.Finish()
			between()
			stop()
			wg.Wait()
			require.NoError(t, c.Close(t.Context()))
			got, err := cluster.Client().Get(t.Context(), "moving:{"+key+"}").Int64()
			require.NoError(t, err)
			require.Equal(t, added.Load(), got)
			require.Greater(t, got, int64(50))
		})
	}
}

// A count is read from its primary, also by clients that prefer replicas.
func TestGetAsksThePrimary(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	replica := replicaOf(t, cluster.Nodes[0]).Client()
	here := cluster.NameOn(0, "k")
	client := cluster.Client(func(o *redis.ClusterOptions) { o.ReadOnly = true })
	redistest.Eventually(t, 30*time.Second, func() error { // the client has found the replica
		_ = client.Get(t.Context(), here).Err()
		if !strings.Contains(replica.Info(t.Context(), "commandstats").Val(), "cmdstat_get:") {
			client.ReloadState(t.Context())
			return errors.New("a plain GET does not go to the replica")
		}
		return nil
	})
	c := open(t, client, "primary")
	for i := range int64(50) {
		mustAdd(t, c, here, 1)
		got, err := c.Get(t.Context(), here)
		require.NoError(t, err)
		require.Equal(t, i+1, got)
	}
	require.NotContains(t, replica.Info(t.Context(), "commandstats").Val(), "cmdstat_eval")
}

// replicaOf starts a replica of a cluster's node and waits until it has all data.
func replicaOf(t *testing.T, node *redistest.Node) *redistest.Server {
	t.Helper()
	replica := redistest.Start(t, "--cluster-enabled", "yes")
	client, primary := replica.Client(), node.Client()
	id, err := primary.Do(t.Context(), "CLUSTER", "MYID").Text()
	require.NoError(t, err)
	require.NoError(t, primary.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	host, port, err := net.SplitHostPort(node.Server.Addr)
	require.NoError(t, err)
	require.NoError(t, client.ClusterMeet(t.Context(), host, port).Err())
	redistest.Eventually(t, 30*time.Second, func() error {
		return client.ClusterReplicate(t.Context(), id).Err() // once it knows the primary
	})
	redistest.Eventually(t, 30*time.Second, func() error {
		if !strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up") {
			return errors.New("the replica is not in step")
		}
		if !strings.Contains(primary.ClusterNodes(t.Context()).Val(), " slave "+id) {
			return errors.New("the primary does not know its replica")
		}
		return nil
	})
	return replica
}

// A node that stalls delays no batch of another's keys for longer than a flush.
func TestStalledNodeKeepsNoOtherKeysFromBeingWritten(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	client := cluster.Client(func(o *redis.ClusterOptions) { o.ReadTimeout = 200 * time.Millisecond })
	c := open(t, client, "stalled", exact.FlushEvery(20*time.Millisecond))
	const many = 3000 // several pipelines
	var stalled, healthy []string
	for i := range many {
		key := strconv.Itoa(i)
		mustAdd(t, c, key, 1)
		if cluster.Owner(key) == 0 {
			stalled = append(stalled, key)
		} else {
			healthy = append(healthy, key)
		}
	}
	cluster.Nodes[0].Pause()
	defer cluster.Nodes[0].Resume()
	for _, key := range append(stalled, healthy...) {
		mustAdd(t, c, key, 1)
	}
	direct := redis.NewClient(&redis.Options{Addr: cluster.Nodes[1].Addr()})
	defer direct.Close()
	redistest.Eventually(t, 20*time.Second, func() error {
		for _, key := range healthy {
			if got, err := direct.Get(t.Context(), "stalled:{"+key+"}").Int64(); err != nil || got != 2 {
				return fmt.Errorf("%s: %d, %w", key, got, err)
			}
		}
		return nil
	})
	cluster.Nodes[0].Resume()
	require.NoError(t, c.Close(t.Context()))
	for _, key := range stalled {
		got, err := client.Get(t.Context(), "stalled:{"+key+"}").Int64()
		require.NoError(t, err)
		require.Equal(t, int64(2), got)
	}
}
