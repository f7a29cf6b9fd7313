package counter

import (
	"cmp"
	"fmt"
	"slices"
)

// packet is a request on its way, or what is left of it.
type packet struct {
	request
	highest ServerTime // what its participant knew as it left
	again   bool       // declared again after a refusal
	awaited bool       // its participant would still take an answer
	copies  int8       // of the request in the network
	reply   *reply     // in the network
	strayed bool       // it has run and written, and the standby lacks that
}

func (c *packet) String() string {
	s := fmt.Sprintf("flush %d: adds %d to interval %d", c.seq, c.amount, c.interval)
	if c.mode == ModeAhead {
		s = fmt.Sprintf("flush %d: adds %d ahead to interval %d", c.seq, c.amount, c.interval)
	}
	for _, q := range c.questions {
		s += fmt.Sprintf(", asks about flush %d", q.Seq)
	}
	return s
}

func (r *reply) String() string {
	s := [...]string{"unknown", "applied", "repeated", "refused", "used", "fenced", "late", "not applied", "lost"}[r.outcome]
	for _, a := range r.answers {
		s += ", " + [...]string{"still open", "counted", "not counted", "unknowable"}[a]
	}
	return s
}

// depart is what may become of a request: it arrives at once, or a fault hits it.
func (m *model) depart(w *world, c packet, emit func(*world)) {
	if !m.faulty(w, &c) {
		m.arrive(w, c, emit)
		return
	}
	m.arrive(w.clone(), c, emit)
	w.faults--

	x := w.clone()
	x.tell("  the request is lost")
	m.land(x, c, &reply{outcome: Unknown}, emit)

	x = w.clone()
	x.tell("  it is proven that it was not applied")
	m.land(x, c, &reply{outcome: NotApplied}, emit)

	c.copies++
	x = w.clone()
	x.tell("  the request is delayed")
	x.keep(c)
	emit(x)

	w.tell("  the request is repeated, a copy stays in the network")
	m.arrive(w, c, emit)
}

// faulty reports whether a fault may still hit a call. What carries neither an
// amount nor a question about one is spared: it can only leave a mark.
func (m *model) faulty(w *world, c *packet) bool {
	return w.faults > 0 && (c.from == 0 || m.equals) && (c.amount != 0 || len(c.questions) > 0 || m.wide)
}

// keep leaves something of a call in the network.
func (w *world) keep(c packet) {
	if c.copies == 0 && c.reply == nil {
		return
	}
	w.calls = append(w.calls, c)
	slices.SortFunc(w.calls, func(a, b packet) int { return cmp.Or(int(a.from-b.from), int(a.seq-b.seq)) })
}

// sweep forgets calls of which nothing is under way any more. A participant that
// still waits for one learns that the connection is gone.
func (w *world) sweep() {
	w.calls = slices.DeleteFunc(w.calls, func(c packet) bool {
		gone := c.copies == 0 && c.reply == nil
		if gone && c.awaited {
			w.people[c.from].land(&c, &reply{outcome: Unknown})
		}
		return gone
	})
}

// network is what happens to a call that is under way: it arrives, its answer
// arrives, its participant gives up waiting.
func (m *model) network(w *world, i int, emit func(*world)) {
	c := &w.calls[i]
	if c.copies > 0 {
		x := w.clone()
		x.tell("%v's flush %d arrives", letter(c.from), c.seq)
		x.calls = slices.Delete(x.calls, i, i+1)
		late := *c
		late.copies--
		m.arrive(x, late, emit)
	}
	if c.reply != nil {
		x := w.clone()
		x.calls = slices.Delete(x.calls, i, i+1)
		late := *c
		late.reply, late.awaited = nil, false
		x.keep(late)
		m.land(x, late, c.reply, emit)
	}
	if c.awaited && w.people[c.from].flies(c) {
		x := w.clone()
		x.tell("%v gives up waiting for flush %d", letter(c.from), c.seq)
		x.cut(c.from)
		x.people[c.from].ledger.abandon()
		x.people[c.from].note()
		emit(x)
	}
}

