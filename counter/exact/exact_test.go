package exact_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/internal/leaktest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports every dial that the tests let fail
	leaktest.Main(m)
}

// server is a miniredis and a client of it.
type server struct {
	*miniredis.Miniredis
	client *redis.Client
}

func newServer(t testing.TB) server {
	t.Helper()
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return server{m, client}
}

func open(t testing.TB, rdb redis.UniversalClient, opts ...exact.Option) *exact.Counters {
	t.Helper()
	c, err := exact.Open(rdb, "seats", opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}
