package exact

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// idLife is how long an id is remembered, if the TTL is not longer.
const idLife = 24 * time.Hour

// Counters are numbers by key under one name. All Counters with the same prefix
// and name, in any process, are the same numbers; open them with the same options
// everywhere. Safe for concurrent use.
type Counters struct {
	rdb    redis.UniversalClient
	name   string
	keys   keys
	config config
	args   scriptArgs
	closed atomic.Bool
	writer *writer // with FlushEvery, else nil
	conns  conns   // with WaitReplicas, else nil
}

// scriptArgs are the arguments that are the same for all adds.
type scriptArgs struct {
	limit              int64
	limitText          *string
	ttl, idLife, touch *string
}

// Open returns the counters with this name. It sends nothing: a server that is
// away shows at the first use. An error means a mistake in the call: no client, a
// redis.Ring, a name or prefix that is empty or holds braces, an option out of its
// bounds. A redis.AutoPipeliner is refused too. The client stays the caller's, who closes it after the Counters.
//
// With [FlushEvery] a goroutine runs until [Counters.Close].
func Open(rdb redis.UniversalClient, name string, opts ...Option) (*Counters, error) {
	if err := checkClient(rdb); err != nil {
		return nil, err
	}
	config, err := newConfig(name, opts)
	if err != nil {
		return nil, err
	}
	c := &Counters{rdb: rdb, name: name, keys: newKeys(config.prefix, name), config: config}
	c.args = scriptArgs{
		limit:     config.limit(),
		limitText: decimal(config.limit()),
		ttl:       decimal(config.ttlMillis()),
		idLife:    decimal(max(config.ttlMillis(), idLife.Milliseconds())),
		touch:     decimal(0),
	}
	if config.replicas != nil {
		if c.conns, err = connsOf(rdb); err != nil {
			return nil, err
		}
		c.args.touch = decimal(1) // see WAIT in add.lua
	}
	if config.flushEvery != nil {
		c.writer = startWriter(c)
	}
	return c, nil
}

func checkClient(rdb redis.UniversalClient) error {
	if isNil(rdb) {
		return errors.New("exact: the client is nil")
	}
	switch rdb.(type) {
	case *redis.Ring:
		return errors.New("exact: a redis.Ring moves keys to another server when one fails, which forgets counts and ids; " +
			"use a single server, Sentinel or a cluster")
	case *redis.AutoPipeliner:
		return errors.New("exact: a redis.AutoPipeliner answers before a command has run, or repeats it with others; " +
			"use the client that it was made from")
	}
	return nil
}

// isNil is true for nil and for a nil pointer of any type.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.Kind() == reflect.Pointer && value.IsNil()
}

// Get returns the count of a key, and 0 for one that does not exist or has
// expired. With [FlushEvery] it includes what this process has accepted and not yet
// written. It asks the primary, also where the client is set to read from replicas.
func (c *Counters) Get(ctx context.Context, key string) (int64, error) {
	if err := c.check(ctx, key); err != nil {
		return 0, err
	}
	if c.writer != nil {
		return c.writer.get(ctx, key)
	}
	a, err := c.read(ctx, []string{c.keys.count(key)})
	return a.numbers[0], err
}

// Delete removes a key's count, so that it is 0 and its next add starts a window,
// and says whether there was one. Ids of adds stay known: a repeat of an add from
// before the Delete adds nothing. With [FlushEvery] also what this process has
// accepted and not yet written is dropped; what others hold still lands. On
// [ErrUnknown] repeat it: the count may be gone already, and the repeat then
// answers false.
func (c *Counters) Delete(ctx context.Context, key string) (bool, error) {
	if err := c.check(ctx, key); err != nil {
		return false, err
	}
	if c.writer != nil {
		return c.writer.delete(ctx, key)
	}
	return c.delete(ctx, c.keys.count(key))
}

func (c *Counters) delete(ctx context.Context, count string) (bool, error) {
	reply, err := replyOf(c.command(ctx, "del", count))
	if err != nil {
		return false, err
	}
	gone, ok := reply.(int64)
	if !ok {
		return false, fmt.Errorf("%w: %w", ErrUnknown, errAnswer)
	}
	return gone > 0, nil
}

// Close ends the use of the Counters: every later call returns [ErrClosed]. With
// [FlushEvery] it writes what was accepted and not yet written, until that is done
// or ctx ends, and returns an error that says how much was not written, then or
// earlier. Without FlushEvery it returns nil at once. Calling it again returns the
// same. It does not close the client.
func (c *Counters) Close(ctx context.Context) error {
	c.closed.Store(true)
	if c.writer == nil {
		return nil
	}
	return c.writer.close(ctx)
}

// check is what all calls have in common before anything is sent.
func (c *Counters) check(ctx context.Context, key string) error {
	switch {
	case c.closed.Load():
		return ErrClosed
	case key == "":
		return errors.New("exact: the key is empty")
	}
	return ctx.Err()
}

// checkAdd is check for adds.
func (c *Counters) checkAdd(ctx context.Context, key string, n int64, opt AddOption) error {
	switch {
	case n < 1:
		return fmt.Errorf("exact: adding %d: it must be at least 1", n)
	case opt.hasID && opt.id == "":
		return errors.New("exact: the id is empty")
	case opt.hasID && c.writer != nil:
		return errors.New("exact: an ID needs an add that is written at once, so not FlushEvery")
	}
	return c.check(ctx, key)
}

func merged(opts []AddOption) AddOption {
	var all AddOption
	for _, o := range opts {
		if o.hasID {
			all = o
		}
	}
	return all
}

// decimal is how integers travel to and from Lua. The pointer spares an
// allocation when it becomes an argument.
func decimal(n int64) *string {
	s := strconv.FormatInt(n, 10)
	return &s
}

// room is how high a count may be so that n more fit: the limit less n. It is
// empty, which is below every count, where that is negative.
func room(limit, n int64) *string {
	if n > limit {
		return new(string)
	}
	return decimal(limit - n)
}
