package feed

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestObserve(t *testing.T) {
	const lowest = math.MinInt64
	for name, tt := range map[string]struct {
		parent parent
		values []int64
		want   []int64
		kinds  []rise
	}{
		"an observable counts what it rises by": {
			values: []int64{10, 10, 15, 20},
			want:   []int64{0, 0, 5, 5},
			kinds:  []rise{opened, still, rose, rose},
		},
		"a fall is a reset": {
			values: []int64{100, 105, 3, 8, 0, 2},
			want:   []int64{0, 5, 3, 5, 0, 2},
			kinds:  []rise{opened, rose, rose, rose, rose, rose},
		},
		"a negative value is none": {
			values: []int64{-5, 10, -1, lowest, 12},
			want:   []int64{-5, 0, -1, lowest, 2},
			kinds:  []rise{invalid, opened, invalid, invalid, rose},
		},
		"a counter counts from its start": {
			parent: counting,
			values: []int64{10, 10, 15},
			want:   []int64{10, 0, 5},
			kinds:  []rise{opened, still, rose},
		},
		"a counter that falls was added a negative amount": {
			parent: counting,
			values: []int64{-3, 7, 5, 9},
			want:   []int64{-3, 10, -2, 4},
			kinds:  []rise{opened, rose, rose, rose},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stream[int64]{parent: tt.parent}
			for i, v := range tt.values {
				got, kind := s.observe(&metricdata.DataPoint[int64]{}, v, 0, 1)
				assert.Equal(t, tt.want[i], got, "value %d", i)
				assert.Equal(t, tt.kinds[i], kind, "value %d", i)
			}
		})
	}
}

func TestObserveNoNumber(t *testing.T) {
	s := stream[float64]{}
	for i, v := range []float64{1, math.NaN(), math.Inf(1), math.Inf(-1), 1.5} {
		got, kind := s.observe(&metricdata.DataPoint[float64]{}, v, 0, 1)
		switch i {
		case 0:
			assert.Equal(t, opened, kind)
		case 4:
			assert.Equal(t, rose, kind)
			assert.InDelta(t, 0.5, got, 0)
		default:
			assert.Equal(t, invalid, kind)
		}
	}
}

func TestObserveBoundsBaselines(t *testing.T) {
	s := stream[int64]{parent: counting}
	point := metricdata.DataPoint[int64]{Attributes: attribute.NewSet(attribute.Bool("b", true))}
	_, kind := s.observe(&point, 1, 0, 0)
	assert.Equal(t, homeless, kind)
	assert.Zero(t, s.baselines.size)
}

func TestWholeUndoesTheSDKsDeltas(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	s := stream[int64]{}
	var rises []int64
	for _, p := range []metricdata.DataPoint[int64]{
		{StartTime: at(0), Time: at(1), Value: 1000},
		{StartTime: at(1), Time: at(2), Value: 5},
		// not observed in the collection at 3: the SDK forgets, and gives the whole value again
		{StartTime: at(3), Time: at(4), Value: 1007},
		{StartTime: at(4), Time: at(5), Value: 0},
	} {
		n, _ := s.observe(&p, s.whole(&p), 0, 1)
		rises = append(rises, n)
	}
	assert.Equal(t, []int64{0, 5, 2, 0}, rises)
}

func TestBirths(t *testing.T) {
	var b Births
	assert.Equal(t, unclear, b.parent(time.Now()), "asked nothing yet")
	before := time.Now()
	b.Note(sdkmetric.InstrumentKindCounter)
	first := time.Now()
	b.Note(sdkmetric.InstrumentKindObservableCounter)
	second := time.Now()
	b.Note(sdkmetric.InstrumentKindHistogram)
	third := time.Now()
	assert.Equal(t, unclear, b.parent(before.Add(-time.Nanosecond)))
	assert.Equal(t, counting, b.parent(first))
	assert.Equal(t, observable, b.parent(second))
	assert.Equal(t, counting, b.parent(third))
	assert.Equal(t, unclear, b.parent(third.Add(lag)), "started long after the question: no instrument of the SDK's")
	assert.Equal(t, unclear, b.parent(time.Time{}))

	b.events = append(b.events, birth{third, observable}, birth{third, counting})
	assert.Equal(t, unclear, b.parent(third), "asked for both at one instant")
}
