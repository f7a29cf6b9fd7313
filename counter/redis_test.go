package counter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/counter/internal/resptest"
)

const clock = 1_800_000_000_123_456 // of the stub's server, in microseconds

// reply is a well-formed answer to a call.
func reply(shares ...string) string {
	parts := []string{resptest.Bulk(fmt.Sprint(clock))}
	for _, share := range shares {
		parts = append(parts, resptest.Bulk(share))
	}
	return resptest.Array(parts...)
}

// stubbed is a store on a server that answers scripts thus.
func stubbed(t *testing.T, answer func(args []string) string) (counter.Store, *resptest.Server) {
	t.Helper()
	server := resptest.New(answer)
	options := server.Options()
	options.ReadTimeout = 100 * time.Millisecond
	client := redis.NewClient(options)
	t.Cleanup(func() {
		_ = client.Close()
		server.Stop()
	})
	store, err := counter.NewStore(client)
	require.NoError(t, err)
	return store, server
}

// share is one that adds, with two series and a question.
func share() counter.Share {
	return counter.Share{
		Prefix: "p:", Name: "n", Interval: 100, Seq: 3, Amount: 7,
		Series: []string{"a=1", "b=2"}, Amounts: []int64{3, 4},
		Questions: []counter.Question{{Interval: 98, Seq: 1}},
	}
}

func flush(t *testing.T, store counter.Store, shares ...counter.Share) []counter.Result {
	t.Helper()
	return store.Flush(t.Context(), &counter.Flush{Participant: "alice--1", Interval: time.Second, Shares: shares})
}

