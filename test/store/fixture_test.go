package store

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// The participants of the cases.
const (
	alice = "alice--1"
	bob   = "bob----1"
)

// fixture is one counter on one server for one case. Its interval is so long that
// the running one stays the same; see [TestScript].
type fixture struct {
	testing.TB
	rdb          *redis.Client
	store        counter.Store
	prefix, name string
	interval     time.Duration
	n            int64 // the running interval
	real         bool  // a real server, not miniredis
	setTime      func(time.Time)
}

func newFixture(t testing.TB, rdb *redis.Client) *fixture {
	t.Helper()
	store, err := counter.NewStore(rdb)
	require.NoError(t, err)
	f := &fixture{TB: t, rdb: rdb, store: store, prefix: redistest.Prefix(t), name: "n", interval: time.Hour}
	f.n = f.running()
	return f
}

// running returns the number of the running interval.
func (f *fixture) running() int64 {
	f.Helper()
	now, err := f.rdb.Time(f.Context()).Result()
	require.NoError(f, err)
	return now.UnixMilli() / f.interval.Milliseconds()
}

// add is a share that adds to the running interval.
func (f *fixture) add(seq, amount int64) counter.Share {
	return counter.Share{Prefix: f.prefix, Name: f.name, Interval: f.n, Seq: seq, Amount: amount}
}

// flush sends shares of alice.
func (f *fixture) flush(shares ...counter.Share) []counter.Result {
	return f.flushAs(alice, shares...)
}

func (f *fixture) flushAs(participant string, shares ...counter.Share) []counter.Result {
	f.Helper()
	results := f.store.Flush(f.Context(), &counter.Flush{Participant: participant, Interval: f.interval, Shares: shares})
	require.Len(f, results, len(shares))
	return results
}

// one sends one share of alice.
func (f *fixture) one(share counter.Share) counter.Result {
	f.Helper()
	return f.oneAs(alice, share)
}

func (f *fixture) oneAs(participant string, share counter.Share) counter.Result {
	f.Helper()
	return f.flushAs(participant, share)[0]
}

// want checks an outcome that comes without totals.
func (f *fixture) want(outcome counter.Outcome, got counter.Result) {
	f.Helper()
	f.wantTime(got)
	got.Time = 0
	assert.Equal(f, counter.Result{Outcome: outcome}, got)
}

// wantTotals checks a result that comes with totals.
func (f *fixture) wantTotals(want, got counter.Result) {
	f.Helper()
	f.wantTime(got)
	got.Time = 0
	assert.Equal(f, want, got)
}

// wantFailed checks an outcome with an error.
func (f *fixture) wantFailed(outcome counter.Outcome, text string, got counter.Result) {
	f.Helper()
	assert.Equal(f, outcome, got.Outcome)
	assert.ErrorContains(f, got.Err, text)
}

func (f *fixture) wantTime(got counter.Result) {
	f.Helper()
	assert.Equal(f, f.n, int64(got.Time)/f.interval.Microseconds(), "time %d", got.Time)
}

func (f *fixture) totalKey(n int64) string { return fmt.Sprintf("%s{%s}:%d", f.prefix, f.name, n) }
func (f *fixture) hashKey(n int64) string  { return f.totalKey(n) + ":by" }

// total returns a total as it is stored, and "" if there is none.
func (f *fixture) total(n int64) string {
	f.Helper()
	value, err := f.rdb.Get(f.Context(), f.totalKey(n)).Result()
	if !errors.Is(err, redis.Nil) {
		require.NoError(f, err)
	}
	return value
}

// hash returns a hash as it is stored.
func (f *fixture) hash(n int64) map[string]string {
	f.Helper()
	value, err := f.rdb.HGetAll(f.Context(), f.hashKey(n)).Result()
	require.NoError(f, err)
	return value
}

func (f *fixture) setTotal(n int64, value string) {
	f.Helper()
	require.NoError(f, f.rdb.Set(f.Context(), f.totalKey(n), value, f.interval).Err())
}

