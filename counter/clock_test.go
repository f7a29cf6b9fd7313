package counter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const serverSecond = ServerTime(1_000_000)

func TestSlackIsAQuarterOfAnIntervalAtMostHalfASecond(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 2500 * time.Microsecond,
		time.Second:           250 * time.Millisecond,
		2 * time.Second:       500 * time.Millisecond,
		24 * time.Hour:        500 * time.Millisecond,
	} {
		assert.Equal(t, want, slack(interval), interval)
	}
}

// "The reply's server time is steered to a phase of the participant's own, in
// [slack, 0.9 interval), spread over participants" (rule 6).
func TestPhasesLieBetweenSlackAndNineTenths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := drawLength(t)
		where := rapid.Float64Range(0, 0.999999).Draw(t, "where")
		c := newClock(length, where)
		require.GreaterOrEqual(t, c.phase, slack(length))
		require.Less(t, c.phase, length*9/10)
		require.GreaterOrEqual(t, newClock(length, (where+1)/2).phase, c.phase, "phases are not spread in order")
	})
}

func TestClockExpectsTheDelayOfTheLastAnswer(t *testing.T) {
	c := newClock(time.Second, 0)
	assert.False(t, c.known)

	// A call left at 2 s and ran at 100.7 s. What leaves 400 ms later runs at 101.1 s.
	require.Equal(t, stepNone, c.observe(2*time.Second, 0, 100*serverSecond+700_000))
	assert.True(t, c.known)
	assert.Equal(t, 101*serverSecond+100_000, c.at(2400*time.Millisecond))
	assert.EqualValues(t, 100, c.interval(2299*time.Millisecond))
	assert.EqualValues(t, 101, c.interval(2300*time.Millisecond))
	assert.Equal(t, 2300*time.Millisecond, c.start(101))
}

func TestDue(t *testing.T) {
	c := newClock(time.Second, 0)     // phase: 250 ms
	c.observe(0, 0, 100*serverSecond) // what leaves at local x runs at 100 s + x
	for _, tc := range []struct {
		name         string
		local        time.Duration
		after        int64
		want         time.Duration
		wantInterval int64
	}{
		{"before its phase: at its phase", 100 * time.Millisecond, 0, 250 * time.Millisecond, 100},
		{"at its phase: now", 250 * time.Millisecond, 0, 250 * time.Millisecond, 100},
		{"past its phase: now", 600 * time.Millisecond, 0, 600 * time.Millisecond, 100},
		{"running interval done: the next one's phase", 600 * time.Millisecond, 100, 1250 * time.Millisecond, 101},
		{"next one done too (ahead): the one after", 600 * time.Millisecond, 101, 2250 * time.Millisecond, 102},
		{"intervals missed: now", 5600 * time.Millisecond, 101, 5600 * time.Millisecond, 105},
		{"clock stepped back: once the done one is over", 250 * time.Millisecond, 102, 3250 * time.Millisecond, 103},
	} {
		t.Run(tc.name, func(t *testing.T) {
			due := c.due(tc.local, tc.after)
			assert.Equal(t, tc.want, due)
			assert.Equal(t, tc.wantInterval, c.interval(due))
		})
	}
}

func TestObserve(t *testing.T) {
	const local = 10 * time.Second // every case: a call that left at 10 s has been answered at 100 s
	for _, tc := range []struct {
		name            string
		sent            time.Duration
		known           ServerTime // the latest time known as the call left
		server          ServerTime
		want            step
		wantAt          ServerTime // of a call that leaves at 20 s
		wantHighest     ServerTime
		trusted, closed int64 // the first closed total that is trusted, the last that is not
	}{
		{"later", 20 * time.Second, 100 * serverSecond, 110 * serverSecond, stepNone, 110 * serverSecond, 110 * serverSecond, 1, 0},
		{"answer to a call that left before the known one", 9 * time.Second, 90 * serverSecond, 98 * serverSecond, stepNone, 110 * serverSecond, 100 * serverSecond, 1, 0},
		{"late, but from a clock ahead", 9 * time.Second, 90 * serverSecond, 101 * serverSecond, stepNone, 110 * serverSecond, 101 * serverSecond, 1, 0},
		{"late, and it shows a step", 9 * time.Second, 99 * serverSecond, 98 * serverSecond, stepBack, 109 * serverSecond, 100 * serverSecond, 1, 0},
		{"equal", 20 * time.Second, 100 * serverSecond, 100 * serverSecond, stepNone, 100 * serverSecond, 100 * serverSecond, 1, 0},
		{"back by a microsecond", 20 * time.Second, 100 * serverSecond, 100*serverSecond - 1, stepBack, 100*serverSecond - 1, 100 * serverSecond, 1, 0},
		{"back by three intervals", 20 * time.Second, 100 * serverSecond, 97 * serverSecond, stepBack, 97 * serverSecond, 100 * serverSecond, 1, 0},
		{"back by more: followed", 20 * time.Second, 100 * serverSecond, 97*serverSecond - 1, stepFollow, 97*serverSecond - 1, 97*serverSecond - 1, 101, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClock(time.Second, 0)
			require.Equal(t, stepNone, c.observe(local, 0, 100*serverSecond))
			assert.Equal(t, tc.want, c.observe(tc.sent, tc.known, tc.server))
			assert.Equal(t, tc.wantAt, c.at(20*time.Second))
			assert.Equal(t, tc.wantHighest, c.highest)
			assert.True(t, c.trusts(tc.trusted))
			assert.False(t, c.trusts(tc.closed))
		})
	}
}

