package exact

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

// kind says how an add treats the maximum.
type kind uint8

const (
	whole kind = iota // all or nothing
	upTo              // as much as fits
)

// Add adds n, at least 1, to the count of a key and returns the new count. Adds
// are linearizable on one primary: each sees all that returned before it began.
//
// An add that would pass the maximum or 2^63-1 changes nothing and returns the
// count with a [*MaxError] or [ErrLimit]. With [ID] it is counted once however
// often it is repeated. Without an answer it returns [ErrUnknown]; it is never sent
// again by itself, unless the server's answer proves that it was not executed. Any
// other error means that nothing was counted.
//
// A context that has ended before the add is sent counts nothing. From then on
// go-redis decides: it obeys deadlines only with ContextTimeoutEnabled, else its
// own timeouts.
//
// With [FlushEvery] Add sends nothing and returns the best known count; see there.
func (c *Counters) Add(ctx context.Context, key string, n int64, opts ...AddOption) (int64, error) {
	_, count, err := c.add(ctx, whole, key, n, merged(opts))
	return count, err
}

// AddUpTo adds as much of n as fits under the maximum, without one under 2^63-1,
// and returns how much that was and the count. Adding less than n, also 0, is no
// error. Otherwise it is as [Counters.Add].
func (c *Counters) AddUpTo(ctx context.Context, key string, n int64, opts ...AddOption) (added, count int64, err error) {
	return c.add(ctx, upTo, key, n, merged(opts))
}

func (c *Counters) add(ctx context.Context, kind kind, key string, n int64, opt AddOption) (added, count int64, err error) {
	if err := c.checkAdd(ctx, key, n, opt); err != nil {
		return 0, 0, err
	}
	switch {
	case c.writer != nil:
		return c.writer.add(kind, key, n)
	case c.conns != nil:
		return c.addReplicated(ctx, kind, key, n, opt)
	}
	if kind == whole && !opt.hasID && c.config.ttl == nil && c.config.max == nil {
		if count, err := c.addPlain(ctx, key, n); !errors.Is(err, errIncrBy) {
			return n, count, err
		}
	}
	return c.addResult(kind, n, c.run(ctx, addScript, c.addKeys(key, opt), c.addArgs(kind, n, opt)...))
}

// errIncrBy: INCRBY refused the add.
var errIncrBy = errors.New("refused")

// addPlain adds where no more than INCRBY is needed, which is cheaper than the
// script. Of what that refuses (an overflow, a key that holds something else) the
// script tells more.
func (c *Counters) addPlain(ctx context.Context, key string, n int64) (int64, error) {
	cmd := c.command(ctx, "incrby", c.keys.count(key), decimal(n))
	if err := cmd.Err(); isAnswer(err) && incrByRefused(err.Error()) {
		return 0, errIncrBy
	}
	reply, err := replyOf(cmd)
	if err != nil {
		return 0, err
	}
	count, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, errAnswer)
	}
	return count, nil
}

func incrByRefused(text string) bool {
	return text == "ERR increment or decrement would overflow" ||
		text == "ERR value is not an integer or out of range" ||
		strings.HasPrefix(text, "WRONGTYPE ")
}

func (c *Counters) addKeys(key string, opt AddOption) []string {
	count := c.keys.count(key)
	if !opt.hasID {
		return []string{count}
	}
	return []string{count, idKey(count, opt.id)}
}

func (c *Counters) addArgs(kind kind, n int64, opt AddOption) []any {
	a := &c.args
	args := []any{decimal(n), room(a.limit, n), a.ttl}
	if kind == upTo {
		args = append(args, a.limitText)
	} else if opt.hasID {
		args = append(args, "")
	}
	if opt.hasID {
		args = append(args, a.idLife, a.touch)
	}
	return args
}

// addResult reads what an add answered.
func (c *Counters) addResult(kind kind, n int64, cmd *script.Cmd) (added, count int64, err error) {
	a, err := answerOf(cmd)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case a.is("added", 2):
		return a.numbers[1] - a.numbers[0], a.numbers[1], nil
	case a.is("full", 2):
		count = a.numbers[0]
		if kind == upTo {
			return 0, count, nil
		}
		return 0, count, c.refused(count, n, left(a.numbers[1]))
	case a.is("reused", 1):
		return 0, a.numbers[0], ErrIDReused
	}
	return 0, 0, fmt.Errorf("%w: %w", ErrUnknown, errAnswer)
}

// refused is the error of an add of n that did not fit. One that would pass both
// the maximum and 2^63-1 matches both.
func (c *Counters) refused(count, n int64, reset time.Duration) error {
	if c.config.max == nil {
		return ErrLimit
	}
	err := &MaxError{Count: count, Max: *c.config.max, Reset: reset}
	if n > math.MaxInt64-count {
		return fmt.Errorf("%w; %w", err, ErrLimit)
	}
	return err
}
