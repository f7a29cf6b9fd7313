package feed

import "time"

// idleIntervals is after how many intervals without use a series leaves.
const idleIntervals = 10

// sweep lets go of what was not used for ten intervals: parts with their gauges,
// and baselines. It looks once an interval.
func (f *Feed) sweep(now time.Time) {
	due := now.Sub(f.swept) >= f.config.Interval
	before := now.Add(-idleIntervals * f.config.Interval)
	for _, in := range f.instruments {
		if due {
			in.sweep(now, before)
		}
		in.show()
	}
	if due {
		f.swept = now
		f.room += sweepStreams(f.ints, before) + sweepStreams(f.floats, before)
	}
}

func sweepStreams[N number](streams map[streamKey]*stream[N], before time.Time) (removed int) {
	for key, s := range streams {
		removed += s.baselines.retain(func(b *baseline[N]) bool { return b.used.After(before) })
		if s.baselines.size == 0 {
			delete(streams, key)
		}
	}
	return removed
}
