package group

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// scene is a group with two counters in one batch. Something is done to the victim;
// the bystander must not notice.
type scene struct {
	server   *redistest.Server
	admin    *redis.Client
	prefix   string
	interval time.Duration
	group    *counter.Group
	losses   *losses

	victim, part, bystander *counter.Counter // part is one of the victim's
	added                   int64            // to each of victim and bystander
	victims, bystanders     *record
}

func newScene(t *testing.T, opts ...func(*redis.Options)) *scene {
	t.Helper()
	server := redistest.Start(t)
	s := &scene{
		server: server, admin: server.Client(), prefix: redistest.Prefix(t),
		interval: redistest.Interval(t), losses: newLosses(),
	}
	s.permit(t)
	var err error
	s.group, err = counter.NewGroup(server.Client(opts...), s.interval,
		counter.WithPrefix(s.prefix), counter.WithLogger(slog.New(s.losses)))
	require.NoError(t, err)
	t.Cleanup(s.group.Close)
	s.victim, err = s.group.Counter("victim")
	require.NoError(t, err)
	s.part, err = s.group.Counter("victim", attribute.Int("k", 1))
	require.NoError(t, err)
	s.bystander, err = s.group.Counter("bystander")
	require.NoError(t, err)
	s.victims = follow(t, s.admin, s.prefix, "victim", s.interval)
	s.bystanders = follow(t, s.admin, s.prefix, "bystander", s.interval)
	return s
}

// permit makes a user of exactly the rights that the documentation lists, and
// changes them. See [asApp].
func (s *scene) permit(t *testing.T, rules ...string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "app"}
	if len(rules) == 0 {
		rules = strings.Fields("reset on >secret ~" + s.prefix + "{*}:* " +
			"+evalsha +eval +time +get +incrby +pexpire +hget +hmget +hset +hincrby")
	}
	for _, rule := range rules {
		args = append(args, rule)
	}
	require.NoError(t, s.admin.Do(t.Context(), args...).Err())
}

func asApp(o *redis.Options) { o.Username, o.Password = "app", "secret" }

// count adds to both counters until enough says so, and for so many intervals more.
func (s *scene) count(t *testing.T, intervals int, enough func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for ; !enough(); s.add() {
		require.True(t, time.Now().Before(deadline), "it did not come to that; errors: %v", s.losses.why)
	}
	for end := time.Now().Add(time.Duration(intervals) * s.interval); time.Now().Before(end); {
		s.add()
	}
}

func (s *scene) add() {
	s.victim.Add(3)
	s.part.Add(4)
	s.bystander.Add(7)
	s.added += 7
	time.Sleep(10 * time.Millisecond)
}

func always() bool { return true }

// told waits for an error that was logged.
func (s *scene) told(text string) func() bool {
	return func() bool { return s.losses.told(text) }
}

// settle ends the counting, once all is well again. What the victim has lost was
// reported; all else was counted once.
func (s *scene) settle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, s.group.Flush(ctx))
	_, sum := s.victims.finish(t)
	assert.Equal(t, s.added-s.losses.by("victim"), sum, "the victim; errors: %v", s.losses.why)
	_, sum = s.bystanders.finish(t)
	assert.Equal(t, s.added-s.losses.by("bystander"), sum, "the bystander; errors: %v", s.losses.why)
}

// unharmed is settle where the bystander may not have lost anything.
func (s *scene) unharmed(t *testing.T) {
	t.Helper()
	s.settle(t)
	assert.Zero(t, s.losses.by("bystander"), "lost of the bystander; errors: %v", s.losses.why)
}

