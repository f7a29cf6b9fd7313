package exact

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// B34, on every kind of server. The caller's keys share the add's slot.
func TestB34Transactions(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, at place) {
		ctx := t.Context()
		s, u := at.prefix+"s:{k}", at.prefix+"u:{k}"
		c := at.open(t, "tx", exact.Max(12), exact.TTL(time.Hour))
		run := func(n int64, opts ...exact.AddOption) (*exact.Result, error) {
			tx := at.rdb.TxPipeline()
			tx.Set(ctx, s, 1, 0)
			added := c.AddTx(ctx, tx, "k", n, opts...)
			tx.Incr(ctx, u)
			_, err := added.Val()
			require.ErrorIs(t, err, exact.ErrNotExecuted)
			_, err = tx.Exec(ctx)
			return added, err
		}
		require.NoError(t, at.rdb.ScriptFlush(ctx).Err()) // an EVALSHA would fail inside Exec
		added, err := run(5)
		require.NoError(t, err)
		count, err := added.Val()
		require.NoError(t, err)
		require.Equal(t, int64(5), count)
		at.holds(t, "1", s)
		at.holds(t, "1", u)
		at.holds(t, "5", at.key("tx", "k"))

		// A refusal is a value, and the others did commit.
		added, err = run(8)
		require.NoError(t, err)
		count, err = added.Val()
		require.ErrorIs(t, err, exact.ErrMax)
		require.ErrorContains(t, err, "the other commands of the transaction were executed")
		require.Equal(t, int64(5), count)
		at.holds(t, "2", u)

		for range 2 {
			added, err = run(1, exact.ID("x"))
			require.NoError(t, err)
			count, err = added.Val()
			require.NoError(t, err)
			require.Equal(t, int64(6), count)
		}
		added, err = run(2, exact.ID("x"))
		require.NoError(t, err)
		_, err = added.Val()
		require.ErrorIs(t, err, exact.ErrIDReused)

		// EXECABORT: a command that cannot be queued aborts all.
		tx := at.rdb.TxPipeline()
		added = c.AddTx(ctx, tx, "k", 1)
		tx.Do(ctx, "get", u, "too", "many")
		_, err = tx.Exec(ctx)
		require.Error(t, err)
		_, err = added.Val()
		require.ErrorIs(t, err, exact.ErrNotExecuted)

		// A conflict on a watched key.
		err = at.rdb.Watch(ctx, func(tx *redis.Tx) error {
			require.NoError(t, at.rdb.Incr(ctx, u).Err())
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				added = c.AddTx(ctx, pipe, "k", 1)
				return nil
			})
			return err
		}, u)
		require.ErrorIs(t, err, redis.TxFailedErr)
		_, err = added.Val()
		require.ErrorIs(t, err, redis.TxFailedErr)
		require.ErrorIs(t, err, exact.ErrNotExecuted)

		at.holds(t, "6", at.key("tx", "k"))

		// A key that holds something else fails alone: Redis has no rollback.
		require.NoError(t, at.rdb.Del(ctx, at.key("tx", "k")).Err())
		require.NoError(t, at.rdb.RPush(ctx, at.key("tx", "k"), "x").Err())
		added, err = run(1)
		require.ErrorContains(t, err, "WRONGTYPE")
		_, err = added.Val()
		require.ErrorIs(t, err, exact.ErrNotExecuted)
		require.ErrorContains(t, err, "WRONGTYPE")
	})
}

func TestB34DifferentSlotsFailBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartProxiedCluster(t, 2)
	client := cluster.Client()
	c := open(t, client, "tx")
	here, there := cluster.NameOn(0, "k"), cluster.NameOn(1, "k")
	mustAdd(t, c, here, 1)
	var sent []func() int
	for _, node := range cluster.Nodes {
		sent = append(sent, node.Proxy.Count(redistest.Command("MULTI", "EXEC", "EVAL", "SET")))
	}
	tx := client.TxPipeline()
	added := c.AddTx(t.Context(), tx, here, 1)
	tx.Set(t.Context(), there, 1, 0)
	_, err := tx.Exec(t.Context())
	require.ErrorIs(t, err, redis.ErrCrossSlot)
	_, err = added.Val()
	require.ErrorIs(t, err, exact.ErrNotExecuted)
	require.ErrorIs(t, err, redis.ErrCrossSlot)
	for _, n := range sent {
		require.Zero(t, n())
	}
}

func TestB34TransactionWithoutAnswerIsSentOnce(t *testing.T) {
	t.Parallel()
	networks(t, func(t *testing.T, n network) {
		c := n.open(t, "tx")
		mustAdd(t, c, "warm", 1)
		heal := n.inject(redistest.Fault{Kind: redistest.Close, Match: redistest.Command("EXEC")})
		sent := n.count()
		tx := n.rdb.TxPipeline()
		added := c.AddTx(t.Context(), tx, "k", 5)
		_, err := tx.Exec(t.Context())
		heal()
		require.Error(t, err)
		_, err = added.Val()
		require.ErrorIs(t, err, exact.ErrUnknown)
		require.Equal(t, 1, sent())
		eventually(t, c, "k", 5)
	})
}

// A transaction follows a slot that has moved.
func TestTransactionAfterASlotHasMoved(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	client := cluster.Client()
	c := open(t, client, "tx")
	key := cluster.NameOn(0, "k")
	mustAdd(t, c, key, 1)
	cluster.BeginMove(key, 1).Finish()
	tx := client.TxPipeline()
	added := c.AddTx(t.Context(), tx, key, 1)
	_, err := tx.Exec(t.Context())
	require.NoError(t, err)
	count, err := added.Val()
	require.NoError(t, err)
	require.Equal(t, int64(2), count)
}
