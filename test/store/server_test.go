package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// onServer is a fixture on a server of the test's own.
func onServer(t *testing.T, args ...string) (*fixture, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t, args...)
	f := newFixture(t, server.Client())
	f.real = true
	return f, server
}

func (f *fixture) set(setting, value string) {
	f.Helper()
	require.NoError(f, f.rdb.ConfigSet(f.Context(), setting, value).Err())
}

// Out of memory is only enforced until a script's first write: B11 in the cases.
func TestOutOfMemoryChangesNothing(t *testing.T) {
	f, _ := onServer(t, "--maxmemory-policy", "noeviction")
	f.one(f.add(1, 1)) // the script is known
	f.set("maxmemory", "1")
	shares := []counter.Share{f.add(2, 5), f.add(3, 5)}
	shares[0].Name, shares[1].Name = "a", "b"
	for _, result := range f.flush(shares...) {
		f.wantFailed(counter.NotApplied, "OOM", result)
	}
	early := f.add(4, 5)
	early.Interval++
	f.wantFailed(counter.NotApplied, "OOM", f.one(early)) // the fence could not be written
	_, err := f.store.Probe(t.Context(), "", f.prefix, f.name)
	assert.True(t, redis.IsOOMError(err), "%v", err)

	f.set("maxmemory", "0")
	assert.Len(t, f.keys(), 2)
	for _, result := range f.flush(shares...) {
		assert.Equal(t, counter.Applied, result.Outcome)
		assert.EqualValues(t, 5, result.Open)
	}
	f.wantAllMortal()
}

func TestAServerThatWantsReplicasChangesNothing(t *testing.T) {
	f, _ := onServer(t)
	f.set("min-replicas-to-write", "1")
	f.wantFailed(counter.NotApplied, "NOREPLICAS", f.one(f.add(1, 5)))
	_, err := f.store.Probe(t.Context(), "", f.prefix, f.name)
	assert.ErrorContains(t, err, "NOREPLICAS")
	f.set("min-replicas-to-write", "0")
	assert.Empty(t, f.keys())
	assert.Equal(t, counter.Applied, f.one(f.add(1, 5)).Outcome)
}

// A client that does not see a replica for what it is goes on talking to it for
// minutes: B47 in the cases.
func TestAReplicaIsLeft(t *testing.T) {
	primary := redistest.Start(t)
	replica := primary.Replica()
	dials := 0
	rdb := replica.Client(func(o *redis.Options) {
		o.OnConnect = func(context.Context, *redis.Conn) error { dials++; return nil }
	})
	f := newFixture(t, rdb)
	var many []counter.Share
	for i := range int64(1200) {
		share := f.add(i+1, 5)
		share.Name = fmt.Sprint(i)
		many = append(many, share)
	}
	for _, shares := range [][]counter.Share{{f.add(1, 5)}, many} {
		before := dials
		for range 2 {
			for _, result := range f.flush(shares...) {
				f.wantFailed(counter.NotApplied, "READONLY", result)
				assert.True(t, redis.IsReadOnlyError(result.Err))
			}
		}
		assert.GreaterOrEqual(t, dials-before, 1, "each READONLY ends a connection")
	}
	_, err := f.store.Probe(t.Context(), "", f.prefix, f.name)
	assert.True(t, redis.IsReadOnlyError(err), "%v", err)

	f.rdb = primary.Client()
	assert.Empty(t, f.keys())
}

// A share that was already applied keeps its answer where others are refused by
// the whole server.
func TestARepeatedShareIsNotHiddenByReadonly(t *testing.T) {
	primary := redistest.Start(t)
	f := newFixture(t, primary.Client())
	share := f.add(1, 5)
	f.one(share)
	replica := primary.Replica()
	store, err := counter.NewStore(replica.Client())
	require.NoError(t, err)
	f.store = store
	other := f.add(2, 7)
	other.Name = "other"
	results := f.flush(other, share, other)
	f.wantFailed(counter.NotApplied, "READONLY", results[0])
	assert.Equal(t, counter.Repeated, results[1].Outcome)
	f.wantFailed(counter.NotApplied, "READONLY", results[2])
}

func TestAForgottenScriptIsSentAgain(t *testing.T) {
	f, _ := onServer(t)
	for seq := range int64(4) {
		var shares []counter.Share
		for i := range 1 + 1199*(seq%2) { // one call, then several
			share := f.add(seq+1, 5)
			share.Name = fmt.Sprint(seq, "-", i)
			shares = append(shares, share)
		}
		for _, result := range f.flush(shares...) {
			require.Equal(t, counter.Applied, result.Outcome)
			require.EqualValues(t, 5, result.Open)
		}
		require.NoError(t, f.rdb.ScriptFlush(t.Context()).Err())
	}
}

