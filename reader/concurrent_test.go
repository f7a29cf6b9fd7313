package reader

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/counter"
)

// The tests of this file are outside bubbles, for the race detector.

func memory(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	server := miniredis.NewMiniRedis()
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	})
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

func total(t *testing.T, server *miniredis.Miniredis, name string) (sum int64) {
	for _, key := range server.Keys() {
		if strings.HasPrefix(key, name+":") && !strings.HasSuffix(key, ":by") {
			text, err := server.Get(key)
			require.NoError(t, err)
			n, err := strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
			sum += n
		}
	}
	return sum
}

func rounds(many int) int {
	if testing.Short() {
		return many / 20
	}
	return many
}

func TestB14_ShutdownDuringACollectionCountsOnceConcurrentSafe(t *testing.T) {
	server, rdb := memory(t)
	for round := range rounds(500) {
		group := "g" + strconv.Itoa(round)
		r, err := New(rdb, WithGroup(group), WithInterval(10*time.Millisecond))
		require.NoError(t, err)
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))
		m := p.Meter("app")
		_, err = m.Int64ObservableCounter("fixed", metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(10)
			return nil
		}))
		require.NoError(t, err)
		c, err := m.Int64Counter("c")
		require.NoError(t, err)

		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for range 1000 {
					c.Add(context.Background(), 1)
				}
			})
		}
		workers.Go(func() { _ = r.ForceFlush(context.Background()) })
		time.Sleep(time.Duration(rand.IntN(5_000)) * time.Microsecond)
		ctx, cancel := context.WithCancel(context.Background())
		if round%2 == 0 {
			workers.Go(func() { time.Sleep(time.Duration(rand.IntN(2_000)) * time.Microsecond); cancel() })
		}
		err = p.Shutdown(ctx)
		workers.Wait()
		cancel()
		got := total(t, server, group+":{c}")
		assert.LessOrEqual(t, got, int64(4000), "never more than was counted")
		assert.Zero(t, total(t, server, group+":{fixed}"), "the first observation is the baseline")
		if t.Failed() {
			t.Fatal(round, err)
		}
	}
}

// All that was counted before Shutdown is in Redis.
func TestShutdownWithFlushesInFlightConcurrentSafe(t *testing.T) {
	server, rdb := memory(t)
	for round := range rounds(50) {
		group := "g" + strconv.Itoa(round)
		r, err := New(rdb, WithGroup(group), WithInterval(100*time.Millisecond))
		require.NoError(t, err)
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))
		c, err := p.Meter("app").Int64Counter("c")
		require.NoError(t, err)
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for range 250 {
					c.Add(context.Background(), 1)
				}
				_ = r.ForceFlush(context.Background())
			})
		}
		workers.Wait()
		require.NoError(t, p.Shutdown(context.Background()))
		require.EqualValues(t, 1000, total(t, server, group+":{c}"))
	}
}

// While a flush is in flight at a Redis that stalls, nobody waits for it: not a
// collection of another reader, which calls our gauges' callbacks, nor who makes
// an instrument, reads a total, or shuts down with a context.
func TestB15_NobodyWaitsForAFlushConcurrentSafe(t *testing.T) {
	r, err := New(stalled(t), WithGroup("shop"), WithInterval(50*time.Millisecond))
	require.NoError(t, err)
	other := sdkmetric.NewManualReader()
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r), sdkmetric.WithReader(other))
	require.NoError(t, r.RegisterGauges(p))
	c, err := p.Meter("app").Int64Counter("c")
	require.NoError(t, err)
	c.Add(t.Context(), 5)
	require.Eventually(t, func() bool { return r.Total("c").Buffer == 5 }, 10*time.Second, time.Millisecond)
	time.Sleep(100 * time.Millisecond)

	quick := func(what string, fn func()) {
		t.Helper()
		began := time.Now()
		fn()
		assert.Less(t, time.Since(began), 2*time.Second, "%s waited for Redis", what) // whose client waits 5 s
	}
	quick("collect", func() {
		var rm metricdata.ResourceMetrics
		require.NoError(t, other.Collect(t.Context(), &rm))
	})
	quick("new instrument", func() {
		d, err := p.Meter("app").Int64Counter("d")
		require.NoError(t, err)
		d.Add(t.Context(), 1)
	})
	quick("Total", func() { assert.EqualValues(t, 5, r.Total("c").Count) })
	quick("Watch", func() { r.Watch("c", 1, 1, func(counter.Total, bool) {})() })
	quick("Shutdown", func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.Error(t, p.Shutdown(ctx))
	})
}

// Everything that an application may do beside a collection, and in callbacks,
// 1,000 times.
func TestB15_NoDeadlockConcurrentSafe(t *testing.T) {
	_, rdb := memory(t)
	for round := range rounds(1000) {
		r, err := New(rdb, WithGroup("shop"), WithInterval(10*time.Millisecond))
		require.NoError(t, err)
		other := sdkmetric.NewManualReader()
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r), sdkmetric.WithReader(other))
		m := p.Meter("app")
		var inCallbacks atomic.Int64
		o, err := m.Int64ObservableCounter("o")
		require.NoError(t, err)
		reg, err := m.RegisterCallback(func(_ context.Context, obs metric.Observer) error {
			inCallbacks.Add(1)
			obs.ObserveInt64(o, 1)
			r.Total("c", attribute.Bool("b", true))
			r.Watch("c", 1, 1, func(counter.Total, bool) { r.Total("c") })()
			_ = r.RegisterGauges(p)
			if round%2 == 0 {
				_ = r.ForceFlush(context.Background())
			}
			if round%4 == 0 {
				_ = r.Shutdown(context.Background())
			}
			return nil
		}, o)
		require.NoError(t, err)
		beside := []func(){
			func() { _ = r.RegisterGauges(p) },
			func() {
				c, _ := m.Int64Counter("c" + strconv.Itoa(round%3))
				c.Add(context.Background(), 1, metric.WithAttributes(attribute.Bool("b", true)))
			},
			func() { _ = other.Collect(context.Background(), &metricdata.ResourceMetrics{}) },
			func() { _ = r.ForceFlush(context.Background()) },
			func() { r.Watch("c0", 1, 1, func(counter.Total, bool) {}) },
			func() { _ = reg.Unregister() },
			func() { _ = p.Shutdown(context.Background()) },
		}
		var all sync.WaitGroup
		for _, fn := range beside {
			all.Go(fn)
		}
		ended := make(chan struct{})
		go func() { all.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("round %d: deadlock", round)
		}
		<-r.done
	}
}

func TestB55_NewAndShutdownConcurrentSafe(t *testing.T) {
	_, rdb := memory(t)
	for range rounds(200) {
		r, err := New(rdb, WithGroup("shop"), WithInterval(10*time.Millisecond))
		require.NoError(t, err)
		var all sync.WaitGroup
		all.Go(func() { _ = r.ForceFlush(context.Background()) })
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))
		var nils atomic.Int64
		for range 3 {
			all.Go(func() {
				if r.Shutdown(context.Background()) == nil {
					nils.Add(1)
				}
			})
		}
		all.Go(func() { _ = p.ForceFlush(context.Background()) })
		all.Wait()
		assert.EqualValues(t, 1, nils.Load(), "one Shutdown shuts down, the others wait for it")
	}
}
