package counter

import (
	"cmp"
	"slices"
)

// A ledger keeps the books of one batch: which amounts wait, which are in the
// air, and which are set aside because nobody knows what became of them. It
// decides what may be declared and what an answer means (DESIGN, section 2,
// rules 1, 2, 4, 5, 9 and 11). It knows no clock and no I/O; the loop owns it.
//
// A batch has cells: its series, and in the first batch of a counter the
// amounts that belong to no series. Amounts are vectors with one entry per cell.
type ledger struct {
	carry int   // how often an amount may leave again
	spent int64 // the highest interval that may hold a mark of ours

	back  parcel   // what waits to leave again
	air   *flight  // what was sent and not answered yet
	aside []flight // what was sent and may or may not have been counted, oldest first

	own    [ownIntervals]ownership // what was counted of ours, by interval
	losses []loss                  // not yet reported
	settle []int64                 // by cell, not yet published: what need not be kept any more
}

// asideIntervals bounds how long a flight stays set aside without any answer.
// The server itself calls it unknowable after two.
const asideIntervals = 4

// ownIntervals is how many intervals back a ledger knows its own part: the
// closed one, the running one, one ahead, and one for an answer that comes late.
const ownIntervals = 4

// A parcel holds amounts by how often they have left before: parcel[tries][cell].
type parcel [][]int64

// A flight is what left together, under one interval and one sequence number.
type flight struct {
	interval, seq int64
	prior         int64 // spent, before this flight
	amounts       parcel
	doubtful      bool // the server's clock was seen to step back since
}

// ownership is what was counted of ours in one interval.
type ownership struct {
	interval int64
	amounts  []int64
	sum      int64
}

// A loss is what is given up, and why.
type loss struct {
	reason  reason
	amounts []int64
}

// reason says why an amount is given up.
type reason string

const (
	lostTries    reason = "not applied in time"      // came back more often than carry allows
	lostUnknown  reason = "may have been counted"    // nobody can tell any more
	lostClosed   reason = "closed"                   // still here as the counter closed
	lostOverflow reason = "passes int64"             // an Add that does not fit
	lostInvalid  reason = "not a finite amount >= 0" // of a float counter
)

// declare chooses what a share may do while the server is believed to be in
// interval n: add to n; else, if it must not wait (parting), to n + 1 ahead
// (rule 8); else only read.
func (l *ledger) declare(n int64, parting bool) (int64, Mode) {
	switch {
	case l.free(n):
		return n, ModeAdd
	case parting && l.free(n+1):
		return n + 1, ModeAhead
	default:
		return n, ModeRead
	}
}

// free reports whether the interval can still be declared.
func (l *ledger) free(interval int64) bool { return l.air == nil && interval > l.spent }

// idle reports whether nothing is kept: nothing waits, flies or is set aside.
func (l *ledger) idle() bool { return l.air == nil && len(l.aside) == 0 && l.back.empty() }

// unsent reports whether something waits to leave again.
func (l *ledger) unsent() bool { return !l.back.empty() }

// take sends off what was freshly counted and what waits, under a free interval.
// What has left too often is given up here: age is judged when an amount would
// leave again, not before (rule 9).
func (l *ledger) take(interval, seq int64, fresh []int64) *flight {
	l.air = &flight{interval: interval, seq: seq, prior: l.spent, amounts: l.gather(fresh)}
	l.spent = interval
	l.aside = slices.DeleteFunc(l.aside, func(f flight) bool {
		expired := f.interval < interval-asideIntervals
		if expired {
			l.lose(lostUnknown, f.amounts.sum())
		}
		return expired
	})
	return l.air
}

// skip lets a tick pass that could send nothing. It counts as a try, so that
// what piles up in an outage does not arrive as one late spike.
func (l *ledger) skip(fresh []int64) {
	amounts := l.gather(fresh)
	l.putBack(amounts)
}

