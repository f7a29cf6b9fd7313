package reader

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hook is one that a user adds to the client, as that of redisotel is. Each command
// that is sent, alone or in a pipeline, goes through command.
type hook struct {
	command func(send func() error) error
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.command(func() error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.command(func() error { return next(ctx, cmds) })
	}
}

// A hook that counts commands with an instrument of the same provider feeds on the
// reader's own flushes. They stay a few an interval.
func TestB59_HookThatCountsCommandsDoesNotGrow(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		rdb := b.client()
		r := b.replicaOn(rdb)
		commands := r.counter("redis.commands")
		rdb.AddHook(hook{func(send func() error) error {
			commands.Add(t.Context(), 1)
			return send()
		}})
		r.counter("http.requests").Add(t.Context(), 1)
		sleep(5 * second) // it connects and probes
		for range 60 {
			sleep(second)
			assert.LessOrEqual(t, r.reader.Total("redis.commands").Closed, int64(4))
		}
		assert.EqualValues(t, 1, b.truth("shop:{http.requests}"))
	})
}

// A hook that fails before a command is sent, or after: nobody knows which it was.
// Nothing counts twice, and what was not sent is asked back and comes later.
func TestB59_HookThatFailsCountsNothingTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		rdb := b.client()
		r := b.replicaOn(rdb)
		failed := errors.New("a hook's own error")
		var calls atomic.Int64
		rdb.AddHook(hook{func(send func() error) error {
			switch n := calls.Add(1); {
			case n > 10 && n%6 == 0:
				return failed
			case n > 10 && n%6 == 3:
				_ = send()
				return failed
			default:
				return send()
			}
		}})
		requests := r.counter("http.requests")
		for range 40 {
			requests.Add(t.Context(), 3)
			sleep(second)
		}
		require.NoError(t, r.provider.ForceFlush(t.Context()))
		assert.EqualValues(t, 120, b.truth("shop:{http.requests}"))
		assert.Greater(t, calls.Load(), int64(40))
	})
}
