package counter

import "slices"

// tidy forgets what can play no part any more, so that states that differ only in
// that become one:
//
//   - that an answer is awaited whose flight the ledger has settled: it would be ignored;
//   - requests that nobody awaits and that would change nothing;
//   - empty flights that were set aside, once nobody awaits their answer;
//   - participants all of whose amounts are settled for good.
//
// A wide search does without the last two: there, those flights are asked about,
// and those participants go on.
func (m *model) tidy(w *world) {
	for i := range w.calls {
		if c := &w.calls[i]; c.awaited && !w.people[c.from].holds(c.seq) {
			c.awaited, c.reply = false, nil
		}
	}
	w.calls = slices.DeleteFunc(w.calls, func(c packet) bool {
		return !c.awaited && (c.copies == 0 || m.harmless(w, &c))
	})
	if m.wide {
		return
	}
	for i := range w.people {
		p := &w.people[i]
		if w.settled(i) {
			p.leave()
			w.calls = slices.DeleteFunc(w.calls, func(c packet) bool { return int(c.from) == i })
		}
		p.ledger.aside = slices.DeleteFunc(p.ledger.aside, func(f flight) bool {
			return f.amounts.empty() && !slices.ContainsFunc(w.calls, func(c packet) bool {
				return int(c.from) == i && c.seq == f.seq && c.awaited
			})
		})
	}
}

// settled reports whether nothing that a participant counted can still come into a total.
func (w *world) settled(i int) bool {
	p := &w.people[i]
	return len(p.adds) == 0 && p.kept() == 0 && !slices.ContainsFunc(w.calls, func(c packet) bool {
		return int(c.from) == i && c.copies > 0 && c.amount != 0
	})
}

// harmless reports whether a request would change nothing, whenever it arrives:
// it is late, or a mark bars it.
func (m *model) harmless(w *world, c *packet) bool {
	if intervalAt(m.least(w)) > c.interval+1 && !m.without.noLate {
		return true
	}
	return m.without == rules{} && !m.follows() && w.bars(&w.server, c) && (w.standby == nil || w.bars(w.standby, c))
}

// bars reports whether a server holds a mark that keeps a request from doing
// anything. The mark lives until the request is late.
func (w *world) bars(s *server, c *packet) bool {
	mark := int64(s.keys[c.interval].marks[c.from])
	if mark == c.seq { // applied before; it would still put its questions
		return !slices.ContainsFunc(c.questions, func(q Question) bool { return w.people[c.from].holds(q.Seq) })
	}
	return mark > 0 || mark < 0 && -mark >= c.seq
}

// least is the earliest time that the clock can still show.
func (m *model) least(w *world) int8 {
	if w.steps > 0 || w.failovers > 0 {
		return min(w.now, m.lowest(w))
	}
	return w.now
}
