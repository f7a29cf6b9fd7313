package counter

import "time"

// A clock follows one server's clock by the local monotonic one, and says when
// a participant's ticks are due. All local times are durations since the start
// of the group's loop. It is pure: it reads no clock itself.
//
// Every answer brings the server's time as the script ran. A call that is sent
// d later is expected to run at that time + d, whatever the network's delay, as
// long as it stays the same; so the error of one tick is corrected by the next
// and never adds up (DESIGN, rule 6).
type clock struct {
	length time.Duration // of an interval
	phase  time.Duration // where in an interval this participant's flush shall run

	known   bool
	sent    time.Duration // when the call left that brought server
	server  ServerTime
	highest ServerTime // the latest time that any answer brought
	muted   int64      // closed totals up to this interval are not to be trusted
}

// maxWait is how far a server's clock may step back before it is followed
// instead of waited for, in intervals (rule 11).
const maxWait = 3

// step is what an answer tells about a server's clock.
type step uint8

const (
	stepNone   step = iota
	stepBack        // behind an answer that had come before the call was sent
	stepFollow      // so far behind that it is followed
)

// slack is the distance that keeps a participant's ticks, and the answers to
// its questions, off an interval's edge (rules 5 and 6).
func slack(length time.Duration) time.Duration {
	return min(length/4, 500*time.Millisecond)
}

// newClock spreads participants over an interval by where, in [0, 1).
func newClock(length time.Duration, where float64) clock {
	first, end := slack(length), length*9/10
	return clock{length: length, phase: first + time.Duration(where*float64(end-first))}
}

// observe takes the server's time that an answer brought. The call had left at
// sent, when highest was the latest time known.
func (c *clock) observe(sent time.Duration, highest, server ServerTime) step {
	seen := stepNone
	if server < highest {
		seen = stepBack
		if int64(highest-server) > maxWait*c.length.Microseconds() {
			seen = stepFollow
			c.muted = highest.interval(c.length)
			c.highest = server
		}
	}
	if !c.known || sent >= c.sent || seen != stepNone {
		c.known, c.sent, c.server = true, sent, server
	}
	c.highest = max(c.highest, server)
	return seen
}

// at is what the server's clock is expected to say when a call that leaves at
// local runs there.
func (c *clock) at(local time.Duration) ServerTime {
	return c.server + ServerTime((local - c.sent).Microseconds())
}

// interval is the number of the interval in which a call that leaves at local
// is expected to run.
func (c *clock) interval(local time.Duration) int64 {
	return c.at(local).interval(c.length)
}

// due says when to send the first tick that falls into an interval after the
// given one: at the participant's phase, at once if that has passed.
func (c *clock) due(local time.Duration, after int64) time.Duration {
	n := max(c.interval(local), after+1)
	return max(local, c.start(n)+c.phase)
}

// start is when a call must leave to run at the beginning of interval n.
func (c *clock) start(n int64) time.Duration {
	begin := ServerTime(n * c.length.Microseconds())
	return c.sent + time.Duration(begin-c.server)*time.Microsecond
}

// trusts reports whether the closed total of an interval may be used: not
// those that were open before a step back that was followed.
func (c *clock) trusts(closed int64) bool { return closed > c.muted }
