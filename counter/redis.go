package counter

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

//go:embed flush.lua
var flushSource string

var flushScript = script.New(flushSource)

// Bounds of one script call, which blocks the server: the counters and series in
// it, and the bytes of its keys and series. A share that is larger on its own
// makes a call of its own.
const (
	callCells = 500
	callBytes = 64 << 10
)

// redisStore is the [Store] on Redis.
type redisStore struct {
	rdb     redis.UniversalClient
	cluster masterFinder      // nil without a cluster
	loaded  func(name string) // is told that a server did not have the script; nil: nobody is
}

// masterFinder is what only clients of a cluster have.
type masterFinder interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
}

var _ evictionPolicy = (*redisStore)(nil)

// NewStore returns the store that [New] and [NewGroup] use: for [WithStore], to
// put something around it. It works with a redis.Client, with one that follows a
// master by Sentinel, and with a redis.ClusterClient, whatever their options. It
// sends nothing by itself, and leaves the client's closing to the caller.
//
// It returns an error for a client that is nil, for a redis.Ring, and for a
// redis.AutoPipeliner.
func NewStore(rdb redis.UniversalClient) (Store, error) {
	if isNil(rdb) {
		return nil, errors.New("counter: the Redis client is nil")
	}
	switch rdb.(type) {
	case interface{ SetAddrs(map[string]string) }: // also what embeds a Ring
		return nil, errors.New("counter: redis.Ring is not supported: when it moves keys to another server, " +
			"what it has counted there is split; use redis.Client or redis.ClusterClient")
	case *redis.AutoPipeliner:
		return nil, errors.New("counter: redis.AutoPipeliner is not supported: it sends in batches with other commands, " +
			"and a flush must be sent at most once; use the client that it was made from")
	}
	cluster, _ := rdb.(masterFinder)
	return &redisStore{rdb: rdb, cluster: cluster}, nil
}