func TestEvictionPolicy(t *testing.T) {
	f, server := onServer(t, "--maxmemory-policy", "volatile-lru")
	policy := func(store counter.Store) (string, error) {
		return store.(interface {
			EvictionPolicy(ctx context.Context, prefix, name string) (string, error)
		}).EvictionPolicy(t.Context(), f.prefix, f.name)
	}
	got, err := policy(f.store)
	require.NoError(t, err)
	assert.Equal(t, "volatile-lru", got)

	require.NoError(t, f.rdb.Do(t.Context(), "ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all", "-config").Err())
	store, err := counter.NewStore(server.Client(func(o *redis.Options) { o.Username, o.Password = "app", "x" }))
	require.NoError(t, err)
	got, err = policy(store)
	require.Error(t, err)
	assert.Empty(t, got)
}

// Others failed at a few thousand arguments of one script: B50 in the cases. A call
// blocks the server, so it must be short; on a loaded machine the server itself may
// be kept waiting, so one quiet flush is enough.
func TestTenThousandSeries(t *testing.T) {
	const limit = 50 * time.Millisecond
	f, server := onServer(t)
	f.one(f.add(1, 0)) // the script is known
	calls := proxied(t, f, server)
	var slow []redis.SlowLog
	for try := range 5 {
		f.name = fmt.Sprint("n", try)
		shares := f.manySeries(10_000)
		f.set("slowlog-log-slower-than", itoa(limit.Microseconds()))
		before := calls()
		results := f.flush(shares...)
		assert.Equal(t, len(shares), calls()-before)
		f.set("slowlog-log-slower-than", "-1")
		f.wantManySeries(shares, results)

		slow = nil
		entries, err := f.rdb.SlowLogGet(t.Context(), -1).Result()
		require.NoError(t, err)
		for _, entry := range entries {
			if strings.HasPrefix(strings.ToLower(entry.Args[0]), "eval") {
				entry.Args = entry.Args[:1]
				slow = append(slow, entry)
			}
		}
		if len(slow) == 0 {
			return
		}
		require.NoError(t, f.rdb.SlowLogReset(t.Context()).Err())
	}
	t.Errorf("calls of more than %v in each of 5 flushes, in the last: %v", limit, slow)
}

// manySeries returns the shares of a counter with so many series, which all have
// counted before. The i-th adds i+1.
func (f *fixture) manySeries(series int64) []counter.Share {
	f.Helper()
	f.setTotal(f.n-1, "1")
	var shares []counter.Share
	var pairs []string
	for i := range series {
		if i%499 == 0 {
			share := f.add(i+1, 0)
			share.Batch = len(shares)
			shares = append(shares, share)
		}
		share := &shares[len(shares)-1]
		field := fmt.Sprintf(`http.route="/items/%d",http.status=200`, i)
		share.Series = append(share.Series, field)
		share.Amounts = append(share.Amounts, i+1)
		share.Amount += i + 1
		pairs = append(pairs, field, itoa(1<<53+i))
	}
	f.setHash(f.n-1, pairs...)
	return shares
}

// wantManySeries checks that all is stored and was read.
func (f *fixture) wantManySeries(shares []counter.Share, results []counter.Result) {
	f.Helper()
	stored := f.hash(f.n)
	i := int64(0)
	for s, share := range shares {
		require.Equal(f, counter.Applied, results[s].Outcome, results[s].Err)
		require.Empty(f, results[s].Failed)
		require.Len(f, results[s].SeriesClosed, len(share.Series))
		for j, field := range share.Series {
			require.Equal(f, 1<<53+i, results[s].SeriesClosed[j], field)
			require.Equal(f, itoa(i+1), stored[field], field)
			i++
		}
	}
	assert.Equal(f, itoa(i*(i+1)/2), f.total(f.n))
	assert.Len(f, stored, int(i)+len(shares)+1)
}

func TestTenThousandCounters(t *testing.T) {
	f, server := onServer(t)
	f.one(f.add(1, 0)) // the script is known
	calls := proxied(t, f, server)
	var shares []counter.Share
	for i := range int64(10_000) {
		share := f.add(i+1, i)
		share.Name = fmt.Sprint(i)
		shares = append(shares, share)
	}
	for i, result := range f.flush(shares...) {
		require.Equal(t, counter.Applied, result.Outcome, result.Err)
		require.EqualValues(t, i, result.Open)
	}
	assert.Less(t, calls(), 40)
	assert.Len(t, f.keys(), 2*len(shares)+2)
	f.wantAllMortal()
}

// proxied puts a proxy before the fixture's store, which counts the script calls.
func proxied(t *testing.T, f *fixture, server *redistest.Server) (calls func() int) {
	t.Helper()
	proxy := redistest.NewProxy(t, server.Addr)
	store, err := counter.NewStore(proxy.Client())
	require.NoError(t, err)
	f.store = store
	return proxy.Count(redistest.Script)
}
