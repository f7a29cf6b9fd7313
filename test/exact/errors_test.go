package exact

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// B11: out of memory an add fails whole: no count, no id, no TTL.
func TestB11OutOfMemory(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	at := place{admin, "", "standalone"}
	set := func(name, value string) { require.NoError(t, admin.ConfigSet(t.Context(), name, value).Err()) }
	plain, full := open(t, admin, "plain"), open(t, admin, "full", exact.TTL(time.Hour), exact.Max(100))
	batch := open(t, admin, "batch", exact.TTL(time.Hour), exact.FlushEvery(10*time.Millisecond))
	mustAdd(t, full, "old", 5)
	before, err := admin.Keys(t.Context(), "*").Result()
	require.NoError(t, err)

	set("maxmemory-policy", "noeviction")
	set("maxmemory", "1")
	adds := map[string]func() error{
		"plain": func() error { _, err := plain.Add(t.Context(), "k", 5); return err },
		"new":   func() error { _, err := full.Add(t.Context(), "k", 5); return err },
		"old":   func() error { _, err := full.Add(t.Context(), "old", 5); return err },
		"id":    func() error { _, err := full.Add(t.Context(), "old", 5, exact.ID("X")); return err },
		"up to": func() error { _, _, err := full.AddUpTo(t.Context(), "old", 500); return err },
		"tx": func() error {
			tx := admin.TxPipeline()
			added := full.AddTx(t.Context(), tx, "old", 5, exact.ID("X"))
			_, _ = tx.Exec(t.Context())
			_, err := added.Val()
			return err
		},
	}
	for name, add := range adds {
		err := add()
		require.ErrorIs(t, err, exact.ErrNotExecuted, name)
		require.NotErrorIs(t, err, exact.ErrUnknown, name)
	}
	mustAdd(t, batch, "k", 5)
	time.Sleep(100 * time.Millisecond) // some flushes fail
	after, err := admin.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, before, after)
	at.holds(t, "5", "full:{old}")

	set("maxmemory", "0")
	require.Equal(t, int64(10), mustAdd(t, full, "old", 5, exact.ID("X")))
	require.Equal(t, int64(10), mustAdd(t, full, "old", 5, exact.ID("X")))
	require.Equal(t, int64(1), mustAdd(t, plain, "k", 1), "the refused 5 does not come back")
	require.NoError(t, batch.Close(t.Context()))
	at.holds(t, "5", "batch:{k}")
	require.Positive(t, at.pttl(t, "batch:{k}"))
}

// rights are those that the package documents.
const rights = "~app:seats:{* +eval +evalsha +get +set +pttl +incrby +del"

// account makes a user with these rights and a client of it.
func account(t *testing.T, server *redistest.Server, rights string) *redis.Client {
	t.Helper()
	args := []any{"ACL", "SETUSER", "app", "reset", "on", ">secret"}
	for r := range strings.FieldsSeq(rights) {
		args = append(args, r)
	}
	require.NoError(t, server.Client().Do(t.Context(), args...).Err())
	return server.Client(func(o *redis.Options) { o.Username, o.Password = "app", "secret" })
}

// B54: exactly the documented rights are enough for everything.
func TestB54DocumentedRights(t *testing.T) {
	server := redistest.Start(t)
	client := account(t, server, rights+" +multi +exec")
	prefix := exact.Prefix("app:")
	for _, opts := range [][]exact.Option{
		{prefix}, {prefix, exact.TTL(time.Hour)}, {prefix, exact.Max(1000)}, {prefix, exact.FlushEvery(time.Hour), exact.Max(1000), exact.TTL(time.Hour)},
	} {
		c := open(t, client, "seats", opts...)
		mustAdd(t, c, "k", 1)
		_, _, err := c.AddUpTo(t.Context(), "k", 1000)
		require.NoError(t, err)
		_, err = c.Add(t.Context(), "k", 1000)
		if len(opts) > 1 && err != nil {
			require.ErrorIs(t, err, exact.ErrMax)
		}
		_, err = c.Get(t.Context(), "k")
		require.NoError(t, err)
		if len(opts) < 4 {
			mustAdd(t, c, "id", 1, exact.ID("x"))
			tx := client.TxPipeline()
			added := c.AddTx(t.Context(), tx, "tx", 1)
			_, err = tx.Exec(t.Context())
			require.NoError(t, err)
			_, err = added.Val()
			require.NoError(t, err)
		}
		_, err = c.Delete(t.Context(), "k")
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
	}
	keys, err := server.Client().Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		require.True(t, strings.HasPrefix(key, "app:seats:{"), key)
	}
}

