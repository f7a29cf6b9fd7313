package counter

import (
	"context"
	"slices"
	"time"
)

// loop is the one goroutine that owns a group's books: lanes, accounts and what
// callers ask. It never waits for the store: each call runs on a goroutine of
// its own and comes back as an event.
type loop struct {
	*engine
	began    time.Time
	now      time.Duration // since began, as the last event came
	slack    time.Duration
	seq      int64
	lanes    map[string]*lane
	lobby    *lane // the accounts of which the server is not known yet
	accounts map[seriesKey]*account
	pending  []*ask

	ctx    context.Context // of the store calls; ends with the loop
	cancel context.CancelFunc

	lead       time.Duration // how long before a tick the BeforeTick functions are called
	collecting bool
}

func newLoop(e *engine) *loop {
	l := &loop{
		engine: e, began: time.Now(), slack: slack(e.interval),
		lanes: map[string]*lane{}, lobby: &lane{}, accounts: map[seriesKey]*account{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *loop) run() {
	defer close(l.done)
	defer l.cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		event := func(*loop) {}
		select {
		case <-l.stop:
			l.end()
			return
		case event = <-l.events:
		case <-l.signal:
		case <-timer.C:
		}
		l.now = time.Since(l.began)
		l.admit(l.takeWoken())
		event(l)
		l.step()
		timer.Reset(l.next() - time.Since(l.began))
	}
}

// async runs fn on a goroutine of its own; what it returns is run by the loop.
func (l *loop) async(fn func() (event func(*loop))) {
	go func() {
		event := fn()
		select {
		case l.events <- event:
		case <-l.done:
		}
	}()
}

// step does what is due.
func (l *loop) step() {
	l.stepLane(l.lobby)
	for server, ln := range l.lanes {
		if ln.empty() {
			delete(l.lanes, server)
			continue
		}
		l.stepLane(ln)
	}
	l.settleAsks()
}

func (l *loop) stepLane(ln *lane) {
	if ln.empty() {
		return
	}
	if ln.overdue(l.now) {
		l.abandon(ln)
	}
	if ln.alarm != 0 && l.now >= ln.alarm {
		l.refreshViews(ln)
	}
	l.prepare(ln)
	if l.now >= ln.due && (!ln.preparing || l.now >= ln.due+l.slack) {
		l.tick(ln)
	}
	l.sendParting(ln)
}

// next is when something is due.
func (l *loop) next() time.Duration {
	next := l.now + time.Hour
	if !l.lobby.empty() {
		next = min(next, l.lobby.next(0, 0))
	}
	for _, ln := range l.lanes {
		next = min(next, ln.next(l.lead, l.slack))
	}
	return next
}

// admit takes up counters that have been woken.
func (l *loop) admit(woken []*Counter) {
	changed := map[*batch]bool{}
	for _, c := range woken {
		if c.ended.Load() && c.apart() {
			continue
		}
		l.takeUp(c)
		c.cell.idle = 0
		changed[c.cell.batch] = true
	}
	for b := range changed {
		b.show(func(int, *view) {})
	}
}

// takeUp sees to it that a counter has a place in a batch.
func (l *loop) takeUp(c *Counter) *batch {
	a := l.account(c.grand)
	if c.cell.batch == nil {
		a.join(c, l.config.carry)
		l.registry.awake(c)
		l.report.series.Add(l.ctx, 1)
	}
	return c.cell.batch
}

// account returns the account of a grand total, opened if there is none.
func (l *loop) account(grand *Counter) *account {
	if a := l.accounts[grand.key]; a != nil {
		return a
	}
	a := newAccount(grand, l.config.carry)
	l.accounts[grand.key] = a
	grand.queued.Store(true)
	l.lobby.add(a)
	if l.lobby.call == nil {
		l.lobby.due = l.now
	}
	if !grand.greeted {
		grand.greeted = true
		l.report.started(grand.key, l.interval, l.storeName)
	}
	l.report.series.Add(l.ctx, 1)
	return a
}

// prepare calls the BeforeTick functions shortly before a tick.
func (l *loop) prepare(ln *lane) {
	if ln.prepared || ln.preparing || !ln.clock.known || l.now < ln.due-l.lead {
		return
	}
	if len(l.hooks.preparers()) == 0 {
		ln.prepared = true
		return
	}
	ln.preparing = true
	if l.collecting {
		return // for another lane; it serves this one too
	}
	l.collecting = true
	began := l.now
	l.async(func() func(*loop) {
		l.hooks.run(l.report)
		return func(l *loop) {
			l.collecting = false
			// Twice as early as it took, so that the flush keeps its phase.
			l.lead = min(2*(l.now-began), l.slack)
			for _, ln := range l.lanes {
				ln.prepared, ln.preparing = ln.prepared || ln.preparing, false
			}
		}
	})
}

// tick is what happens once an interval: one flush of all counters in use, or
// what has to come before.
func (l *loop) tick(ln *lane) {
	ln.preparing = false
	switch {
	case ln.call != nil:
		ln.call.waited = true
		l.skip(ln)
	case len(ln.accounts) == 0:
	case ln == l.lobby:
		l.lookup(ln)
	case !ln.clock.known:
		l.probe(ln)
	default:
		l.restIdle(ln)
		l.flushAll(ln)
	}
	if ln.clock.known {
		ln.last = max(ln.last, ln.clock.interval(l.now))
	}
	ln.schedule(l.now, l.interval)
}

// skip lets a tick pass with which nothing could leave. That counts as a try, see
// ledger.skip.
func (l *loop) skip(ln *lane) {
	ln.eachBatch(func(b *batch) {
		b.ledger.skip(b.count())
		l.reportLosses(b)
		b.show(func(int, *view) {})
	})
	l.report.skipped.Add(l.ctx, 1)
}

// failed notes that a call that had to come before a flush brought nothing.
func (l *loop) failed(c *call) {
	c.lane.failed = true
	if !c.late && !c.waited {
		l.skip(c.lane)
	}
}

// abandon gives up waiting for the call in the air. Its outcome is unknown; if
// it answers after all, the answer is used.
func (l *loop) abandon(ln *lane) {
	ln.hanging, ln.call = ln.call, nil
	ln.failed = true
	if len(ln.hanging.batches) == 0 {
		l.failed(ln.hanging)
	}
	for i, b := range ln.hanging.batches {
		if ln.hanging.shares[i].Mode != ModeRead && b.ledger.air != nil { // else closed meanwhile
			b.ledger.abandon()
			l.report.outcome(Unknown)
		}
	}
}

// refreshViews drops what has become too old: totals that nothing refreshed for
// two intervals, and running intervals that have ended.
func (l *loop) refreshViews(ln *lane) {
	ln.alarm = 0
	ln.eachBatch(func(b *batch) {
		if b.k == 0 && b.openEnd != 0 {
			if l.now >= b.openEnd {
				b.openEnd = 0
				b.showGrand((*view).dropOpen)
			} else {
				ln.wakeAt(b.openEnd)
			}
		}
		if !b.known {
			return
		}
		if stale := b.refreshed + 2*l.interval; l.now < stale {
			ln.wakeAt(stale)
			return
		}
		b.known = false
		b.show(func(_ int, v *view) { v.blank() })
		if b.k == 0 {
			l.report.wentStale(b.account.grand.key, 2*l.interval)
		}
	})
}

// restIdle puts counters to rest that were not used for ten intervals and of
// which nothing is kept.
func (l *loop) restIdle(ln *lane) {
	for _, a := range slices.Clone(ln.accounts) {
		for _, b := range a.batches {
			for _, c := range slices.Backward(b.cells) {
				if c.used() {
					c.cell.idle = 0
				} else {
					c.cell.idle++
				}
				if c != c.grand && c.cell.idle >= idleIntervals && b.ledger.idle() {
					b.remove(c)
					l.rest(c)
				}
			}
		}
		if a.grand.cell.idle >= idleIntervals && a.deserted() {
			ln.remove(a)
			delete(l.accounts, a.grand.key)
			a.grand.cell.batch = nil
			l.rest(a.grand)
		}
	}
}

// used reports whether a counter was used since the last tick.
func (c *Counter) used() bool {
	return c.touched.Load() && c.touched.Swap(false) || c.counted.Load() != c.cell.taken
}

// deserted reports whether only the grand total is left, and nothing is kept.
func (a *account) deserted() bool {
	for _, b := range a.batches {
		if len(b.cells) > 0 && b.k > 0 || len(b.cells) > 1 || !b.ledger.idle() {
			return false
		}
	}
	return true
}

// rest puts a counter to rest, until it is used again.
func (l *loop) rest(c *Counter) {
	v := unknown
	v.settled = c.cell.settled
	c.view.Store(&v)
	l.registry.rest(c)
	l.report.series.Add(l.ctx, -1)
	if c.ended.Load() {
		return
	}
	c.queued.Store(false)
	// An Add that came meanwhile may have seen it awake.
	if (c.counted.Load() != c.cell.taken || c.touched.Load()) && c.queued.CompareAndSwap(false, true) {
		l.wake(c)
	}
}