func TestNewStoreRefuses(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	pipeliner, err := client.AutoPipeline()
	require.NoError(t, err)
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()

	for name, tt := range map[string]struct {
		client redis.UniversalClient
		want   string
	}{
		"nil":                {nil, "is nil"},
		"nil client":         {(*redis.Client)(nil), "is nil"},
		"nil cluster client": {(*redis.ClusterClient)(nil), "is nil"},
		"nil ring":           {(*redis.Ring)(nil), "is nil"},
		"ring":               {ring, "redis.Ring is not supported"},
		"embedded ring":      {struct{ *redis.Ring }{ring}, "redis.Ring is not supported"},
		"auto pipeliner":     {pipeliner, "redis.AutoPipeliner is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := counter.NewStore(tt.client)
			assert.Nil(t, store)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestNewStoreSendsNothing(t *testing.T) {
	_, server := stubbed(t, func([]string) string { return "+OK\r\n" })
	assert.Zero(t, server.Conns())
}

func TestAServerIsNamedOnlyInACluster(t *testing.T) {
	store, server := stubbed(t, func([]string) string { return "+OK\r\n" })
	name, err := store.Server(t.Context(), "p:", "n")
	require.NoError(t, err)
	assert.Empty(t, name)
	assert.Zero(t, server.Conns())
}

// The call is what flush.lua describes.
func TestFlushOnTheWire(t *testing.T) {
	var got []string
	store, _ := stubbed(t, func(args []string) string {
		got = args
		return reply("used", "used", "used", "used")
	})
	ahead, read, first := share(), share(), share()
	ahead.Mode, ahead.Series, ahead.Amounts, ahead.Amount = counter.ModeAhead, nil, nil, math.MinInt64
	ahead.Questions = []counter.Question{{Interval: 98, Seq: 1}, {Interval: 97, Seq: 2}}
	read.Mode, read.Questions, read.Name = counter.ModeRead, nil, "m"
	first.AskFirst, first.Questions, first.Batch = true, nil, 2
	flush(t, store, share(), ahead, read, first)

	require.NotEmpty(t, got)
	assert.Equal(t, "evalsha", got[0])
	assert.Equal(t, []string{
		"21",
		"p:{n}:100", "p:{n}:100:by", "p:{n}:99", "p:{n}:99:by", "p:{n}:98:by",
		"p:{n}:100", "p:{n}:100:by", "p:{n}:99", "p:{n}:99:by", "p:{n}:98", "p:{n}:98:by", "p:{n}:98:by", "p:{n}:97:by",
		"p:{m}:100", "p:{m}:100:by", "p:{m}:99", "p:{m}:99:by",
		"p:{n}:100", "p:{n}:100:by", "p:{n}:99", "p:{n}:99:by",

		"1000", "alice--1",
		"add 0 100 3 7 2 1", "3 4", "a=1", "b=2", "98 1",
		"ahead 0 100 3 -9223372036854775808 0 2", "98 1 97 2",
		"read 0 100 3 7 2 0", "3 4", "a=1", "b=2",
		"first 2 100 3 7 2 0", "3 4", "a=1", "b=2",
	}, got[2:])
}

func TestFlushReadsTheAnswer(t *testing.T) {
	applied := counter.Result{
		Outcome: counter.Applied, Time: clock, Known: true, Closed: 10, Open: 12, OpenKnown: true, Participants: 2,
		SeriesClosed: []int64{5, 0}, Answers: []counter.Answer{counter.Counted},
	}
	with := func(change func(*counter.Result)) counter.Result {
		result := applied
		change(&result)
		return result
	}
	for text, want := range map[string]counter.Result{
		"applied 10 12 0 c 2 5 0":  applied,
		"applied 10 12 0 c 2 5 -":  applied,
		"repeated 10 12 0 c 2 5 0": with(func(r *counter.Result) { r.Outcome = counter.Repeated }),
		"applied 10 12 1 c 2 5 0":  with(func(r *counter.Result) { r.First = true }),
		"applied 10 12 0 o 2 5 0":  with(func(r *counter.Result) { r.Answers = []counter.Answer{counter.StillOpen} }),
		"applied 10 12 0 n 2 5 0":  with(func(r *counter.Result) { r.Answers = []counter.Answer{counter.NotCounted} }),
		"applied 10 12 0 u 2 5 0":  with(func(r *counter.Result) { r.Answers = []counter.Answer{counter.Unknowable} }),
		"applied 10 12 0 c - 5 0":  with(func(r *counter.Result) { r.Participants = 0 }),
		"applied 10 - 0 c 2 5 0":   with(func(r *counter.Result) { r.Open, r.OpenKnown = 0, false }),
		"applied - 12 0 c": with(func(r *counter.Result) {
			r.Known, r.Closed, r.Participants, r.SeriesClosed = false, 0, 0, nil
		}),
		"applied 99999999999999999999 12 0 c 2 5 0": with(func(r *counter.Result) {
			r.Known, r.Closed, r.Participants, r.SeriesClosed = false, 0, 0, nil
		}),
		"applied -9223372036854775808 9223372036854775807 0 c 2 -5 0": with(func(r *counter.Result) {
			r.Closed, r.Open, r.SeriesClosed = math.MinInt64, math.MaxInt64, []int64{-5, 0}
		}),
		"applied 10 12 0 c 2 5 0\n1 ERR hash value is not an integer": with(func(r *counter.Result) {
			r.Failed = []counter.Failure{{Index: 1, Err: errors.New("ERR hash value is not an integer")}}
		}),
		"refused":                {Outcome: counter.Refused, Time: clock},
		"used":                   {Outcome: counter.Used, Time: clock},
		"fenced":                 {Outcome: counter.Fenced, Time: clock},
		"late":                   {Outcome: counter.Late, Time: clock},
		"failed WRONGTYPE a key": {Outcome: counter.NotApplied, Time: clock, Err: errors.New("WRONGTYPE a key")},
		"lost NOPERM a key":      {Outcome: counter.Lost, Time: clock, Err: errors.New("NOPERM a key")},
	} {
		t.Run(text, func(t *testing.T) {
			store, _ := stubbed(t, func([]string) string { return reply(text) })
			assert.Equal(t, want, flush(t, store, share())[0])
		})
	}
}

// Others panicked on a reply of another type: B49 in the cases.
func TestAMalformedAnswerIsUnknown(t *testing.T) {
	good := "applied 10 12 0 c 2 5 0"
	tests := map[string]string{
		"an int":                ":1\r\n",
		"a double":              ",3.5\r\n",
		"a boolean":             "#t\r\n",
		"a big number":          "(3492890328409238509324850943850943825024385\r\n",
		"a verbatim string":     "=15\r\ntxt:Some string\r\n",
		"nil":                   "$-1\r\n",
		"a RESP3 nil":           "_\r\n",
		"a nil array":           "*-1\r\n",
		"an empty array":        "*0\r\n",
		"a short array":         "*1\r\n" + resptest.Bulk("1800000000123456"),
		"a long array":          reply(good, good),
		"a map":                 "%1\r\n+a\r\n+b\r\n",
		"a map of arrays":       "%1\r\n*1\r\n+a\r\n+b\r\n",
		"a set":                 "~2\r\n" + resptest.Bulk("x") + resptest.Bulk(good),
		"no time":               resptest.Array(resptest.Bulk(""), resptest.Bulk(good)),
		"time zero":             resptest.Array(":0\r\n", resptest.Bulk(good)),
		"time before 1970":      resptest.Array(resptest.Bulk("-5"), resptest.Bulk(good)),
		"a nil time":            resptest.Array("$-1\r\n", resptest.Bulk(good)),
		"a double as time":      resptest.Array(",3.5\r\n", resptest.Bulk(good)),
		"an int as share":       resptest.Array(resptest.Bulk("5"), ":1\r\n"),
		"nil as share":          resptest.Array(resptest.Bulk("5"), "$-1\r\n"),
		"an array as share":     resptest.Array(resptest.Bulk("5"), resptest.Array(resptest.Bulk(good))),
		"an error as share":     resptest.Array(resptest.Bulk("5"), "-WRONGTYPE Operation\r\n"),
		"a string":              resptest.Bulk(good),
		"nothing as share":      reply(""),
		"an unknown word":       reply("ok"),
		"a word too many":       reply(good + " 7"),
		"a word too few":        reply("applied 10 12 0 c 2 5"),
		"two words too few":     reply("applied 10 12 0 c 2"),
		"no parts":              reply("applied 10 12 0 c"),
		"no answers":            reply("applied 10 12 0 - 2 5 0"),
		"too many answers":      reply("applied 10 12 0 cc 2 5 0"),
		"an unknown answer":     reply("applied 10 12 0 x 2 5 0"),
		"neither first nor not": reply("applied 10 12 2 c 2 5 0"),
		"only applied":          reply("applied"),
		"used, and more":        reply("used 1"),
		"late, and lines":       reply("late\n0 why"),
		"failure out of range":  reply(good + "\n2 why"),
		"failure below range":   reply(good + "\n-1 why"),
		"failure of nothing":    reply(good + "\nwhy"),
	}
	for name, answer := range tests {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprint(name, " in RESP", protocol), func(t *testing.T) {
				server := resptest.New(func([]string) string { return answer })
				options := server.Options()
				options.Protocol = protocol
				client := redis.NewClient(options)
				defer client.Close()
				defer server.Stop()
				store, err := counter.NewStore(client)
				require.NoError(t, err)

				result := flush(t, store, share())[0]
				assert.Equal(t, counter.Unknown, result.Outcome)
				require.Error(t, result.Err)
				assert.Nil(t, result.SeriesClosed)
				assert.Nil(t, result.Answers)
				assert.Equal(t, 1, server.Calls("evalsha"))
				assert.Zero(t, server.Calls("eval"))

				_, err = store.Probe(t.Context(), "", "p:", "n")
				if name != "a set" && name != "an unknown word" && !strings.Contains(answer, "\r\n$") {
					require.Error(t, err)
				}
			})
		}
	}
}

func TestAMalformedShareHarmsNoOther(t *testing.T) {
	store, _ := stubbed(t, func([]string) string { return reply("used", "nonsense", "late") })
	results := flush(t, store, share(), share(), share())
	assert.Equal(t, counter.Used, results[0].Outcome)
	assert.Equal(t, counter.Unknown, results[1].Outcome)
	assert.Equal(t, counter.Late, results[2].Outcome)
}

func TestTimeMayBeANumber(t *testing.T) {
	store, _ := stubbed(t, func([]string) string { return resptest.Array(":5\r\n", resptest.Bulk("used")) })
	assert.Equal(t, counter.Result{Outcome: counter.Used, Time: 5}, flush(t, store, share())[0])
}

// Another library sent again after any error: B04 in the cases. What is proven not
// to have been applied is in B47.
func TestOnlyTheServersOwnRefusalProves(t *testing.T) {
	const six = "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: "
	tests := map[string]counter.Outcome{
		"-READONLY You can't write against a read only replica.":                   counter.NotApplied,
		"-" + six + "-READONLY You can't write against a read only replica.":       counter.NotApplied,
		"-@user_script: 1: -READONLY You can't write against a read only replica.": counter.NotApplied,
		"-LOADING Redis is loading the dataset in memory":                          counter.NotApplied,
		"-MASTERDOWN Link with MASTER is down":                                     counter.NotApplied,
		"-CLUSTERDOWN Hash slot not served":                                        counter.NotApplied,
		"-OOM command not allowed when used memory > 'maxmemory'.":                 counter.NotApplied,
		"-NOPERM this user has no permissions to run the 'evalsha' command":        counter.NotApplied,
		"-NOAUTH Authentication required.":                                         counter.NotApplied,
		"-BUSY Redis is busy running a script.":                                    counter.NotApplied,
		"-NOREPLICAS Not enough good replicas to write.":                           counter.NotApplied,
		"-MISCONF Redis is configured to save RDB snapshots":                       counter.NotApplied,
		"-TRYAGAIN Multiple keys request during rehashing of slot":                 counter.NotApplied,
		"-ERR internal error":                                                      counter.Unknown,
		"-UNKILLABLE Sorry the script already executed write commands":             counter.Unknown,
		"-ERR unknown command 'evalsha'":                                           counter.Unknown,
	}
	for answer, want := range tests {
		for _, calls := range []int{1, 2} {
			t.Run(fmt.Sprint(answer, " to ", calls), func(t *testing.T) {
				store, server := stubbed(t, func([]string) string { return answer + "\r\n" })
				for _, result := range flush(t, store, wide(calls)...) {
					assert.Equal(t, want, result.Outcome)
					assert.ErrorContains(t, result.Err, answer[1:])
				}
				assert.Equal(t, calls, server.Calls("evalsha"))
				assert.Zero(t, server.Calls("eval"))
			})
		}
	}
}

// wide is as many shares as need so many calls.
func wide(calls int) []counter.Share {
	shares := make([]counter.Share, calls)
	for i := range shares {
		shares[i] = counter.Share{Name: "n", Interval: 100, Seq: 3, Batch: i, Series: make([]string, 499), Amounts: make([]int64, 499)}
	}
	return shares
}

func TestALostAnswerIsUnknownAndSentOnce(t *testing.T) {
	for name, answer := range map[string]string{
		"closed":        resptest.Close,
		"no answer":     resptest.Hang,
		"half a string": "$10\r\nabc" + resptest.Close,
		"garbage":       "\x00\x01\r\n",
	} {
		for _, calls := range []int{1, 2} {
			t.Run(fmt.Sprint(name, " to ", calls), func(t *testing.T) {
				var healed atomic.Bool
				store, server := stubbed(t, func([]string) string {
					if !healed.Load() {
						return answer
					}
					return reply("used")
				})
				for _, result := range flush(t, store, wide(calls)...) {
					assert.Equal(t, counter.Unknown, result.Outcome)
					assert.Error(t, result.Err)
				}
				assert.LessOrEqual(t, server.Calls("evalsha"), calls)
				assert.Zero(t, server.Calls("eval"))
				healed.Store(true)
				assert.Equal(t, counter.Used, flush(t, store, share())[0].Outcome, "on a clean connection")
			})
		}
	}
}

func TestReadonlyDiscardsTheConnection(t *testing.T) {
	readonly := true
	store, server := stubbed(t, func([]string) string {
		if readonly {
			readonly = false
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return reply("used")
	})
	flush(t, store, share())
	flush(t, store, share())
	assert.Equal(t, 2, server.Conns())
}

func TestTheSourceIsSentOnceUnknown(t *testing.T) {
	for _, calls := range []int{1, 3} {
		known := false
		store, server := stubbed(t, func(args []string) string {
			if args[0] == "eval" {
				known = true
			}
			if !known {
				return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
			}
			return reply("used")
		})
		for _, result := range flush(t, store, wide(calls)...) {
			assert.Equal(t, counter.Used, result.Outcome)
		}
		assert.Equal(t, 1, server.Calls("eval"))
		assert.Equal(t, calls+calls-1, server.Calls("evalsha"))
		assert.Equal(t, 1, server.Conns())
	}
}

func TestNoConnectionIsNotApplied(t *testing.T) {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", DialerRetries: 1, PoolSize: 1, PoolTimeout: 10 * time.Millisecond,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no network")
		},
	})
	defer client.Close()
	store, err := counter.NewStore(client)
	require.NoError(t, err)
	for _, calls := range []int{1, 2} {
		for _, result := range flush(t, store, wide(calls)...) {
			assert.Equal(t, counter.NotApplied, result.Outcome)
			assert.ErrorContains(t, result.Err, "no network")
		}
	}
	_, err = store.Probe(t.Context(), "", "p:", "n")
	require.ErrorContains(t, err, "no network")
}