// isNil reports whether rdb is nil, or a nil pointer in an interface.
func isNil(rdb redis.UniversalClient) bool {
	if rdb == nil {
		return true
	}
	v := reflect.ValueOf(rdb)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Server returns the address of the master that holds a counter's slot, and ""
// where there is no cluster. It asks the network only for the client's first look
// at the cluster.
func (s *redisStore) Server(ctx context.Context, _, name string) (string, error) {
	if s.cluster == nil {
		return "", nil
	}
	master, err := s.cluster.MasterForKey(ctx, hashTag(name))
	if err != nil {
		return "", fmt.Errorf("counter: the server of counter %q is not known: %w", name, err)
	}
	return master.Options().Addr, nil
}

// hashTag is the part of a counter's keys that decides their slot.
func hashTag(name string) string { return "{" + name + "}" }

// Probe implements [Store].
func (s *redisStore) Probe(ctx context.Context, _, prefix, name string) (ServerTime, error) {
	keys := []string{totalKey(prefix, name, 0), partsKey(prefix, name, 0)}
	cmd := flushScript.Run(ctx, s.rdb, keys)
	s.noteLoad(cmd, name)
	reply, err := cmd.Reply()
	if redis.HasErrorPrefix(err, "NOPERM ") {
		return 0, fmt.Errorf("counter: cannot use Redis for counter %q: %w; %s", name, err, needs(prefix))
	}
	if err != nil {
		return 0, fmt.Errorf("counter: cannot use Redis for counter %q: %w", name, err)
	}
	now, denied, err := decodeProbe(reply)
	if err != nil {
		return 0, err
	}
	if denied != "" {
		return 0, fmt.Errorf("counter: the Redis user is not permitted to run %s on the keys %q; %s",
			strings.ReplaceAll(strings.ToLower(denied), " ", ", "), prefix+hashTag(name)+":*", needs(prefix))
	}
	return now, nil
}

// noteLoad tells that a command brought the script along.
func (s *redisStore) noteLoad(cmd *script.Cmd, name string) {
	if s.loaded != nil && cmd.Name() == "eval" && cmd.Err() == nil {
		s.loaded(name)
	}
}

// rights are the commands that the user of the store needs.
const rights = "+evalsha +eval +time +get +incrby +pexpire +hget +hmget +hset +hincrby"

// needs tells what the user of the store needs.
func needs(prefix string) string { return fmt.Sprintf("it needs: ~%s{*}:* %s", prefix, rights) }

// Flush implements [Store]. Without a cluster a call holds many counters, in a
// cluster one; all calls go in one pipeline.
func (s *redisStore) Flush(ctx context.Context, flush *Flush) []Result {
	results := make([]Result, len(flush.Shares))
	calls := s.calls(flush.Shares)
	if alone := s.send(ctx, flush, calls, results); len(alone) > 0 {
		s.send(ctx, flush, alone, results)
	}
	if s.cluster != nil {
		s.moved(ctx, flush, results)
	}
	return results
}

// send makes calls in one round trip. For those that were refused for what is in
// them together, it returns a call for each of their counters.
func (s *redisStore) send(ctx context.Context, flush *Flush, calls []scriptCall, results []Result) (alone []scriptCall) {
	cmds := make([]*script.Cmd, len(calls))
	for i, call := range calls {
		keys, args := encode(flush, flush.Shares[call.from:call.to])
		cmds[i] = flushScript.EvalSha(ctx, keys, args...)
	}
	if len(cmds) == 1 {
		cmds[0] = flushScript.Send(ctx, s.rdb, cmds[0])
	} else {
		flushScript.RunAll(ctx, s.rdb, cmds)
	}
	for i, call := range calls {
		shares := flush.Shares[call.from:call.to]
		s.noteLoad(cmds[i], shares[0].Name)
		decode(cmds[i], shares, results[call.from:call.to])
		if refusedTogether(cmds[i]) && !shares[0].sameCounter(&shares[len(shares)-1]) {
			alone = append(alone, call.apart(flush.Shares)...)
		}
	}
	return alone
}

// refusedTogether reports whether a call was not executed, for none of its counters,
// since the user may not touch the keys of one, or since their keys have several
// slots: a cluster behind a client that does not show it.
func refusedTogether(cmd *script.Cmd) bool {
	if !cmd.NotExecuted() {
		return false
	}
	err := cmd.Err()
	return redis.HasErrorPrefix(err, "CROSSSLOT ") || redis.HasErrorPrefix(err, "NOPERM ") && strings.Contains(err.Error(), " key")
}

// moved notes which counters another server holds by now.
func (s *redisStore) moved(ctx context.Context, flush *Flush, results []Result) {
	for i := range results {
		server, err := s.Server(ctx, flush.Shares[i].Prefix, flush.Shares[i].Name)
		if err == nil && server != flush.Server {
			results[i].Server = server
		}
	}
}

// scriptCall is a run of shares that go in one call.
type scriptCall struct{ from, to int }

// calls splits shares into calls. In a cluster all keys of a call must be of one
// slot, so a call holds one counter.
func (s *redisStore) calls(shares []Share) []scriptCall {
	var calls []scriptCall
	var cells, bytes int
	for i := range shares {
		share := &shares[i]
		c, b := 1+len(share.Series), share.bytes()
		if len(calls) == 0 || cells+c > callCells || bytes+b > callBytes ||
			s.cluster != nil && !share.sameCounter(&shares[i-1]) {
			calls = append(calls, scriptCall{from: i})
			cells, bytes = 0, 0
		}
		calls[len(calls)-1].to = i + 1
		cells, bytes = cells+c, bytes+b
	}
	return calls
}

// apart splits a call by its counters.
func (c scriptCall) apart(shares []Share) []scriptCall {
	var calls []scriptCall
	for i := c.from; i < c.to; i++ {
		if i == c.from || !shares[i].sameCounter(&shares[i-1]) {
			calls = append(calls, scriptCall{from: i})
		}
		calls[len(calls)-1].to = i + 1
	}
	return calls
}

// evictionPolicy is what a store can tell whose server may drop live keys.
type evictionPolicy interface {
	// EvictionPolicy returns the maxmemory-policy of the server that holds a
	// counter. Any but "noeviction" may drop totals before their time.
	EvictionPolicy(ctx context.Context, prefix, name string) (string, error)
}

// EvictionPolicy implements [evictionPolicy]. Servers that do not let CONFIG be
// read answer with an error, which means nothing.
func (s *redisStore) EvictionPolicy(ctx context.Context, _, name string) (string, error) {
	var server redis.Cmdable = s.rdb
	if s.cluster != nil {
		master, err := s.cluster.MasterForKey(ctx, hashTag(name))
		if err != nil {
			return "", err
		}
		server = master
	}
	const setting = "maxmemory-policy"
	values, err := server.ConfigGet(ctx, setting).Result()
	return values[setting], err
}
