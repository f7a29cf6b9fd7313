package exact

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"
)

// The bounds of the options.
const (
	minTTL      = time.Millisecond
	maxTTL      = 100 * 366 * 24 * time.Hour // 100 years however a caller counts them
	minFlush    = time.Millisecond
	maxFlush    = time.Hour
	minWait     = time.Millisecond
	maxWait     = time.Hour
	maxReplicas = 1000
)

// Option changes what [Open] opens.
type Option interface{ apply(config) config }

type option func(config) config

func (o option) apply(c config) config { return o(c) }

// config is what the options set. The pointers tell "not given" from zero, which
// is an error.
type config struct {
	prefix     string
	ttl        *time.Duration
	max        *int64
	flushEvery *time.Duration
	replicas   *replicas
	logger     *slog.Logger
}

type replicas struct {
	n       int
	timeout time.Duration
}

// TTL sets how long a window lasts: it starts with a key's first add and does not
// slide, and once it is over the count is 0 again. At least a millisecond, at most
// 100 years, rounded up to whole milliseconds. Without it a count never expires. A
// count from a time without it gets its window with the next add.
func TTL(d time.Duration) Option {
	return option(func(c config) config {
		c.ttl = &d
		return c
	})
}

// Max refuses adds that would bring a count above n, with a [*MaxError]. At least
// 1. Without it, or with math.MaxInt64, only what an int64 holds limits a count.
func Max(n int64) Option {
	return option(func(c config) config {
		c.max = &n
		return c
	})
}

// FlushEvery keeps adds in memory and writes them every d, between a millisecond
// and an hour. An add then answers at once and costs no round trip, but a crash
// loses what was accepted since the last batch that Redis confirmed, and a maximum
// is only kept by each process for itself; see the package's documentation. It
// goes neither with [ID], nor with [WaitReplicas], nor with [Counters.AddTx].
func FlushEvery(d time.Duration) Option {
	return option(func(c config) config {
		c.flushEvery = &d
		return c
	})
}

// Prefix is put before all keys in Redis; empty by default. It must hold no
// braces.
func Prefix(prefix string) Option {
	return option(func(c config) config {
		c.prefix = prefix
		return c
	})
}

// WaitReplicas makes an add return only when n replicas have confirmed it, or with
// [ErrNotReplicated] after the timeout (1 ms to 1 hour, rounded up to whole
// milliseconds). Each add then takes a connection of its own until the replicas
// have answered. It works with *redis.Client, also as made for Sentinel, and
// *redis.ClusterClient.
func WaitReplicas(n int, timeout time.Duration) Option {
	return option(func(c config) config {
		c.replicas = &replicas{n: n, timeout: timeout}
		return c
	})
}

// Logger reports what happens in the background with [FlushEvery]: failed flushes
// and what they dropped (Error), start, stop and recovery (Info), flushes (Debug). By
// default, and with nil, nothing is logged. Without FlushEvery there is nothing to
// log: all is in the errors that the calls return.
func Logger(l *slog.Logger) Option {
	return option(func(c config) config {
		c.logger = l
		return c
	})
}

func newConfig(name string, opts []Option) (config, error) {
	var c config
	for _, o := range opts {
		if o == nil {
			return c, errors.New("exact: a nil option")
		}
		c = o.apply(c)
	}
	return c, c.validate(name)
}

func (c *config) validate(name string) error {
	const braces = "a hash tag must be the key alone, so that its keys share a slot and the counter spreads over a cluster"
	switch {
	case name == "":
		return errors.New("exact: the name is empty")
	case strings.ContainsAny(name, "{}"):
		return fmt.Errorf("exact: the name %q holds a brace: %s", name, braces)
	case strings.ContainsAny(c.prefix, "{}"):
		return fmt.Errorf("exact: the prefix %q holds a brace: %s", c.prefix, braces)
	case c.ttl != nil && (*c.ttl < minTTL || *c.ttl > maxTTL):
		return fmt.Errorf("exact: a TTL of %v: it must be between %v and 100 years; without the option a count never expires",
			*c.ttl, minTTL)
	case c.max != nil && *c.max < 1:
		return fmt.Errorf("exact: a maximum of %d: it must be at least 1; without the option there is none", *c.max)
	case c.flushEvery != nil && (*c.flushEvery < minFlush || *c.flushEvery > maxFlush):
		return fmt.Errorf("exact: a flush every %v: it must be between %v and %v", *c.flushEvery, minFlush, maxFlush)
	case c.replicas != nil && (c.replicas.n < 1 || c.replicas.n > maxReplicas):
		return fmt.Errorf("exact: waiting for %d replicas: it must be between 1 and %d", c.replicas.n, maxReplicas)
	case c.replicas != nil && (c.replicas.timeout < minWait || c.replicas.timeout > maxWait):
		return fmt.Errorf("exact: waiting %v for replicas: it must be between %v and %v", c.replicas.timeout, minWait, maxWait)
	case c.replicas != nil && c.flushEvery != nil:
		return errors.New("exact: WaitReplicas with FlushEvery: an add that answers at once cannot wait for replicas")
	}
	return nil
}

// limit is the highest count there may be.
func (c *config) limit() int64 {
	if c.max == nil {
		return math.MaxInt64
	}
	return *c.max
}

// ttlMillis is 0 without a TTL.
func (c *config) ttlMillis() int64 {
	if c.ttl == nil {
		return 0
	}
	return ceilMillis(*c.ttl)
}

func ceilMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond != 0 {
		ms++
	}
	return ms
}

// AddOption changes one add.
type AddOption struct {
	id    string
	hasID bool
}

// ID makes an add count once however often it is sent: the first one that is
// counted is recorded with the id, and a repeat returns what the first returned
// and adds nothing, even when the window has ended or the key was deleted. An id
// belongs to one key and is remembered for the TTL, at least for 24 hours, from
// the add on. An add that was refused records nothing, nor does an AddUpTo that
// added 0. An id must not be empty; take one that is unique, such as a UUID or a
// request's number, and the same for every repeat.
func ID(id string) AddOption {
	return AddOption{id: id, hasID: true}
}
