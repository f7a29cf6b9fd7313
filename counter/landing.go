package counter

import (
	"slices"
)

// landed takes the answer to one share: it closes the ledger's flight, or adds
// it to redo if it may be declared again at once.
func (l *loop) landed(c, redo *call, i int, r *Result, seen step) {
	b, s := c.batches[i], &c.shares[i]
	l.report.outcome(r.Outcome)
	switch {
	case b.closed(), c.late && !b.holds(s):
		return
	case s.Mode == ModeRead:
	case c.late:
		b.ledger.landLate(s.Seq, r.Outcome, b.failedCells(r.Failed))
	case r.Outcome == Refused && !c.again && seen == stepNone && b.ledger.redeclarable(r.Time.interval(l.interval)):
		b.reload(s, b.ledger.redeclare(r.Time.interval(l.interval), l.nextSeq()))
		redo.batches = append(redo.batches, b)
		redo.shares = append(redo.shares, *s)
		return
	default:
		b.ledger.land(r.Outcome, b.failedCells(r.Failed))
	}
	brought := r.Outcome == Applied || r.Outcome == Repeated
	if brought {
		for q, answer := range r.Answers {
			if q < len(s.Questions) {
				b.ledger.learn(s.Questions[q], answer)
			}
		}
	}
	l.reportShare(b, s, r)
	l.reportLosses(b)
	stale := c.late && l.now >= c.sent+2*l.interval
	if closed := r.Time.interval(l.interval) - 1; brought && closed >= b.interval && !stale {
		l.showNews(b, r, closed)
	} else {
		b.show(func(int, *view) {})
	}
}

// moved takes accounts to the lanes of the servers that hold them now.
func (l *loop) moved(c *call, results []Result) {
	for i, b := range c.batches {
		a := b.account
		if s := results[i].Server; s != "" && a.lane != nil && s != a.lane.server && a.grounded() {
			l.move(a, s)
		}
	}
}

// showNews publishes the totals of an answer, and notes until when they hold.
func (l *loop) showNews(b *batch, r *Result, closed int64) {
	ln := b.account.lane
	if !ln.clock.trusts(closed) {
		r.Known, r.OpenKnown = false, false
	}
	b.known, b.interval, b.refreshed = r.Known, closed, l.now
	b.showNews(news{Result: r, interval: closed, at: l.began.Add(l.now), open: l.config.open})
	if b.known {
		ln.wakeAt(b.refreshed + 2*l.interval)
	}
	if b.k == 0 && r.OpenKnown {
		b.openEnd = max(ln.clock.start(closed+2), l.now)
		ln.wakeAt(b.openEnd)
	}
}

// grounded reports whether no share of the account is in the air, so that it can
// move to another lane.
func (a *account) grounded() bool {
	return !slices.ContainsFunc(a.batches, func(b *batch) bool { return b.ledger.air != nil })
}

// reportShare logs how a share of a counter fared. What fails the same way
// interval after interval is logged once.
func (l *loop) reportShare(b *batch, s *Share, r *Result) {
	a := b.account
	for _, f := range r.Failed {
		l.report.failed(a.grand.key, f.Err.Error(), 0)
	}
	switch {
	case r.Err != nil:
		l.reportFailure([]*account{a}, r.Err)
	case (r.Outcome == Applied || r.Outcome == Repeated) && s.Mode != ModeRead:
		if a.lastErr != "" {
			a.lastErr = ""
			l.report.recovered(a.grand.key)
		}
		if l.report.debugs() {
			l.report.completed(a.grand.key, s.Interval, s.Amount, a.grand.read().Count)
		}
	}
}

// reportFailure logs what keeps accounts from being flushed, once.
func (l *loop) reportFailure(accounts []*account, err error) {
	for _, a := range accounts {
		if text := err.Error(); a.lastErr != text {
			a.lastErr = text
			l.report.failed(a.grand.key, text, 0)
		}
	}
}

// reportLosses reports what a batch has given up, and what its counters refused.
func (l *loop) reportLosses(b *batch) (lost int64) {
	key := b.account.grand.key
	for _, loss := range b.ledger.losses {
		sum := total(loss.amounts)
		lost += sum
		l.report.lost(key, loss.reason, sum, b.account.lastErr)
	}
	b.ledger.losses = nil
	l.tellLost(b, lost)
	for _, c := range b.cells {
		if c.overflowed.Load() != 0 {
			l.report.lost(key, lostOverflow, c.overflowed.Swap(0), "")
		}
		if c.invalid.Load() != 0 {
			l.report.lost(key, lostInvalid, c.invalid.Swap(0), "")
		}
	}
	return lost
}

// told gives the OnTick functions the totals of the counters in an applied flush.
func (l *loop) told(c *call, results []Result) {
	for _, listener := range l.hooks.listeners() {
		var readings []Reading
		for i, b := range c.batches {
			if o := results[i].Outcome; o != Applied && o != Repeated || b.account.grand.key.prefix != listener.prefix {
				continue
			}
			for _, c := range b.cells {
				readings = append(readings, c.Peek())
			}
		}
		if len(readings) > 0 {
			listener.tell(readings)
		}
	}
}
