package feed

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// maxBaselines bounds how many cumulative series a feed keeps the last value of.
// There are more of them than counters: series above the limit of those, which
// go to the grand total, have baselines too, and so has each of several
// instruments of one name.
const maxBaselines = 100_000

// number is what an instrument counts in.
type number interface{ int64 | float64 }

// streamKey tells the sums of a batch apart. Two instruments that look the same
// in it still have different start times.
type streamKey struct {
	scope, version, schema  string
	attributes              attribute.Distinct
	name, unit, description string
	start                   int64
	float                   bool
}

func newStreamKey(scope *instrumentation.Scope, m *metricdata.Metrics, start time.Time, float bool) streamKey {
	key := streamKey{
		scope: scope.Name, version: scope.Version, schema: scope.SchemaURL, attributes: scope.Attributes.Equivalent(),
		name: m.Name, unit: m.Unit, description: m.Description, float: float,
	}
	if !start.IsZero() {
		key.start = start.UnixNano()
	}
	return key
}

// stream is the cumulative sums of one instrument since one start, or the deltas
// of an observable one.
type stream[N number] struct {
	parent    parent
	baselines table[baseline[N]]
}

// baseline is the last value of a cumulative series.
type baseline[N number] struct {
	value N
	at    time.Time // of the point
	used  uint32    // the round it was last observed in
}

// rise is what became of a value.
type rise uint8

const (
	still    rise = iota // it rose by nothing
	rose                 // by the amount
	opened               // the series is new
	invalid              // it is no number, or negative
	homeless             // there are too many series
)

// observe returns what a series rose by since its last value, and keeps the new
// one.
//
// The first value is the baseline, and a value that falls is a reset: what it has
// reached since counts. Not so for sums of counters: their first value counts,
// and one that falls is a negative amount.
func (s *stream[N]) observe(p *metricdata.DataPoint[N], value N, round uint32, room int) (amount N, what rise) {
	counted := s.parent == counting
	if f := float64(value); math.IsNaN(f) || math.IsInf(f, 0) || f < 0 && !counted {
		return value, invalid // as if it had not been observed
	}
	b := s.baselines.find(&p.Attributes)
	if b == nil {
		if room <= 0 {
			return value, homeless
		}
		*s.baselines.insert(p.Attributes) = baseline[N]{value, p.Time, round}
		if counted {
			return value, opened
		}
		return 0, opened
	}
	last := b.value
	*b = baseline[N]{value, p.Time, round}
	switch {
	case value == last:
		return 0, still
	case value < last && !counted:
		return value, rose
	default:
		return value - last, rose
	}
}

// whole undoes what the SDK makes of an observable counter that is asked for as
// deltas: the difference to the value in the collection before, or the whole
// value if there was none.
func (s *stream[N]) whole(p *metricdata.DataPoint[N]) N {
	if b := s.baselines.find(&p.Attributes); b != nil && b.at.Equal(p.StartTime) {
		return b.value + p.Value
	}
	return p.Value
}
