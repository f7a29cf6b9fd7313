package script_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/internal/resptest"
	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

const (
	noScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	ok       = "+OK\r\n"
)

var add = script.New("return redis.call('INCRBY', KEYS[1], ARGV[1])")

// serve starts a server that answers thus and a client of it with default options.
func serve(t *testing.T, answer func(args []string) string) (*resptest.Server, *redis.Client) {
	t.Helper()
	server := resptest.New(answer)
	client := redis.NewClient(server.Options())
	t.Cleanup(func() {
		assert.NoError(t, client.Close())
		server.Stop()
	})
	return server, client
}

func TestScriptIsKnownByItsSHA(t *testing.T) {
	assert.Equal(t, redis.NewScript(add.Source()).Hash(), add.SHA())
}

func TestRunSendsTheSourceOnlyAfterNoScript(t *testing.T) {
	var got [][]string
	server, client := serve(t, func(args []string) string {
		got = append(got, args)
		if args[0] == "evalsha" {
			return noScript
		}
		return ":7\r\n"
	})
	cmd := add.Run(t.Context(), client, []string{"k"}, 5)
	reply, err := cmd.Reply()
	require.NoError(t, err)
	assert.EqualValues(t, 7, reply)
	assert.False(t, cmd.NotExecuted())
	assert.Equal(t, [][]string{
		{"evalsha", add.SHA(), "1", "k", "5"},
		{"eval", add.Source(), "1", "k", "5"},
	}, got)
	assert.Equal(t, 1, server.Conns())
}

// DESIGN 2, rule 10: "Commands that add are sent as a type of ours that embeds `*redis.Cmd` and returns true from
// `NoRetry()`."
//
// Another library sent its script again after any error: B04 in the cases.
func TestNothingElseIsSentTwice(t *testing.T) {
	tests := map[string]struct {
		answer      string
		notExecuted bool
	}{
		"internal error":  {"-ERR internal error\r\n", false},
		"unkillable":      {"-UNKILLABLE Sorry\r\n", false},
		"busy":            {"-BUSY Redis is busy running a script.\r\n", true},
		"loading":         {"-LOADING Redis is loading the dataset in memory\r\n", true},
		"readonly":        {"-READONLY You can't write against a read only replica.\r\n", true},
		"half a string":   {"$10\r\nabc" + resptest.Close, false},
		"garbage":         {"\x00\x01\x02\r\n", false},
		"closed":          {resptest.Close, false},
		"no answer":       {resptest.Hang, false},
		"nothing":         {"$-1\r\n", false},
		"the right thing": {":5\r\n", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := resptest.New(func([]string) string { return tt.answer })
			defer server.Stop()
			options := server.Options()
			options.ReadTimeout = 50 * time.Millisecond
			client := redis.NewClient(options)
			defer client.Close()

			assert.Equal(t, tt.notExecuted, add.Run(t.Context(), client, []string{"k"}, 5).NotExecuted(), "single")
			assert.Equal(t, 1, server.Calls("evalsha"), "single")

			cmds := []*script.Cmd{
				add.EvalSha(t.Context(), []string{"k"}, 5),
				add.EvalSha(t.Context(), []string{"l"}, 5),
			}
			add.RunAll(t.Context(), client, cmds)
			assert.Equal(t, tt.notExecuted, cmds[0].NotExecuted(), "pipelined")
			assert.LessOrEqual(t, server.Calls("evalsha"), 3, "pipelined")
			assert.Zero(t, server.Calls("eval"))
		})
	}
}

func TestAPlainCommandWouldBeSentAgain(t *testing.T) {
	server, client := serve(t, func([]string) string { return resptest.Close })
	require.Error(t, client.EvalSha(t.Context(), add.SHA(), []string{"k"}, 5).Err())
	assert.Equal(t, 4, server.Calls("evalsha"), "if this fails, go-redis has changed")
}

