package counter

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// resting is a meter provider that calls fn as a counter goes to rest.
type resting struct {
	noop.MeterProvider
	fn func()
}

type restingMeter struct {
	noop.Meter
	fn func()
}

type restingSeries struct {
	noop.Int64UpDownCounter
	fn func()
}

func (p resting) Meter(string, ...metric.MeterOption) metric.Meter { return restingMeter{fn: p.fn} }

func (m restingMeter) Int64UpDownCounter(string, ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return restingSeries{fn: m.fn}, nil
}

func (s restingSeries) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	if n < 0 {
		s.fn()
	}
}

// DESIGN 2, data layout: "The loop checks counted again after it has stored awake = false."
func TestAnAddAsItsCounterGoesToRestIsSeen(t *testing.T) {
	for name, attrs := range map[string][]attribute.KeyValue{"grand total": nil, "part": {attribute.Int("k", 1)}} {
		t.Run(name, func(t *testing.T) {
			var c *Counter
			rested := 0
			inBubble(t, func(t *testing.T, m *memStore, g *Group) {
				c = mustCounter(t, g, "c", attrs...)
				c.Add(1)
				sleep(30 * second)
				assert.Positive(t, rested)
				assert.Equal(t, int64(6), m.sum("c"))
				assert.Zero(t, c.Peek().Total.Buffer)
			}, WithMeterProvider(resting{fn: func() {
				if rested++; rested == 1 {
					c.Add(5) // by another goroutine, at this very moment
				}
			}}))
		})
	}
}

// until polls a condition.
func until(t *testing.T, done func() bool) {
	for deadline := time.Now().Add(10 * second); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Error("it never came to that")
			return
		}
	}
}

func TestAddsAmidRestingAreCountedConcurrentSafe(t *testing.T) {
	m := newMemStore()
	g, err := NewGroup(nil, minInterval, WithStore(m))
	require.NoError(t, err)
	defer g.Close()
	var added atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		part := mustCounter(t, g, "c", attribute.Int("k", i))
		wg.Go(func() {
			for range 3 {
				part.Add(1)
				added.Add(1)
				until(t, func() bool { return part.view.Load().awake })
				until(t, func() bool { return !part.view.Load().awake })
			}
		})
	}
	wg.Wait()
	require.NoError(t, g.Flush(t.Context()))
	assert.Equal(t, added.Load(), m.sum("c"))
}
