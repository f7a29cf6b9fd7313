package counter

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeclare(t *testing.T) {
	for _, tc := range []struct {
		name    string
		spent   int64
		flying  bool
		parting bool
		want    int64
		mode    Mode
	}{
		{"the running interval is free", 4, false, false, 5, ModeAdd},
		{"free, and a caller waits", 4, false, true, 5, ModeAdd},
		{"spent: only read", 5, false, false, 5, ModeRead},
		{"spent, and a caller waits: ahead", 5, false, true, 6, ModeAhead},
		{"the next one is spent too", 6, false, true, 5, ModeRead},
		{"the clock has stepped back", 9, false, true, 5, ModeRead},
		{"one flight at a time", 4, true, true, 5, ModeRead},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := ledger{spent: tc.spent}
			if tc.flying {
				l.air = &flight{}
			}
			interval, mode := l.declare(5, tc.parting)
			assert.Equal(t, tc.want, interval)
			assert.Equal(t, tc.mode, mode)
		})
	}
}

// What each outcome does to the flight in the air. Interval 7 was declared with
// the amount 5, and 6 was spent before.
func TestLand(t *testing.T) {
	for _, tc := range []struct {
		outcome               Outcome
		settled, waits, aside int64
		lost                  reason
		spent                 int64
	}{
		{outcome: Applied, settled: 5, spent: 7},
		{outcome: Repeated, settled: 5, spent: 7},
		{outcome: Refused, waits: 5, spent: 6},
		{outcome: Fenced, waits: 5, spent: 6},
		{outcome: NotApplied, waits: 5, spent: 6},
		{outcome: Used, waits: 5, spent: 7},
		{outcome: Lost, settled: 5, lost: lostUnknown, spent: 7},
		{outcome: Late, aside: 5, spent: 7},
		{outcome: Unknown, aside: 5, spent: 7},
		{outcome: Outcome(99), aside: 5, spent: 7},
	} {
		check := func(t *testing.T, l *ledger) {
			assert.Equal(t, tc.settled, total(l.settle), "settled")
			assert.Equal(t, tc.waits, total(l.back.sum()), "waits to leave again")
			assert.Equal(t, tc.aside, asideSum(l), "set aside")
			assert.Equal(t, tc.spent, l.spent, "spent")
			assert.Nil(t, l.air)
			if tc.lost != "" {
				assert.Equal(t, []loss{{tc.lost, []int64{5}}}, l.losses)
			} else {
				assert.Empty(t, l.losses)
			}
		}
		t.Run(fmt.Sprint(tc.outcome, " in time"), func(t *testing.T) {
			l := ledger{carry: 2, spent: 6}
			l.take(7, 1, []int64{5})
			l.land(tc.outcome, nil)
			check(t, &l)
		})
		t.Run(fmt.Sprint(tc.outcome, " late"), func(t *testing.T) {
			l := ledger{carry: 2, spent: 6}
			l.take(7, 1, []int64{5})
			l.abandon()
			l.landLate(2, tc.outcome, nil) // some other call
			require.EqualValues(t, 5, asideSum(&l))
			l.landLate(1, tc.outcome, nil)
			check(t, &l)
			l.landLate(1, Applied, nil) // an answer counts once
			assert.LessOrEqual(t, total(l.settle), int64(5))
		})
	}
}

func TestALateRefusalFreesNoLaterInterval(t *testing.T) {
	l := ledger{carry: 2, spent: 6}
	l.take(7, 1, []int64{1})
	l.abandon()
	l.take(8, 2, []int64{2})
	l.landLate(1, Refused, nil)
	assert.EqualValues(t, 8, l.spent)
	l.land(Applied, nil)
	assert.EqualValues(t, 8, l.spent)
}

// A store may still read the amounts of a call that was given up.
func TestRowsThatHaveLeftNeverChange(t *testing.T) {
	l := ledger{carry: 2}
	first := l.take(1, 1, []int64{1, 10}).amounts.sum()
	l.land(Unknown, nil)
	second := l.take(2, 2, []int64{2, 20}).amounts.sum()
	l.land(Refused, nil)
	l.learn(Question{1, 1}, NotCounted)
	third := l.take(3, 3, []int64{4, 40}).amounts.sum()
	l.forget(0, 0)
	l.land(Applied, []int{1})
	assert.Equal(t, []int64{1, 10}, first)
	assert.Equal(t, []int64{2, 20}, second)
	assert.Equal(t, []int64{7, 70}, third)
	assert.EqualValues(t, 70, total(l.back.sum()))
}

func TestOwnIsWhatWasCountedByInterval(t *testing.T) {
	l := ledger{carry: 2}
	for n := int64(1); n <= 9; n++ {
		l.take(n, n, []int64{n, 10 * n})
		l.land(Applied, nil)
	}
	assert.Equal(t, ownership{9, []int64{9, 90}, 99}, l.ownIn(9))
	assert.Equal(t, ownership{6, []int64{6, 60}, 66}, l.ownIn(6))
	assert.Equal(t, ownership{interval: 5}, l.ownIn(5), "forgotten")
	assert.Equal(t, ownership{interval: 10}, l.ownIn(10), "not there yet")
	assert.Equal(t, []int64{45, 450}, l.settle)
}