func TestRunAllSendsTheSourceOncePerServer(t *testing.T) {
	var known bool
	server, client := serve(t, func(args []string) string {
		if args[0] == "eval" {
			known = true
		}
		if !known {
			return noScript
		}
		return resptest.Bulk(args[3])
	})
	var cmds []*script.Cmd
	for _, key := range []string{"a", "b", "c"} {
		cmds = append(cmds, add.EvalSha(t.Context(), []string{key}, 1))
	}
	add.RunAll(t.Context(), client, cmds)
	for i, key := range []string{"a", "b", "c"} {
		reply, err := cmds[i].Reply()
		require.NoError(t, err)
		assert.Equal(t, key, reply)
	}
	assert.Equal(t, 1, server.Calls("eval"))
	assert.Equal(t, 3+2, server.Calls("evalsha"))
}

func TestRunAllGivesUpOnAServerWithoutScripts(t *testing.T) {
	server, client := serve(t, func([]string) string { return noScript })
	cmds := []*script.Cmd{
		add.EvalSha(t.Context(), []string{"a"}, 1),
		add.EvalSha(t.Context(), []string{"b"}, 1),
	}
	add.RunAll(t.Context(), client, cmds)
	assert.True(t, cmds[0].NotExecuted())
	assert.True(t, cmds[1].NotExecuted())
	assert.Equal(t, 3, server.Calls("eval"))
	assert.Equal(t, 3, server.Calls("evalsha"))
}

func TestNeverWrittenIsProven(t *testing.T) {
	_, client := serve(t, func([]string) string { return ok })

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cmd := add.Run(ctx, client, []string{"k"}, 5)
	require.ErrorIs(t, cmd.Err(), context.Canceled)
	assert.True(t, cmd.NotExecuted(), "it did not get a connection")

	client.AddHook(hook{before: errors.New("the limit of this user")})
	cmd = add.Run(t.Context(), client, []string{"k"}, 5)
	require.ErrorContains(t, cmd.Err(), "the limit of this user")
	assert.True(t, cmd.NotExecuted())
}

func TestAReplyCountsWhateverAHookSays(t *testing.T) {
	_, client := serve(t, func([]string) string { return ok })
	client.AddHook(hook{after: redis.ErrPoolTimeout})

	cmd := add.Run(t.Context(), client, []string{"k"}, 5)
	require.Error(t, cmd.Err())
	assert.False(t, cmd.NotExecuted())
	reply, err := cmd.Reply()
	require.NoError(t, err)
	assert.Equal(t, "OK", reply)
}

func TestACloneIsNotSentAgainEither(t *testing.T) {
	cmd := add.EvalSha(t.Context(), []string{"k"}, 5)
	clone := cmd.Clone()
	assert.True(t, clone.NoRetry())
	assert.IsType(t, cmd, clone)
	assert.Equal(t, cmd.Args(), clone.Args())

	cmd.SetErr(redis.ErrNoScript)
	assert.NoError(t, clone.Err(), "a clone has an outcome of its own")
}

const (
	addrA = "10.0.0.1:6379" // not on loopback: go-redis would replace the host
	addrB = "10.0.0.2:6379"
)

// cluster is a client of a cluster where server A has all slots.
func cluster(t *testing.T, dial func(ctx context.Context, addr string) (net.Conn, error)) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:         []string{addrA},
		DialerRetries: 1,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addrA}}}}, nil
		},
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) },
	})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

// twoServers is a cluster of two servers, A with all slots.
func twoServers(t *testing.T, a, b *resptest.Server) *redis.ClusterClient {
	t.Helper()
	t.Cleanup(a.Stop)
	t.Cleanup(b.Stop)
	return cluster(t, func(ctx context.Context, addr string) (net.Conn, error) {
		if addr == addrA {
			return a.Dial(ctx, "", addr)
		}
		return b.Dial(ctx, "", addr)
	})
}

