package exact

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

// Result is an add that is part of a transaction. Val tells its outcome once the
// transaction's Exec has returned. Like the transaction it is not safe for
// concurrent use.
type Result struct {
	c   *Counters
	n   int64
	cmd *script.Cmd
	err error // why nothing was queued
}

// AddTx queues an add in the caller's transaction, which is what TxPipeline or
// TxPipelined of the same Redis gives: it is counted if and only if the transaction
// is executed and it fits. It takes what [Counters.Add] takes, [ID] too.
//
// A refusal ([ErrMax], [ErrLimit], [ErrIDReused]) is a result, not an error of the
// transaction: Exec returns nil, the other commands are executed, and [Result.Val]
// returns the refusal. Redis has no rollback: where the other commands must not
// happen without the add, watch a key, or add before.
//
// In a cluster all keys of a transaction must have one slot. The add's has the hash
// tag {key}, with the characters %, { and } of the key as %25, %7B and %7D.
//
// A mistake in the call queues nothing, and Val says so at once. [FlushEvery] and
// [WaitReplicas] are such mistakes: an add in memory has no part in a transaction,
// and inside one no wait is possible.
func (c *Counters) AddTx(ctx context.Context, tx redis.Pipeliner, key string, n int64, opts ...AddOption) *Result {
	opt := merged(opts)
	if err := c.checkTx(ctx, tx, key, n, opt); err != nil {
		return &Result{err: err}
	}
	// Always with its source: a NOSCRIPT would show only after the other commands
	// were executed.
	cmd := addScript.Eval(ctx, c.addKeys(key, opt), c.addArgs(whole, n, opt)...)
	if err := tx.Process(ctx, cmd); err != nil {
		return &Result{err: fmt.Errorf("%w: %w", ErrNotExecuted, err)}
	}
	return &Result{c: c, n: n, cmd: cmd}
}

func (c *Counters) checkTx(ctx context.Context, tx redis.Pipeliner, key string, n int64, opt AddOption) error {
	switch {
	case isNil(tx):
		return errors.New("exact: the transaction is nil")
	case c.writer != nil:
		return errors.New("exact: AddTx with FlushEvery: an add in memory has no part in a transaction")
	case c.conns != nil:
		return errors.New("exact: AddTx with WaitReplicas: inside a transaction there is no waiting for replicas")
	}
	return c.checkAdd(ctx, key, n, opt)
}

// Val returns what [Counters.Add] would. Before Exec, after Discard, and where the
// transaction was not executed (a conflict on a watched key, EXECABORT, keys of
// different slots) the error matches [ErrNotExecuted], and where Exec got no answer
// [ErrUnknown].
func (r *Result) Val() (int64, error) {
	if r.err != nil {
		return 0, r.err
	}
	reply, err := r.cmd.Reply()
	switch {
	case reply == nil && err == nil:
		return 0, fmt.Errorf("%w: Exec was not called, or the transaction was discarded", ErrNotExecuted)
	case errors.Is(err, redis.TxFailedErr) || redis.HasErrorPrefix(err, "EXECABORT"):
		return 0, fmt.Errorf("%w: %w", ErrNotExecuted, err)
	}
	_, count, err := r.c.addResult(whole, r.n, r.cmd)
	if reply != nil && err != nil {
		err = fmt.Errorf("%w (the other commands of the transaction were executed)", err)
	}
	return count, err
}