// "A wrong key type (total a list, hash a string), an overflowing key": rule 3, "one
// counter's error leaves the other counters of the call alone". All are in one call.
func TestKeysThatRefuse(t *testing.T) {
	t.Parallel()
	const near = 1<<63 - 3
	const life = 10 * time.Second
	s, ctx := newScene(t), t.Context()
	spoils := map[string]struct {
		want string
		do   func(total string) error
	}{
		"total is a list": {"WRONGTYPE", func(total string) error {
			if err := s.admin.RPush(ctx, total, "x").Err(); err != nil {
				return err
			}
			return s.admin.PExpire(ctx, total, life).Err()
		}},
		"hash is a string": {"WRONGTYPE", func(total string) error { return s.admin.Set(ctx, total+":by", "x", life).Err() }},
		"total is text":    {"not an integer", func(total string) error { return s.admin.Set(ctx, total, "x", life).Err() }},
		"total overflows":  {"overflow", func(total string) error { return s.admin.Set(ctx, total, near, life).Err() }},
		"series overflows": {"overflow", func(total string) error { return s.admin.HSet(ctx, total+":by", "k=1", near).Err() }},
		"series is text":   {"not an integer", func(total string) error { return s.admin.HSet(ctx, total+":by", "k=1", "x").Err() }},
	}
	type victim struct {
		name        string
		whole, part *counter.Counter
		record      *record
	}
	var victims []victim
	for name := range spoils {
		c, err := s.group.Counter(name)
		require.NoError(t, err)
		part, err := s.group.Counter(name, attribute.Int("k", 1))
		require.NoError(t, err)
		victims = append(victims, victim{name, c, part, follow(t, s.admin, s.prefix, name, s.interval)})
	}
	added := int64(0) // to each victim
	also := func() {
		added += 7
		for _, v := range victims {
			v.whole.Add(3)
			v.part.Add(4)
		}
	}
	until := func(n int64) func() bool {
		return func() bool { also(); return s.victims.now(ctx) > n }
	}
	n := s.victims.now(ctx)
	s.count(t, 0, until(n+2))
	for i := n + 6; i < n+9; i++ { // early enough, also on a slow machine
		for name, spoil := range spoils {
			require.NoError(t, spoil.do(fmt.Sprintf("%s{%s}:%d", s.prefix, name, i)), name)
		}
	}
	s.count(t, 0, until(n+13))
	s.unharmed(t)
	for _, v := range victims {
		totals, sum := v.record.finish(t)
		for i := n + 6; i < n+9; i++ { // what was there before is no amount
			if v.name == "total overflows" {
				assert.EqualValues(t, near, totals[i])
				sum -= totals[i]
			}
		}
		assert.Equal(t, added-s.losses.by(v.name), sum, "%s; errors: %v", v.name, s.losses.why)
		assert.True(t, s.losses.told(spoils[v.name].want), "%s; errors: %v", v.name, s.losses.why)
	}
}

func TestB11_OutOfMemory(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.count(t, 3, always)
	require.NoError(t, s.admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
	s.count(t, 3, s.told("OOM"))
	keys, err := s.admin.Keys(t.Context(), s.prefix+"*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		life, err := s.admin.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		assert.NotEqualValues(t, -1, life, "%q has no TTL", key)
	}
	require.NoError(t, s.admin.ConfigSet(t.Context(), "maxmemory", "0").Err())
	s.count(t, 4, always)
	s.settle(t)
}

// Everything works with exactly the rights that the documentation lists. Without one
// of them nothing is counted, and no storm of attempts follows.
func TestB54_RightsThatAreTakenAway(t *testing.T) {
	for _, right := range []string{"incrby", "pexpire", "hget"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, asApp)
			s.count(t, 4, always)
			assert.Empty(t, s.losses.why)
			s.permit(t, "-"+right)
			denied := func() bool {
				return s.losses.told("permission") || s.losses.told("not permitted") || s.losses.told("can't run")
			}
			s.count(t, 4, denied)
			s.permit(t)
			s.count(t, 4, always)
			s.settle(t)
		})
	}
}

// Without the right to read, all is still counted; the total is not known.
func TestB54_AUserWhoMayNotRead(t *testing.T) {
	t.Parallel()
	s := newScene(t, asApp)
	s.count(t, 2, func() bool { return s.bystander.Total().Known })
	s.permit(t, "-get")
	s.count(t, 2, func() bool { return !s.bystander.Total().Known })
	s.permit(t)
	s.count(t, 0, func() bool { return s.bystander.Total().Known })
	s.unharmed(t)
	assert.Zero(t, s.losses.sum())
}

// A user who may not touch one counter's keys may still count in the others.
func TestB54_KeysThatAreNotPermitted(t *testing.T) {
	t.Parallel()
	s := newScene(t, asApp)
	s.count(t, 4, always)
	s.permit(t, "resetkeys", "~"+s.prefix+"{bystander}:*")
	s.count(t, 10, s.told("NOPERM"))
	s.permit(t)
	s.count(t, 4, always)
	s.unharmed(t)
}

// READONLY and MASTERDOWN, as after a demotion: what they refuse was proven not to
// have been counted.
func TestADemotedPrimary(t *testing.T) {
	for code, serves := range map[string]string{"READONLY": "yes", "MASTERDOWN": "no"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			ctx := t.Context()
			require.NoError(t, s.admin.ConfigSet(ctx, "replica-serve-stale-data", serves).Err())
			s.count(t, 3, always)
			require.NoError(t, s.admin.ReplicaOf(ctx, "127.0.0.1", "1").Err(), "a primary that is not there")
			s.count(t, 3, s.told(code))
			require.NoError(t, s.admin.ReplicaOf(ctx, "NO", "ONE").Err())
			s.count(t, 4, always)
			if serves == "yes" {
				s.settle(t)
				return
			}
			// Then nobody can read the keys that expire meanwhile.
			require.NoError(t, s.group.Flush(ctx))
			s.victims.err = nil
			_, sum := s.victims.finish(t)
			assert.LessOrEqual(t, sum, s.added-s.losses.by("victim"))
			assert.Positive(t, sum)
		})
	}
}

