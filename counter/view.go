package counter

import (
	"math"
	"time"
)

// view is what the loop publishes of a counter. It is never changed after that,
// so that Add, Count and Total read it with one atomic load.
type view struct {
	awake   bool  // the loop flushes this counter
	settled int64 // how much of what was counted need not be kept any more
	floor   int64 // what Count is at least; math.MinInt64 while nothing is known
	total   Total // without Count and Buffer
}

// unknown is the view of a counter of which nothing is known.
var unknown = view{floor: math.MinInt64, total: Total{Open: -1}}

func (v *view) count(buffer int64) int64 { return max(v.floor, buffer) }

// blank makes a view say that nothing is known.
func (v *view) blank() { v.floor, v.total = unknown.floor, unknown.total }

// dropOpen forgets the running interval's total, once it has ended.
func (v *view) dropOpen() {
	v.total.Open = -1
	v.floor = math.MinInt64
	if v.total.Known {
		v.floor = v.total.Closed
	}
}

// show publishes new views of a batch's counters, made from the old ones. They
// share one allocation.
func (b *batch) show(change func(cell int, v *view)) {
	b.settle()
	views := make([]view, len(b.cells))
	for i, c := range b.cells {
		v := &views[i]
		*v = *c.view.Load()
		v.awake, v.settled = true, c.cell.settled
		change(i, v)
		c.view.Store(v)
		c.nudge()
	}
	if b.k > 0 {
		b.account.batches[0].showGrand(func(*view) {})
	}
}

// showGrand publishes a new view of the grand total alone.
func (b *batch) showGrand(change func(*view)) {
	c := b.account.grand
	v := *c.view.Load()
	v.awake, v.settled = true, c.cell.settled
	change(&v)
	c.view.Store(&v)
	c.nudge()
}

// news is an answer that brought totals.
type news struct {
	*Result
	interval int64 // the closed one's number
	at       time.Time
	open     bool // the running interval's total enters Count
}

// showNews publishes what an answer brought.
func (b *batch) showNews(n news) {
	own := b.ledger.ownIn(n.interval)
	b.show(func(cell int, v *view) {
		v.blank()
		grand := b.k == 0 && cell == 0
		if n.Known {
			v.total = Total{Known: true, Closed: n.Closed, Open: -1, Participants: n.Participants, First: n.First, Interval: n.interval, At: n.at}
			if cell < len(own.amounts) {
				v.total.Own = own.amounts[cell]
			}
			switch {
			case grand:
				v.total.Own = b.account.ownIn(n.interval)
			case cell-b.shift() < len(n.SeriesClosed):
				v.total.Closed = n.SeriesClosed[cell-b.shift()]
			}
			v.floor = v.total.Closed
		}
		if grand && n.OpenKnown {
			n.raiseOpen(v)
		}
	})
	if b.k > 0 && n.OpenKnown { // what this share added shows in the grand total
		b.account.batches[0].showGrand(func(v *view) {
			if v.total.Open >= 0 && v.total.Interval == n.interval {
				n.raiseOpen(v)
			}
		})
	}
}

func (n *news) raiseOpen(v *view) {
	v.total.Open = max(v.total.Open, n.Open)
	if n.open {
		v.floor = max(v.floor, v.total.Open)
	}
}

// ownIn is what was counted of ours in an interval, in all batches.
func (a *account) ownIn(interval int64) (sum int64) {
	for _, b := range a.batches {
		sum += b.ledger.ownIn(interval).sum
	}
	return sum
}
