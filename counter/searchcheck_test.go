package counter

// check says which promise is broken in a state, if one is:
//
//   - no participant has added to a total twice;
//   - no amount is counted twice, in one total or in two;
//   - what a participant takes for counted is in a total, unless a failover took it out;
//   - what it reports as not counted is in none;
//   - each amount is in one place of its books: nothing disappears silently;
//   - no key is without an end.
func (w *world) check(b *bounds) string {
	for i := range w.keys {
		k := &w.keys[i]
		if k.marks != [2]int8{} && k.hashEnds == 0 || k.contributed != [2]bool{} && k.totalEnds == 0 {
			return "a key has no TTL"
		}
	}
	if w.broken != "" || b.follows() {
		return w.broken
	}
	digit := int64(1)
	for i := range w.people {
		p := &w.people[i]
		kept := p.kept() + total(p.adds)
		for range b.adds[i] {
			if broken := w.checkAmount(p, kept, digit); broken != "" {
				return broken
			}
			digit *= 4
		}
	}
	return ""
}

func (w *world) checkAmount(p *participant, kept, digit int64) string {
	counted := w.counted / digit % 4
	confirmed, lost, perhaps := p.confirmed/digit%4, p.lost/digit%4, p.perhaps/digit%4
	switch {
	case counted > 1:
		return "an amount was counted twice"
	case confirmed > 0 && counted == 0 && w.undone/digit%4 == 0:
		return "an amount was taken for counted and is in no total: lost without a report"
	case lost > 0 && counted > 0:
		return "an amount was reported as not counted and is in a total"
	case !p.crashed && kept/digit%4+confirmed+lost+perhaps != 1:
		return "an amount is not in one place of the books"
	}
	return ""
}

// settle lets what is under way arrive, and then a faultless time pass, at the end
// of which all must be counted or reported. It returns how that ends.
func (m *model) settle(from *world) (end *world, broken string) {
	w := from.clone()
	w.faults, w.slips, w.partings, w.failovers, w.steps, w.ends, w.standby = 0, 0, 0, 0, 0, 0, nil
	for len(w.calls) > 0 {
		m.network(w, 0, func(x *world) { w = x })
	}
	for range 8 {
		w.pass([]int8{2})
		for i := range w.people {
			if p := &w.people[i]; !p.gone && p.ledger.free(w.interval()) {
				m.flush(w, int8(i), w.interval(), false, len(p.adds), func(x *world) { w = x })
			}
		}
	}
	if broken := w.check(&m.bounds); broken != "" {
		return w, broken
	}
	for i := range w.people {
		if !w.people[i].ledger.idle() {
			return w, "after a long faultless time an amount is neither counted nor reported"
		}
	}
	return w, ""
}
