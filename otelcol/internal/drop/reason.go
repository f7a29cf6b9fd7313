// Package drop names the reasons for which a data point is not counted.
package drop

// Reason is why a data point is not counted. Its text is the attribute "reason"
// of the component's own metrics.
type Reason uint8

// The reasons. None is that of a point that is counted.
const (
	None Reason = iota
	// NotASum is a gauge, histogram, summary, or a sum that is not monotonic.
	NotASum
	// Temporality is a sum that is neither delta nor cumulative.
	Temporality
	// NoValue is a point that is empty or flagged as without a recorded value.
	NoValue
	// Negative is a negative amount, or cumulative value, of a monotonic sum.
	Negative
	// NotFinite is NaN or infinite.
	NotFinite
	// Own comes from otelcomcount itself, which would count its own counters twice.
	Own
	// Name is that of a metric whose name cannot name a counter.
	Name
	// MetricLimit is a metric or service above the limit.
	MetricLimit
	// StreamLimit is a cumulative stream above max_streams.
	StreamLimit
	// Initial is the first point of a cumulative stream: a baseline.
	Initial
	// Reset is a cumulative value that fell although its start is the same.
	Reset
	// OutOfOrder is a cumulative point that is no newer than the last one.
	OutOfOrder
	// SeveralWriters is a cumulative point that seems to be another sender's under the
	// same identity.
	SeveralWriters
	// Shutdown is a point that was passed on only after the component had closed.
	Shutdown

	// Count is the number of reasons.
	Count
)

var texts = [Count]string{
	None: "", NotASum: "not_a_monotonic_sum", Temporality: "temporality", NoValue: "no_value", Negative: "negative",
	NotFinite: "not_finite", Own: "own", Name: "name", MetricLimit: "metric_limit", StreamLimit: "stream_limit",
	Initial: "initial", Reset: "reset", OutOfOrder: "out_of_order", SeveralWriters: "several_writers", Shutdown: "shutdown",
}

// String returns the reason as the metrics have it.
func (r Reason) String() string { return texts[r] }
