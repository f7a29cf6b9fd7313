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

var waiting = redistest.Command("WAIT")

// "An add returns only when n replicas have it."
func TestWaitReplicas(t *testing.T) {
	server := redistest.Start(t)
	replica := server.Replica()
	at := place{replica.Client(), "", ""}
	for name, opts := range map[string][]exact.Option{"plain": nil, "script": {exact.TTL(time.Hour), exact.Max(1000)}} {
		c := open(t, server.Client(), name, append(opts, exact.WaitReplicas(1, 30*time.Second))...)
		for i := range int64(100) {
			require.Equal(t, i+1, mustAdd(t, c, "k", 1))
			at.holds(t, strconv.FormatInt(i+1, 10), name+":{k}")
		}
		require.Equal(t, int64(103), mustAdd(t, c, "k", 3, exact.ID("x")))
		at.holds(t, "103", name+":{k}")
		added, _, err := c.AddUpTo(t.Context(), "k", 7)
		require.NoError(t, err)
		require.Equal(t, int64(7), added)
		at.holds(t, "110", name+":{k}")
	}
}

// "Else ErrNotReplicated (applied, not replicated)": sent once, counted once, also
// where WAIT outlasts the client's ReadTimeout.
func TestWaitReplicasInVain(t *testing.T) {
	server := redistest.Start(t)
	replica := server.Replica()
	proxy := redistest.NewProxy(t, server.Addr)
	client := proxy.Client(func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
	c := open(t, client, "vain", exact.WaitReplicas(1, 500*time.Millisecond), exact.TTL(time.Hour))
	mustAdd(t, open(t, client, "vain", exact.TTL(time.Hour)), "k", 1)
	// Several connections that have seen the replica in step: a WAIT on any other than
	// the add's would find nothing to wait for.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { _ = client.BLPop(t.Context(), time.Second, "nothing").Err() })
	}
	wg.Wait()

	replica.Pause()
	defer replica.Resume()
	sent := proxy.Count(adding)
	start := time.Now()
	count, err := c.Add(t.Context(), "k", 5, exact.ID("x"))
	require.ErrorIs(t, err, exact.ErrNotReplicated)
	require.ErrorContains(t, err, "0 of 1 replicas")
	require.Equal(t, int64(6), count)
	require.GreaterOrEqual(t, time.Since(start), 500*time.Millisecond)
	require.Equal(t, 1, sent())

	// A repeat waits again, and adds nothing.
	count, err = c.Add(t.Context(), "k", 5, exact.ID("x"))
	require.ErrorIs(t, err, exact.ErrNotReplicated)
	require.Equal(t, int64(6), count)
	replica.Resume()
	redistest.Eventually(t, 30*time.Second, func() error {
		count, err := c.Add(t.Context(), "k", 5, exact.ID("x"))
		return errors.Join(err, equal(int64(6), count))
	})
	place{replica.Client(), "", ""}.holds(t, "6", "vain:{k}")

	_, err = open(t, client, "two", exact.WaitReplicas(2, time.Second)).Add(t.Context(), "k", 1)
	require.ErrorIs(t, err, exact.ErrNotReplicated)
	require.ErrorContains(t, err, "of 2 replicas")
}

// A repeat writes, so that WAIT after it is about the first add too: from Redis 7.2
// on it would otherwise wait for nothing.
func TestRepeatWithWaitReplicasWrites(t *testing.T) {
	server := redistest.Start(t)
	server.Replica()
	client := server.Client()
	c := open(t, client, "touch", exact.WaitReplicas(1, 30*time.Second), exact.TTL(time.Hour))
	mustAdd(t, c, "k", 5, exact.ID("x"))
	life := place{client, "", ""}.pttl(t, "touch:{k}:id:x")
	lines := monitorKeys(t, server, "touch:", func() { mustAdd(t, c, "k", 5, exact.ID("x")) })
	require.Contains(t, lines[len(lines)-1], `"SET" "touch:{k}:id:x"`)
	require.LessOrEqual(t, place{client, "", ""}.pttl(t, "touch:{k}:id:x"), life)
}

// What changes nothing is not waited for.
func TestRefusedAddsDoNotWait(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr) // no replica: a wait would show
	client := proxy.Client()
	c := open(t, client, "refused", exact.WaitReplicas(1, time.Minute), exact.Max(5))
	mustAdd(t, open(t, client, "refused"), "k", 5)
	waits := proxy.Count(waiting)
	_, err := c.Add(t.Context(), "k", 1)
	require.ErrorIs(t, err, exact.ErrMax)
	added, count, err := c.AddUpTo(t.Context(), "k", 1)
	require.NoError(t, err)
	require.Zero(t, added)
	require.Equal(t, int64(5), count)
	require.Zero(t, waits())
}

func TestWaitReplicasFaults(t *testing.T) {
	server := redistest.Start(t)
	server.Replica()
	proxy := redistest.NewProxy(t, server.Addr)
	c := open(t, proxy.Client(), "faults", exact.WaitReplicas(1, 10*time.Second), exact.TTL(time.Hour))
	mustAdd(t, c, "warm", 1)
	for i, test := range []struct {
		kind  redistest.Kind
		match redistest.Match
		want  error
		count int64
	}{
		{redistest.Close, waiting, exact.ErrNotReplicated, 5}, // applied, and not known to be replicated
		{redistest.Drop, waiting, exact.ErrNotReplicated, 5},
		{redistest.Close, adding, exact.ErrUnknown, 5},
		{redistest.Drop, adding, exact.ErrUnknown, 0},
	} {
		key := fmt.Sprint("k", i)
		sent := proxy.Count(adding)
		proxy.Inject(redistest.Fault{Kind: test.kind, Match: test.match})
		_, err := c.Add(t.Context(), key, 5)
		proxy.Heal()
		require.ErrorIs(t, err, test.want, key)
		require.Equal(t, 1, sent(), key)
		eventually(t, c, key, test.count)
	}
}

func TestWaitReplicasEndsWithTheDeadline(t *testing.T) {
	c := open(t, redistest.Start(t).Client(), "deadline", exact.WaitReplicas(1, time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	count, err := c.Add(ctx, "k", 1)
	require.ErrorIs(t, err, exact.ErrNotReplicated)
	require.Equal(t, int64(1), count)
	require.Less(t, time.Since(start), 10*time.Second)
}

// In a cluster the add and its WAIT go to the key's own primary, and follow a slot
// that moves.
func TestWaitReplicasInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	for _, node := range cluster.Nodes {
		replicaOf(t, node)
	}
	client := cluster.Client()
	c := open(t, client, "cluster", exact.WaitReplicas(1, 30*time.Second), exact.TTL(time.Hour))
	for i := range 40 {
		require.Equal(t, int64(1), mustAdd(t, c, strconv.Itoa(i), 1))
	}
	key := cluster.NameOn(0, "k")
	mustAdd(t, c, key, 1)
	move := cluster.BeginMove(key, 1)
	require.Equal(t, int64(2), mustAdd(t, c, key, 1), "still here")
	move.Keys("cluster:{" + key + "}")
	require.Equal(t, int64(3), mustAdd(t, c, key, 1), "after ASK")
	require.NoError(t, cluster.Nodes[1].Client().ScriptFlush(t.Context()).Err())
	require.Equal(t, int64(4), mustAdd(t, c, key, 1), "after ASK, with the script unknown")
	move.Finish()
	require.Equal(t, int64(5), mustAdd(t, c, key, 1), "after MOVED")
	require.Equal(t, int64(6), mustAdd(t, c, key, 1))
}
