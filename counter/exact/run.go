package exact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

// A command whose error proves that it was not executed, and that a moment later
// it may be, is sent up to attempts times in all, as go-redis does by default.
const attempts = 4

// backoff is how long to wait after the nth attempt: 8, 32, 128 ms.
func backoff(n int) time.Duration {
	return 2 * time.Millisecond << (2 * n)
}

// run runs a script, at most once on the server.
func (c *Counters) run(ctx context.Context, s *script.Script, keys []string, args ...any) *script.Cmd {
	return again(ctx, func() *script.Cmd { return s.Run(ctx, c.rdb, keys, args...) })
}

// command runs a command on one key, at most once on the server.
func (c *Counters) command(ctx context.Context, name, key string, args ...any) *script.Cmd {
	return again(ctx, func() *script.Cmd {
		cmd := script.Command(ctx, name, key, args...)
		_ = c.rdb.Process(ctx, cmd) // the error is the command's too
		return cmd
	})
}

// again sends until the outcome is one to return.
func again(ctx context.Context, send func() *script.Cmd) *script.Cmd {
	cmd := send()
	for n := 1; n < attempts && passing(cmd) && pause(ctx, backoff(n)); n++ {
		cmd = send()
	}
	return cmd
}

// passing reports whether the command was proven not executed for a reason that
// may be over soon: a server that starts, fails over, or hands a slot on.
func passing(cmd *script.Cmd) bool {
	err := cmd.Err()
	if err == nil || !cmd.NotExecuted() {
		return false
	}
	for _, prefix := range [...]string{"TRYAGAIN", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// pause waits and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// answerOf returns what a script that writes answered.
func answerOf(cmd *script.Cmd) (answer, error) {
	reply, err := replyOf(cmd)
	if err != nil {
		return answer{}, err
	}
	a, err := parseAnswer(reply)
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return a, nil
}

// replyOf returns the reply to a command that writes. Without one the error
// matches ErrNotExecuted, where that is proven, or else ErrUnknown.
func replyOf(cmd *script.Cmd) (any, error) {
	reply, err := cmd.Reply()
	switch {
	case err == nil:
		return reply, nil
	case cmd.NotExecuted() || unwritten(err):
		return nil, fmt.Errorf("%w: %w", ErrNotExecuted, err)
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
}

// unwritten reports whether the error is one that our scripts end with only before
// their first write: a key of theirs holds something else.
func unwritten(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) &&
		(strings.Contains(err.Error(), "WRONGTYPE ") || strings.Contains(err.Error(), "NOCOUNT "))
}

// read reads a count, and a writer's marker if its key is among keys. Reading may
// be repeated, so the client does as it is set to. It is a script because a GET
// may be answered by a replica or a client-side cache, from the past.
func (c *Counters) read(ctx context.Context, keys []string) (answer, error) {
	reply, err := c.runRead(ctx, "evalsha", readScript.SHA(), keys)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = c.runRead(ctx, "eval", readScript.Source(), keys)
	}
	if err != nil {
		return answer{}, fmt.Errorf("exact: %w", err)
	}
	a, err := parseAnswer(reply)
	if err == nil && !a.is("count", 3) {
		err = errAnswer
	}
	return a, err
}

func (c *Counters) runRead(ctx context.Context, name, script string, keys []string) (any, error) {
	args := []any{name, script, len(keys)}
	for _, k := range keys {
		args = append(args, k)
	}
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	_ = c.rdb.Process(ctx, cmd) // the error is the command's too
	return cmd.Result()
}
