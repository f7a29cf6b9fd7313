package exact

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

// counting is what a history is recorded of: exact.Counters, or what has a bug.
type counting interface {
	Add(ctx context.Context, key string, n int64, opts ...exact.AddOption) (int64, error)
	AddUpTo(ctx context.Context, key string, n int64, opts ...exact.AddOption) (added, count int64, err error)
	Get(ctx context.Context, key string) (int64, error)
	Delete(ctx context.Context, key string) (bool, error)
}

// input is an operation on the one key of a history.
type input struct {
	op string // add, add with id, up to, get, delete
	n  int64
}

// output is what an operation returned. Unknown is one without an answer.
type output struct {
	count, added     int64
	refused, unknown bool
	existed          bool
}

// model says what a count is: sequentially, with a maximum.
//
// An operation without an answer returns at the end of time. It may take effect at
// any moment after its call, or at the end, where nobody sees it: which is the same
// as not at all.
func model(limit int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, in, out any) (bool, any) {
			count, i, o := state.(int64), in.(input), out.(output)
			fits := i.n <= limit-count
			switch i.op {
			case "add", "add with id":
				switch {
				case o.unknown && fits:
					return true, count + i.n
				case o.unknown:
					return true, count
				case o.refused:
					return !fits && o.count == count, count
				default:
					return fits && o.count == count+i.n, count + i.n
				}
			case "up to":
				added := min(i.n, max(limit-count, 0))
				return o.unknown || o.added == added && o.count == count+added, count + added
			case "get":
				return o.unknown || o.count == count, count
			case "delete":
				return o.unknown || o.existed == (count > 0), int64(0)
			}
			panic("no such operation: " + i.op)
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
}

// record lets clients work on one key at the same time, and returns what they did.
func record(t *testing.T, c counting, key string, clients, each int, seed uint64) (history []porcupine.Operation) {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for i := 0; i < each; {
				in := draw(random)
				call := time.Since(start).Nanoseconds()
				out, err := do(t.Context(), c, key, in, fmt.Sprint(client, ":", i))
				back := time.Since(start).Nanoseconds()
				if errors.Is(err, exact.ErrNotExecuted) || in.op == "get" && err != nil {
					time.Sleep(time.Millisecond) // it did nothing
					continue
				}
				if err != nil && !errors.Is(err, exact.ErrUnknown) {
					t.Error(err)
					return
				}
				if out.unknown = err != nil; out.unknown {
					back = math.MaxInt64
				}
				i++
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return history
}

func draw(random *rand.Rand) input {
	in := input{op: "add", n: random.Int64N(5) + 1}
	switch x := random.IntN(20); {
	case x < 4:
		in.op = "add with id"
	case x < 7:
		in.op = "up to"
	case x < 12:
		in.op = "get"
	case x < 13:
		in.op = "delete"
	}
	return in
}

// do does one operation. One with an id is repeated until there is an answer.
func do(ctx context.Context, c counting, key string, in input, id string) (out output, err error) {
	switch in.op {
	case "get":
		out.count, err = c.Get(ctx, key)
	case "delete":
		out.existed, err = c.Delete(ctx, key)
	case "up to":
		out.added, out.count, err = c.AddUpTo(ctx, key, in.n)
	case "add":
		out.count, err = c.Add(ctx, key, in.n)
	case "add with id":
		for {
			out.count, err = c.Add(ctx, key, in.n, exact.ID(id))
			if !errors.Is(err, exact.ErrUnknown) && !errors.Is(err, exact.ErrNotExecuted) {
				break
			}
		}
	}
	if errors.Is(err, exact.ErrMax) {
		out.refused, err = true, nil
	}
	return out, err
}

// check fails the test if no sequence of the operations explains the history.
func check(history []porcupine.Operation, limit int64) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(limit), history, time.Minute)
}
