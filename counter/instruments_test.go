package counter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestRegisterInstrumentsExportsOwnSumsAndTheGroups(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *memStore, g *Group) {
		reader := sdkmetric.NewManualReader()
		mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		early := mustCounter(t, g, "early")
		require.NoError(t, g.RegisterInstruments(mp))
		mustCounter(t, g, "late", attribute.String("route", "/")).Add(2)
		mustCounter(t, g, "late").Add(3)
		cost, err := g.FloatCounter("cost")
		require.NoError(t, err)
		cost.Add(0.5)
		early.Add(7)
		sleep(second / 100)

		got := collect(t, reader)
		assert.Equal(t, map[string]float64{"": 7}, got["early"])
		assert.Equal(t, map[string]float64{"route=/": 2, "": 3}, got["late"])
		assert.Equal(t, map[string]float64{"": 0.5}, got["cost"])
		assert.NotContains(t, got, "early.group", "no gauge while the total is unknown")

		for !early.Total().Known || early.Total().Closed == 0 {
			sleep(second / 10)
		}
		got = collect(t, reader)
		assert.Equal(t, map[string]float64{"": 7}, got["early.group"])
		assert.Equal(t, map[string]float64{"": 5}, got["late.group"])
		assert.Equal(t, map[string]float64{"": 0.5}, got["cost.group"])
	})
}

// collect returns the values of all points by instrument and attribute set.
func collect(t *testing.T, reader sdkmetric.Reader) map[string]map[string]float64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &rm))
	got := map[string]map[string]float64{}
	put := func(name string, set attribute.Set, v float64) {
		if got[name] == nil {
			got[name] = map[string]float64{}
		}
		got[name][set.Encoded(attribute.DefaultEncoder())] = v
	}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				assert.True(t, d.IsMonotonic)
				for _, p := range d.DataPoints {
					put(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					put(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					put(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					put(m.Name, p.Attributes, p.Value)
				}
			}
		}
	}
	return got
}
