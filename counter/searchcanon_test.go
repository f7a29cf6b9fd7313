package counter

import (
	"hash/maphash"
	"slices"
)

// canon gives states that behave alike from now on the same number: it leaves out
// what can decide nothing any more, and counts each participant's calls by their
// order. Two states that differ get the same number with a chance of one in 2^64.
type canon struct {
	model *model
	seed  maphash.Seed
	buf   []byte
	seqs  [2][]int64 // the sequence numbers that are still spoken of, in order
	least int8       // the earliest time that an answer can still bring
	first int64      // the earliest interval that can still be declared
}

func (c *canon) number(w *world) uint64 {
	c.least = c.model.least(w)
	for i := range w.calls {
		if r := w.calls[i].reply; r != nil {
			c.least = min(c.least, r.time)
		}
	}
	c.first = intervalAt(c.least) - 1
	c.collect(w)
	c.buf = c.buf[:0]
	c.put(int64(w.now), int64(c.least), int64(w.faults), int64(w.slips), int64(w.partings), int64(w.failovers), int64(w.steps), int64(w.ends))
	if w.steps > 0 || w.failovers > 0 {
		c.put(int64(w.peak), int64(c.model.lowest(w)))
	}
	c.server(w, &w.server)
	if w.standby != nil {
		c.put(int64(w.strayed))
		c.server(w, w.standby)
	}
	for i := range w.people {
		c.participant(w, i)
	}
	for i := range w.calls {
		c.packet(w, &w.calls[i])
	}
	return maphash.Bytes(c.seed, c.buf)
}

func (c *canon) put(values ...int64) {
	for _, v := range values {
		c.buf = append(c.buf, byte(v))
	}
}

func (c *canon) putBools(values ...bool) {
	bits := int64(0)
	for i, v := range values {
		if v {
			bits |= 1 << i
		}
	}
	c.put(bits)
}

// collect finds the sequence numbers that are still spoken of.
func (c *canon) collect(w *world) {
	for i := range w.people {
		seqs := c.seqs[i][:0]
		for n := range w.keys {
			if !c.decides(w, i, int64(n)) {
				continue
			}
			seqs = append(seqs, abs(w.keys[n].marks[i]))
			if w.standby != nil {
				seqs = append(seqs, abs(w.standby.keys[n].marks[i]))
			}
		}
		l := &w.people[i].ledger
		if l.air != nil {
			seqs = append(seqs, l.air.seq)
		}
		for j := range l.aside {
			seqs = append(seqs, l.aside[j].seq)
		}
		for j := range w.calls {
			if int(w.calls[j].from) == i {
				seqs = append(seqs, w.calls[j].seq)
			}
		}
		slices.Sort(seqs)
		c.seqs[i] = slices.Compact(seqs)
	}
}

func abs(mark int8) int64 { return int64(max(mark, -mark)) }

// rank counts a sequence number, or a mark, among those that are spoken of.
func (c *canon) rank(i int, seq int64) int64 {
	switch {
	case seq == 0:
		return 0
	case seq < 0:
		return -c.rank(i, -seq)
	}
	at, _ := slices.BinarySearch(c.seqs[i], seq)
	return int64(at + 1)
}

// decides reports whether a participant's mark in an interval can still decide
// anything: the interval can be declared again, or something that is set aside or
// under way has declared it.
func (c *canon) decides(w *world, i int, n int64) bool {
	if p := &w.people[i]; !p.gone {
		if c.model.follows() {
			return true
		}
		spent := p.ledger.spent
		if f := p.ledger.air; f != nil {
			if f.interval == n {
				return true
			}
			spent = min(spent, f.prior)
		}
		for j := range p.ledger.aside {
			f := &p.ledger.aside[j]
			if f.interval == n {
				return true
			}
			spent = min(spent, f.prior)
		}
		if n > spent && n >= c.first {
			return true
		}
	}
	for j := range w.calls {
		if r := &w.calls[j]; int(r.from) == i && r.copies > 0 && r.interval == n {
			return true
		}
	}
	return false
}

