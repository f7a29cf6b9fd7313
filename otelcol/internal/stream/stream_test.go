package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/drop"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
)

// in is a point, and what it must count.
type in struct {
	start, at uint64
	value     int64
	counts    int64
	why       drop.Reason
}

func TestRules(t *testing.T) {
	for name, points := range map[string][]in{
		"a stream that rises": {
			{5, 10, 1000, 0, drop.Initial},
			{5, 20, 1010, 10, drop.None},
			{5, 30, 1010, 0, drop.None},
			{5, 40, 1011, 1, drop.None},
		},
		"a start that is not known": {
			{0, 10, 1000, 0, drop.Initial},
			{0, 20, 1010, 10, drop.None},
		},
		"times that are not known": {
			{0, 0, 1000, 0, drop.Initial},
			{0, 0, 1010, 10, drop.None},
		},
		"an older start is ignored": {
			{5, 10, 100, 0, drop.Initial},
			{20, 30, 3, 3, drop.None},
			{5, 40, 105, 0, drop.OutOfOrder},
			{0, 50, 105, 0, drop.OutOfOrder},
			{20, 60, 8, 5, drop.None},
		},
		"a newer start that overlaps is a baseline": {
			{5, 10, 1000, 0, drop.Initial},
			{6, 10, 2000, 0, drop.SeveralWriters},
			{5, 20, 1005, 0, drop.OutOfOrder},
			{6, 20, 2003, 3, drop.None},
			{5, 30, 1010, 0, drop.OutOfOrder},
			{6, 30, 2006, 3, drop.None},
		},
		"a start that jitters counts at most once": {
			{5, 10, 100, 0, drop.Initial},
			{6, 20, 110, 0, drop.SeveralWriters},
			{5, 30, 120, 0, drop.OutOfOrder},
			{6, 40, 130, 20, drop.None},
		},
		"a restart counts from its start": {
			{5, 10, 100, 0, drop.Initial},
			{5, 20, 105, 5, drop.None},
			{25, 30, 3, 3, drop.None},
			{25, 40, 8, 5, drop.None},
		},
		"a restart that has outgrown the last value counts what is sure": {
			{5, 10, 100, 0, drop.Initial},
			{15, 20, 130, 30, drop.None},
		},
		"a start that moves with every point never counts a whole value": {
			{5, 10, 1000, 0, drop.Initial},
			{10, 20, 1010, 10, drop.None},
			{20, 30, 1015, 5, drop.None},
		},
		"a start that is its own time is a baseline": {
			{10, 10, 1000, 0, drop.Initial},
			{20, 20, 1010, 0, drop.SeveralWriters},
			{30, 30, 5, 0, drop.SeveralWriters},
			{30, 40, 8, 3, drop.None},
		},
		"a late point is contained in the last one": {
			{5, 10, 100, 0, drop.Initial},
			{5, 30, 130, 30, drop.None},
			{5, 20, 110, 0, drop.OutOfOrder},
			{5, 30, 130, 0, drop.OutOfOrder},
			{5, 30, 150, 0, drop.OutOfOrder},
			{5, 40, 135, 5, drop.None},
		},
		"a fall without a new start is a baseline": {
			{5, 10, 105, 0, drop.Initial},
			{5, 20, 6, 0, drop.Reset},
			{5, 30, 9, 3, drop.None},
			{5, 40, 104, 95, drop.None},
		},
		"two writers with one start": {
			{5, 10, 1000, 0, drop.Initial},
			{5, 11, 2000, 1000, drop.None}, // nothing tells yet
			{5, 20, 1005, 0, drop.Reset},
			{5, 21, 2003, 998, drop.None}, // it may be one that grows fast
			{5, 30, 1010, 0, drop.Reset},
			{5, 31, 2006, 0, drop.SeveralWriters},
			{5, 40, 1015, 0, drop.Reset},
			{5, 41, 2009, 0, drop.SeveralWriters},
		},
		"restarts without a start that are far apart": {
			{0, 10, 100, 0, drop.Initial},
			{0, 20, 3, 0, drop.Reset},
			{0, 21, 4, 1, drop.None},
			{0, 22, 5, 1, drop.None},
			{0, 23, 6, 1, drop.None},
			{0, 24, 7, 1, drop.None},
			{0, 25, 8, 1, drop.None},
			{0, 26, 9, 1, drop.None},
			{0, 27, 10, 1, drop.None},
			{0, 28, 11, 1, drop.None},
			{0, 29, 12, 1, drop.None},
			{0, 30, 13, 1, drop.None},
			{0, 31, 3, 0, drop.Reset},
			{0, 32, 5, 2, drop.None},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			table := NewTable(Settings{Limit: 10, Staleness: time.Hour}, now)
			for i, p := range points {
				n, why := table.Int(identity.Key{1, 2}, Point[int64]{p.start, p.at, p.value}, now)
				assert.Equal(t, p.counts, n, "point %d", i)
				assert.Equal(t, p.why.String(), why.String(), "point %d", i)
			}
		})
	}
}

