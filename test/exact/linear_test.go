package exact

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

var rounds = flag.Int("rounds", 5, "how many histories of each kind the linearizability check records")

const (
	clients = 8
	each    = 12
)

// modes are unconditional, and with a maximum, small enough to refuse.
var modes = []struct {
	name  string
	limit int64
	opts  []exact.Option
}{
	{"plain", math.MaxInt64, nil},
	{"max", 40, []exact.Option{exact.Max(40), exact.TTL(time.Hour)}},
}

// "Add returns the new count, linearizable on one primary", with answers and
// requests that are lost.
func TestLinearizableWithLostAnswers(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
	client := proxy.Client(func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond })
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			c := open(t, client, "linear-"+mode.name, mode.opts...)
			total := 0
			for round := range *rounds {
				writes := redistest.Command("INCRBY", "EVAL", "EVALSHA", "DEL")
				for i, kind := range []redistest.Kind{redistest.Close, redistest.Drop} {
					proxy.Inject(redistest.Fault{Kind: kind, Match: writes, Probability: 0.04, Seed: uint64(10*round + i)})
				}
				history := record(t, c, fmt.Sprint("k", round), clients, each, uint64(round))
				proxy.Heal()
				total += requireLinearizable(t, history, mode.limit)
			}
			require.Positive(t, total, "no answer was lost")
		})
	}
}

// The same through restarts of a server that keeps what it has answered.
func TestLinearizableThroughRestarts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			client := server.Client(func(o *redis.Options) { o.DialerRetries = 1 })
			c := open(t, client, "restart-"+mode.name, mode.opts...)
			for round := range *rounds {
				done := make(chan []porcupine.Operation)
				go func() { done <- record(t, slow{c}, fmt.Sprint("k", round), clients, each, uint64(100+round)) }()
				time.Sleep(20 * time.Millisecond)
				server.Restart() // kill -9
				requireLinearizable(t, <-done, mode.limit)
			}
		})
	}
}

// slow takes a moment for each operation, so that a restart finds some under way.
type slow struct{ counting }

func (s slow) Add(ctx context.Context, key string, n int64, opts ...exact.AddOption) (int64, error) {
	time.Sleep(5 * time.Millisecond)
	return s.counting.Add(ctx, key, n, opts...)
}

// requireLinearizable returns how many operations had no answer.
func requireLinearizable(t *testing.T, history []porcupine.Operation, limit int64) (unknown int) {
	t.Helper()
	require.Len(t, history, clients*each)
	for _, op := range history {
		if op.Output.(output).unknown {
			unknown++
		}
	}
	if result := check(history, limit); result != porcupine.Ok {
		for _, op := range history {
			t.Logf("%d: [%d, %d] %+v -> %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
		t.Fatalf("the history is %s", result)
	}
	return unknown
}

// The check must be able to fail: with an add that reads and then writes, and with
// one that is sent again when its answer is lost.
func TestLinearizabilityCheckFindsBugs(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr)
	client := proxy.Client()
	good := open(t, client, "bugs")
	for name, bug := range map[string]counting{
		"read, then write": readThenWrite{good, client},
		"sent again":       sentAgain{good},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 50 {
				proxy.Inject(redistest.Fault{
					Kind: redistest.Close, Match: redistest.Command("INCRBY"), Probability: 0.05, Seed: uint64(round + 1),
				})
				history := record(t, bug, fmt.Sprint(name, round), clients, each, uint64(round))
				proxy.Heal()
				if check(history, math.MaxInt64) == porcupine.Illegal {
					return
				}
			}
			t.Fatal("50 histories, and none was found out")
		})
	}
}

type readThenWrite struct {
	counting
	rdb *redis.Client
}

func (b readThenWrite) Add(ctx context.Context, key string, n int64, _ ...exact.AddOption) (int64, error) {
	count, err := b.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	return count + n, b.rdb.Set(ctx, "bugs:{"+key+"}", count+n, 0).Err()
}

type sentAgain struct{ counting }

func (b sentAgain) Add(ctx context.Context, key string, n int64, _ ...exact.AddOption) (int64, error) {
	for {
		count, err := b.counting.Add(ctx, key, n)
		if !errors.Is(err, exact.ErrUnknown) {
			return count, err
		}
	}
}