// A server that never answers with sense: all that was added is reported as lost at
// the latest by Shutdown, which returns when its context ends.
func TestServersThatAreNone(t *testing.T) {
	t.Parallel()
	var all []*refused
	now := func() string { return redistest.BulkReply(strconv.FormatInt(time.Now().UnixMicro(), 10)) }
	for name, answer := range map[string]func(probe bool) string{
		"LOADING":         func(bool) string { return redistest.ErrorReply("LOADING Redis is loading the dataset in memory") },
		"BUSY":            func(bool) string { return redistest.ErrorReply("BUSY Redis is busy running a script.") },
		"MASTERDOWN":      func(bool) string { return redistest.ErrorReply("MASTERDOWN Link with MASTER is down") },
		"ERR":             func(bool) string { return redistest.ErrorReply("ERR internal error") },
		"garbage":         func(bool) string { return "garbage\r\n" },
		"half a bulk":     func(bool) string { return "$10\r\nabc\r\n" },
		"HTTP":            func(bool) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" },
		"hangup":          func(bool) string { return redistest.Hangup },
		"silence":         func(bool) string { return redistest.Silence },
		"nothing":         func(bool) string { return "$-1\r\n" },
		"an empty array":  func(bool) string { return "*0\r\n" },
		"negative length": func(bool) string { return "*-5\r\n" },
		"ints":            func(bool) string { return redistest.ArrayReply(redistest.IntReply(-1), redistest.IntReply(0)) },
		"garbage after a good probe": func(probe bool) string {
			if probe {
				return redistest.ArrayReply(now(), redistest.BulkReply(""))
			}
			return redistest.ArrayReply(now(), redistest.BulkReply("applied 1 1 1 1 1 1"))
		},
		"time only, after a good probe": func(probe bool) string {
			if probe {
				return redistest.ArrayReply(now(), redistest.BulkReply(""))
			}
			return redistest.ArrayReply(now())
		},
	} {
		stub := redistest.NewStub(t, func(args []string) string {
			if redistest.Script(args) {
				return answer(args[2] == "2" && len(args) == 5)
			}
			return redistest.Pass
		})
		all = append(all, refuse(t, name, stub.Client()))
	}
	end := time.Now().Add(8 * redistest.Interval(t))
	for ; time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, r := range all {
			r.c.Add(3)
			r.added += 3
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Interval(t))
	defer cancel()
	for _, r := range all {
		assert.False(t, r.c.Total().Known, r.name)
		assert.GreaterOrEqual(t, r.c.Count(), int64(3), r.name)
		assert.LessOrEqual(t, r.c.Count(), r.added, r.name)
		require.Error(t, r.c.Shutdown(ctx), r.name)
		assert.Equal(t, r.added, r.losses.sum(), "%s: each loss is reported: %v", r.name, r.losses.why)
	}
}

// refused counts on a server that never applies anything.
type refused struct {
	name   string
	c      *counter.Counter
	losses *losses
	added  int64
}

func refuse(t *testing.T, name string, rdb redis.UniversalClient) *refused {
	t.Helper()
	losses := newLosses()
	c, err := counter.New(rdb, "n", redistest.Interval(t), counter.WithLogger(slog.New(losses)))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &refused{name: name, c: c, losses: losses}
}

// Real LOADING: a server that takes its time to read its data. What it refuses
// meanwhile lands once.
func TestB56_AServerThatIsStillLoading(t *testing.T) {
	t.Parallel()
	const keys = 1500
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "yes",
		"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
	admin, ctx := server.Client(), t.Context()
	interval, prefix := time.Second, redistest.Prefix(t)
	pipe := admin.Pipeline()
	for i := range keys {
		pipe.Set(ctx, fmt.Sprint("filler", i), strings.Repeat("x", 100), 0)
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.NoError(t, admin.BgRewriteAOF(ctx).Err())
	redistest.Eventually(t, time.Minute, func() error {
		info, err := admin.Info(ctx, "persistence").Result()
		if err == nil && (!strings.Contains(info, "aof_rewrite_in_progress:0") || strings.Contains(info, "aof_rewrite_scheduled:1")) {
			err = fmt.Errorf("the rewrite goes on")
		}
		return err
	})

	p := join(t, 1, func() redis.UniversalClient { return server.Client() }, prefix, "n", interval)
	r := follow(t, admin, prefix, "n", interval)
	until := func(d time.Duration) func() bool {
		end := time.Now().Add(d)
		return func() bool { return time.Now().After(end) }
	}
	p.count(t, until(2*interval))
	p.flush(t)
	var up atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.count(t, up.Load)
	}()
	server.Restart()
	up.Store(true)
	<-done
	p.count(t, until(2*interval))
	p.flush(t)
	r.err = nil // it could not read either
	_, sum := r.finish(t)
	assert.LessOrEqual(t, sum, p.added, "never counted twice")
	assert.True(t, p.losses.told("LOADING"), "%v", p.losses.why)
}
