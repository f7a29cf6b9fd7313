package exact

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// TestCounting runs each case on each kind of server.
func TestCounting(t *testing.T) {
	cases := []struct {
		name string
		test func(t *testing.T, at place)
	}{
		{"add, get, delete", addGetDelete},
		{"window", window},
		{"B09 large numbers", largeNumbers},
		{"B18 TTL", extremeTTLs},
		{"B19 rejected adds", rejectedAdds},
		{"overflow", overflow},
		{"add up to", addUpTo},
		{"ids", ids},
		{"B51 ids are bound to the add", boundIDs},
		{"B33 keys", keysOfAnyText},
		{"wrong keys", wrongKeys},
		{"64 callers, 1000 seats", thousandSeats},
		{"64 callers, one id", oneID},
		{"flush every", flushEvery},
	}
	places(t, func(t *testing.T, at place) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.test(t, at) })
		}
	})
}

func equal[T comparable](want, got T) error {
	if want != got {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func addGetDelete(t *testing.T, at place) {
	c := at.open(t, "agd")
	require.Equal(t, int64(1), mustAdd(t, c, "k", 1))
	require.Equal(t, int64(6), mustAdd(t, c, "k", 5))
	eventually(t, c, "k", 6)
	eventually(t, c, "absent", 0)
	for _, want := range []bool{true, false} {
		got, err := c.Delete(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	eventually(t, c, "k", 0)
	require.Equal(t, time.Duration(-2), at.pttl(t, at.key("agd", "k")))
	mustAdd(t, c, "k", 1)
	require.Equal(t, time.Duration(-1), at.pttl(t, at.key("agd", "k")), "without a TTL a key never expires")
}

func window(t *testing.T, at place) {
	const ttl = 2 * time.Second
	c := at.open(t, "window", exact.TTL(ttl), exact.Max(3))
	start := time.Now()
	mustAdd(t, c, "k", 1, exact.ID("a"))
	key := at.key("window", "k")
	first := at.pttl(t, key)
	require.Positive(t, first)
	require.LessOrEqual(t, first, ttl)

	// Later, repeated and refused adds leave it as it was.
	mustAdd(t, c, "k", 2)
	mustAdd(t, c, "k", 1, exact.ID("a"))
	_, err := c.Add(t.Context(), "k", 1)
	full, ok := errors.AsType[*exact.MaxError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, int64(3), full.Count)
	require.Greater(t, full.Reset, time.Duration(0))
	require.LessOrEqual(t, full.Reset, ttl)
	require.LessOrEqual(t, at.pttl(t, key), ttl-time.Since(start)+100*time.Millisecond)

	eventually(t, c, "k", 0)
	require.Less(t, time.Since(start), ttl+5*time.Second)
	require.Equal(t, int64(1), mustAdd(t, c, "k", 1, exact.ID("a")), "the id outlives the window")
	at.holds(t, "", key)
	require.Equal(t, int64(2), mustAdd(t, c, "k", 2))
	require.Greater(t, at.pttl(t, key), ttl/2)
}

func largeNumbers(t *testing.T, at place) {
	const n = 100_000_000_000_000_001
	c := at.open(t, "large", exact.Max(9e18), exact.TTL(1e12*time.Millisecond))
	require.Equal(t, int64(n), mustAdd(t, c, "k", n, exact.ID("x")))
	at.holds(t, strconv.Itoa(n), at.key("large", "k"))
	require.InDelta(t, 1e12, at.pttl(t, at.key("large", "k")).Milliseconds(), 60_000)
	for _, start := range []int64{1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1} {
		for name, opts := range map[string][]exact.Option{
			"plain": nil, "max": {exact.Max(math.MaxInt64)}, "ttl": {exact.TTL(time.Hour)},
		} {
			c, key := at.open(t, "large-"+name, opts...), strconv.FormatInt(start, 10)
			require.Equal(t, start, mustAdd(t, c, key, start))
			require.Equal(t, start+1, mustAdd(t, c, key, 1))
			eventually(t, c, key, start+1)
			at.holds(t, strconv.FormatInt(start+1, 10), at.key("large-"+name, key))
		}
	}
}

func extremeTTLs(t *testing.T, at place) {
	for _, ttl := range []time.Duration{0, -time.Second, 500 * time.Microsecond, 1, math.MaxInt64} {
		_, err := exact.Open(at.rdb, "ttl", exact.TTL(ttl))
		require.ErrorContains(t, err, "TTL")
	}
	c := at.open(t, "century", exact.TTL(100*365*24*time.Hour))
	mustAdd(t, c, "k", 1, exact.ID("x"))
	require.Greater(t, at.pttl(t, at.key("century", "k")), 99*365*24*time.Hour)
	require.Greater(t, at.pttl(t, at.key("century", "k")+":id:x"), 99*365*24*time.Hour)
	short := at.open(t, "short", exact.TTL(time.Millisecond))
	mustAdd(t, short, "k", 1)
	eventually(t, short, "k", 0)
}

func rejectedAdds(t *testing.T, at place) {
	c := at.open(t, "rejected", exact.Max(5))
	mustAdd(t, c, "k", 4)
	count, err := c.Add(t.Context(), "k", 3, exact.ID("x"))
	require.ErrorIs(t, err, exact.ErrMax)
	require.Equal(t, int64(4), count)
	require.Equal(t, int64(5), mustAdd(t, c, "k", 1))
	_, err = c.Add(t.Context(), "new", 6, exact.ID("x"))
	require.ErrorIs(t, err, exact.ErrMax)
	for _, key := range []string{at.key("rejected", "new"), at.key("rejected", "new") + ":id:x", at.key("rejected", "k") + ":id:x"} {
		at.holds(t, "", key)
	}
}

func overflow(t *testing.T, at place) {
	for name, opts := range map[string][]exact.Option{"plain": nil, "ttl": {exact.TTL(time.Hour)}} {
		c := at.open(t, "overflow-"+name, opts...)
		mustAdd(t, c, "k", 4)
		count, err := c.Add(t.Context(), "k", math.MaxInt64)
		require.ErrorIs(t, err, exact.ErrLimit)
		require.Equal(t, int64(4), count)
		require.Equal(t, int64(math.MaxInt64), mustAdd(t, c, "k", math.MaxInt64-4))
		count, err = c.Add(t.Context(), "k", 1)
		require.ErrorIs(t, err, exact.ErrLimit)
		require.Equal(t, int64(math.MaxInt64), count)
		at.holds(t, "9223372036854775807", at.key("overflow-"+name, "k"))
	}
}

func addUpTo(t *testing.T, at place) {
	c := at.open(t, "upto", exact.Max(10), exact.TTL(time.Hour))
	for _, step := range []struct{ n, added, count int64 }{{4, 4, 4}, {20, 6, 10}, {1, 0, 10}} {
		added, count, err := c.AddUpTo(t.Context(), "k", step.n)
		require.NoError(t, err)
		require.Equal(t, step.added, added)
		require.Equal(t, step.count, count)
	}
	require.Greater(t, at.pttl(t, at.key("upto", "k")), time.Minute)
	for range 2 {
		added, count, err := c.AddUpTo(t.Context(), "id", 12, exact.ID("a"))
		require.NoError(t, err)
		require.Equal(t, int64(10), added)
		require.Equal(t, int64(10), count)
	}
	unlimited := at.open(t, "upto-all")
	mustAdd(t, unlimited, "k", 7)
	added, count, err := unlimited.AddUpTo(t.Context(), "k", math.MaxInt64)
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64-7), added)
	require.Equal(t, int64(math.MaxInt64), count)
}

func ids(t *testing.T, at place) {
	c := at.open(t, "ids")
	require.Equal(t, int64(5), mustAdd(t, c, "k", 5, exact.ID("a")))
	require.Equal(t, int64(7), mustAdd(t, c, "k", 2, exact.ID("b")))
	require.Equal(t, int64(5), mustAdd(t, c, "k", 5, exact.ID("a")))
	at.holds(t, "7", at.key("ids", "k"))
	life := at.pttl(t, at.key("ids", "k")+":id:a")
	require.Greater(t, life, 23*time.Hour)
	require.LessOrEqual(t, life, 24*time.Hour)
	_, err := c.Delete(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, int64(5), mustAdd(t, c, "k", 5, exact.ID("a")))
	at.holds(t, "", at.key("ids", "k"))
}

func boundIDs(t *testing.T, at place) {
	c := at.open(t, "bound")
	require.Equal(t, int64(1), mustAdd(t, c, "k1", 1, exact.ID("X")))
	require.Equal(t, int64(1), mustAdd(t, c, "k2", 1, exact.ID("X")))
	_, err := c.Add(t.Context(), "k1", 9, exact.ID("X"))
	require.ErrorIs(t, err, exact.ErrIDReused)
	at.holds(t, "1", at.key("bound", "k1"))
}

func keysOfAnyText(t *testing.T, at place) {
	c := at.open(t, "any", exact.TTL(time.Hour))
	texts := []string{
		"a}b", "{a", "}", "{}", "a{b}c", strings.Repeat("long", 75), "with spaces", "new\nline", "nul\x00", "\xff\xfe", "%7D", "%",
		"x}:5", "k:id:x", "k", "k}:id:x",
	}
	for i, key := range texts {
		require.Equal(t, int64(i+1), mustAdd(t, c, key, int64(i+1), exact.ID("id")), "%q", key)
		for j, id := range texts {
			require.Equal(t, int64(i+1+j+1), mustAdd(t, c, key, int64(j+1), exact.ID(id)), "%q %q", key, id)
			_, err := c.Delete(t.Context(), key)
			require.NoError(t, err)
			mustAdd(t, c, key, int64(i+1))
		}
	}
	for i, key := range texts {
		eventually(t, c, key, int64(i+1))
	}
	_, err := c.Add(t.Context(), "", 1)
	require.ErrorContains(t, err, "the key is empty")
}

func wrongKeys(t *testing.T, at place) {
	c := at.open(t, "wrong")
	for key, value := range map[string]string{"text": "abc", "float": "1.5", "long": "99999999999999999999"} {
		require.NoError(t, at.rdb.Set(t.Context(), at.key("wrong", key), value, 0).Err())
		_, err := c.Add(t.Context(), key, 1)
		require.ErrorIs(t, err, exact.ErrNotExecuted, key)
		_, err = c.Add(t.Context(), key, 1, exact.ID("x"))
		require.ErrorIs(t, err, exact.ErrNotExecuted, key)
		at.holds(t, value, at.key("wrong", key))
		at.holds(t, "", at.key("wrong", key)+":id:x")
	}
	require.NoError(t, at.rdb.RPush(t.Context(), at.key("wrong", "list"), "x").Err())
	require.NoError(t, at.rdb.RPush(t.Context(), at.key("wrong", "k")+":id:list", "x").Err())
	for _, opts := range [][]exact.AddOption{nil, {exact.ID("x")}} {
		_, err := c.Add(t.Context(), "list", 1, opts...)
		require.ErrorIs(t, err, exact.ErrNotExecuted)
		require.ErrorContains(t, err, "WRONGTYPE")
	}
	_, err := c.Add(t.Context(), "k", 1, exact.ID("list"))
	require.ErrorIs(t, err, exact.ErrNotExecuted)
	at.holds(t, "", at.key("wrong", "k"))
}

// "64 callers on one key with Max=1000: exactly 1000 succeed."
func thousandSeats(t *testing.T, at place) {
	c := at.open(t, "seats", exact.Max(1000))
	var wg sync.WaitGroup
	var sold atomic.Int64
	counts := make([][]int64, 64)
	for i := range 64 {
		wg.Go(func() {
			for range 20 {
				count, err := c.Add(t.Context(), "k", 1)
				switch {
				case err == nil:
					sold.Add(1)
					counts[i] = append(counts[i], count)
				case !errors.Is(err, exact.ErrMax):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(1000), sold.Load())
	at.holds(t, "1000", at.key("seats", "k"))
	all := slices.Sorted(slices.Values(slices.Concat(counts...)))
	for i, count := range all {
		require.Equal(t, int64(i+1), count, "each count is returned once")
	}
}

func oneID(t *testing.T, at place) {
	c := at.open(t, "one", exact.TTL(time.Hour))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			if count, err := c.Add(t.Context(), "k", 3, exact.ID("same")); err != nil || count != 3 {
				t.Error(count, err)
			}
		})
	}
	wg.Wait()
	at.holds(t, "3", at.key("one", "k"))
}

func flushEvery(t *testing.T, at place) {
	const keys, each, writers = 300, 20, 4
	var all []*exact.Counters
	for range writers {
		all = append(all, at.open(t, "flush", exact.FlushEvery(20*time.Millisecond), exact.TTL(time.Hour)))
	}
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			for i := range keys * each {
				if _, err := c.Add(t.Context(), strconv.Itoa(i%keys), 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range keys {
		count, err := all[0].Get(t.Context(), strconv.Itoa(i))
		require.NoError(t, err)
		require.GreaterOrEqual(t, count, int64(each), "its own are in it at once")
	}
	for _, c := range all {
		require.NoError(t, c.Close(t.Context()))
	}
	for i := range keys {
		at.holds(t, strconv.Itoa(writers*each), at.key("flush", strconv.Itoa(i)))
		require.Positive(t, at.pttl(t, at.key("flush", strconv.Itoa(i))))
	}
	_ = redistest.Interval
}