func TestCallsAreBounded(t *testing.T) {
	var calls []int
	store, _ := stubbed(t, func(args []string) string {
		cells := 0
		for _, arg := range args {
			if strings.HasPrefix(arg, "add ") {
				cells++
			}
		}
		calls = append(calls, cells)
		answers := make([]string, cells)
		for i := range answers {
			answers[i] = "used"
		}
		return reply(answers...)
	})
	one := func(i int, series ...string) counter.Share {
		return counter.Share{Name: fmt.Sprint(i), Interval: 100, Seq: 3, Series: series, Amounts: make([]int64, len(series))}
	}
	var many, long []counter.Share
	for i := range 1001 {
		many = append(many, one(i%10))
	}
	for i := range 9 {
		long = append(long, one(i, strings.Repeat("x", 10_000)))
	}
	for name, tt := range map[string]struct {
		shares []counter.Share
		want   []int
	}{
		"by counters":      {many, []int{500, 500, 1}},
		"by series":        {append(wide(2), one(1), one(2)), []int{1, 1, 2}},
		"by bytes":         {long, []int{6, 3}},
		"all in one":       {many[:500], []int{500}},
		"more than a call": {[]counter.Share{one(1), one(2, make([]string, 600)...), one(3)}, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			for _, result := range flush(t, store, tt.shares...) {
				require.Equal(t, counter.Used, result.Outcome)
			}
			assert.Equal(t, tt.want, calls)
		})
	}
}

func TestProbe(t *testing.T) {
	var got []string
	answer := ""
	store, _ := stubbed(t, func(args []string) string {
		got = args
		return answer
	})
	answer = reply("")
	now, err := store.Probe(t.Context(), "", "p:", "n")
	require.NoError(t, err)
	assert.EqualValues(t, clock, now)
	assert.Equal(t, []string{"2", "p:{n}:0", "p:{n}:0:by"}, got[2:])

	answer = reply("INCRBY PEXPIRE")
	_, err = store.Probe(t.Context(), "", "p:", "n")
	require.ErrorContains(t, err, `not permitted to run incrby, pexpire on the keys "p:{n}:*"`)
	require.ErrorContains(t, err, "~p:{*}:* +evalsha")

	answer = "-READONLY You can't write against a read only replica.\r\n"
	_, err = store.Probe(t.Context(), "", "p:", "n")
	assert.True(t, redis.IsReadOnlyError(err))
}
