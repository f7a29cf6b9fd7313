package comcountprocessor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcomcount/otelcomcount/internal/leaktest"
	o "github.com/otelcomcount/otelcomcount/otelcol/internal/otlptest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var typ = component.MustNewType("comcount")

// configured returns a configuration with a short interval, and the Redis that it
// names.
func configured(t *testing.T) (*Config, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	cfg := createDefaultConfig().(*Config)
	cfg.Counting.Redis.Endpoint = server.Addr()
	cfg.Counting.Interval = time.Second // a loaded machine may take long to answer
	return cfg, server
}

func create(t *testing.T, f processor.Factory, cfg *Config, next consumer.Metrics) processor.Metrics {
	t.Helper()
	p, err := f.CreateMetrics(t.Context(), processortest.NewNopSettings(typ), cfg, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, p.Shutdown(context.Background())) })
	return p
}

// sum adds up all totals on a server whose keys do not expire.
func sum(t *testing.T, server *miniredis.Miniredis, counter string) (n int) {
	t.Helper()
	for _, key := range server.Keys() {
		if rest, ok := strings.CutPrefix(key, counter+":"); ok && !strings.Contains(rest, ":") {
			value, err := server.Get(key)
			require.NoError(t, err)
			part := 0
			for _, digit := range value {
				part = part*10 + int(digit-'0')
			}
			n += part
		}
	}
	return n
}

func request(value int) pmetric.Metrics {
	md := o.New().Service("s").Delta("m", o.Point{Value: value}).MD
	md.MarkReadOnly()
	return md
}

func TestFactory(t *testing.T) {
	f := NewFactory()
	assert.Equal(t, typ, f.Type())
	assert.Equal(t, component.StabilityLevelAlpha, f.MetricsStability())
	_, err := f.CreateTraces(t.Context(), processortest.NewNopSettings(typ), f.CreateDefaultConfig(), consumertest.NewNop())
	require.ErrorIs(t, err, pipeline.ErrSignalNotSupported)
	_, err = f.CreateLogs(t.Context(), processortest.NewNopSettings(typ), f.CreateDefaultConfig(), consumertest.NewNop())
	require.ErrorIs(t, err, pipeline.ErrSignalNotSupported)
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
		p, err := f.CreateMetrics(t.Context(), processortest.NewNopSettings(typ), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(t.Context()))
	})
	t.Run("lifecycle", func(t *testing.T) {
		sink := &consumertest.MetricsSink{}
		p, err := f.CreateMetrics(t.Context(), processortest.NewNopSettings(typ), cfg, sink)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		require.False(t, p.Capabilities().MutatesData)
		md := pmetric.NewMetrics()
		md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
		md.MarkReadOnly()
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
		assert.Equal(t, 1, sink.DataPointCount())
		require.NoError(t, p.Shutdown(t.Context()))
		require.Error(t, p.ConsumeMetrics(t.Context(), md))
	})
}

func TestShutdownVerifier(t *testing.T) {
	cfg, _ := configured(t)
	processortest.VerifyShutdown(t, NewFactory(), cfg)
}

func TestCreationRefusesWhatIsNotItsConfiguration(t *testing.T) {
	_, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(typ), &struct{}{}, consumertest.NewNop())
	require.ErrorContains(t, err, "configuration of type")
	_, err = NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(typ), &Config{}, consumertest.NewNop())
	require.ErrorContains(t, err, "emit")
}

// "Creation never dials": nor does Start.
func TestNothingIsDialledBeforeTheFirstPoint(t *testing.T) {
	cfg, server := configured(t)
	p := create(t, NewFactory(), cfg, consumertest.NewNop())
	require.NoError(t, p.ConsumeMetrics(t.Context(), o.New().Service("s").Sum("g", pmetric.AggregationTemporalityDelta, false, o.Point{Value: 1}).MD))
	assert.Zero(t, server.TotalConnectionCount())
}

func TestStartReportsBadTLSFiles(t *testing.T) {
	cfg, _ := configured(t)
	cfg.Counting.Redis.TLS.GetOrInsertDefault().CAFile = "testdata/no-such-file"
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(typ), cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, p.Start(t.Context(), componenttest.NewNopHost()), "redis::tls")
	require.NoError(t, p.Shutdown(t.Context()))
}

// "It counts only if next.ConsumeMetrics returned nil or a permanent error."
func TestCountsWhatNobodySendsAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"accepted":         {nil, 5},
		"refused for now":  {errors.New("busy"), 0},
		"refused for good": {consumererror.NewPermanent(errors.New("bad")), 5},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, server := configured(t)
			p := create(t, NewFactory(), cfg, consumertest.NewErr(tt.err))
			assert.ErrorIs(t, p.ConsumeMetrics(t.Context(), request(5)), tt.err)
			require.NoError(t, p.Shutdown(t.Context()))
			assert.Equal(t, tt.want, sum(t, server, "s:{m}"))
		})
	}
}

// A cumulative point that was refused for now counts when it comes again.
func TestRefusedCumulativePointsCountWhenTheyComeAgain(t *testing.T) {
	cfg, server := configured(t)
	var refuse error
	next := &consumertest.MetricsSink{}
	p := create(t, NewFactory(), cfg, consumerOf(func(ctx context.Context, md pmetric.Metrics) error {
		if refuse != nil {
			return refuse
		}
		return next.ConsumeMetrics(ctx, md)
	}))
	point := func(at, value int) pmetric.Metrics {
		return o.New().Service("s").Cumulative("m", o.Point{Start: 1, At: at, Value: value}).MD
	}
	require.NoError(t, p.ConsumeMetrics(t.Context(), point(2, 100)))
	refuse = errors.New("busy")
	require.Error(t, p.ConsumeMetrics(t.Context(), point(3, 107)))
	refuse = nil
	require.NoError(t, p.ConsumeMetrics(t.Context(), point(3, 107)))
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, 7, sum(t, server, "s:{m}"))
}

func consumerOf(fn consumer.ConsumeMetricsFunc) consumer.Metrics {
	c, err := consumer.NewMetrics(fn)
	if err != nil {
		panic(err)
	}
	return c
}

// Data passes on as it came, in the caller's context, and totals come out besides.
func TestDataPassesOnAndTotalsComeOut(t *testing.T) {
	cfg, _ := configured(t)
	sink := &consumertest.MetricsSink{}
	p := create(t, NewFactory(), cfg, sink)
	md := request(5)
	require.NoError(t, p.ConsumeMetrics(t.Context(), md))
	assert.Equal(t, md, sink.AllMetrics()[0])
	require.Eventually(t, func() bool {
		for _, out := range sink.AllMetrics()[1:] {
			m := out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
			if m.Name() == "m.group" && m.Gauge().DataPoints().At(0).IntValue() == 5 {
				return true
			}
		}
		return false
	}, 30*time.Second, 10*time.Millisecond)
}
