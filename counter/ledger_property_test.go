package counter

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Any history of ticks and answers keeps the books straight:
//
//   - conservation: in each cell, what was taken is what is settled (counted or
//     reported lost) and what is still kept;
//   - no amount leaves, or waits out a tick, more than carry + 1 times;
//   - what is set aside is bounded, and each interval is declared by one flight;
//   - rows that have left never change in place: they may be on the wire.
func TestAnyHistoryKeepsTheBooks(t *testing.T) {
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		b := &books{ledger: ledger{carry: rapid.IntRange(0, 3).Draw(t, "carry")}, now: 1000, reached: reached}
		t.Repeat(map[string]func(*rapid.T){
			"":          b.check,
			"tick":      b.tick,
			"time":      func(t *rapid.T) { b.now += rapid.Int64Range(1, 3).Draw(t, "intervals") },
			"wait":      b.wait,
			"land":      b.land,
			"redeclare": b.redeclare,
			"abandon":   b.abandon,
			"landLate":  b.landLate,
			"learn":     b.learn,
			"doubt":     func(*rapid.T) { b.ledger.doubt() },
			"follow":    b.follow,
			"forget":    b.forget,
		})
		b.giveUp(t)
	})
	for _, state := range []string{"split", "carried", "two aside", "unknown", "late answer", "followed", "kept at the end"} {
		if reached[state] == 0 && !testing.Short() { // -short draws few histories
			t.Errorf("no history reached %q: the test proves nothing of it", state)
		}
	}
}

// books is a ledger and what its owner knows of it. Each tick opens a new cell,
// whose amount is counted only then: by it an amount can be told from others.
type books struct {
	ledger  ledger
	now     int64 // the interval
	seq     int64
	taken   []int64 // by cell
	settled []int64
	left    []int        // by cell: how often it was in a flight or waited
	rows    [][2][]int64 // that have left, and copies made as they did
	marked  int64        // the highest interval that holds our amounts
	old     bool         // the flight in the air left before a step that was followed
	reached map[string]int
}

// count opens a cell, and counts in it and now and then in an older one.
func (b *books) count(t *rapid.T) []int64 {
	cell := len(b.taken)
	b.taken, b.left = append(b.taken, 0), append(b.left, 0)
	fresh := make([]int64, cell+1)
	fresh[cell] = rapid.Int64Range(-5, 100).Draw(t, "amount")
	b.taken[cell] = fresh[cell]
	return fresh
}

func (b *books) tick(t *rapid.T) {
	interval, mode := b.ledger.declare(b.now, rapid.Bool().Draw(t, "parting"))
	if mode == ModeRead {
		t.Skip("only reads")
	}
	b.seq++
	f := b.ledger.take(interval, b.seq, b.count(t))
	if b.old = false; interval <= b.marked {
		t.Fatal("an interval was declared again that holds amounts of ours")
	}
	b.depart(t, f.amounts)
	for _, row := range f.amounts {
		b.rows = append(b.rows, [2][]int64{row, slices.Clone(row)})
	}
	if len(f.amounts) > 1 {
		b.reached["carried"]++
	}
}

func (b *books) wait(t *rapid.T) {
	b.ledger.skip(b.count(t))
	b.depart(t, b.ledger.back)
}

// depart notes which amounts have left, or waited.
func (b *books) depart(t *rapid.T, amounts parcel) {
	for cell, amount := range amounts.sum() {
		if amount != 0 {
			b.left[cell]++
		}
		if b.left[cell] > b.ledger.carry+1 {
			t.Fatal("an amount left more often than carry allows")
		}
	}
}

func (b *books) land(t *rapid.T) {
	if b.ledger.air == nil {
		t.Skip("nothing in the air")
	}
	outcome := drawOutcome(t)
	var failed []int
	if outcome == Applied {
		failed = rapid.SliceOfN(rapid.IntRange(0, len(b.taken)), 0, 3).Draw(t, "failed")
	}
	if len(failed) > 0 {
		b.reached["split"]++
	}
	if !b.old && (outcome == Applied || outcome == Used) {
		b.marked = max(b.marked, b.ledger.air.interval)
	}
	b.ledger.land(outcome, failed)
}