func (l *ledger) gather(fresh []int64) parcel {
	amounts := l.back
	l.back = nil
	if len(amounts) == 0 {
		amounts = parcel{nil}
	}
	amounts[0] = fresh
	if last := l.carry + 1; len(amounts) > last {
		l.lose(lostTries, amounts[last])
		amounts = amounts[:last]
	}
	return amounts
}

// redeclarable reports whether the flight in the air, which was refused, may
// declare an interval instead.
func (l *ledger) redeclarable(interval int64) bool { return interval > l.air.prior }

// redeclare gives the flight in the air, which was refused, another interval
// and sequence number. It is the same try.
func (l *ledger) redeclare(interval, seq int64) *flight {
	l.air.interval, l.air.seq = interval, seq
	l.spent = interval
	return l.air
}

// land takes the answer to the flight in the air.
func (l *ledger) land(outcome Outcome, failed []int) {
	f := *l.air
	l.air = nil
	l.resolve(f, outcome, failed)
}

// abandon sets the flight in the air aside: no answer came in time.
func (l *ledger) abandon() {
	f := *l.air
	l.air = nil
	l.setAside(f)
}

// landLate takes the answer to a flight that was abandoned.
func (l *ledger) landLate(seq int64, outcome Outcome, failed []int) {
	for i, f := range l.aside {
		if f.seq == seq {
			l.aside = slices.Delete(l.aside, i, i+1)
			l.resolve(f, outcome, failed)
			return
		}
	}
}

func (l *ledger) resolve(f flight, outcome Outcome, failed []int) {
	switch outcome {
	case Applied, Repeated:
		if len(failed) > 0 {
			l.putBack(f.amounts.split(failed))
		}
		l.confirm(f)
	case Refused, Fenced, NotApplied:
		if l.spent == f.interval {
			l.spent = f.prior
		}
		l.putBack(f.amounts)
	case Used:
		l.putBack(f.amounts)
	case Lost:
		l.lose(lostUnknown, f.amounts.sum())
	default: // Unknown, Late: never sent again blindly.
		l.setAside(f)
	}
}

// setAside keeps a flight to ask about it, unless it left before a step back
// that was followed: its interval is still long from over.
func (l *ledger) setAside(f flight) {
	if f.interval > l.spent {
		l.lose(lostUnknown, f.amounts.sum())
		return
	}
	l.aside = append(l.aside, f)
	slices.SortFunc(l.aside, func(a, b flight) int { return cmp.Compare(a.seq, b.seq) })
}

// questions asks about everything set aside whose interval comes before the
// declared one.
func (l *ledger) questions(interval int64) []Question {
	var qs []Question
	for _, f := range l.aside {
		if f.interval < interval {
			qs = append(qs, Question{Interval: f.interval, Seq: f.seq})
		}
	}
	return qs
}

// learn takes the answer to a question.
func (l *ledger) learn(q Question, answer Answer) {
	i := slices.IndexFunc(l.aside, func(f flight) bool { return f.seq == q.Seq })
	if i < 0 || answer == StillOpen {
		return
	}
	f := l.aside[i]
	l.aside = slices.Delete(l.aside, i, i+1)
	switch {
	case answer == Counted:
		l.confirm(f)
	case answer == NotCounted && !f.doubtful:
		l.putBack(f.amounts)
	default:
		l.lose(lostUnknown, f.amounts.sum())
	}
}

// doubt notes that the server's clock was seen to step back: marks may have
// expired before their time, so a mark that is missing proves nothing (rule 5).
func (l *ledger) doubt() {
	if l.air != nil {
		l.air.doubtful = true
	}
	for i := range l.aside {
		l.aside[i].doubtful = true
	}
}

// follow accepts a clock that has stepped back too far to wait for (rule 11).
// The marks in the store still keep us from adding twice to one interval.
func (l *ledger) follow() {
	l.spent = 0
	if l.air != nil {
		l.air.prior = 0
	}
	l.giveUpAside()
}

func (l *ledger) giveUpAside() {
	for _, f := range l.aside {
		l.lose(lostUnknown, f.amounts.sum())
	}
	l.aside = nil
}

