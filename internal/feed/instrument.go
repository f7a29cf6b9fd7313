package feed

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
)

// instrumentKey is what an instrument's totals are kept under. An int and a
// float instrument of one name do not share them.
type instrumentKey struct {
	name  string
	float bool
}

// Instrument is all that arrives under one name and kind of number, be it from
// one of the SDK's instruments or from several.
type Instrument struct {
	Name, Unit string
	Float      bool

	group   *counter.Group
	grand   series
	excess  *series // stands for all above the limit
	refused bool    // nothing can be counted under its name

	told []string // reasons that were reported

	mu      sync.RWMutex // for changes of parts, which Take alone makes
	parts   table[series]
	stirred bool                               // they changed since they were shown
	shown   atomic.Pointer[[]*counter.Counter] // the parts, for gauges
}

// series is a counter of the group and the round it was last used in.
type series struct {
	units *counter.Counter
	float *counter.FloatCounter
	used  uint32
	asked atomic.Bool // by Total, since the last sweep
}

// instrument returns the instrument of a name, made if there is none.
func (f *Feed) instrument(name, unit string, float bool) *Instrument {
	key := instrumentKey{name, float}
	if in := f.instruments[key]; in != nil {
		return in
	}
	in := &Instrument{Name: name, Unit: unit, Float: float, group: f.group}
	in.shown.Store(&[]*counter.Counter{})
	f.instruments[key] = in
	if err := in.open(&in.grand, nil); err != nil {
		in.refused = true
		f.report.refused(name, err.Error())
		return in
	}
	if f.lookup(name) == nil {
		names := maps.Clone(*f.names.Load())
		names[name] = in
		f.names.Store(&names)
		f.watches.attach(name, in.grand.units)
	}
	return in
}

// once reports, once, that the instrument is not counted or not all of it.
func (in *Instrument) once(report *report, reason string) {
	if !slices.Contains(in.told, reason) {
		in.told = append(in.told, reason)
		report.refused(in.Name, reason)
	}
}

// open finds a series' counter.
func (in *Instrument) open(s *series, attrs []attribute.KeyValue) (err error) {
	if !in.Float {
		s.units, err = in.group.Counter(in.Name, attrs...)
		return err
	}
	if s.float, err = in.group.FloatCounter(in.Name, attrs...); err == nil {
		s.units = s.float.Units()
	}
	return err
}

// overflow is the attribute set under which the SDK counts what is above its
// limit of series.
var overflow = attribute.NewSet(attribute.Bool("otel.metric.overflow", true))

// part returns the series of an attribute set: the grand total for the empty set
// and the SDK's overflow.
func (in *Instrument) part(set *attribute.Set) *series {
	if set.Len() == 0 || isOverflow(set) {
		return &in.grand
	}
	if s := in.parts.find(set); s != nil {
		return s
	}
	fresh := series{}
	if err := in.open(&fresh, set.ToSlice()); err != nil {
		return &in.grand // the group is closed: what comes now is lost in any case
	}
	attrs := fresh.units.Peek().Attributes
	if attrs.Len() == 0 {
		// Above the limit. It is looked up again next time: there may be room.
		if in.excess == nil {
			in.excess = &series{units: fresh.units, float: fresh.float}
		}
		return in.excess
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stirred = true
	s := in.parts.insert(*set)
	s.units, s.float = fresh.units, fresh.float
	return s
}

func isOverflow(set *attribute.Set) bool {
	return set.Equivalent() == overflow.Equivalent() && set.Equals(&overflow)
}

// sweep lets go of parts that were not used for long.
func (in *Instrument) sweep(round uint32) {
	in.mu.Lock()
	defer in.mu.Unlock()
	removed := in.parts.retain(func(s *series) bool {
		if s.asked.Load() && s.asked.Swap(false) {
			s.used = round
		}
		return round-s.used <= idleRounds
	})
	in.stirred = in.stirred || removed > 0
}

// show publishes the parts, if they have changed.
func (in *Instrument) show() {
	if !in.stirred {
		return
	}
	in.stirred = false
	shown := make([]*counter.Counter, 0, in.parts.size)
	in.parts.each(func(_ *attribute.Set, s *series) { shown = append(shown, s.units) })
	in.shown.Store(&shown)
}

func (in *Instrument) total(attrs []attribute.KeyValue) counter.Total {
	if len(attrs) == 0 {
		return in.grand.units.Total()
	}
	set := attribute.NewSet(slices.Clone(attrs)...)
	in.mu.RLock()
	s := in.parts.find(&set)
	in.mu.RUnlock()
	if s == nil {
		return counter.Total{Open: -1}
	}
	if !s.asked.Load() {
		s.asked.Store(true)
	}
	return s.units.Total()
}
