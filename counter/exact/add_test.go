package exact_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

func TestAddReturnsTheNewCount(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	for i, want := range []int64{1, 3, 6} {
		got, err := c.Add(t.Context(), "k", int64(i+1))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := c.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, int64(6), got)
	got, err = c.Get(t.Context(), "other")
	require.NoError(t, err)
	require.Zero(t, got)
}

func TestDeleteSaysWhetherThereWasOne(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	_, err := c.Add(t.Context(), "k", 1)
	require.NoError(t, err)
	for _, want := range []bool{true, false} {
		got, err := c.Delete(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := c.Add(t.Context(), "k", 1)
	require.NoError(t, err)
	require.Equal(t, int64(1), got)
}

func TestWindowStartsWithTheFirstAddAndDoesNotSlide(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.TTL(10*time.Second), exact.Max(3))
	add := func(n int64, opts ...exact.AddOption) error {
		_, err := c.Add(t.Context(), "k", n, opts...)
		return err
	}
	require.NoError(t, add(1, exact.ID("a")))
	s.FastForward(4 * time.Second)
	require.NoError(t, add(1, exact.ID("b")))
	require.NoError(t, add(1, exact.ID("a"))) // a repeat
	require.ErrorIs(t, add(5), exact.ErrMax)  // a refusal
	require.ErrorIs(t, add(9, exact.ID("a")), exact.ErrIDReused)
	require.Equal(t, 6*time.Second, s.TTL("seats:{k}"))
	s.FastForward(6 * time.Second)
	got, err := c.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, got)
	require.NoError(t, add(3))
	require.Equal(t, 10*time.Second, s.TTL("seats:{k}"))
}

func TestWithTTLNoKeyEverLacksIt(t *testing.T) {
	s := newServer(t)
	without := open(t, s.client)
	_, err := without.Add(t.Context(), "k", 1)
	require.NoError(t, err)
	require.Zero(t, s.TTL("seats:{k}"))

	// From the first add with a TTL on, the key that had none has one.
	for name, add := range map[string]func(c *exact.Counters) error{
		"add":       func(c *exact.Counters) error { _, err := c.Add(t.Context(), "k", 1); return err },
		"add up to": func(c *exact.Counters) error { _, _, err := c.AddUpTo(t.Context(), "k", 100); return err },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, s.Set("seats:{k}", "1"))
			require.NoError(t, add(open(t, s.client, exact.TTL(time.Minute), exact.Max(10))))
			require.Equal(t, time.Minute, s.TTL("seats:{k}"))
			s.FastForward(time.Second)
			if _, err := open(t, s.client, exact.TTL(time.Minute), exact.Max(1)).Add(t.Context(), "k", 1); err == nil {
				t.Fatal("not refused")
			}
			require.Equal(t, 59*time.Second, s.TTL("seats:{k}"))
		})
	}
}

func TestB18TTLIsRoundedUpToMilliseconds(t *testing.T) {
	s := newServer(t)
	_, err := open(t, s.client, exact.TTL(1500*time.Microsecond)).Add(t.Context(), "k", 1)
	require.NoError(t, err)
	require.Equal(t, 2*time.Millisecond, s.TTL("seats:{k}"))
}

func TestB19RejectedAddCountsNothing(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(2))
	for range 2 {
		_, err := c.Add(t.Context(), "k", 1)
		require.NoError(t, err)
	}
	got, err := c.Add(t.Context(), "k", 1)
	requireMax(t, err, exact.MaxError{Count: 2, Max: 2})
	require.Equal(t, int64(2), got)
	s.CheckGet(t, "seats:{k}", "2")

	c = open(t, s.client, exact.Max(5))
	require.NoError(t, s.Set("seats:{four}", "4"))
	_, err = c.Add(t.Context(), "four", 3)
	requireMax(t, err, exact.MaxError{Count: 4, Max: 5})
	got, err = c.Add(t.Context(), "four", 1)
	require.NoError(t, err)
	require.Equal(t, int64(5), got)

	// A first add above the maximum creates no key.
	got, err = c.Add(t.Context(), "new", 6, exact.ID("x"))
	requireMax(t, err, exact.MaxError{Count: 0, Max: 5})
	require.Zero(t, got)
	require.False(t, s.Exists("seats:{new}"))
	require.False(t, s.Exists("seats:{new}:id:x"))
}

func TestMaxErrorSaysWhenTheWindowEnds(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(2), exact.TTL(time.Minute))
	_, err := c.Add(t.Context(), "k", 2)
	require.NoError(t, err)
	s.FastForward(20 * time.Second)
	_, err = c.Add(t.Context(), "k", 1)
	requireMax(t, err, exact.MaxError{Count: 2, Max: 2, Reset: 40 * time.Second})
	require.EqualError(t, err, "exact: the maximum is reached: the count is 2 of 2, for another 40s")
}

