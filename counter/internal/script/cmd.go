package script

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Cmd is a command that a client sends at most once: no network error makes
// go-redis send it again, with any options. A cluster client still follows MOVED
// and ASK for it, for these say that it was not executed.
//
// A Cmd runs once. Read it with [Cmd.Reply] and [Cmd.NotExecuted]; both say more
// than Err does. It is not safe for concurrent use.
type Cmd struct {
	*redis.Cmd

	// A pipeline of go-redis keeps a command's old error, such as MOVED, where a
	// later attempt wrote the command and then lost the connection. To know such
	// an error from one that still holds, each reading of the arguments is
	// counted: the client cannot write a command without it.
	reads atomic.Int32
	atErr int32 // reads, as the error was set
}

var _ redis.Cmder = (*Cmd)(nil)

// newCmd returns the command with these arguments, whose first key, if it has
// one, is the fourth.
func newCmd(ctx context.Context, args []any) *Cmd {
	cmd := &Cmd{Cmd: redis.NewCmd(ctx, args...)}
	if args[2] != 0 {
		cmd.SetFirstKeyPos(3)
	}
	// A cluster client that does not know the distance of a command's keys first
	// asks any server for it, also one that stalls.
	cmd.SetStepCount(1)
	return cmd
}

// Command returns a plain command with a key as its first argument.
func Command(ctx context.Context, name, key string, args ...any) *Cmd {
	argv := make([]any, 2, 2+len(args))
	argv[0], argv[1] = name, key
	cmd := &Cmd{Cmd: redis.NewCmd(ctx, append(argv, args...)...)}
	cmd.SetFirstKeyPos(1)
	return cmd
}

// NoRetry returns true: the command must not be sent again.
func (c *Cmd) NoRetry() bool { return true }

// Args returns the arguments. The caller must not change them.
func (c *Cmd) Args() []any {
	c.reads.Add(1)
	return c.Cmd.Args()
}

// SetErr is for the client: it sets the outcome of an attempt.
func (c *Cmd) SetErr(err error) {
	c.atErr = c.reads.Load()
	c.Cmd.SetErr(err)
}

// Clone returns a copy that is sent at most once too.
func (c *Cmd) Clone() redis.Cmder {
	// Cmd.Clone of go-redis returns a *redis.Cmd.
	clone := &Cmd{Cmd: c.Cmd.Clone().(*redis.Cmd), atErr: c.atErr}
	clone.reads.Store(c.reads.Load())
	return clone
}

// Reply returns what the server answered. A reply that was read counts, also
// where go-redis or a hook reported an error afterwards.
func (c *Cmd) Reply() (any, error) {
	if reply := c.Val(); reply != nil {
		return reply, nil
	}
	err := c.Err()
	if err != nil && c.outdated() {
		return nil, fmt.Errorf("sent again, and no answer, after: %w", err)
	}
	return nil, err
}

// NotExecuted reports whether it is proven that the server did not execute the
// command and will not: it was never written, or its error is [Proven]. It is
// false for a command that has not run yet or was answered.
func (c *Cmd) NotExecuted() bool {
	err := c.Err()
	if err == nil || c.Val() != nil {
		return false
	}
	// Nothing read the arguments, so nothing can have written them. That covers
	// what no error text tells: waiting for a connection, dialing, the handshake,
	// limiters, hooks. A cluster client reads them also to find the slot.
	if c.reads.Load() == 0 {
		return true
	}
	return Proven(err) && !c.outdated()
}

// outdated reports whether the arguments were read after the error was set, so
// that the command may have been written since.
func (c *Cmd) outdated() bool { return c.reads.Load() != c.atErr }