// DESIGN 2, rule 10: "a cluster client still follows MOVED and ASK for them."
func TestClusterFollowsRedirects(t *testing.T) {
	for _, redirect := range []string{"MOVED", "ASK"} {
		t.Run(redirect, func(t *testing.T) {
			a := resptest.New(func([]string) string { return "-" + redirect + " 1 " + addrB + "\r\n" })
			known := false
			b := resptest.New(func(args []string) string {
				switch {
				case args[0] == "asking":
					return ok
				case args[0] == "eval":
					known = true
				case !known:
					return noScript
				}
				return ":5\r\n"
			})
			client := twoServers(t, a, b)

			reply, err := add.Run(t.Context(), client, []string{"k"}, 5).Reply()
			require.NoError(t, err)
			assert.EqualValues(t, 5, reply)

			known = false
			cmds := []*script.Cmd{
				add.EvalSha(t.Context(), []string{"k"}, 5),
				add.EvalSha(t.Context(), []string{"l"}, 5),
			}
			add.RunAll(t.Context(), client, cmds)
			for _, cmd := range cmds {
				reply, err := cmd.Reply()
				require.NoError(t, err)
				assert.EqualValues(t, 5, reply)
			}
		})
	}
}

// A pipeline of go-redis leaves the MOVED of the first attempt on commands whose
// second attempt was written and then lost.
func TestClusterPipelineLosesTheRedirectedAttempt(t *testing.T) {
	a := resptest.New(func([]string) string { return "-MOVED 1 " + addrB + "\r\n" })
	b := resptest.New(func(args []string) string {
		if args[3] == "l" {
			return resptest.Close // both have been executed
		}
		return resptest.Hang
	})
	client := twoServers(t, a, b)
	cmds := []*script.Cmd{
		add.EvalSha(t.Context(), []string{"k"}, 5),
		add.EvalSha(t.Context(), []string{"l"}, 5),
	}
	add.RunAll(t.Context(), client, cmds)
	for i, cmd := range cmds {
		assert.False(t, cmd.NotExecuted(), "command %d: %v", i, cmd.Err())
		_, err := cmd.Reply()
		require.Error(t, err)
	}
	require.True(t, strings.HasPrefix(cmds[1].Err().Error(), "MOVED"), "if this fails, go-redis has changed")
	assert.Equal(t, 2, b.Calls("evalsha"))
}

// The same with a dial error, where even the failure of the later attempt is kept
// from the commands.
func TestClusterPipelineLosesTheAttemptAfterADialError(t *testing.T) {
	a := resptest.New(func([]string) string { return ":5\r\n" })
	t.Cleanup(a.Stop)
	var down atomic.Int32
	down.Store(2) // as often as one attempt dials
	client := cluster(t, func(ctx context.Context, addr string) (net.Conn, error) {
		if down.Add(-1) >= 0 {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}
		conn, err := a.Dial(ctx, "", addr)
		return breaking{conn}, err
	})
	cmds := []*script.Cmd{
		add.EvalSha(t.Context(), []string{"k"}, 5),
		add.EvalSha(t.Context(), []string{"l"}, 5),
	}
	add.RunAll(t.Context(), client, cmds)
	require.Eventually(t, func() bool { return a.Calls("evalsha") == 2 }, time.Second, time.Millisecond)
	for i, cmd := range cmds {
		assert.False(t, cmd.NotExecuted(), "command %d: %v", i, cmd.Err())
	}
	require.True(t, script.Proven(cmds[1].Err()), "%v: if this fails, go-redis has changed", cmds[1].Err())
}

// breaking is a connection that breaks once a script was written to it.
type breaking struct{ net.Conn }

func (c breaking) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b, []byte("evalsha")) {
		return n, errors.New("broken pipe")
	}
	return n, err
}

// hook is a user's hook that fails before or after the command.
type hook struct{ before, after error }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.before != nil {
			return h.before
		}
		if err := next(ctx, cmd); err != nil {
			return err
		}
		return h.after
	}
}

func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