// "An amount leaves with the first tick after it was counted; when it comes back
// it may leave again WithCarry(n) times, then it is dropped and reported" (rule 9).
func TestCarry(t *testing.T) {
	for carry := range 4 {
		l := ledger{carry: carry}
		fresh := []int64{7}
		for try := range carry + 1 {
			n := int64(try + 1)
			f := l.take(n, n, fresh)
			require.Equal(t, []int64{7}, f.amounts.sum(), "carry %d, try %d", carry, try)
			l.land(Refused, nil)
			require.Empty(t, l.losses, "its age is judged only when it would leave again")
			fresh = nil
		}
		f := l.take(9, 9, []int64{1})
		assert.Equal(t, []int64{1}, f.amounts.sum())
		assert.Equal(t, []loss{{lostTries, []int64{7}}}, l.losses)
	}
}

func TestATickThatCouldSendNothingIsATry(t *testing.T) {
	l := ledger{carry: 1}
	l.skip([]int64{1})
	l.skip([]int64{2})
	require.Empty(t, l.losses)
	l.skip([]int64{4})
	require.Equal(t, []loss{{lostTries, []int64{1}}}, l.losses)
	assert.Equal(t, []int64{12}, l.take(5, 1, []int64{8}).amounts.sum())
	assert.Equal(t, []loss{{lostTries, []int64{1}}, {lostTries, []int64{2}}}, l.losses)
}

// "At most one immediate re-declaration after a refusal" (rule 6); it is the same try.
func TestRedeclare(t *testing.T) {
	l := ledger{carry: 0, spent: 6}
	l.take(8, 1, []int64{5})
	assert.False(t, l.redeclarable(6))
	assert.True(t, l.redeclarable(7))

	f := l.redeclare(7, 2)
	assert.Equal(t, flight{interval: 7, seq: 2, prior: 6, amounts: parcel{{5}}}, *f)
	assert.EqualValues(t, 7, l.spent)

	l.land(Refused, nil)
	assert.EqualValues(t, 6, l.spent)
	assert.EqualValues(t, 5, total(l.back.sum()))
}

// "Unknown: everything else: set aside, never re-sent blindly" (rule 4). "The next
// flush of that counter carries a question about a set-aside one" (rule 5).
func TestQuestions(t *testing.T) {
	l := ledger{carry: 2}
	for n := int64(1); n <= 3; n++ {
		l.take(n, n, []int64{n})
		l.land(Unknown, nil)
		require.False(t, l.unsent())
	}
	assert.Equal(t, []Question{{1, 1}, {2, 2}}, l.questions(3), "only about intervals that come before")
	assert.Equal(t, []Question{{1, 1}, {2, 2}, {3, 3}}, l.questions(4))
	assert.Empty(t, l.questions(1))
}

func TestLearn(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		answer                Answer
		doubt                 bool
		settled, waits, aside int64
		lost                  reason
	}{
		{name: "still open: asked again", answer: StillOpen, aside: 5},
		{name: "counted", answer: Counted, settled: 5},
		{name: "not counted: leaves again", answer: NotCounted, waits: 5},
		{name: "unknowable", answer: Unknowable, settled: 5, lost: lostUnknown},
		// "After a seen step back of the server's clock questions prove nothing."
		{name: "counted, in doubt", answer: Counted, doubt: true, settled: 5},
		{name: "not counted, in doubt", answer: NotCounted, doubt: true, settled: 5, lost: lostUnknown},
		{name: "still open, in doubt", answer: StillOpen, doubt: true, aside: 5},
		{name: "no such answer", answer: Answer(99), settled: 5, lost: lostUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := ledger{carry: 2}
			l.take(1, 1, []int64{5})
			l.land(Unknown, nil)
			if tc.doubt {
				l.doubt()
			}
			l.learn(Question{1, 2}, tc.answer) // about some other flight
			require.EqualValues(t, 5, asideSum(&l))
			l.learn(Question{1, 1}, tc.answer)
			assert.Equal(t, tc.settled, total(l.settle), "settled")
			assert.Equal(t, tc.waits, total(l.back.sum()), "waits to leave again")
			assert.Equal(t, tc.aside, asideSum(&l), "set aside")
			if tc.lost != "" {
				assert.Equal(t, []loss{{tc.lost, []int64{5}}}, l.losses)
			} else {
				assert.Empty(t, l.losses)
			}
		})
	}
}

// A lane's clock is observed before its flight lands: a step that the flight's
// own answer shows puts that flight in doubt too.
func TestDoubtReachesTheFlightInTheAir(t *testing.T) {
	l := ledger{carry: 2}
	l.take(1, 1, []int64{5})
	l.doubt()
	l.land(Late, nil)
	l.learn(Question{1, 1}, NotCounted)
	assert.Equal(t, []loss{{lostUnknown, []int64{5}}}, l.losses)
}

