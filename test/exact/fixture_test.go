package exact

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/internal/leaktest"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestMain(m *testing.M) {
	if orders := os.Getenv(ordersVariable); orders != "" {
		os.Exit(child(orders))
	}
	logging.Disable() // go-redis reports each dial that the tests let fail
	leaktest.Main(m)
}

// place is where a test counts: a server or a cluster, and a prefix of its own.
type place struct {
	rdb    redis.UniversalClient
	prefix string
	kind   string
}

// places runs a test on each kind of server.
func places(t *testing.T, test func(t *testing.T, at place)) {
	t.Run("miniredis", func(t *testing.T) {
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		client := redis.NewClient(&redis.Options{Addr: m.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		test(t, place{client, "", "miniredis"})
	})
	t.Run("standalone", func(t *testing.T) {
		test(t, place{redistest.Client(t), redistest.Prefix(t), "standalone"})
	})
	t.Run("cluster", func(t *testing.T) {
		test(t, place{redistest.StartCluster(t, 3).Client(), "", "cluster"})
	})
}

// open opens counters, and closes them after the test.
func (p place) open(t *testing.T, name string, opts ...exact.Option) *exact.Counters {
	t.Helper()
	return open(t, p.rdb, name, append([]exact.Option{exact.Prefix(p.prefix)}, opts...)...)
}

func open(t *testing.T, rdb redis.UniversalClient, name string, opts ...exact.Option) *exact.Counters {
	t.Helper()
	c, err := exact.Open(rdb, name, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// key is the Redis key of a count.
func (p place) key(name, key string) string { return p.prefix + name + ":{" + key + "}" }

// holds checks what Redis holds: "" is no key.
func (p place) holds(t *testing.T, want, key string) {
	t.Helper()
	got, err := p.rdb.Get(t.Context(), key).Result()
	if !errors.Is(err, redis.Nil) {
		require.NoError(t, err)
	}
	require.Equal(t, want, got, key)
}

func (p place) pttl(t *testing.T, key string) time.Duration {
	t.Helper()
	d, err := p.rdb.PTTL(t.Context(), key).Result()
	require.NoError(t, err)
	return d
}

func mustAdd(t *testing.T, c *exact.Counters, key string, n int64, opts ...exact.AddOption) int64 {
	t.Helper()
	count, err := c.Add(t.Context(), key, n, opts...)
	require.NoError(t, err)
	return count
}

// eventually waits until a count is there.
func eventually(t *testing.T, c *exact.Counters, key string, want int64) {
	t.Helper()
	redistest.Eventually(t, 30*time.Second, func() error {
		got, err := c.Get(t.Context(), key)
		if err == nil {
			err = equal(want, got)
		}
		return err
	})
}
