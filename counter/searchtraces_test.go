package counter

import (
	"testing"
	"time"
)

// DESIGN 2: "each rule, when removed, was seen to break the promise. The list of those traces is
// in section 6. Change no rule without such a search."
//
// What the rules are there for (DESIGN, section 6): without the rule the search
// finds how the promise is broken, with it nothing.
func TestWithoutARuleThePromiseBreaks(t *testing.T) {
	const twice, silent = "an amount was counted twice", "an amount was taken for counted and is in no total: lost without a report"
	alone := base().with(func(b *bounds) { b.adds, b.calm = [2]int{1, 0}, false })
	cases := map[string]traceCase{
		"Claim and flush leave the same mark (no sign)": {silent, alone.with(func(b *bounds) {
			b.faults, b.without.unsigned = 2, true
		})},
		"No fence on refusal": {twice, alone.with(func(b *bounds) {
			b.faults, b.slips, b.without.noRefusal = 2, 1, true
		})},
		"Clock before marker": {twice, alone.with(func(b *bounds) {
			b.faults, b.without.clockFirst = 2, true
		})},
		"A refusal that is too late believed (no late), with the hash's life cut to three intervals": {twice, alone.with(func(b *bounds) {
			b.faults, b.without.noLate, b.without.shortHash = 2, true, true
		})},
		"Asking about an interval still open, then a failover that loses the fence": {twice, alone.with(func(b *bounds) {
			b.faults, b.failovers, b.lag, b.partings, b.without.askOpen = 1, 1, 0, 1, true
		})},
		"Without slack: the same when the new primary's clock is a little behind": {twice, alone.with(func(b *bounds) {
			b.faults, b.failovers, b.without.noSlack = 1, 1, true
		})},
		"An ask that writes no fence: a small step back of the clock lets the delayed flush run": {twice, alone.with(func(b *bounds) {
			b.faults, b.steps, b.without.noAskFence = 1, []int8{2, 4}, true
		})},
		"Marker per call instead of per N": {"a participant added to a total twice", followed().with(func(b *bounds) {
			b.adds, b.without.markPerCall = [2]int{2, 0}, true
		})},
		"Hash and string with the same TTL": {twice, alone.with(func(b *bounds) {
			b.faults, b.steps, b.without.shortHash = 1, []int8{2, 4}, true
		})},

		// Not in the list there, but rules as well.
		"No longer life for what is written before its interval": {twice, alone.with(func(b *bounds) {
			b.faults, b.steps, b.partings, b.without.noExtraLife = 1, []int8{2, 4}, 1, true
		})},
		"No end to questions": {twice, alone.with(func(b *bounds) {
			b.faults, b.intervals, b.without.noUnknowable = 1, 5, true
		})},
		"Unknown taken for not applied": {twice, alone.with(func(b *bounds) {
			b.faults, b.without.resend = 1, true
		})},
	}
	expectTraces(t, cases)
}

// What the promise leaves out does break it: these limits are not idle.
func TestBeyondThePromise(t *testing.T) {
	const twice = "an amount was counted twice"
	alone := base().with(func(b *bounds) { b.adds, b.calm = [2]int{1, 0}, false })
	expectTraces(t, map[string]traceCase{
		"a failover to a clock that is further behind than the slack": {twice, alone.with(func(b *bounds) {
			b.faults, b.failovers, b.lag = 1, 1, 2
		})},
		"a request that is repeated across a failover": {twice, alone.with(func(b *bounds) {
			b.faults, b.slips, b.failovers, b.repeats = 1, 1, 1, true
		})},
		"a clock that steps back by more than an interval": {twice, alone.with(func(b *bounds) {
			b.faults, b.steps, b.fall = 1, []int8{5, 6}, 6
		})},
	})
}

type traceCase struct {
	broken string
	bounds bounds
}

// expectTraces searches for a broken promise in each case, and prints the shortest
// way there.
func expectTraces(t *testing.T, cases map[string]traceCase) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	inParallel(t, cases, func(t *testing.T, c traceCase) {
		s := newSearch(c.bounds)
		began := time.Now()
		found := s.run()
		if found == nil {
			s.report(t, time.Since(began))
			t.Fatal("the search finds nothing: it is blind to this, or the rule is idle")
		}
		t.Logf("%d states, %v\n%s\n=> %s", len(s.parents), time.Since(began).Round(time.Millisecond), found, found.broken)
		if found.broken != c.broken {
			t.Errorf("expected: %s", c.broken)
		}
		if c.bounds.without == (rules{}) {
			return
		}
		if found := newSearch(c.bounds.with(func(b *bounds) { b.without = rules{} })).run(); found != nil {
			t.Errorf("with all rules: %s\n%s", found.broken, found)
		}
	})
}
