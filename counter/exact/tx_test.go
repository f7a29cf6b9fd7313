package exact_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

func TestAddTxJoinsTheTransaction(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(10), exact.TTL(time.Minute))
	ctx := t.Context()
	tx := s.client.TxPipeline()
	tx.Set(ctx, "s", 1, 0)
	added := c.AddTx(ctx, tx, "k", 5)
	tx.Incr(ctx, "t")

	_, err := added.Val()
	require.ErrorIs(t, err, exact.ErrNotExecuted)
	require.ErrorContains(t, err, "Exec was not called")

	_, err = tx.Exec(ctx)
	require.NoError(t, err)
	count, err := added.Val()
	require.NoError(t, err)
	require.Equal(t, int64(5), count)
	s.CheckGet(t, "seats:{k}", "5")
	require.Equal(t, time.Minute, s.TTL("seats:{k}"))
	s.CheckGet(t, "s", "1")
	s.CheckGet(t, "t", "1")
}

// B34: "With max exceeded: the caller can see the overflow from the joined result,
// and is told that SET/INCR did commit."
func TestB34RefusalInATransactionIsAValue(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(3))
	tx := s.client.TxPipeline()
	added := c.AddTx(t.Context(), tx, "k", 5)
	tx.Incr(t.Context(), "t")
	_, err := tx.Exec(t.Context())
	require.NoError(t, err)
	_, err = added.Val()
	requireMax(t, err, exact.MaxError{Max: 3})
	require.ErrorContains(t, err, "the other commands of the transaction were executed")
	s.CheckGet(t, "t", "1")
	require.False(t, s.Exists("seats:{k}"))
}

func TestAddTxWithID(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	for range 2 {
		tx := s.client.TxPipeline()
		added := c.AddTx(t.Context(), tx, "k", 5, exact.ID("a"))
		_, err := tx.Exec(t.Context())
		require.NoError(t, err)
		count, err := added.Val()
		require.NoError(t, err)
		require.Equal(t, int64(5), count)
	}
	tx := s.client.TxPipeline()
	added := c.AddTx(t.Context(), tx, "k", 6, exact.ID("a"))
	_, err := tx.Exec(t.Context())
	require.NoError(t, err)
	_, err = added.Val()
	require.ErrorIs(t, err, exact.ErrIDReused)
}

func TestAddTxAfterDiscard(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	tx := s.client.TxPipeline()
	added := c.AddTx(t.Context(), tx, "k", 5)
	tx.Discard()
	tx.Incr(t.Context(), "t")
	_, err := tx.Exec(t.Context())
	require.NoError(t, err)
	_, err = added.Val()
	require.ErrorIs(t, err, exact.ErrNotExecuted)
	require.False(t, s.Exists("seats:{k}"))
}

func TestAddTxAfterAConflict(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	var added *exact.Result
	err := s.client.Watch(t.Context(), func(tx *redis.Tx) error {
		require.NoError(t, s.Set("watched", "changed"))
		_, err := tx.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
			added = c.AddTx(t.Context(), pipe, "k", 5)
			return nil
		})
		return err
	}, "watched")
	require.ErrorIs(t, err, redis.TxFailedErr)
	_, err = added.Val()
	require.ErrorIs(t, err, exact.ErrNotExecuted)
	require.ErrorIs(t, err, redis.TxFailedErr)
	require.False(t, s.Exists("seats:{k}"))
}

func TestAddTxThatCannotConnect(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer client.Close()
	tx := client.TxPipeline()
	added := open(t, client).AddTx(t.Context(), tx, "k", 5)
	_, err := tx.Exec(t.Context())
	require.Error(t, err)
	_, err = added.Val()
	require.ErrorIs(t, err, exact.ErrNotExecuted)
}

func TestMistakesInAddTxQueueNothing(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	tx := s.client.TxPipeline()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for want, added := range map[string]*exact.Result{
		"at least 1":       c.AddTx(t.Context(), tx, "k", 0),
		"key is empty":     c.AddTx(t.Context(), tx, "", 1),
		"id is empty":      c.AddTx(t.Context(), tx, "k", 1, exact.ID("")),
		"is nil":           c.AddTx(t.Context(), nil, "k", 1),
		"WaitReplicas":     open(t, s.client, exact.WaitReplicas(1, time.Second)).AddTx(t.Context(), tx, "k", 1),
		"context canceled": c.AddTx(done, tx, "k", 1),
	} {
		_, err := added.Val()
		require.ErrorContains(t, err, want)
	}
	require.Zero(t, tx.Len())
	require.NoError(t, c.Close(t.Context()))
	_, err := c.AddTx(t.Context(), tx, "k", 1).Val()
	require.ErrorIs(t, err, exact.ErrClosed)
}
