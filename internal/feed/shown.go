package feed

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Descriptions of the gauges.
const (
	GroupDescription  = "What the whole group counted in the last closed interval."
	SeriesDescription = "What the whole group counted in the last closed interval, by attributes."
)

// GroupName is the name of the gauge of the grand total.
func (in *Instrument) GroupName() string { return in.Name + ".group" }

// SeriesName is the name of the gauge of the parts.
func (in *Instrument) SeriesName() string { return in.Name + ".group.series" }

// Grand returns the group's closed total, if it is known.
func (in *Instrument) Grand() (closed int64, known bool) {
	t := in.grand.units.Peek().Total
	return t.Closed, t.Known
}

// Parts calls fn with the parts of the closed total that are known.
func (in *Instrument) Parts(fn func(set attribute.Set, closed int64)) {
	for _, c := range *in.shown.Load() {
		if r := c.Peek(); r.Total.Known {
			fn(r.Attributes, r.Total.Closed)
		}
	}
}

// Amount is what units of a float instrument are worth. Dividing is exact where
// multiplying with the resolution is not.
func Amount(units int64) float64 { return float64(units) / (1 / counter.Resolution) }
