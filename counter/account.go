package counter

import (
	"slices"
	"time"
)

// Bounds of one share (DESIGN, section 3): a call blocks the server.
const (
	maxCells = 500
	maxBytes = 60 << 10
)

// idleIntervals is after how many intervals without use a counter is put to rest.
const idleIntervals = 10

// account is what the loop keeps of one counter name: its grand total and, in
// batches, its series.
type account struct {
	grand   *Counter
	lane    *lane
	batches []*batch
	lastErr string // reported last, so that an outage is not reported every interval
}

// batch is a part of an account that is flushed as one share. The batch with
// number 0 has the grand total's own amounts in its first cell.
type batch struct {
	account *account
	k       int
	ledger  ledger
	cells   []*Counter
	series  []string // the cells' attribute sets, less the grand total's cell
	bytes   int
	takes   int // how often it has sent off what was counted

	zeros     []int64
	known     bool
	interval  int64         // the closed one that is shown
	refreshed time.Duration // when an answer last brought totals
	openEnd   time.Duration // when the running interval that is shown ends; 0: none is shown
}

// cell is what the loop keeps in a counter.
type cell struct {
	batch   *batch
	index   int
	taken   int64 // how much of counted has been taken
	settled int64 // how much need not be kept any more; of a grand total: with its parts
	idle    int   // ticks without use
	ended   bool  // closed on its own; of a part: under the group's lock
}

func newAccount(grand *Counter, carry int) *account {
	a := &account{grand: grand}
	b := a.addBatch(carry)
	b.add(grand)
	return a
}

func (a *account) addBatch(carry int) *batch {
	b := &batch{account: a, k: len(a.batches), ledger: ledger{carry: carry}}
	a.batches = append(a.batches, b)
	return b
}

// join gives a series a place in the first batch with room, where it stays as
// long as it is awake.
func (a *account) join(c *Counter, carry int) {
	i := slices.IndexFunc(a.batches, func(b *batch) bool {
		return len(b.cells) < maxCells && b.bytes+len(c.key.set) <= maxBytes
	})
	if i < 0 {
		a.addBatch(carry).add(c)
		return
	}
	a.batches[i].add(c)
}

func (b *batch) add(c *Counter) {
	c.cell.batch, c.cell.index, c.cell.idle = b, len(b.cells), 0
	b.cells = append(b.cells, c)
	if c.grand != c {
		b.series = append(b.series, c.key.set)
		b.bytes += len(c.key.set)
	}
}

// remove takes a series out of a batch of which nothing is kept. The last one
// moves into its place.
func (b *batch) remove(c *Counter) {
	i, last := c.cell.index, len(b.cells)-1
	moved := b.cells[last]
	b.cells[i] = moved
	b.cells = b.cells[:last]
	shift := b.shift()
	series := slices.Clone(b.series[:len(b.series)-1]) // the old one may be in the hands of the store
	if i < last {
		series[i-shift] = moved.key.set
	}
	b.series = series
	b.bytes -= len(c.key.set)
	b.ledger.move(last, i)
	moved.cell.index = i
	c.cell.batch = nil
}

// shift is the first series' cell.
func (b *batch) shift() int {
	if b.k == 0 {
		return 1
	}
	return 0
}

// closed reports whether nothing is kept in the batch any more, since its counter
// was closed or has gone to rest.
func (b *batch) closed() bool { return len(b.cells) == 0 || b.cells[0].cell.batch != b }

// holds reports whether the series of a share are still where they were as it
// left. Those that nothing is kept of may have gone to rest meanwhile.
func (b *batch) holds(s *Share) bool {
	return len(s.Series) <= len(b.series) && slices.Equal(s.Series, b.series[:len(s.Series)])
}

// count takes what has been counted since the last time.
func (b *batch) count() []int64 {
	fresh := make([]int64, len(b.cells))
	for i, c := range b.cells {
		now := c.counted.Load()
		fresh[i], c.cell.taken = now-c.cell.taken, now
	}
	b.takes++
	return fresh
}

// counted reports whether anything was counted that has not been taken.
func (b *batch) counted() bool {
	return slices.ContainsFunc(b.cells, func(c *Counter) bool { return c.counted.Load() != c.cell.taken })
}

// share declares what the batch has to send while the server is believed to be
// in interval n. A parting share does not wait for a free interval.
func (b *batch) share(n int64, parting bool, seq func() int64) Share {
	interval, mode := b.ledger.declare(n, parting)
	if mode == ModeAdd && b.k > 0 && b.ledger.idle() && !b.counted() {
		mode = ModeRead // its counter's first batch says that we are here
	}
	s := Share{Prefix: b.account.grand.key.prefix, Name: b.account.grand.key.name, Batch: b.k, Interval: interval, Mode: mode, Series: b.series}
	if mode == ModeRead {
		s.Amounts = b.padded(nil)[b.shift():]
		return s
	}
	s.Questions = b.ledger.questions(interval)
	b.reload(&s, b.ledger.take(interval, seq(), b.count()))
	return s
}

// reload puts a flight into a share.
func (b *batch) reload(s *Share, f *flight) {
	s.Interval, s.Seq = f.interval, f.seq
	sum := f.amounts.sum()
	s.Amount = total(sum)
	s.Amounts = b.padded(sum)[b.shift():]
}

// padded returns a row as long as there are cells.
func (b *batch) padded(row []int64) []int64 {
	if row == nil {
		if len(b.zeros) != len(b.cells) {
			b.zeros = make([]int64, len(b.cells))
		}
		return b.zeros
	}
	if n := len(b.cells) - len(row); n > 0 {
		return append(slices.Clone(row), make([]int64, n)...)
	}
	return row
}

// failedCells turns the failures of a share into cells.
func (b *batch) failedCells(failed []Failure) []int {
	var cells []int
	for _, f := range failed {
		if f.Index >= 0 && f.Index < len(b.series) {
			cells = append(cells, f.Index+b.shift())
		}
	}
	return cells
}

// settle moves what the ledger need not keep any more to the counters.
func (b *batch) settle() {
	for i, n := range b.ledger.settle {
		if n == 0 || i >= len(b.cells) {
			continue
		}
		b.ledger.settle[i] = 0
		b.account.grand.cell.settled += n
		if c := b.cells[i]; c != c.grand {
			c.cell.settled += n
		}
	}
}
