package otelcol

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// interval is longer than in other tests: three collectors, their senders and a
// Redis share the machine.
const interval = time.Second

// fleet is three collectors on one Redis, each with senders of its own: delta and
// cumulative, over gRPC and HTTP, at uneven rates.
type fleet struct {
	redis      *redistest.Server
	sink       *sink
	record     *recorder
	collectors []*collector
	senders    [][]*sender // of each collector
	stopped    []context.CancelFunc
	wg         sync.WaitGroup
}

func startFleet(t *testing.T, file string, args ...string) *fleet {
	t.Helper()
	binary(t) // before anything is started
	f := &fleet{redis: redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), sink: newSink(t)}
	f.record = record(t, f.redis, service+":{"+metric+"}", interval)
	env := []string{"REDIS=" + f.redis.Addr, "BACKEND=" + f.sink.url, "INTERVAL=" + interval.String()}
	// An outage of the Redis on a loaded machine may take more than the default two tries.
	args = append(args, "--config", "yaml:processors::comcount::carry: 10")
	for i := range 3 {
		c := start(t, file, env, args...)
		f.collectors = append(f.collectors, c)
		ctx, cancel := context.WithCancel(context.Background())
		f.stopped = append(f.stopped, cancel)
		pause := time.Duration(20*(i+1)*(i+1)) * time.Millisecond
		senders := []*sender{
			newSender(overGRPC(t, c.grpc), false, fmt.Sprintf("delta-grpc-%d", i), pause),
			newSender(overHTTP(c.http), false, fmt.Sprintf("delta-http-%d", i), 2*pause),
			newSender(overGRPC(t, c.grpc), true, fmt.Sprintf("cumulative-grpc-%d", i), pause),
			newSender(overHTTP(c.http), true, fmt.Sprintf("cumulative-http-%d", i), 3*pause),
		}
		f.senders = append(f.senders, senders)
		for _, s := range senders {
			f.wg.Go(func() { s.run(ctx) })
		}
	}
	t.Cleanup(f.stop)
	return f
}

// stop ends the senders, and waits until each has its last answer.
func (f *fleet) stop() {
	for _, stop := range f.stopped {
		stop()
	}
	f.wg.Wait()
}

// offered and accepted add up all senders.
func (f *fleet) offered() (n int64) {
	for _, senders := range f.senders {
		for _, s := range senders {
			n += s.offered
		}
	}
	return n
}

func (f *fleet) accepted() (n int64) {
	for _, senders := range f.senders {
		for _, s := range senders {
			n += s.accepted
		}
	}
	return n
}

// settle waits until Redis holds at least this much and all of it is closed and
// reported.
func (f *fleet) settle(t *testing.T, want int64) {
	t.Helper()
	redistest.Eventually(t, patience, func() error {
		if sum := f.record.sum(); sum < want {
			return fmt.Errorf("Redis holds %d of %d", sum, want)
		}
		return nil
	})
	time.Sleep(4 * interval) // what is open closes, and its total comes out
	f.record.stop()
}

// check holds what came out downstream against what Redis held, and against what
// was counted at most.
func (f *fleet) check(t *testing.T, faulty bool, most int64) {
	t.Helper()
	totals, asked := f.record.snapshot()
	seen := f.sink.of(metric + ".group")
	var sum int64
	for end, values := range seen {
		n := end/interval.Milliseconds() - 1
		assert.Len(t, values, 1, "interval %d came out more than once", n)
		assert.Equal(t, totals[n], values[0], "interval %d", n)
		sum += values[0]
	}
	assert.LessOrEqual(t, sum, most, "more than was sent")
	if faulty {
		return
	}
	for n := range totals {
		if asked[n+1] {
			assert.Len(t, seen[(n+1)*interval.Milliseconds()], 1, "interval %d did not come out", n)
		}
	}
}

// "Exactly once where nothing was killed, equal to what was sent and never more."
func TestFleetWithoutFaults(t *testing.T) {
	f := startFleet(t, "gateway-otlp.yaml")
	time.Sleep(12 * interval)
	f.stop()
	require.Equal(t, f.offered(), f.accepted(), "nothing was refused")
	f.settle(t, f.accepted())
	f.check(t, false, f.offered())
	assert.Equal(t, f.accepted(), f.record.sum())
	assert.GreaterOrEqual(t, len(f.sink.of(metric+".group")), 10)

	// All parts of the totals came out too, those of the other replicas among them.
	assert.NotEmpty(t, f.sink.of(metric+".group.series"))

	// And the data itself, unchanged.
	var delta int64
	for _, senders := range f.senders {
		for _, s := range senders {
			if !s.cumulative {
				delta += s.accepted
			}
		}
	}
	redistest.Eventually(t, patience, func() error {
		f.sink.mu.Lock()
		defer f.sink.mu.Unlock()
		if f.sink.passed != delta {
			return fmt.Errorf("%d of %d passed", f.sink.passed, delta)
		}
		return nil
	})
}

// "Kills one with SIGKILL and one with SIGTERM in the middle, restarts Redis once;
// still never more, and short by at most what the killed one had accepted since its
// last confirmed flush."
func TestFleetWithFaults(t *testing.T) {
	f := startFleet(t, "gateway-otlp.yaml")
	time.Sleep(5 * interval)

	f.collectors[0].signal(syscall.SIGKILL)
	killed := time.Now()
	time.Sleep(3 * interval)

	f.redis.Restart()
	time.Sleep(5 * interval)

	f.collectors[1].signal(syscall.SIGTERM)
	time.Sleep(4 * interval)
	f.stop()

	// A collector flushes once an interval, and waits an interval for the answer. On
	// a loaded machine a flush may be late by another one.
	var unconfirmed int64
	for _, s := range f.senders[0] {
		unconfirmed += s.since(killed.Add(-3 * interval))
	}
	f.settle(t, f.accepted()-unconfirmed)
	f.check(t, true, f.offered())
	assert.GreaterOrEqual(t, len(f.sink.of(metric+".group")), 10)
	held := f.record.sum()
	assert.LessOrEqual(t, held, f.offered(), "more than was sent")
	assert.GreaterOrEqual(t, held, f.accepted()-unconfirmed, "what others than the killed one had accepted is there")
}
