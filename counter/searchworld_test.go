package counter

import (
	"fmt"
	"slices"
)

// world is a state: the server, the participants, the network, and what may
// still happen.
type world struct {
	server
	people [2]participant
	calls  []packet

	peak    int8    // the latest time that the server's clock has shown
	standby *server // what a failover would bring into service; nil while it has all writes
	strayed int8    // the latest time of a write that the standby lacks
	floor   int8    // the clock does not fall below, after a failover
	undone  int64   // amounts that a failover took out of totals

	faults, slips, partings, failovers, steps, ends int8 // that may still happen

	broken  string // a promise that the server saw broken
	telling bool
	told    []string
}

func newWorld(b *bounds) *world {
	w := &world{
		peak: firstMoment, faults: b.faults, slips: b.slips, partings: b.partings,
		failovers: b.failovers, steps: int8(min(len(b.steps), 1)), ends: b.ends,
	}
	w.now = firstMoment
	amount := int64(1)
	for i := range w.people {
		w.people[i].ledger.carry = b.carry
		for range b.adds[i] {
			w.people[i].adds = append(w.people[i].adds, amount)
			amount *= 4
		}
		w.people[i].gone = b.adds[i] == 0
	}
	return w
}

func (w *world) clone() *world {
	c := *w
	for i := range c.people {
		c.people[i] = w.people[i].clone()
	}
	c.calls = slices.Clone(w.calls)
	c.told = slices.Clip(w.told)
	return &c
}

// tell notes what happens, where a trace is told.
func (w *world) tell(format string, args ...any) {
	if w.telling {
		w.told = append(w.told, fmt.Sprintf("%v  ", moment(w.now))+fmt.Sprintf(format, args...))
	}
}

// moment is a time, told as the interval and its hundredths.
type moment int8

func (t moment) String() string {
	return fmt.Sprintf("%d.%02d", t/subSteps, 100*int(t%subSteps)/subSteps)
}

// letter is a participant's name.
type letter int8

func (i letter) String() string { return string('A' + rune(i)) }

// model generates the states that can follow on a state.
type model struct {
	bounds
	seen [numSights]int
}

// successors gives emit every state that can follow on w, each as one that emit
// may keep. Given the same state, they come in the same order.
func (m *model) successors(w *world, emit func(*world)) {
	m.time(w, emit)
	m.accidents(w, emit)
	for i := range w.people {
		m.person(w, int8(i), emit)
	}
	for i := range w.calls {
		m.network(w, i, emit)
	}
}

func (m *model) time(w *world, emit func(*world)) {
	if w.now >= m.lastMoment() {
		return
	}
	x := w.clone()
	x.pass(m.moments)
	// A's first amount leaves in the first interval: a history in which it leaves
	// later is one of those, and ends sooner.
	if m.wide || x.interval() == 1 || len(x.people[0].adds) < m.adds[0] {
		emit(x)
	}
}

// pass lets time go on to the next moment.
func (w *world) pass(moments []int8) {
	for w.now++; !slices.Contains(moments, w.now%subSteps); {
		w.now++
	}
	w.peak = max(w.peak, w.now)
	w.expire()
	if w.standby != nil {
		s := *w.standby
		s.now = w.now
		s.expire()
		w.standby = &s
	}
}

// accidents are what happens to the server: a step of its clock, a failover.
func (m *model) accidents(w *world, emit func(*world)) {
	if w.steps > 0 {
		for _, back := range m.steps {
			if w.now-back < m.lowest(w) {
				continue
			}
			m.seen[sawStep]++
			x := w.clone()
			x.tell("the server's clock steps back to %v", moment(w.now-back))
			x.steps--
			x.now -= back
			emit(x)
		}
	}
	if w.standby != nil {
		for lag := range m.lag + 1 {
			if w.now-lag >= max(m.lowest(w), w.strayed-m.lag) {
				emit(m.fail(w, lag))
			}
		}
	}
}

// lowest is the earliest time to which the clock may fall.
func (m *model) lowest(w *world) int8 {
	return max(w.floor, w.peak-m.fall, firstMoment)
}

// fail brings the standby into service, with a clock behind by lag. Its clock
// does not fall behind the writes that are lost by more than the bound either.
func (m *model) fail(w *world, lag int8) *world {
	m.seen[sawFailover]++
	x := w.clone()
	x.tell("failover: the writes since are lost, the clock shows %v", moment(w.now-lag))
	x.failovers--
	x.server = *w.standby
	x.now = w.now - lag
	x.floor = max(w.floor, w.strayed-m.lag)
	x.standby, x.strayed = nil, 0
	for digit := int64(1); digit <= w.counted; digit *= 4 {
		if w.counted/digit%4 > x.counted/digit%4 {
			x.undone |= digit
		}
	}
	if !m.repeats {
		for i := range x.calls {
			if c := &x.calls[i]; c.strayed {
				c.copies = 0
			}
		}
		x.sweep()
	}
	return x
}

// person is what a participant does of its own.
func (m *model) person(w *world, i int8, emit func(*world)) {
	p := &w.people[i]
	if p.gone {
		return
	}
	if w.ends > 0 {
		m.end(w, i, emit)
	}
	if p.ledger.air != nil {
		return
	}
	if ServerTime(w.now) < p.highest {
		x := w.clone()
		x.tell("%v only reads, and sees that the clock has stepped back", letter(i))
		m.observed(x.people[i].observe(p.highest, ServerTime(w.now)))
		emit(x)
	}
	odd := i == 0 || m.equals
	for _, off := range []int64{0, -1, 1} {
		for _, parting := range []bool{false, true} {
			if off != 0 && (w.slips == 0 || !odd) || parting && (w.partings == 0 || !odd) {
				continue
			}
			n := w.interval() + off
			if _, mode := p.ledger.declare(n, parting); mode == ModeRead || parting && mode != ModeAhead {
				continue // no flush, or the same as without a caller that waits
			}
			for count := range min(1, len(p.adds)) + 1 {
				if !odd && count < len(p.adds) {
					continue // it flushes when it has something, and once
				}
				x := w.clone()
				if off != 0 {
					x.slips--
				}
				if parting {
					x.partings--
				}
				m.flush(x, i, n, parting, count, emit)
			}
		}
	}
}

func (m *model) flush(w *world, i int8, n int64, parting bool, count int, emit func(*world)) {
	c := w.people[i].flush(i, n, parting, count)
	if c.mode == ModeAhead {
		m.seen[sawAhead]++
	}
	if count == 0 && c.amount != 0 {
		m.seen[sawCarried]++
	}
	w.tell("%v sends %v", letter(i), c)
	m.depart(w, *c, emit)
}

// end lets a participant crash, or close.
func (m *model) end(w *world, i int8, emit func(*world)) {
	m.seen[sawEnd]++
	x, y := w.clone(), w.clone()
	x.tell("%v closes", letter(i))
	x.people[i].close()
	y.tell("%v crashes", letter(i))
	y.people[i].crash()
	for _, x := range []*world{x, y} {
		x.ends--
		for j := range x.calls {
			if c := &x.calls[j]; c.from == i {
				c.awaited, c.reply = false, nil
			}
		}
		x.sweep()
		emit(x)
	}
}

func (m *model) observed(seen step) {
	switch seen {
	case stepBack:
		m.seen[sawDoubt]++
	case stepFollow:
		m.seen[sawFollow]++
	}
}