// giveUp drops everything that is still here, at Close.
func (l *ledger) giveUp(fresh []int64) {
	if l.air != nil {
		l.abandon()
	}
	l.giveUpAside()
	if rest := append(l.back, fresh).sum(); !zero(rest) {
		l.lose(lostClosed, rest)
	}
	l.back = nil
}

func (l *ledger) confirm(f flight) {
	sum := f.amounts.sum()
	l.settle = add(l.settle, sum)
	slot := &l.own[uint64(f.interval)%ownIntervals]
	if slot.interval != f.interval {
		*slot = ownership{interval: f.interval, amounts: slot.amounts[:0]}
	}
	slot.amounts = add(slot.amounts, sum)
	slot.sum += total(sum)
}

// ownIn returns what was counted of ours in an interval.
func (l *ledger) ownIn(interval int64) ownership {
	if o := l.own[uint64(interval)%ownIntervals]; o.interval == interval {
		return o
	}
	return ownership{interval: interval}
}

func (l *ledger) lose(why reason, amounts []int64) {
	if zero(amounts) {
		return
	}
	l.settle = add(l.settle, amounts)
	l.losses = append(l.losses, loss{reason: why, amounts: amounts})
}

// putBack returns amounts that were not counted, one try older.
func (l *ledger) putBack(amounts parcel) {
	for tries, row := range amounts {
		if zero(row) {
			continue
		}
		for len(l.back) <= tries+1 {
			l.back = append(l.back, nil)
		}
		l.back[tries+1] = add(l.back[tries+1], row)
	}
}

// move gives the last cell the place of one that has left. Nothing is kept of
// either but what was counted lately.
func (l *ledger) move(last, to int) {
	rows := [][]int64{l.settle}
	for _, o := range l.own {
		rows = append(rows, o.amounts)
	}
	for _, row := range rows {
		if last < len(row) {
			row[to], row[last] = row[last], 0
		} else if to < len(row) {
			row[to] = 0
		}
	}
}

// forget gives up what is kept of one cell, and what was freshly counted there.
func (l *ledger) forget(cell int, fresh int64) {
	row := make([]int64, cell+1)
	row[cell] = fresh
	l.loseCell(lostClosed, cell, parcel{row})
	l.loseCell(lostClosed, cell, l.back)
	for i := range l.aside {
		l.loseCell(lostUnknown, cell, l.aside[i].amounts)
	}
	if l.air != nil {
		l.loseCell(lostUnknown, cell, l.air.amounts)
	}
}

func (l *ledger) loseCell(why reason, cell int, amounts parcel) {
	l.lose(why, amounts.split([]int{cell}).sum())
}

func (p parcel) empty() bool {
	for _, row := range p {
		if !zero(row) {
			return false
		}
	}
	return true
}

// sum adds up the tries. The result may share memory with the parcel, whose
// rows are never changed in place once they have left.
func (p parcel) sum() []int64 {
	var sum []int64
	for _, row := range p {
		switch {
		case zero(row):
		case sum == nil:
			sum = row
		default:
			sum = add(slices.Clone(sum), row)
		}
	}
	return sum
}

// split takes the amounts of some cells out of a parcel.
func (p parcel) split(cells []int) parcel {
	out := make(parcel, len(p))
	for tries, row := range p {
		if zero(row) {
			continue
		}
		out[tries] = make([]int64, len(row))
		row = slices.Clone(row)
		for _, i := range cells {
			if i < len(row) {
				out[tries][i] += row[i]
				row[i] = 0
			}
		}
		p[tries] = row
	}
	return out
}

// add returns to + row, in place where to is long enough.
func add(to, row []int64) []int64 {
	if len(to) < len(row) {
		to = append(to, make([]int64, len(row)-len(to))...)
	}
	for i, v := range row {
		to[i] += v
	}
	return to
}

func zero(row []int64) bool {
	for _, v := range row {
		if v != 0 {
			return false
		}
	}
	return true
}

func total(row []int64) int64 {
	var sum int64
	for _, v := range row {
		sum += v
	}
	return sum
}
