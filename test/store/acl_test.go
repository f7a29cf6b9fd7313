package store

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// The rights that the documentation lists. CONFIG is only needed for the warning
// about eviction, and in a cluster the client wants to know the cluster.
var (
	rights        = []string{"evalsha", "eval", "time", "get", "incrby", "pexpire", "hget", "hmget", "hset", "hincrby"}
	clusterRights = []string{"cluster|slots", "asking"}
)

// user makes a user who may run these commands on keys with the prefix, and
// returns a function that adds rules to those.
func user(t *testing.T, admin *redis.Client, prefix string, rights ...string) (change func(rules ...string)) {
	change = func(rules ...string) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "app"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		require.NoError(t, admin.Do(t.Context(), args...).Err())
	}
	rules := []string{"reset", "on", ">secret", "~" + prefix + "{*}:*"}
	for _, right := range rights {
		rules = append(rules, "+"+right)
	}
	change(rules...)
	return change
}

func asUser(o *redis.Options) { o.Username, o.Password = "app", "secret" }

// Everything works with exactly the rights that are listed: B54 in the cases.
func TestRightsThatSuffice(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	f := newFixture(t, admin)
	user(t, admin, f.prefix, rights...)
	store, err := counter.NewStore(server.Client(asUser))
	require.NoError(t, err)
	f.store = store

	_, err = store.Probe(t.Context(), "", f.prefix, f.name)
	require.NoError(t, err)
	assert.Empty(t, f.keys(), "a probe writes nothing")

	f.setTotal(f.n-1, "5")
	f.setHash(f.n-1, "#", "1", "a=1", "3")
	first := f.add(1, 7)
	first.AskFirst, first.Series, first.Amounts = true, []string{"a=1"}, []int64{7}
	first.Questions = []counter.Question{{Interval: f.n - 1, Seq: 9}}
	assert.Equal(t, counter.Result{
		Outcome: counter.Applied, Known: true, Closed: 5, Participants: 1, SeriesClosed: []int64{3}, Open: 7, OpenKnown: true,
		First: true, Answers: []counter.Answer{counter.NotCounted},
	}, timeless(f.one(first)))
	early := f.add(2, 7)
	early.Interval++
	f.want(counter.Refused, f.one(early))

	log, err := admin.ACLLog(t.Context(), 100).Result()
	require.NoError(t, err)
	for _, entry := range log {
		// What go-redis tells about itself when it connects is no need.
		assert.True(t, strings.HasPrefix(entry.Object, "client|"), "%+v", entry)
	}
}

func timeless(result counter.Result) counter.Result {
	result.Time = 0
	return result
}

// DESIGN 2, rule 3: "The probe (rule 6) tries the rights that the script needs (PEXPIRE included), so that missing
// ones show before anything is written."
//
// Without one of the rights the probe names it, nothing is counted, and nothing is
// sent again.
func TestEachMissingRightIsNamed(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	f := newFixture(t, admin)
	change := user(t, admin, f.prefix, rights...)
	proxy := redistest.NewProxy(t, server.Addr)
	calls := proxy.Count(redistest.Script)
	store, err := counter.NewStore(proxy.Client(asUser))
	require.NoError(t, err)
	f.store = store

	question := []counter.Question{{Interval: f.n - 1, Seq: 9}}
	for i, right := range rights {
		t.Run(right, func(t *testing.T) {
			f := *f
			f.TB, f.name = t, right
			seq := int64(i + 1)
			f.setTotal(f.n-1, "5")
			f.one(f.add(seq, 0)) // the script is known, the counter is there
			share := f.add(seq, 7)
			share.Batch, share.Series, share.Amounts = 1, []string{"a=1"}, []int64{7}
			share.AskFirst, share.Questions = true, question
			if right == "eval" {
				require.NoError(t, admin.ScriptFlush(t.Context()).Err())
			}
			change("-" + right)
			defer change("+" + right)

			_, err := f.store.Probe(t.Context(), "", f.prefix, f.name)
			require.Error(t, err)
			assert.Contains(t, strings.ToLower(err.Error()), right)

			before := calls()
			result := f.one(share)
			assert.LessOrEqual(t, calls()-before, 2, "EVALSHA, and EVAL if it is not known")
			switch right {
			case "get": // only reading fails
				assert.Equal(t, counter.Applied, result.Outcome)
				assert.False(t, result.Known)
				assert.False(t, result.OpenKnown)
				assert.Equal(t, "7", f.total(f.n))
			case "hmget":
				assert.Equal(t, counter.Applied, result.Outcome)
				assert.Equal(t, []int64{0}, result.SeriesClosed)
				assert.Equal(t, "7", f.total(f.n))
			case "hincrby": // the series are left out
				assert.Equal(t, counter.Applied, result.Outcome)
				require.Len(t, result.Failed, 1)
				assert.Equal(t, "0", f.total(f.n))
			default:
				assert.Equal(t, counter.NotApplied, result.Outcome, "%+v", result)
				require.Error(t, result.Err)
				assert.Equal(t, "0", f.total(f.n))
			}
			f.wantAllMortal()
		})
	}
}