func (f *fixture) setHash(n int64, pairs ...string) {
	f.Helper()
	require.NoError(f, f.rdb.HSet(f.Context(), f.hashKey(n), pairs).Err())
	require.NoError(f, f.rdb.PExpire(f.Context(), f.hashKey(n), f.interval).Err())
}

// setList makes a key that is neither a total nor a hash.
func (f *fixture) setList(key string) {
	f.Helper()
	require.NoError(f, f.rdb.RPush(f.Context(), key, "x").Err())
	require.NoError(f, f.rdb.PExpire(f.Context(), key, f.interval).Err())
}

// keys returns the keys of the fixture.
func (f *fixture) keys() []string {
	f.Helper()
	keys, err := f.rdb.Keys(f.Context(), f.prefix+"*").Result()
	require.NoError(f, err)
	return keys
}

// wantLife checks how long a key lives, in intervals.
func (f *fixture) wantLife(intervals int, key string) {
	f.Helper()
	got, err := f.rdb.PTTL(f.Context(), key).Result()
	require.NoError(f, err)
	want := time.Duration(intervals) * f.interval
	assert.LessOrEqual(f, got, want, key)
	assert.Greater(f, got, want-f.interval/2, key)
}

// wantAllMortal checks that every key has a life.
func (f *fixture) wantAllMortal() {
	f.Helper()
	for _, key := range f.keys() {
		life, err := f.rdb.PTTL(f.Context(), key).Result()
		require.NoError(f, err)
		assert.Positive(f, life, "%s has no TTL", key)
	}
}

// mark is the field of a participant's mark.
func mark(participant string, batch int) string {
	return "@" + participant + "." + strconv.Itoa(batch)
}

// backend makes a fixture for a case.
type backend struct {
	name string
	new  func(t *testing.T) *fixture
}

func backends(t *testing.T) []backend {
	url := redistest.URL(t)
	return []backend{
		{"miniredis", func(t *testing.T) *fixture {
			mini := miniredis.RunT(t)
			mini.SetTime(time.Date(2026, 5, 1, 12, 20, 0, 0, time.UTC))
			rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			f := newFixture(t, rdb)
			f.setTime = mini.SetTime
			return f
		}},
		{"redis", func(t *testing.T) *fixture {
			options, err := redis.ParseURL(url)
			require.NoError(t, err)
			rdb := redis.NewClient(options)
			t.Cleanup(func() { _ = rdb.Close() })
			f := newFixture(t, rdb)
			f.real = true
			return f
		}},
	}
}

// TestScript runs each case on miniredis and on a real server. After each, every
// key has a TTL. A case during which an hour began is run again.
func TestScript(t *testing.T) {
	for _, b := range backends(t) {
		t.Run(b.name, func(t *testing.T) {
			for _, group := range [][]scriptCase{outcomes, errorCases, totals, questions} {
				for _, c := range group {
					t.Run(c.name, func(t *testing.T) {
						for {
							f := b.new(t)
							if c.realOnly != "" && !f.real {
								t.Skip(c.realOnly)
							}
							if c.miniOnly != "" && f.real {
								t.Skip(c.miniOnly)
							}
							// Near an hour's end there is the time to wait for the next.
							if f.real && f.nearEnd() {
								time.Sleep(time.Second)
								continue
							}
							c.run(f)
							f.wantAllMortal()
							return
						}
					})
				}
			}
		})
	}
}

// nearEnd reports whether the running interval ends or began within two seconds.
func (f *fixture) nearEnd() bool {
	f.Helper()
	now, err := f.rdb.Time(f.Context()).Result()
	require.NoError(f, err)
	in := now.UnixMilli() % f.interval.Milliseconds()
	return in < 2000 || in > f.interval.Milliseconds()-2000
}

// scriptCase is one behaviour of the script.
type scriptCase struct {
	name     string
	realOnly string // why miniredis cannot show it
	miniOnly string // why a real server cannot show it
	run      func(f *fixture)
}

const (
	maxInt = math.MaxInt64
	minInt = math.MinInt64
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
