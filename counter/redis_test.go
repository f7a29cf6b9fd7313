package counter_test

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	parts := []string{resptest.Bulk(fmt.Sprint(int64(clock)))}
	for _, share := range shares {
		parts = append(parts, resptest.Bulk(share))
	}
	return resptest.Array(parts...)
}

// stubbed is a store on a server that answers scripts thus.
func stubbed(t *testing.T, answer func(args []string) string, set ...func(*redis.Options)) (counter.Store, *resptest.Server) {
	t.Helper()
	server := resptest.New(answer)
	options := server.Options()
	for _, set := range set {
		set(options)
	}
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

// DESIGN 2, promise: "redis.Ring is refused (a rehash would split marker and total)."
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
				}, func(o *redis.Options) {
					if answer == resptest.Hang {
						o.ReadTimeout = 100 * time.Millisecond
					}
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
	assert.EqualValues(t, int64(clock), now)
	assert.Equal(t, []string{"2", "p:{n}:0", "p:{n}:0:by"}, got[2:])

	answer = reply("INCRBY PEXPIRE")
	_, err = store.Probe(t.Context(), "", "p:", "n")
	require.ErrorContains(t, err, `not permitted to run incrby, pexpire on the keys "p:{n}:*"`)
	require.ErrorContains(t, err, "~p:{*}:* +evalsha")

	for _, malformed := range []string{":1\r\n", "$-1\r\n", "*0\r\n", reply(), reply("", ""), resptest.Array(":1\r\n", ":1\r\n"), resptest.Array("$-1\r\n", "$-1\r\n")} {
		answer = malformed
		_, err = store.Probe(t.Context(), "", "p:", "n")
		require.Error(t, err, malformed)
	}

	answer = "-READONLY You can't write against a read only replica.\r\n"
	_, err = store.Probe(t.Context(), "", "p:", "n")
	assert.True(t, redis.IsReadOnlyError(err))
}
