package counter

import "slices"

// participant is the pure core's own ledger and clock, and around them what the
// loop does (flush.go and landing.go), step by step.
type participant struct {
	ledger  ledger
	highest ServerTime // the clock's: the latest time that any answer brought
	seq     int64
	adds    []int64 // the amounts that are still to be counted
	gone    bool    // crashed, or closed
	crashed bool

	// What the ledger takes its amounts for.
	confirmed int64 // counted
	perhaps   int64 // lost: may have been counted
	lost      int64 // lost: was not counted
}

// clone copies a participant. Rows that have left can be shared: they never
// change (TestRowsThatHaveLeftNeverChange).
func (p *participant) clone() participant {
	c := *p
	c.ledger.back = slices.Clone(p.ledger.back)
	for i, row := range c.ledger.back {
		c.ledger.back[i] = slices.Clone(row)
	}
	c.ledger.aside = slices.Clone(p.ledger.aside)
	if p.ledger.air != nil {
		air := *p.ledger.air
		c.ledger.air = &air
	}
	return c
}

// flush makes a call that adds, while the participant believes that the server is
// in interval n, if there is one to make. It counts so many amounts before.
func (p *participant) flush(from int8, n int64, parting bool, count int) *packet {
	interval, mode := p.ledger.declare(n, parting)
	if mode == ModeRead {
		return nil
	}
	questions := p.ledger.questions(interval)
	p.seq++
	f := p.ledger.take(interval, p.seq, p.count(count))
	p.note()
	return p.load(f, packet{request: request{from: from, mode: mode, questions: questions}})
}

func (p *participant) load(f *flight, c packet) *packet {
	c.interval, c.seq, c.amount = f.interval, f.seq, total(f.amounts.sum())
	c.highest, c.awaited = p.highest, true
	return &c
}

func (p *participant) count(n int) []int64 {
	fresh := []int64{total(p.adds[:n])}
	p.adds = p.adds[n:]
	return fresh
}

// flies reports whether a call is in the air; else it was given up or settled.
func (p *participant) flies(c *packet) bool { return p.ledger.air != nil && p.ledger.air.seq == c.seq }

// holds reports whether the ledger still waits to learn what became of a flight.
func (p *participant) holds(seq int64) bool {
	return p.ledger.air != nil && p.ledger.air.seq == seq ||
		slices.ContainsFunc(p.ledger.aside, func(f flight) bool { return f.seq == seq })
}

// observe lets the clock see the server's time that an answer brought.
func (p *participant) observe(highest, server ServerTime) step {
	c := clock{length: modelLength, known: true, highest: p.highest}
	seen := c.observe(0, highest, server)
	p.highest = c.highest
	switch seen {
	case stepFollow:
		p.ledger.follow()
	case stepBack:
		p.ledger.doubt()
	}
	p.note()
	return seen
}

// land takes the answer to a call. If that is to be declared again at once, it
// returns the new one.
func (p *participant) land(c *packet, r *reply) (again *packet, seen step) {
	if r.time != 0 {
		seen = p.observe(c.highest, ServerTime(r.time))
	}
	n := intervalAt(r.time)
	switch {
	case !p.flies(c):
		p.ledger.landLate(c.seq, r.outcome, nil)
	case r.outcome == Refused && !c.again && seen == stepNone && p.ledger.redeclarable(n):
		p.seq++
		return p.load(p.ledger.redeclare(n, p.seq), packet{request: c.request, again: true}), seen
	default:
		p.ledger.land(r.outcome, nil)
	}
	if r.outcome == Applied || r.outcome == Repeated {
		for i, a := range r.answers {
			p.ledger.learn(c.questions[i], a)
		}
	}
	p.note()
	return nil, seen
}

// close gives up what is kept, and reports it.
func (p *participant) close() {
	p.ledger.giveUp(p.count(len(p.adds)))
	p.note()
	p.leave()
}

// crash ends the participant without a word.
func (p *participant) crash() {
	*p = participant{seq: p.seq, crashed: true}
	p.leave()
}

func (p *participant) leave() {
	p.ledger, p.highest, p.adds, p.gone = ledger{}, 0, nil, true
}

// note takes down what the ledger has settled.
func (p *participant) note() {
	p.confirmed += total(p.ledger.settle)
	for _, l := range p.ledger.losses {
		sum := total(l.amounts)
		p.confirmed -= sum
		if l.reason == lostUnknown {
			p.perhaps += sum
		} else {
			p.lost += sum
		}
	}
	p.ledger.settle, p.ledger.losses = nil, nil
	p.ledger.own = [ownIntervals]ownership{}
}

// kept is what the ledger has not settled.
func (p *participant) kept() int64 {
	sum := total(p.ledger.back.sum()) + asideSum(&p.ledger)
	if p.ledger.air != nil {
		sum += total(p.ledger.air.amounts.sum())
	}
	return sum
}