func (c *canon) server(w *world, s *server) {
	end := c.model.lastMoment() + 1 // what lives longer does not expire in this search
	for n := range s.keys {
		k := &s.keys[n]
		if k.totalEnds == 0 && k.hashEnds == 0 {
			continue
		}
		at := len(c.buf)
		c.put(int64(n))
		marked, contributed := false, false
		for i := range w.people {
			mark, has := int64(0), false
			if c.decides(w, i, int64(n)) {
				mark, has = c.rank(i, int64(k.marks[i])), k.contributed[i]
			}
			marked, contributed = marked || mark != 0, contributed || has
			c.put(mark)
			c.putBools(has)
		}
		if marked {
			c.put(int64(min(k.hashEnds, end)))
		}
		if contributed {
			c.put(int64(min(k.totalEnds, end)))
		}
		if !marked && !contributed {
			c.buf = c.buf[:at]
		}
	}
	c.put(-1)
	c.amounts(w, s)
}

// amounts notes where the amounts are that can still come into a total.
func (c *canon) amounts(w *world, s *server) {
	digit := int64(1)
	for i := range w.people {
		p := &w.people[i]
		kept := p.kept() + total(p.adds)
		for range c.model.adds[i] {
			live := kept/digit%4 != 0
			for j := range w.calls {
				live = live || w.calls[j].copies > 0 && w.calls[j].amount/digit%4 != 0
			}
			if live {
				c.put(s.counted/digit%4, w.undone/digit%4, p.confirmed/digit%4, p.lost/digit%4, p.perhaps/digit%4)
			}
			digit *= 4
		}
	}
}

func (c *canon) participant(w *world, i int) {
	p := &w.people[i]
	if p.gone {
		c.put(-2)
		return
	}
	c.put(max(p.ledger.spent, c.first-1), c.latest(p.highest), int64(len(p.adds)))
	c.parcel(p.ledger.back)
	c.putBools(p.ledger.air != nil)
	if p.ledger.air != nil {
		c.flight(i, p.ledger.air)
	}
	for j := range p.ledger.aside {
		c.flight(i, &p.ledger.aside[j])
	}
	c.put(-3)
}

// latest is a time that matters only as long as the clock can fall below it.
func (c *canon) latest(t ServerTime) int64 {
	if t <= ServerTime(c.least) {
		return 0
	}
	return int64(t)
}

func (c *canon) flight(i int, f *flight) {
	c.put(f.interval, c.rank(i, f.seq), max(f.prior, c.first-1))
	c.putBools(f.doubtful)
	c.parcel(f.amounts)
}

func (c *canon) parcel(p parcel) {
	for tries, row := range p {
		if sum := total(row); sum != 0 {
			c.put(int64(tries), sum, sum>>8)
		}
	}
	c.put(-4)
}

func (c *canon) packet(w *world, r *packet) {
	i := int(r.from)
	c.put(-5, int64(i), r.interval, c.rank(i, r.seq), int64(r.mode), int64(r.copies))
	c.putBools(r.awaited, r.again, r.strayed && w.standby != nil)
	if r.copies > 0 {
		c.put(r.amount, r.amount>>8)
	}
	if r.awaited {
		c.put(c.latest(r.highest))
	}
	if r.reply != nil {
		c.put(-6, int64(r.reply.outcome), intervalAt(r.reply.time), c.latest(ServerTime(r.reply.time)))
	}
	for j, q := range r.questions {
		if !w.people[i].holds(q.Seq) {
			continue // the answer would be ignored
		}
		c.put(q.Interval, c.rank(i, q.Seq))
		if r.reply != nil && j < len(r.reply.answers) {
			c.put(int64(r.reply.answers[j]))
		}
	}
}