// What fails in the middle is taken back whole.
func TestARightThatEndsInTheMiddle(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	f := newFixture(t, admin)
	change := user(t, admin, f.prefix, rights...)
	store, err := counter.NewStore(server.Client(asUser))
	require.NoError(t, err)
	f.store = store
	f.setHash(f.n, "#", "1")
	f.setTotal(f.n, "20")
	for seq, pexpire := range []string{
		"",                                    // of no key
		"(+pexpire ~" + f.totalKey(f.n) + ")", // of the total, not of the hash: a selector of Redis 7
	} {
		change("-pexpire")
		if pexpire != "" {
			change(pexpire)
		}
		for i, amount := range []int64{7, -7, 0} {
			share := f.add(int64(3*seq+i+1), amount)
			share.Series, share.Amounts = []string{"a=1"}, []int64{amount}
			result := f.one(share)
			assert.Equal(t, counter.NotApplied, result.Outcome, "%+v", result)
			assert.Equal(t, "20", f.total(f.n))
			want := map[string]string{"#": "1"}
			if pexpire != "" {
				want[mark(alice, 0)] = itoa(-share.Seq) // a fence
			}
			assert.Equal(t, want, f.hash(f.n))
		}
	}
	change("+pexpire")
	assert.Equal(t, counter.Applied, f.one(f.add(100, 7)).Outcome, "its interval is still free")
	assert.Equal(t, "27", f.total(f.n))
	f.wantAllMortal()
}

func TestKeysOutsideOfTheRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	f := newFixture(t, admin)
	user(t, admin, "other:", rights...)
	store, err := counter.NewStore(server.Client(asUser))
	require.NoError(t, err)
	f.store = store

	_, err = store.Probe(t.Context(), "", f.prefix, f.name)
	require.ErrorContains(t, err, "it needs: ~"+f.prefix+"{*}:* +evalsha")
	result := f.one(f.add(1, 7))
	assert.Equal(t, counter.NotApplied, result.Outcome)
	assert.Contains(t, result.Err.Error(), "NOPERM")
	assert.Empty(t, f.keys())
}

// A server refuses a whole call for one key. The other counters of the call must not
// suffer.
func TestOneCountersKeysOutsideOfTheRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	f := newFixture(t, admin)
	change := user(t, admin, f.prefix, rights...)
	change("resetkeys", "~"+f.prefix+"{a*}:*")
	store, err := counter.NewStore(server.Client(asUser))
	require.NoError(t, err)
	f.store = store

	var shares []counter.Share
	for i, name := range []string{"a1", "b", "a2", "a2", "c"} {
		share := f.add(int64(i+1), 7)
		share.Name = name
		shares = append(shares, share)
	}
	shares[3].Batch = 1
	var outcomes []counter.Outcome
	for _, result := range f.flush(shares...) {
		outcomes = append(outcomes, result.Outcome)
		if result.Outcome == counter.NotApplied {
			assert.ErrorContains(t, result.Err, "NOPERM")
		}
	}
	const yes, no = counter.Applied, counter.NotApplied
	assert.Equal(t, []counter.Outcome{yes, no, yes, yes, no}, outcomes)
	assert.Len(t, f.keys(), 4)
	f.name = "a2"
	assert.Equal(t, "14", f.total(f.n))
}

func TestRightsThatSufficeInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2)
	prefix := redistest.Prefix(t)
	for _, node := range cluster.Nodes {
		user(t, node.Client(), prefix, append(clusterRights, rights...)...)
	}
	store, err := counter.NewStore(cluster.Client(func(o *redis.ClusterOptions) {
		o.Username, o.Password = "app", "secret"
	}))
	require.NoError(t, err)
	f := newFixture(t, cluster.Nodes[0].Client())
	f.store, f.prefix = store, prefix
	var shares []counter.Share
	for i, node := range []int{0, 1, 0, 1} {
		share := f.add(int64(i+1), 7)
		share.Name = cluster.NameOn(node, string(rune('a'+i)))
		_, err = store.Probe(t.Context(), "", prefix, share.Name)
		require.NoError(t, err)
		shares = append(shares, share)
	}
	f.name = shares[0].Name
	f.setTotal(f.n-1, "5")
	f.setHash(f.n-1, "#", "1")
	for _, result := range f.flush(shares...) {
		require.Equal(t, counter.Applied, result.Outcome, result.Err)
	}

	move := cluster.BeginMove(f.totalKey(f.n), 1)
	move.Keys(f.totalKey(f.n), f.hashKey(f.n), f.totalKey(f.n-1), f.hashKey(f.n-1))
	shares[0].Batch = 1
	result := f.one(shares[0])
	assert.Equal(t, counter.Applied, result.Outcome, "needs ASKING: %v", result.Err)
	assert.EqualValues(t, 14, result.Open)
	move.Finish()
}
