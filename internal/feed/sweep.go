package feed

import "time"

// idleRounds is after how many rounds, which are intervals, without use a series
// leaves.
const idleRounds = 10

// sweep lets go of what is not used any more: parts with their gauges, and
// baselines. It looks once an interval.
func (f *Feed) sweep(now time.Time) {
	due := now.Sub(f.swept) >= f.config.Interval
	if due {
		f.swept = now
		f.round++
		f.room += sweepStreams(f.ints, f.round) + sweepStreams(f.floats, f.round)
	}
	for _, in := range f.instruments {
		if due {
			in.sweep(f.round)
		}
		in.show()
	}
}

func sweepStreams[N number](streams map[streamKey]*stream[N], round uint32) (removed int) {
	for key, s := range streams {
		removed += s.baselines.retain(func(b *baseline[N]) bool { return round-b.used <= idleRounds })
		// A stream without a start could not be told again whose it is.
		if s.baselines.size == 0 && key.start != 0 {
			delete(streams, key)
		}
	}
	return removed
}