// "Nothing counts until the value has not fallen for ten points."
func TestContestedStreamIsTrustedAgain(t *testing.T) {
	now := time.Now()
	table := NewTable(Settings{Limit: 10, Staleness: time.Hour}, now)
	at := uint64(0)
	take := func(value int64) int64 {
		at++
		n, _ := table.Int(identity.Key{}, Point[int64]{1, at, value}, now)
		return n
	}
	for _, v := range []int64{100, 50, 110, 60} {
		take(v)
	}
	for i := range int64(calm - 1) {
		assert.Zero(t, take(61+i))
	}
	assert.EqualValues(t, 5, take(61+calm-2+5))
	assert.EqualValues(t, 1, take(61+calm-2+6))
}

func TestInitialValue(t *testing.T) {
	began := time.Unix(1000, 0)
	second := func(s int64) uint64 { return uint64(s * 1e9) }
	for name, tt := range map[string]struct {
		policy    Initial
		start, at uint64
		want      int64
	}{
		"drop":                       {Drop, second(1010), second(1020), 0},
		"keep":                       {Keep, second(10), second(20), 7},
		"auto, began after us":       {Auto, second(1010), second(1020), 7},
		"auto, began before us":      {Auto, second(990), second(1020), 0},
		"auto, not known":            {Auto, 0, second(1020), 0},
		"auto, its own time":         {Auto, second(1010), second(1010), 0},
		"auto, perhaps seen earlier": {Auto, second(1001), second(5000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, int64(tt.at))
			table := NewTable(Settings{Limit: 10, Staleness: time.Hour, Initial: tt.policy}, began)
			n, _ := table.Int(identity.Key{}, Point[int64]{tt.start, tt.at, 7}, now)
			assert.Equal(t, tt.want, n)
			n, _ = table.Int(identity.Key{}, Point[int64]{tt.start, tt.at, 7}, now)
			assert.Zero(t, n)
		})
	}
}

func TestStaleStreamsAreForgotten(t *testing.T) {
	now := time.Unix(1000, 0)
	table := NewTable(Settings{Limit: 2, Staleness: time.Minute}, now)
	take := func(key uint64, at int64, value float64) (float64, drop.Reason) {
		return table.Double(identity.Key{key}, Point[float64]{1, uint64(at), value}, now)
	}
	take(1, 1, 100)
	take(2, 1, 100)
	_, why := take(3, 1, 100)
	assert.Equal(t, drop.StreamLimit, why)
	assert.EqualValues(t, 2, table.Len())

	now = now.Add(40 * time.Second)
	n, _ := take(1, 2, 101)
	assert.InDelta(t, 1, n, 0)
	_, why = take(2, 1, 100) // ignored points do not keep it alive
	assert.Equal(t, drop.OutOfOrder, why)

	now = now.Add(30 * time.Second)
	n, why = take(2, 3, 150)
	assert.Zero(t, n, "stale, though not swept yet")
	assert.Equal(t, drop.Initial, why)
	n, _ = take(2, 4, 151)
	assert.InDelta(t, 1, n, 0)

	now = now.Add(2 * time.Minute)
	assert.EqualValues(t, 2, table.Sweep(now))
	assert.Zero(t, table.Len())
	_, why = take(3, 1, 100)
	assert.Equal(t, drop.Initial, why)
}

func TestNothingIsForgottenWithoutStaleness(t *testing.T) {
	now := time.Unix(1000, 0)
	table := NewTable(Settings{Limit: 2}, now)
	table.Int(identity.Key{}, Point[int64]{1, 1, 100}, now)
	now = now.Add(1000 * time.Hour)
	assert.Zero(t, table.Sweep(now))
	n, _ := table.Int(identity.Key{}, Point[int64]{1, 2, 101}, now)
	assert.EqualValues(t, 1, n)
}