// "It neither drifts nor skips: a participant contributes to every interval for
// any stable round trip below an interval (above it, to every second one)."
func TestEveryIntervalForAnyStableRoundTripBelowAnInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := drawLength(t)
		s := newSimulation(t, length)
		trip := rapid.Int64Range(0, length.Microseconds()-1).Draw(t, "round trip")
		s.trip = constantTrip(t, trip)
		s.run(60)
		require.Zero(t, s.refused, "a stable round trip was not foreseen")
		require.LessOrEqual(t, s.longestGap(s.first()), int64(1))
	})
}

func TestEverySecondIntervalForAStableRoundTripAboveAnInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := drawLength(t)
		s := newSimulation(t, length)
		trip := rapid.Int64Range(length.Microseconds(), 2*length.Microseconds()-1).Draw(t, "round trip")
		s.trip = constantTrip(t, trip)
		s.run(60)
		require.LessOrEqual(t, s.longestGap(s.first()), int64(2))
	})
}

// A delay that varies by less than the distance of the phase from both edges
// makes a participant miss nothing, once it has come to its phase.
func TestEveryIntervalUnderJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := drawLength(t)
		s := newSimulation(t, length)
		jitter := min(slack(length), length/10).Microseconds() - 1
		base := rapid.Int64Range(0, length.Microseconds()/2-jitter).Draw(t, "base")
		s.trip = func() (int64, int64) {
			out := base/2 + rapid.Int64Range(0, jitter).Draw(t, "out")
			return out, base/2 + rapid.Int64Range(0, jitter).Draw(t, "home")
		}
		s.run(60)
		require.NotZero(t, s.settled, "it never came to its phase")
		require.Less(t, s.settled, s.first()+4)
		require.LessOrEqual(t, s.longestGap(s.settled), int64(1))
		for _, r := range s.runs {
			if r.interval > s.settled {
				require.InDelta(t, s.clock.phase.Microseconds(), r.phase, float64(jitter+2), "errors add up")
			}
		}
	})
}

// A local clock that runs too fast or slow moves a tick by what it gains in the
// time since the last answer, and no more: the error does not add up. Where that
// is more than the distance to an interval's edge (long intervals, whose slack
// is small beside them), a tick may be refused, but its interval is not missed.
func TestDriftOfTheLocalClockDoesNotAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := drawLength(t)
		s := newSimulation(t, length)
		s.drift = rapid.Int64Range(-1000, 1000).Draw(t, "parts per million")
		s.trip = constantTrip(t, rapid.Int64Range(0, length.Microseconds()/2).Draw(t, "round trip"))
		s.run(200)
		require.LessOrEqual(t, s.longestGap(s.first()+3), int64(1))
		error := 2*length.Microseconds()*max(s.drift, -s.drift)/1_000_000 + 3
		if error >= slack(length).Microseconds() {
			return
		}
		require.NotZero(t, s.settled, "it never came to its phase")
		for _, r := range s.runs {
			if r.interval > s.settled {
				require.InDelta(t, s.clock.phase.Microseconds(), r.phase, float64(error), "errors add up")
			}
		}
	})
}

// "Server clock back. Up to one interval: declarations are refused or used until
// N passes the last one." (Rule 11; up to three are waited for in the same way.)
func TestAfterAStepBackNoIntervalIsDeclaredTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := drawLength(t)
		micros := length.Microseconds()
		s := newSimulation(t, length)
		s.trip = constantTrip(t, rapid.Int64Range(0, micros/2).Draw(t, "round trip"))
		s.run(10)
		back := rapid.Int64Range(1, 2*micros).Draw(t, "back")
		last := s.runs[len(s.runs)-1].interval
		s.offset -= back
		s.run(10)
		require.Zero(t, s.follows)
		require.LessOrEqual(t, s.longestGap(s.first()), int64(1), "intervals follow on each other across the step")
		require.Greater(t, s.runs[len(s.runs)-1].interval, last+5)
	})
}

