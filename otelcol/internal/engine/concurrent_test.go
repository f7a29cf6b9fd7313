package engine

import (
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
	o "github.com/otelcomcount/otelcomcount/otelcol/internal/otlptest"
)

// Many senders, instances that come and go, sweeps and ticks, all at once, outside a
// bubble: for the race detector.
func TestConsumeConcurrentSafe(t *testing.T) {
	server := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	store, err := counter.NewStore(rdb)
	require.NoError(t, err)
	s := Settings{Config: config.Default(), Emit: EmitOne, Store: store, Telemetry: componenttest.NewNopTelemetrySettings()}
	core, logs := observer.New(zap.ErrorLevel)
	s.Telemetry.Logger = zap.New(core)
	s.Config.Interval = 50 * time.Millisecond // many ticks; on a loaded machine too short for some amounts
	s.Config.Attributes = []string{"k"}
	s.Config.MaxSeries = 5
	shared, cfg := NewShared(), new(config.Config)
	first := shared.Join(cfg, s, &consumertest.MetricsSink{})
	require.NoError(t, first.Start(t.Context()))

	const senders, rounds = 8, 50
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			m := shared.Join(cfg, s, &consumertest.MetricsSink{})
			if !assert.NoError(t, m.Start(t.Context())) {
				return
			}
			for i := range rounds {
				b, err := m.Extract(o.New().Service([]string{"a", "b"}[i%2]).
					Delta("m", o.Point{Value: 1, Attrs: map[string]any{"k": int64(i % 7)}}).
					Resource(map[string]any{"service.name": "a", "sender": int64(sender)}).
					Cumulative("c", o.Point{Start: 1, At: i + 1, Value: i}).MD)
				if !assert.NoError(t, err) {
					return
				}
				b.Commit()
				b.Release()
				first.engine.targets.sweep(time.Now().Add(-time.Millisecond))
				first.engine.streams.Sweep(time.Now())
			}
			assert.NoError(t, m.Shutdown(t.Context()))
		})
	}
	wg.Wait()
	_ = first.Shutdown(t.Context()) // what it could not send is in the logs
	f := &fleet{t: t, redis: server}
	lost := (&collector{logs: logs}).reportedLost()
	counted := f.truth("a:", "m") + f.truth("b:", "m") + f.truth("a:", "c")
	assert.LessOrEqual(t, counted, int64(senders*rounds+senders*(rounds-1)))
	assert.GreaterOrEqual(t, counted+lost, int64(senders*rounds+senders*(rounds-1)), "%d are lost without a report", lost)
}