// cut takes the connection from a call that its participant has given up: at most
// one such call may still answer (rule 6).
func (w *world) cut(i int8) {
	for j := range w.calls {
		if c := &w.calls[j]; c.from == i && c.awaited && !w.people[i].flies(c) {
			c.awaited, c.reply = false, nil
		}
	}
}

// arrive is a request that comes to the server. Where a failover is to come, what
// it writes may be the first that the standby lacks.
func (m *model) arrive(w *world, c packet, emit func(*world)) {
	if w.failovers > 0 && w.standby == nil {
		before, trial := w.server, w.server
		if _, wrote, _ := trial.run(&c.request, m.without); wrote {
			x := w.clone()
			x.tell("  replication stops")
			x.standby = &before
			m.script(x, c, emit)
		}
	}
	m.script(w, c, emit)
}

// script runs the script, and gives what may become of the answer.
func (m *model) script(w *world, c packet, emit func(*world)) {
	r, wrote, broken := w.run(&c.request, m.without)
	w.broken = broken
	if w.standby != nil && wrote {
		c.strayed, w.strayed = true, max(w.strayed, w.now)
	}
	m.answered(&r)
	w.tell("  the server answers: %v", &r)
	if !c.awaited || c.reply != nil {
		w.keep(c)
		emit(w)
		return
	}
	if !w.people[c.from].flies(&c) { // it was given up: its answer may be lost for nothing
		x, lost := w.clone(), c
		x.tell("  the answer is lost")
		lost.awaited = false
		x.keep(lost)
		emit(x)
	}
	if m.faulty(w, &c) {
		m.hide(w.clone(), c, r, emit)
	}
	c.awaited = false
	w.keep(c)
	m.land(w, c, &r, emit)
}

// hide lets a fault hit an answer.
func (m *model) hide(w *world, c packet, r reply, emit func(*world)) {
	w.faults--
	if r.outcome == Applied {
		m.seen[sawHidden]++
	}
	x := w.clone()
	x.tell("  the answer is lost")
	if c.copies > 0 {
		x.keep(c)
		emit(x)
	} else {
		m.land(x, c, &reply{outcome: Unknown}, emit)
	}
	w.tell("  the answer is delayed")
	c.reply = &r
	w.keep(c)
	emit(w)
}

// land gives an answer to its participant.
func (m *model) land(w *world, c packet, r *reply, emit func(*world)) {
	p := &w.people[c.from]
	if r.outcome == Unknown && m.without.resend {
		r = &reply{outcome: NotApplied}
	}
	switch {
	case r.outcome == Unknown:
		w.tell("  %v sets flush %d aside", letter(c.from), c.seq)
	case p.flies(&c):
		w.tell("  %v takes the answer to flush %d", letter(c.from), c.seq)
	default:
		m.seen[sawLateAnswer]++
		w.tell("  %v takes the late answer to flush %d: %v", letter(c.from), c.seq, r)
	}
	before := p.perhaps + p.lost
	again, seen := p.land(&c, r)
	m.observed(seen)
	if p.perhaps+p.lost != before {
		m.seen[sawLost]++
	}
	if again == nil {
		emit(w)
		return
	}
	m.seen[sawRedeclared]++
	w.tell("%v declares again: %v", letter(c.from), again)
	m.depart(w, *again, emit)
}

func (m *model) answered(r *reply) {
	switch r.outcome {
	case Repeated:
		m.seen[sawRepeated]++
	case Refused:
		m.seen[sawRefused]++
	case Used:
		m.seen[sawUsed]++
	case Fenced:
		m.seen[sawFenced]++
	case Late:
		m.seen[sawLate]++
	}
	for _, a := range r.answers {
		m.seen[sawOpen+sight(a)]++
	}
}
