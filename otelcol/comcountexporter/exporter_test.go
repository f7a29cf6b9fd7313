package comcountexporter

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcomcount/otelcomcount/internal/leaktest"
	o "github.com/otelcomcount/otelcomcount/otelcol/internal/otlptest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var typ = component.MustNewType("comcount")

func create(t *testing.T, f exporter.Factory, cfg component.Config) exporter.Metrics {
	t.Helper()
	e, err := f.CreateMetrics(t.Context(), exportertest.NewNopSettings(typ), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, e.Shutdown(context.Background())) })
	return e
}

func configured(t *testing.T) (*Config, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	cfg := createDefaultConfig().(*Config)
	cfg.Counting.Redis.Endpoint = server.Addr()
	cfg.Counting.Interval = time.Second // a loaded machine may take long to answer
	return cfg, server
}

// sum adds up all totals on a server whose keys do not expire.
func sum(t *testing.T, server *miniredis.Miniredis, counter string) (n int) {
	t.Helper()
	for _, key := range server.Keys() {
		if rest, ok := strings.CutPrefix(key, counter+":"); ok && !strings.Contains(rest, ":") {
			value, err := server.Get(key)
			require.NoError(t, err)
			part, err := strconv.Atoi(value)
			require.NoError(t, err)
			n += part
		}
	}
	return n
}

func TestFactory(t *testing.T) {
	f := NewFactory()
	assert.Equal(t, typ, f.Type())
	assert.Equal(t, component.StabilityLevelAlpha, f.MetricsStability())
	_, err := f.CreateTraces(t.Context(), exportertest.NewNopSettings(typ), f.CreateDefaultConfig())
	require.ErrorIs(t, err, pipeline.ErrSignalNotSupported)
	_, err = f.CreateMetrics(t.Context(), exportertest.NewNopSettings(typ), &struct{}{})
	require.ErrorContains(t, err, "configuration of type")
}

// The configuration in metadata.yaml is one that the lifecycle works with.
func TestLifecycle(t *testing.T) {
	conf, err := confmaptest.LoadConf("metadata.yaml")
	require.NoError(t, err)
	sub, err := conf.Sub("tests::config")
	require.NoError(t, err)
	f := NewFactory()
	cfg := f.CreateDefaultConfig()
	require.NoError(t, sub.Unmarshal(&cfg))

	t.Run("shutdown", func(t *testing.T) {
		e, err := f.CreateMetrics(t.Context(), exportertest.NewNopSettings(typ), cfg)
		require.NoError(t, err)
		require.NoError(t, e.Shutdown(t.Context()))
	})
	t.Run("lifecycle", func(t *testing.T) {
		e := create(t, f, cfg)
		require.False(t, e.Capabilities().MutatesData)
		md := o.New().Service("s").MD
		md.MarkReadOnly()
		require.NoError(t, e.ConsumeMetrics(t.Context(), md))
		require.NoError(t, e.Shutdown(t.Context()))
		require.NoError(t, e.Shutdown(t.Context()))
	})
}

func TestCounts(t *testing.T) {
	cfg, server := configured(t)
	e := create(t, NewFactory(), cfg)
	for range 3 {
		md := o.New().Service("s").Delta("m", o.Point{Value: 5}).MD
		md.MarkReadOnly()
		require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	assert.Equal(t, 15, sum(t, server, "s:{m}"))
	require.Error(t, e.ConsumeMetrics(t.Context(), o.New().Service("s").MD))
}

// A batch is never kept to be sent again: what a restart finds is what was counted.
func TestB40NothingIsSentAgainAfterARestart(t *testing.T) {
	cfg, server := configured(t)
	sent := 0
	for range 3 { // restarts
		e := create(t, NewFactory(), cfg)
		for range 100 {
			require.NoError(t, e.ConsumeMetrics(t.Context(), o.New().Service("s").Delta("m", o.Point{Value: 1}).MD))
			sent++
		}
		require.NoError(t, e.Shutdown(t.Context()))
		assert.Equal(t, sent, sum(t, server, "s:{m}"))
	}
}

// Instances of one configuration are one participant.
func TestB45InstancesCountTogether(t *testing.T) {
	cfg, server := configured(t)
	f := NewFactory()
	a, b := create(t, f, cfg), create(t, f, cfg)
	for _, e := range []exporter.Metrics{a, b} {
		require.NoError(t, e.ConsumeMetrics(t.Context(), o.New().Service("s").Delta("m", o.Point{Value: 1}).MD))
	}
	require.NoError(t, a.Shutdown(t.Context()))
	require.NoError(t, b.ConsumeMetrics(t.Context(), o.New().Service("s").Delta("m", o.Point{Value: 1}).MD))
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Equal(t, 3, sum(t, server, "s:{m}"))
	marks := map[string]bool{}
	for _, key := range server.Keys() {
		if strings.HasSuffix(key, ":by") {
			fields, err := server.HKeys(key)
			require.NoError(t, err)
			for _, field := range fields {
				if strings.HasPrefix(field, "@") {
					marks[field] = true
				}
			}
		}
	}
	assert.Len(t, marks, 1)
}
