package counter

import "slices"

// bounds are what may happen in a search, how often, and for how long.
type bounds struct {
	intervals int8
	moments   []int8 // the sub-steps of an interval at which something may happen
	carry     int
	adds      [2]int // how many amounts each participant counts; 0: there is none

	faults   int8 // requests lost, delayed, repeated or proven not applied; answers lost or delayed
	slips    int8 // how often a participant is off by one about the running interval
	partings int8 // how often a caller waits for a flush (rule 8)
	ends     int8 // how many participants crash or close
	equals   bool // else B meets no faults, does not slip or part, and only flushes what it counts

	failovers int8   // at most 1; it loses the latest writes
	lag       int8   // how far its clock is behind, at most, in sub-steps
	repeats   bool   // requests that have run are repeated across it
	steps     []int8 // the server's clock steps back once, by one of these
	fall      int8   // how far the clock falls back in all, at most

	calm    bool // let a faultless time follow on every state at the last moment
	wide    bool // without the last reductions of model.tidy
	without rules
}

// rules tells the rules of DESIGN section 2 that are taken out, to show that the
// search then finds what they are there for. The zero value has all of them.
type rules struct {
	unsigned     bool // an answer "not counted" leaves the mark that a flush leaves, not a fence
	noRefusal    bool // a refusal leaves no fence
	clockFirst   bool // the clock decides before the mark does
	noLate       bool // what is too late by intervals is refused like any other
	askOpen      bool // questions about an interval that is still open are answered
	noSlack      bool // questions are answered as soon as the interval is over
	noAskFence   bool // the answer "not counted" leaves no fence
	markPerCall  bool // the mark of another call does not keep a call from being applied
	noUnknowable bool // questions are answered for ever
	shortHash    bool // the hash lives no longer than the total
	noExtraLife  bool // nothing lives longer because its interval has not begun
	resend       bool // an unknown outcome is taken for "not applied"
}

// base is what all scopes have in common. A failover's clock is behind by no more
// than the slack, and the clock falls back by no more than an interval.
func base() bounds {
	return bounds{
		intervals: 4, moments: []int8{0, modelSlack}, carry: 1, adds: [2]int{1, 1},
		lag: modelSlack, fall: subSteps, calm: true,
	}
}

// with changes bounds.
func (b bounds) with(change func(*bounds)) bounds {
	change(&b)
	return b
}

// ordinaryScopes are searched in every test run.
func ordinaryScopes() map[string]bounds {
	back, quarters := []int8{2, 4}, []int8{0, 1, 2, 3}
	return map[string]bounds{
		"messages":           base().with(func(b *bounds) { b.faults, b.carry = 3, 2 }),
		"messages, quarters": base().with(func(b *bounds) { b.faults, b.moments = 2, quarters }),
		"two amounts":        base().with(func(b *bounds) { b.faults, b.adds = 2, [2]int{2, 1} }),
		"slips":              base().with(func(b *bounds) { b.faults, b.slips = 2, 1 }),
		"partings":           base().with(func(b *bounds) { b.faults, b.partings = 2, 1 }),
		"both meet faults":   base().with(func(b *bounds) { b.faults, b.equals = 2, true }),
		"both meet all": base().with(func(b *bounds) {
			b.faults, b.slips, b.partings, b.equals = 1, 1, 1, true
		}),
		"failover":            base().with(func(b *bounds) { b.faults, b.failovers = 2, 1 }),
		"failover, partings":  base().with(func(b *bounds) { b.faults, b.failovers, b.partings = 1, 1, 1 }),
		"step back":           base().with(func(b *bounds) { b.faults, b.steps = 2, back }),
		"step back, partings": base().with(func(b *bounds) { b.faults, b.steps, b.partings = 1, back, 1 }),
		"failover, step, end": base().with(func(b *bounds) {
			b.faults, b.failovers, b.steps, b.ends = 1, 1, back, 1
		}),
		"step that is followed": followed().with(func(b *bounds) { b.slips = 1 }),
	}
}

// followed is a scope in which the clock steps back by more than three intervals.
// All that is promised then is that nobody adds to a total twice.
func followed() bounds {
	return base().with(func(b *bounds) {
		b.adds, b.steps, b.fall, b.calm = [2]int{2, 1}, []int8{13, 15}, 127, false
	})
}

// largeScopes take long.
func largeScopes() map[string]bounds {
	back, quarters := []int8{2, 4}, []int8{0, 1, 2, 3}
	return map[string]bounds{
		"messages, slips, partings": base().with(func(b *bounds) { b.faults, b.slips, b.partings, b.carry = 3, 1, 1, 2 }),
		"messages, five intervals":  base().with(func(b *bounds) { b.faults, b.slips, b.intervals = 3, 1, 5 }),
		"messages, quarters":        base().with(func(b *bounds) { b.faults, b.moments = 3, quarters }),
		"messages, wide": base().with(func(b *bounds) {
			b.faults, b.slips, b.partings, b.wide, b.adds = 2, 1, 1, true, [2]int{1, 0}
		}),
		"both meet all":       base().with(func(b *bounds) { b.faults, b.slips, b.partings, b.equals = 2, 1, 1, true }),
		"failover":            base().with(func(b *bounds) { b.faults, b.failovers = 3, 1 }),
		"failover, slips":     base().with(func(b *bounds) { b.faults, b.slips, b.partings, b.failovers = 2, 1, 1, 1 }),
		"failover, quarters":  base().with(func(b *bounds) { b.faults, b.failovers, b.moments = 2, 1, quarters }),
		"step back":           base().with(func(b *bounds) { b.faults, b.steps = 3, back }),
		"step back, slips":    base().with(func(b *bounds) { b.faults, b.slips, b.partings, b.steps = 2, 1, 1, back }),
		"step back, quarters": base().with(func(b *bounds) { b.faults, b.steps, b.moments = 2, []int8{1, 2, 3, 4}, quarters }),
		"failover, step, end": base().with(func(b *bounds) {
			b.faults, b.failovers, b.steps, b.ends, b.partings, b.intervals = 2, 1, back, 1, 1, 5
		}),
		"step that is followed": followed().with(func(b *bounds) {
			b.faults, b.slips, b.steps, b.intervals = 1, 1, []int8{13, 14, 15, 16}, 5
		}),
	}
}

func (b *bounds) lastMoment() int8 { return firstMoment + b.intervals*subSteps }

// follows reports whether a step may be so large that it is followed (rule 11).
func (b *bounds) follows() bool {
	return len(b.steps) > 0 && slices.Max(b.steps) > maxWait*subSteps
}

// sight is something that the searches must have met to prove anything.
type sight int

const (
	sawHidden sight = iota
	sawRepeated
	sawRefused
	sawUsed
	sawFenced
	sawLate
	sawRedeclared
	sawOpen // the answers to questions, in the order of Answer
	sawCounted
	sawNotCounted
	sawUnknowable
	sawLateAnswer
	sawAhead
	sawCarried
	sawLost
	sawFailover
	sawStep
	sawDoubt
	sawFollow
	sawEnd
	numSights
)

func (s sight) String() string {
	return [...]string{
		"applied, and the answer lost", "repeated", "refused", "used", "fenced", "late", "declared again",
		"still open", "counted", "not counted", "unknowable", "answered after it was given up", "ahead",
		"left again", "loss reported", "failover that loses writes", "step back", "step seen", "step followed", "participant gone",
	}[s]
}
