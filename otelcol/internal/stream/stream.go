package stream

import "github.com/otelcomcount/otelcomcount/otelcol/internal/drop"

// calm is how many points without a fall make a stream trusted again.
const calm = 10

// Number is what a sum holds.
type Number interface{ int64 | float64 }

// Point is a cumulative data point. Times are nanoseconds since the Unix epoch; 0
// is not known.
type Point[N Number] struct {
	Start, Time uint64
	Value       N
}

// state is what is kept of a stream.
type state[N Number] struct {
	last Point[N] // that was used
	seen int64    // when it was: local, nanoseconds

	fell      bool  // without a new start, since the stream began
	rising    uint8 // for how many points since then, up to calm
	contested bool  // fell twice within that many points
}

// advance takes the next point. It returns what it counts, or why it counts
// nothing, and whether it was used.
func (s *state[N]) advance(p Point[N]) (amount N, why drop.Reason, used bool) {
	last := s.last
	switch {
	case p.Start < last.Start:
		return 0, drop.OutOfOrder, false
	case p.Start > last.Start && (p.Start < last.Time || p.Start == p.Time):
		s.restart(p)
		return 0, drop.SeveralWriters, true
	case p.Start > last.Start:
		s.restart(p)
		if p.Value < last.Value {
			return p.Value, drop.None, true
		}
		return p.Value - last.Value, drop.None, true
	case p.Time <= last.Time && p.Time != 0:
		return 0, drop.OutOfOrder, false
	}
	s.last = p
	if p.Value < last.Value {
		s.contested = s.fell && s.rising < calm
		s.fell, s.rising = true, 0
		return 0, drop.Reset, true
	}
	s.rising = min(s.rising+1, calm)
	s.contested = s.contested && s.rising < calm
	if s.contested {
		return 0, drop.SeveralWriters, true
	}
	return p.Value - last.Value, drop.None, true
}

// restart makes a point the last one, and forgets what was before.
func (s *state[N]) restart(p Point[N]) {
	*s = state[N]{last: p, seen: s.seen}
}