// "More than three intervals is reported and followed" (rule 11).
func TestALargeStepBackIsFollowedAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := drawLength(t)
		micros := length.Microseconds()
		s := newSimulation(t, length)
		s.trip = constantTrip(t, rapid.Int64Range(0, micros/2).Draw(t, "round trip"))
		s.run(10)
		before := len(s.runs)
		last := s.runs[before-1].interval
		s.offset -= rapid.Int64Range((maxWait+2)*micros, 100*micros).Draw(t, "back")
		s.run(5)
		require.Equal(t, 1, s.follows)
		after := s.runs[before]
		require.Less(t, after.interval, last, "it waits instead of following")
		require.False(t, s.clock.trusts(last-1), "totals of the old time are not to be trusted")
		require.True(t, s.clock.trusts(last+1))
	})
}

func drawLength(t *rapid.T) time.Duration {
	ms := rapid.OneOf(rapid.Int64Range(10, 100), rapid.Int64Range(10, 24*60*60*1000)).Draw(t, "interval in ms")
	return time.Duration(ms) * time.Millisecond
}

// constantTrip splits a round trip into a way out and a way home, the same each time.
func constantTrip(t *rapid.T, trip int64) func() (int64, int64) {
	out := rapid.Int64Range(0, trip).Draw(t, "way out")
	return func() (int64, int64) { return out, trip - out }
}

// simulation is a participant that flushes by its clock to a server far away:
// one call at a time, and at most one immediate re-declaration after a refusal.
// Its times are microseconds; the real clock is never read.
type simulation struct {
	clock  clock
	offset int64                 // of the server's clock
	drift  int64                 // of the local clock, in parts per million
	trip   func() (int64, int64) // draws how long a call is under way, out and home

	now     int64 // true time
	spent   int64
	runs    []contribution
	refused int
	follows int
	settled int64 // the first interval whose tick left at its phase, not late
}

// contribution is a flush that was applied.
type contribution struct{ interval, phase int64 }

func newSimulation(t *rapid.T, length time.Duration) *simulation {
	return &simulation{
		clock:  newClock(length, rapid.Float64Range(0, 0.999).Draw(t, "where")),
		offset: rapid.Int64Range(1e15, 2e15).Draw(t, "server's clock"),
	}
}

// run starts with a probe and ticks on until the server is so many intervals further.
func (s *simulation) run(intervals int64) {
	if !s.clock.known {
		s.call()
	}
	for end := s.now + intervals*s.clock.length.Microseconds(); s.now < end; {
		due := s.clock.due(s.local(), s.spent)
		onPhase := due > s.local()
		s.sleep(due)
		n := s.clock.interval(s.local())
		applied, server := s.flush(n)
		if applied && onPhase && s.settled == 0 {
			s.settled = n
		}
		if n = server.interval(s.clock.length); !applied && n > s.spent {
			s.flush(n)
		}
	}
}

// flush declares an interval, unless it is spent: then it only reads.
func (s *simulation) flush(declared int64) (bool, ServerTime) {
	spent := declared <= s.spent
	server := s.call()
	n := server.interval(s.clock.length)
	applied := n == declared && !spent
	if applied {
		s.spent = n
		s.runs = append(s.runs, contribution{n, int64(server) % s.clock.length.Microseconds()})
	}
	if n != declared {
		s.refused++
	}
	return applied || spent, server
}

// call is one round trip. It returns the server's time as it ran.
func (s *simulation) call() ServerTime {
	sent, highest := s.local(), s.clock.highest
	out, home := s.trip()
	server := ServerTime(s.now + out + s.offset)
	s.now += out + home
	if s.clock.observe(sent, highest, server) == stepFollow {
		s.follows++
		s.spent = 0
	}
	return server
}

func (s *simulation) local() time.Duration {
	return time.Duration(s.now+s.now*s.drift/1_000_000) * time.Microsecond
}

// sleep lets time pass until the local clock has come to local.
func (s *simulation) sleep(local time.Duration) {
	then := int64(local / time.Microsecond)
	then = max(s.now, then-then*s.drift/(1_000_000+s.drift)-3)
	for s.now = then; s.local() < local; {
		s.now++
	}
}

func (s *simulation) first() int64 { return s.runs[0].interval }

// longestGap is the largest distance between intervals contributed to, from one on.
func (s *simulation) longestGap(from int64) int64 {
	var gap, last int64
	for _, r := range s.runs {
		if last != 0 {
			gap = max(gap, r.interval-last)
		}
		if r.interval >= from {
			last = r.interval
		}
	}
	return gap
}