func TestFollow(t *testing.T) {
	l := ledger{carry: 2}
	l.take(100, 1, []int64{1})
	l.abandon()
	l.take(101, 2, []int64{2})
	l.follow()
	assert.Equal(t, []loss{{lostUnknown, []int64{1}}}, l.losses, "nobody can tell any more")

	// What flies comes back, and nothing reminds of the old intervals.
	l.redeclare(5, 3)
	l.land(Refused, nil)
	assert.True(t, l.free(5), "spent: %d", l.spent)
	assert.Equal(t, []int64{2}, l.take(6, 4, nil).amounts.sum())
}

// Its interval will not be over for long, on the clock that is followed now: it
// cannot be asked about, and must not be kept until then.
func TestAFlightFromBeforeAFollowedStepIsNotSetAside(t *testing.T) {
	for name, end := range map[string]func(*ledger){
		"no answer":       func(l *ledger) { l.abandon() },
		"unknown outcome": func(l *ledger) { l.land(Unknown, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger{carry: 2}
			l.take(100, 1, []int64{5})
			l.follow()
			end(&l)
			assert.True(t, l.idle())
			assert.Equal(t, []loss{{lostUnknown, []int64{5}}}, l.losses)
		})
	}
}

func TestFlightsWithoutAnswerAreGivenUpAfterFourIntervals(t *testing.T) {
	l := ledger{carry: 2}
	l.take(1, 1, []int64{5})
	l.land(Unknown, nil)
	l.take(1+asideIntervals, 2, nil)
	l.land(Applied, nil)
	require.EqualValues(t, 5, asideSum(&l))
	l.take(2+asideIntervals, 3, nil)
	assert.Empty(t, l.aside)
	assert.Equal(t, []loss{{lostUnknown, []int64{5}}}, l.losses)
}

func TestGiveUp(t *testing.T) {
	l := ledger{carry: 4}
	l.take(1, 1, []int64{1})
	l.land(Unknown, nil)
	l.take(2, 2, []int64{2})
	l.land(Refused, nil)
	l.skip([]int64{4})
	l.take(3, 3, nil)
	l.land(Refused, nil)
	l.take(4, 4, []int64{8})
	l.giveUp([]int64{16})
	assert.True(t, l.idle())
	assert.Equal(t, []loss{{lostUnknown, []int64{1}}, {lostUnknown, []int64{2 + 4 + 8}}, {lostClosed, []int64{16}}}, l.losses)
	assert.EqualValues(t, 31, total(l.settle))
}

// "A series that fails (type, overflow) is named in the reply and its amount
// taken out of the total again" (rule 3): it waits, the others are counted.
func TestASeriesThatFailedWaits(t *testing.T) {
	l := ledger{carry: 2}
	l.take(1, 1, []int64{1, 2, 4})
	l.land(Refused, nil)
	f := l.take(2, 2, []int64{10, 20, 40})
	require.Equal(t, []int64{11, 22, 44}, f.amounts.sum())
	l.land(Applied, []int{1, 2, 1, 77})
	assert.Equal(t, []int64{11, 0, 0}, l.settle)
	assert.Equal(t, []int64{11, 0, 0}, l.ownIn(2).amounts)
	assert.Equal(t, parcel{nil, {0, 20, 40}, {0, 2, 4}}, l.back, "named twice, it is still kept once")
}

func TestForgetGivesUpOneCell(t *testing.T) {
	l := ledger{carry: 3}
	l.take(1, 1, []int64{1, 100})
	l.land(Unknown, nil)
	l.take(2, 2, []int64{2, 200})
	l.abandon()
	l.take(3, 3, []int64{4, 400})
	l.landLate(2, Refused, nil)
	l.forget(0, 8)
	lost := map[reason]int64{}
	for _, loss := range l.losses {
		require.Zero(t, total(loss.amounts[1:]), "another cell's")
		lost[loss.reason] += loss.amounts[0]
	}
	// What is out may be counted; what waits is not.
	assert.Equal(t, map[reason]int64{lostUnknown: 1 + 4, lostClosed: 2 + 8}, lost)
	l.land(Applied, nil)
	assert.Equal(t, []int64{15, 400}, l.settle)
	assert.EqualValues(t, 100, asideSum(&l))
	assert.EqualValues(t, 200, total(l.back.sum()))
}

func TestMoveTakesACellsPlace(t *testing.T) {
	l := ledger{carry: 2}
	l.take(1, 1, []int64{1, 2, 4})
	l.land(Applied, nil)
	l.move(2, 0)
	assert.Equal(t, []int64{4, 2, 0}, l.settle)
	assert.Equal(t, []int64{4, 2, 0}, l.ownIn(1).amounts)
	l.move(1, 1)
	assert.Equal(t, []int64{4, 0, 0}, l.settle)
}

func asideSum(l *ledger) (sum int64) {
	for _, f := range l.aside {
		sum += total(f.amounts.sum())
	}
	return sum
}