// B54: a right that is missing counts nothing, leaves nothing, and is not tried
// again.
func TestB54MissingRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	for missing, add := range map[string]func(rdb redis.UniversalClient) error{
		"+incrby": func(rdb redis.UniversalClient) error {
			_, err := open(t, rdb, "seats", exact.Prefix("app:")).Add(t.Context(), "k", 1)
			return err
		},
		"+set": func(rdb redis.UniversalClient) error {
			_, err := open(t, rdb, "seats", exact.Prefix("app:"), exact.TTL(time.Hour)).Add(t.Context(), "k", 1, exact.ID("x"))
			return err
		},
		"+get": func(rdb redis.UniversalClient) error {
			_, err := open(t, rdb, "seats", exact.Prefix("app:"), exact.Max(9)).Add(t.Context(), "k", 1)
			return err
		},
		"+pttl": func(rdb redis.UniversalClient) error {
			_, err := open(t, rdb, "seats", exact.Prefix("app:"), exact.TTL(time.Hour)).Add(t.Context(), "k", 1)
			return err
		},
		"+evalsha": func(rdb redis.UniversalClient) error {
			_, err := open(t, rdb, "seats", exact.Prefix("app:"), exact.Max(9)).Add(t.Context(), "k", 1)
			return err
		},
		"+del": func(rdb redis.UniversalClient) error {
			_, err := open(t, rdb, "seats", exact.Prefix("app:")).Delete(t.Context(), "k")
			return err
		},
		"~app:seats:{*": func(rdb redis.UniversalClient) error {
			_, err := open(t, rdb, "seats", exact.Prefix("app:"), exact.TTL(time.Hour)).Add(t.Context(), "k", 1, exact.ID("x"))
			return err
		},
	} {
		t.Run(missing, func(t *testing.T) {
			err := add(account(t, server, strings.Replace(rights, missing, "", 1)))
			require.ErrorIs(t, err, exact.ErrNotExecuted)
			keys, err := admin.Keys(t.Context(), "*").Result()
			require.NoError(t, err)
			require.Empty(t, keys)
		})
	}
}

// The batch of an account that may not write is kept until it may, and lands once.
func TestB54FlushWaitsForItsRights(t *testing.T) {
	server := redistest.Start(t)
	client := account(t, server, strings.Replace(rights, "+set", "", 1))
	c := open(t, client, "seats", exact.Prefix("app:"), exact.FlushEvery(10*time.Millisecond))
	mustAdd(t, c, "k", 5)
	time.Sleep(100 * time.Millisecond)
	account(t, server, rights)
	redistest.Eventually(t, 30*time.Second, func() error {
		got, err := server.Client().Get(t.Context(), "app:seats:{k}").Result()
		return errors.Join(err, equal("5", got))
	})
	require.NoError(t, c.Close(t.Context()))
}

// B57: a server that evicts makes a count start again; documented, and no panic.
func TestB57Eviction(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "volatile-lru")
	admin := server.Client()
	c := open(t, admin, "evicted", exact.TTL(time.Hour))
	mustAdd(t, c, "k", 5, exact.ID("x"))
	filler := strings.Repeat("x", 10_000)
	for i := 0; ; i++ {
		require.Less(t, i, 10_000)
		_ = admin.Set(t.Context(), "filler"+strconv.Itoa(i), filler, time.Hour).Err()
		if n, err := admin.Exists(t.Context(), "evicted:{k}").Result(); err == nil && n == 0 {
			break
		}
	}
	count, err := c.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, count)
	require.Equal(t, int64(2), mustAdd(t, c, "k", 2))
}