func requireMax(t *testing.T, err error, want exact.MaxError) {
	t.Helper()
	require.ErrorIs(t, err, exact.ErrMax)
	got, ok := errors.AsType[*exact.MaxError](err)
	require.True(t, ok)
	require.Equal(t, want, *got)
}

func TestOverflowChangesNothing(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	require.NoError(t, s.Set("seats:{k}", "4"))
	got, err := c.Add(t.Context(), "k", math.MaxInt64)
	require.ErrorIs(t, err, exact.ErrLimit)
	require.NotErrorIs(t, err, exact.ErrMax)
	require.Equal(t, int64(4), got)
	s.CheckGet(t, "seats:{k}", "4")

	// With a maximum that is the limit too, it is both.
	c = open(t, s.client, exact.Max(math.MaxInt64))
	_, err = c.Add(t.Context(), "k", math.MaxInt64)
	require.ErrorIs(t, err, exact.ErrLimit)
	requireMax(t, err, exact.MaxError{Count: 4, Max: math.MaxInt64})
	s.CheckGet(t, "seats:{k}", "4")
}

func TestCountsAreExactOverInt64(t *testing.T) {
	const two53 = 1 << 53
	for _, start := range []int64{1, 999_999_999_999_999, 1e15, two53 - 2, two53 - 1, two53, two53 + 1, 1e17, math.MaxInt64 - 1} {
		s := newServer(t)
		c := open(t, s.client)
		got, err := c.Add(t.Context(), "k", start)
		require.NoError(t, err)
		require.Equal(t, start, got)
		got, err = c.Add(t.Context(), "k", 1, exact.ID("x"))
		require.NoError(t, err)
		require.Equal(t, start+1, got)
		got, err = c.Add(t.Context(), "k", 1, exact.ID("x"))
		require.NoError(t, err)
		require.Equal(t, start+1, got)
		got, err = c.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, start+1, got)

		_, err = open(t, s.client, exact.Max(start+1)).Add(t.Context(), "k", 1)
		require.ErrorIs(t, err, exact.ErrMax)
		added, got, err := open(t, s.client, exact.Max(start+1)).AddUpTo(t.Context(), "k", math.MaxInt64)
		require.NoError(t, err)
		require.Zero(t, added)
		require.Equal(t, start+1, got)
		added, got, err = c.AddUpTo(t.Context(), "k", math.MaxInt64)
		require.NoError(t, err)
		require.Equal(t, math.MaxInt64-(start+1), added)
		require.Equal(t, int64(math.MaxInt64), got)
	}
}

func TestAddUpToAddsWhatFits(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(10))
	for _, step := range []struct{ n, added, count int64 }{{4, 4, 4}, {20, 6, 10}, {1, 0, 10}} {
		added, count, err := c.AddUpTo(t.Context(), "k", step.n)
		require.NoError(t, err)
		require.Equal(t, step.added, added)
		require.Equal(t, step.count, count)
	}
	added, count, err := c.AddUpTo(t.Context(), "first", 11)
	require.NoError(t, err)
	require.Equal(t, int64(10), added)
	require.Equal(t, int64(10), count)

	// A count above a maximum that was lowered.
	added, count, err = open(t, s.client, exact.Max(3)).AddUpTo(t.Context(), "k", 1)
	require.NoError(t, err)
	require.Zero(t, added)
	require.Equal(t, int64(10), count)
}

func TestIDCountsOnce(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.TTL(time.Minute))
	add := func(key string, n int64, id string) int64 {
		t.Helper()
		count, err := c.Add(t.Context(), key, n, exact.ID(id))
		require.NoError(t, err)
		return count
	}
	require.Equal(t, int64(5), add("k", 5, "a"))
	require.Equal(t, int64(7), add("k", 2, "b"))
	require.Equal(t, int64(5), add("k", 5, "a"), "the stored result")
	s.CheckGet(t, "seats:{k}", "7")

	s.FastForward(23 * time.Hour) // long after the window
	require.Equal(t, int64(5), add("k", 5, "a"))
	require.False(t, s.Exists("seats:{k}"))
	s.FastForward(time.Hour)
	require.Equal(t, int64(5), add("k", 5, "a"), "forgotten after 24 hours")
	s.CheckGet(t, "seats:{k}", "5")
	_, err := c.Delete(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, int64(5), add("k", 5, "a"), "a Delete forgets no ids")
	require.False(t, s.Exists("seats:{k}"))
}

func TestIDLivesAsLongAsALongTTL(t *testing.T) {
	s := newServer(t)
	_, err := open(t, s.client, exact.TTL(72*time.Hour)).Add(t.Context(), "k", 1, exact.ID("a"))
	require.NoError(t, err)
	require.Equal(t, 72*time.Hour, s.TTL("seats:{k}:id:a"))
	_, err = open(t, s.client).Add(t.Context(), "k", 1, exact.ID("b"))
	require.NoError(t, err)
	require.Equal(t, 24*time.Hour, s.TTL("seats:{k}:id:b"))
}

