package feed

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcomcount/otelcomcount/counter"
)

// away is a store that cannot be reached, so that what is counted stays in the
// buffers.
type away struct{ counter.Store }

func (away) Server(context.Context, string, string) (string, error) {
	return "", errors.New("away")
}

func newFeed(t *testing.T, interval time.Duration, maxSeries int) *Feed {
	t.Helper()
	cfg := NewConfig("test", interval)
	cfg.Store, cfg.MaxSeries = away{}, maxSeries
	group := "g"
	cfg.Group = &group
	f, err := New(nil, cfg)
	require.NoError(t, err)
	t.Cleanup(f.base.Close)
	return f
}

func batch(name string, temporality metricdata.Temporality, points ...metricdata.DataPoint[int64]) *metricdata.ResourceMetrics {
	return &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{
		Scope:   instrumentation.Scope{Name: "app"},
		Metrics: []metricdata.Metrics{{Name: name, Data: metricdata.Sum[int64]{Temporality: temporality, IsMonotonic: true, DataPoints: points}}},
	}}}
}

func point(v int64, attrs ...attribute.KeyValue) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(attrs...), Value: v}
}

// Sets that the SDK takes for one within a collection are two series over time.
func TestSetsOfOneHashAreTwoSeries(t *testing.T) {
	a, b := same(t)
	f := newFeed(t, time.Hour, 10)
	for range 3 {
		f.Take(batch("c", metricdata.DeltaTemporality, metricdata.DataPoint[int64]{Attributes: a, Value: 1}))
		f.Take(batch("c", metricdata.DeltaTemporality, metricdata.DataPoint[int64]{Attributes: b, Value: 10}))
	}
	assert.EqualValues(t, 3, f.Total("c", a.ToSlice()).Buffer)
	assert.EqualValues(t, 30, f.Total("c", b.ToSlice()).Buffer)
	assert.EqualValues(t, 33, f.Total("c", nil).Buffer)
}

func TestUnclearTemporalityIsNotCounted(t *testing.T) {
	f := newFeed(t, time.Hour, 10)
	f.Take(batch("c", 0, point(5)))
	assert.Zero(t, f.Total("c", nil).Count)
}

// Whatever comes, the maps hold no more than they may.
func TestMapsAreBounded(t *testing.T) {
	const interval = 10 * time.Millisecond
	f := newFeed(t, interval, 50)
	for i := range 2000 {
		f.Take(batch("d", metricdata.DeltaTemporality, point(1, attribute.Int("i", i))))
		f.Take(batch("w", metricdata.CumulativeTemporality, point(1, attribute.Int("i", i))))
	}
	d := f.instruments[instrumentKey{"d", false}]
	assert.LessOrEqual(t, d.parts.size, 50)
	assert.Equal(t, f.room, maxBaselines-baselines(f))

	require.Eventually(t, func() bool {
		time.Sleep(interval)
		f.Take(&metricdata.ResourceMetrics{})
		return d.parts.size == 0 && len(*d.shown.Load()) == 0 && baselines(f) == 0
	}, 10*time.Second, time.Millisecond, "what is idle leaves")
	assert.Equal(t, maxBaselines, f.room)
}

func baselines(f *Feed) (n int) {
	for _, s := range f.ints {
		n += s.baselines.size
	}
	return n
}

func TestAtLeast(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	ctx, stop := AtLeast(over, 50*time.Millisecond)
	defer stop()
	require.NoError(t, ctx.Err())
	<-ctx.Done()
	assert.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)

	long, cancel := context.WithCancel(context.Background())
	ctx, stop = AtLeast(long, time.Millisecond)
	time.AfterFunc(20*time.Millisecond, cancel)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	stop()
}
