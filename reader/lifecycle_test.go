package reader

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/counter"
)

// stalled returns a client of a Redis that takes commands and never answers.
func stalled(t *testing.T) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: 5 * second, Dialer: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		return client, nil
	}})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestForceFlushSettlesWhatWasCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		c := a.counter("c")
		for i := range int64(5) {
			c.Add(t.Context(), 3)
			require.NoError(t, a.provider.ForceFlush(t.Context()))
			assert.Equal(t, 3*(i+1), b.truth("shop:{c}"))
			assert.Zero(t, a.reader.Total("c").Buffer)
		}
	})
}

func TestShutdownLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		c := a.counter("c")
		c.Add(t.Context(), 1)
		sleep(3 * second)
		c.Add(t.Context(), 2)
		require.NoError(t, a.reader.Shutdown(t.Context()))
		assert.EqualValues(t, 3, b.truth("shop:{c}"))
		assert.ErrorIs(t, a.reader.Shutdown(t.Context()), sdkmetric.ErrReaderShutdown)
		assert.ErrorIs(t, a.reader.ForceFlush(t.Context()), sdkmetric.ErrReaderShutdown)
		assert.False(t, a.reader.Total("c").Known)
		assert.ErrorIs(t, a.reader.manualReader.Collect(t.Context(), &metricdata.ResourceMetrics{}), sdkmetric.ErrReaderShutdown)
	})
}

// MeterProvider.Shutdown gives all readers one context, in their order.
func TestShutdownWithAContextThatIsSpent(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		a.counter("c").Add(t.Context(), 2)
		sleep(3 * second)
		a.counter("c").Add(t.Context(), 5)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, a.provider.Shutdown(ctx))
		assert.EqualValues(t, 7, b.truth("shop:{c}"))
	})
}

func TestB26_ShutdownRightAfterATickAddsOnceAnInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(WithInterval(10 * second))
		c := a.counter("c")
		c.Add(t.Context(), 1)
		for b.truth("shop:{c}") == 0 {
			sleep(second / 10)
		}
		c.Add(t.Context(), 2)
		a.flush()
		c.Add(t.Context(), 4)
		err := a.reader.Shutdown(t.Context())
		require.NoError(t, err, "with both intervals used, it waits for the next")
		assert.EqualValues(t, 7, b.truth("shop:{c}"))
		assert.Len(t, b.intervals("shop:{c}"), 3, "never two adds to one interval")
	})
}

func TestB25_ContextsAreObeyedWhileRedisStalls(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bubble) {
		r, err := New(stalled(t), WithInterval(second), WithGroup("shop"))
		require.NoError(t, err)
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))
		c, err := p.Meter("app").Int64Counter("c")
		require.NoError(t, err)
		c.Add(t.Context(), 5)

		for _, call := range []func(context.Context) error{r.ForceFlush, r.ForceFlush, r.Shutdown} {
			ctx, cancel := context.WithTimeout(t.Context(), second/10)
			began := time.Now()
			err := call(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.LessOrEqual(t, time.Since(began), 3*second/10)
			cancel()
		}
		sleep(10 * second)
	})
}

func TestShutdownTellsWhatItLost(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bubble) {
		r, err := New(stalled(t), WithInterval(second), WithGroup("shop"))
		require.NoError(t, err)
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))
		c, err := p.Meter("app").Int64Counter("c")
		require.NoError(t, err)
		c.Add(t.Context(), 5)
		began := time.Now()
		require.ErrorContains(t, p.Shutdown(context.Background()), "amount of 5")
		assert.LessOrEqual(t, time.Since(began), 31*second, "without a deadline it has 30 s, as a PeriodicReader")
		sleep(10 * second)
	})
}

func TestB55_LifeBeforeRegistration(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		_, err := New(b.client(), WithInterval(1))
		require.Error(t, err)
		r, err := New(b.client(), WithInterval(second))
		require.NoError(t, err)
		require.ErrorIs(t, r.ForceFlush(t.Context()), sdkmetric.ErrReaderNotRegistered)
		assert.False(t, r.Total("c").Known)
		stop := r.Watch("c", 1, 1, func(counter.Total, bool) {})
		stop()
		stop()
		sleep(5 * second)
		require.NoError(t, r.Shutdown(t.Context()))
		assert.Empty(t, b.server.Keys())
	})
}

func TestWatchBeforeRegistrationIsAttachedLater(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		r, err := New(b.client(), WithInterval(second), WithGroup("shop"))
		require.NoError(t, err)
		var over, stopped atomic.Int64
		defer r.Watch("c", 10, 10, func(counter.Total, bool) { over.Add(1) })()
		r.Watch("c", 10, 10, func(counter.Total, bool) { stopped.Add(1) })()
		sleep(3 * second)
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r))
		defer func() { _ = p.Shutdown(context.Background()) }()
		c, err := p.Meter("app").Int64Counter("c")
		require.NoError(t, err)
		c.Add(t.Context(), 10)
		sleep(3 * second)
		assert.Positive(t, over.Load())
		assert.Zero(t, stopped.Load())
		assert.Panics(t, func() { r.Watch("c", 1, 2, nil) })
	})
}

// Registering a reader twice is logged by the SDK. The second provider's
// counters go nowhere; nothing is counted twice.
func TestB55_ReaderServesOneProvider(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		second := sdkmetric.NewMeterProvider(sdkmetric.WithReader(a.reader))
		c, err := second.Meter("app").Int64Counter("c")
		require.NoError(t, err)
		for range 3 {
			a.counter("c").Add(t.Context(), 1)
			c.Add(t.Context(), 100)
			a.flush()
		}
		assert.EqualValues(t, 3, b.truth("shop:{c}"))
		require.NoError(t, second.Shutdown(t.Context()))
		require.ErrorIs(t, a.reader.ForceFlush(t.Context()), sdkmetric.ErrReaderShutdown)
	})
}

func TestNobodyElseCollects(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		a.counter("c").Add(t.Context(), 1)
		var rm metricdata.ResourceMetrics
		require.Error(t, sdkmetric.Reader(a.reader).Collect(t.Context(), &rm))
		assert.Empty(t, rm.ScopeMetrics)
		a.flush()
		assert.EqualValues(t, 1, b.truth("shop:{c}"))
	})
}

// A callback that waits for the collection that it is part of would wait for
// ever.
func TestShutdownByACallback(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		c := a.counter("c")
		var errs []error
		_, err := a.meter.Int64ObservableCounter("o", metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error {
			errs = append(errs, a.reader.ForceFlush(context.Background()), a.reader.Shutdown(context.Background()), a.reader.Shutdown(context.Background()))
			return nil
		}))
		require.NoError(t, err)
		c.Add(t.Context(), 3)
		sleep(5 * second)
		require.NotEmpty(t, errs)
		for _, err := range errs {
			require.ErrorIs(t, err, errInCallback)
		}
		require.ErrorIs(t, a.reader.Shutdown(t.Context()), sdkmetric.ErrReaderShutdown)
		assert.EqualValues(t, 3, b.truth("shop:{c}"))
	})
}