func TestB51IDIsBoundToTheAdd(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(100))
	for _, key := range []string{"k1", "k2"} { // ids belong to a key
		count, err := c.Add(t.Context(), key, 1, exact.ID("X"))
		require.NoError(t, err)
		require.Equal(t, int64(1), count)
	}
	count, err := c.Add(t.Context(), "k1", 9, exact.ID("X"))
	require.ErrorIs(t, err, exact.ErrIDReused)
	require.Equal(t, int64(1), count)
	_, count, err = c.AddUpTo(t.Context(), "k1", 1, exact.ID("X"))
	require.ErrorIs(t, err, exact.ErrIDReused, "an AddUpTo is another add")
	require.Equal(t, int64(1), count)
	s.CheckGet(t, "seats:{k1}", "1")
}

func TestAddUpToWithIDReturnsTheStoredResult(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(10))
	for range 2 {
		added, count, err := c.AddUpTo(t.Context(), "k", 12, exact.ID("a"))
		require.NoError(t, err)
		require.Equal(t, int64(10), added)
		require.Equal(t, int64(10), count)
	}
	// One that added 0 stores nothing: later it may add.
	added, _, err := c.AddUpTo(t.Context(), "k", 1, exact.ID("b"))
	require.NoError(t, err)
	require.Zero(t, added)
	require.False(t, s.Exists("seats:{k}:id:b"))
	_, err = c.Delete(t.Context(), "k")
	require.NoError(t, err)
	added, _, err = c.AddUpTo(t.Context(), "k", 1, exact.ID("b"))
	require.NoError(t, err)
	require.Equal(t, int64(1), added)
}

func TestRefusedAddStoresNoID(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.Max(1))
	_, err := c.Add(t.Context(), "k", 1)
	require.NoError(t, err)
	_, err = c.Add(t.Context(), "k", 1, exact.ID("a"))
	require.ErrorIs(t, err, exact.ErrMax)
	require.False(t, s.Exists("seats:{k}:id:a"))
	_, err = c.Delete(t.Context(), "k")
	require.NoError(t, err)
	_, err = c.Add(t.Context(), "k", 1, exact.ID("a"))
	require.NoError(t, err)
}

func TestB21AmountsBelowOneSendNothing(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // would fail to dial
	defer client.Close()
	for _, opts := range [][]exact.Option{nil, {exact.FlushEvery(time.Hour)}} {
		c := open(t, client, opts...)
		for _, n := range []int64{0, -1, math.MinInt64} {
			_, err := c.Add(t.Context(), "k", n)
			require.ErrorContains(t, err, "must be at least 1")
			_, _, err = c.AddUpTo(t.Context(), "k", n)
			require.ErrorContains(t, err, "must be at least 1")
		}
		_, err := c.Add(t.Context(), "", 1)
		require.ErrorContains(t, err, "key is empty")
		_, err = c.Add(t.Context(), "k", 1, exact.ID(""))
		require.ErrorContains(t, err, "id is empty")
	}
}

func TestKeyThatHoldsSomethingElse(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client)
	_, err := s.Push("seats:{list}", "x")
	require.NoError(t, err)
	_, err = s.Push("seats:{k}:id:list", "x")
	require.NoError(t, err)
	for key, value := range map[string]string{
		"text": "abc", "negative": "-5", "float": "1.5", "space": " 1", "empty": "", "long": "99999999999999999999",
	} {
		require.NoError(t, s.Set("seats:{"+key+"}", value))
	}
	require.NoError(t, s.Set("seats:{k}:id:text", "5"))
	for _, key := range []string{"list", "text", "negative", "float", "space", "empty"} {
		_, err := c.Add(t.Context(), key, 1, exact.ID("a"))
		require.ErrorIs(t, err, exact.ErrNotExecuted, key)
		require.False(t, s.Exists("seats:{"+key+"}:id:a"))
		_, err = c.Get(t.Context(), key)
		require.Error(t, err, key)
	}
	for _, id := range []string{"list", "text"} {
		_, err := c.Add(t.Context(), "k", 1, exact.ID(id))
		require.ErrorIs(t, err, exact.ErrNotExecuted, id)
		require.False(t, s.Exists("seats:{k}"))
	}
	_, err = c.Add(t.Context(), "long", 1)
	require.Error(t, err)
	s.CheckGet(t, "seats:{long}", "99999999999999999999")
}

func TestAfterClose(t *testing.T) {
	s := newServer(t)
	for _, opts := range [][]exact.Option{nil, {exact.FlushEvery(time.Hour)}} {
		c := open(t, s.client, opts...)
		require.NoError(t, c.Close(t.Context()))
		require.NoError(t, c.Close(t.Context()))
		_, err := c.Add(t.Context(), "k", 1)
		require.ErrorIs(t, err, exact.ErrClosed)
		_, err = c.Get(t.Context(), "k")
		require.ErrorIs(t, err, exact.ErrClosed)
		_, err = c.Delete(t.Context(), "k")
		require.ErrorIs(t, err, exact.ErrClosed)
	}
}