func (b *books) redeclare(t *rapid.T) {
	if b.ledger.air == nil || !b.ledger.redeclarable(b.now) {
		t.Skip("cannot be declared again")
	}
	b.seq++
	b.ledger.redeclare(b.now, b.seq)
}

func (b *books) abandon(t *rapid.T) {
	if b.ledger.air == nil {
		t.Skip("nothing in the air")
	}
	b.ledger.abandon()
	b.reached["unknown"]++
}

func (b *books) landLate(t *rapid.T) {
	b.ledger.landLate(rapid.Int64Range(max(1, b.seq-4), b.seq+1).Draw(t, "seq"), drawOutcome(t), nil)
	b.reached["late answer"]++
}

func (b *books) learn(t *rapid.T) {
	questions := b.ledger.questions(b.now)
	if len(questions) == 0 {
		t.Skip("nothing to ask")
	}
	for _, q := range questions {
		if q.Interval >= b.now {
			t.Fatal("asked about an interval that is not over")
		}
		b.ledger.learn(q, rapid.SampledFrom([]Answer{StillOpen, Counted, NotCounted, Unknowable}).Draw(t, "answer"))
	}
}

func (b *books) follow(t *rapid.T) {
	if b.now < 20 {
		t.Skip("no time to step back into")
	}
	b.now -= 10
	b.ledger.follow()
	b.marked, b.old = 0, b.ledger.air != nil
	b.reached["followed"]++
	if b.ledger.air == nil && !b.ledger.free(b.now) {
		t.Fatal("the old time is remembered")
	}
}

func (b *books) forget(t *rapid.T) {
	cell := len(b.taken)
	b.taken, b.left = append(b.taken, 1), append(b.left, 0)
	b.ledger.forget(cell, 1) // a cell that nothing has left yet
	if cell > 0 {
		b.ledger.forget(rapid.IntRange(0, cell-1).Draw(t, "cell"), 0)
	}
}

func (b *books) giveUp(t *rapid.T) {
	if !b.ledger.idle() {
		b.reached["kept at the end"]++
	}
	b.ledger.giveUp(b.count(t))
	if !b.ledger.idle() || len(b.ledger.aside) > 0 {
		t.Fatal("something is kept after the end")
	}
	b.check(t)
}

func (b *books) check(t *rapid.T) {
	b.settled = add(b.settled, b.ledger.settle)
	clear(b.ledger.settle)
	var rows [][]int64
	rows = append(rows, b.ledger.back...)
	for _, f := range b.ledger.aside {
		rows = append(rows, f.amounts...)
	}
	if b.ledger.air != nil {
		rows = append(rows, b.ledger.air.amounts...)
	}
	for cell, taken := range b.taken {
		kept := cellSum(cell, rows...)
		if taken != kept+cellSum(cell, b.settled) {
			t.Fatalf("taken is not settled and kept")
		}
	}
	if f := b.ledger.air; f != nil && !b.old && f.interval > b.ledger.spent {
		t.Fatal("the interval of the flight in the air could be declared again")
	}
	var asides []int64
	for _, f := range b.ledger.aside {
		asides = append(asides, f.interval)
		if f.interval > b.ledger.spent {
			t.Fatal("an interval that may hold a mark could be declared")
		}
	}
	if len(asides) > asideIntervals+2 {
		t.Fatal("too much is set aside")
	}
	slices.Sort(asides)
	if len(slices.Compact(asides)) < len(asides) {
		t.Fatal("two flights declared one interval")
	}
	if len(asides) > 1 {
		b.reached["two aside"]++
	}
	for _, row := range b.rows {
		if !slices.Equal(row[0], row[1]) {
			t.Fatal("a row that has left was changed")
		}
	}
}

func drawOutcome(t *rapid.T) Outcome {
	return rapid.SampledFrom([]Outcome{Unknown, Applied, Repeated, Refused, Used, Fenced, Late, NotApplied, Lost}).Draw(t, "outcome")
}

// cellSum is what one cell of some rows holds.
func cellSum(cell int, rows ...[]int64) (sum int64) {
	for _, row := range rows {
		if cell < len(row) {
			sum += row[cell]
		}
	}
	return sum
}
