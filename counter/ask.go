package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// ask is what Flush, Shutdown and Close of a counter want of the loop.
type ask struct {
	counter *Counter        // nil: the whole group
	parting bool            // do not wait for what is set aside
	end     []*Counter      // close these instead
	left    <-chan struct{} // closed when nobody waits any more
	reply   chan struct{}   // closed when done
	lost    atomic.Int64    // what was given up to close, or while a parting one waited

	waiting map[*batch]int // until so many takes have been made and settled
}

// awaitSettled waits until what was counted is settled.
func (e *engine) awaitSettled(ctx context.Context, c *Counter) error {
	return e.ask(ctx, &ask{counter: c})
}

// awaitSent waits until what was counted is sent and answered. The ask that it returns
// knows what was given up instead.
func (e *engine) awaitSent(ctx context.Context, c *Counter) (*ask, error) {
	a := &ask{counter: c, parting: true}
	return a, e.ask(ctx, a)
}

func (e *engine) shutdown(ctx context.Context, c *Counter) error {
	a, err := e.awaitSent(ctx, c)
	if lost := e.closeCounter(c) + a.lost.Load(); lost != 0 {
		return errors.Join(lostError(lost), err)
	}
	return nil
}

// lostError is what Shutdown returns of what it had to give up.
func lostError(lost int64) error {
	if lost == 0 {
		return nil
	}
	return fmt.Errorf("counter: closed with an amount of %d that is not known to have arrived", lost)
}

// closeCounter closes a counter, and with a grand total its parts. It returns
// what was lost.
func (e *engine) closeCounter(c *Counter) (lost int64) {
	if c.excess {
		return 0 // it keeps nothing
	}
	closed := slices.DeleteFunc(e.registry.end(c), func(c *Counter) bool { return c.ended.Swap(true) })
	for _, c := range closed {
		c.queued.Store(true) // never taken up again
		c.watches.end()
	}
	if running, _ := e.state(); !running {
		for _, c := range closed {
			if fresh := c.end(); c != c.grand {
				c.grand.parts.Add(-fresh) // added this very moment: as if after Close
			}
		}
		return 0
	}
	// The loop answers at once.
	a := &ask{end: closed}
	_ = e.ask(context.Background(), a)
	return a.lost.Load()
}

func (e *engine) ask(ctx context.Context, a *ask) error {
	running, closed := e.state()
	if closed || a.counter != nil && a.counter.ended.Load() {
		return ErrClosed
	}
	if !running {
		return nil // nothing was ever counted
	}
	a.left, a.reply = ctx.Done(), make(chan struct{})
	select {
	case e.events <- func(l *loop) { l.take(a) }:
	case <-e.done:
		return ErrClosed
	}
	select {
	case <-a.reply:
		return nil
	case <-e.done:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("counter: not all that was counted is settled yet: %w", context.Cause(ctx))
	}
}

// take notes what a caller asks, and what it has to wait for.
func (l *loop) take(a *ask) {
	for _, c := range a.end {
		a.lost.Add(l.endCounter(c))
	}
	if a.end != nil {
		close(a.reply)
		return
	}
	a.waiting = map[*batch]int{}
	for _, b := range l.scope(a.counter) {
		takes := b.takes
		if b.counted() {
			takes++
		}
		if !a.settled(b, takes) {
			a.waiting[b] = takes
		}
	}
	l.pending = append(l.pending, a)
}

// scope is the batches in which a counter, or with nil the whole group, keeps
// its amounts.
func (l *loop) scope(c *Counter) (batches []*batch) {
	switch {
	case c == nil:
		for _, a := range l.accounts {
			batches = append(batches, a.batches...)
		}
	case c == c.grand || c.excess:
		if a := l.accounts[c.grand.key]; a != nil {
			batches = a.batches
		}
	case c.cell.batch != nil:
		batches = []*batch{c.cell.batch}
	}
	return batches
}

// settled reports whether nothing is kept in a batch of what was counted before
// that many takes.
func (a *ask) settled(b *batch, takes int) bool {
	if b.takes < takes {
		return false
	}
	if a.parting {
		return b.ledger.air == nil && !b.ledger.unsent()
	}
	return b.ledger.idle()
}

// settleAsks answers the callers whose amounts are settled, and forgets those
// that have gone.
func (l *loop) settleAsks() {
	l.pending = slices.DeleteFunc(l.pending, func(a *ask) bool {
		for b, takes := range a.waiting {
			if a.settled(b, takes) {
				delete(a.waiting, b)
			}
		}
		if len(a.waiting) == 0 {
			close(a.reply)
			return true
		}
		return a.gone()
	})
}

// tellLost tells the callers who wait for a batch what it has given up.
func (l *loop) tellLost(b *batch, lost int64) {
	for _, a := range l.pending {
		if _, waits := a.waiting[b]; waits && !a.gone() {
			a.lost.Add(lost)
		}
	}
}

// gone reports whether the caller has left.
func (a *ask) gone() bool {
	select {
	case <-a.left:
		return true
	default:
		return false
	}
}

// isAsked reports whether a caller waits for a batch.
func (l *loop) isAsked(b *batch) bool {
	return slices.ContainsFunc(l.pending, func(a *ask) bool {
		_, waits := a.waiting[b]
		return waits
	})
}

// sendParting sends what callers wait for, ahead if need be, between the ticks (rule 8).
// After a failure the next tick tries again, not this.
func (l *loop) sendParting(ln *lane) {
	if l.now < ln.parting {
		return
	}
	ln.parting = 0
	if len(l.pending) == 0 || !ln.ready() || ln.failed {
		return
	}
	n := ln.clock.interval(l.now)
	c := &call{lane: ln}
	ln.eachBatch(func(b *batch) {
		if !l.isAsked(b) || !b.counted() && !b.ledger.unsent() {
			return
		}
		if _, mode := b.ledger.declare(n, true); mode == ModeRead {
			// Both n and n + 1 hold our mark. One interval on, n + 2 is ahead.
			again := ln.clock.start(b.ledger.spent) + l.slack
			if ln.parting == 0 || again < ln.parting {
				ln.parting = again
			}
			return
		}
		l.load(c, b, n, true)
	})
	l.sendFlush(c)
}

// endCounter gives up what is kept of a counter that was closed on its own. A
// grand total takes its whole account along.
func (l *loop) endCounter(c *Counter) (lost int64) {
	if c != c.grand {
		return l.endPart(c)
	}
	c.cell.ended = true
	a := l.accounts[c.key]
	if a == nil {
		return 0
	}
	for _, b := range a.batches {
		lost += l.giveUp(b)
	}
	a.lane.remove(a)
	delete(l.accounts, c.key)
	l.report.stopped(c.key)
	return lost
}

// endPart gives up what is kept of a part. Its cell stays until nothing is out any
// more, with another counter in it that nobody adds to.
func (l *loop) endPart(c *Counter) (lost int64) {
	if c.grand.ended.Load() {
		return 0 // it goes with its grand total
	}
	fresh := c.end()
	if c.cell.batch == nil && fresh == 0 {
		return 0
	}
	b, i := l.takeUp(c), c.cell.index
	b.ledger.forget(i, fresh)
	lost = l.reportLosses(b)
	b.settle()
	v := unknown
	v.settled = c.cell.settled
	c.view.Store(&v)

	rest := newCounter(c.group, c.key, c.attrs)
	rest.grand, rest.place = c.grand, c.place
	rest.ended.Store(true)
	rest.queued.Store(true)
	rest.cell = cell{batch: b, index: i, idle: idleIntervals}
	b.cells[i] = rest
	c.cell.batch = nil
	b.show(func(int, *view) {})
	return lost
}

// giveUp drops all that is kept in a batch, and publishes that nothing is known.
func (l *loop) giveUp(b *batch) (lost int64) {
	b.ledger.giveUp(b.count())
	lost = l.reportLosses(b)
	for _, c := range b.cells {
		v := unknown
		v.settled = c.view.Load().settled // what is lost stays in the local count
		c.view.Store(&v)
		c.cell.batch = nil
		l.report.series.Add(l.ctx, -1)
	}
	return lost
}

// end closes the group: nothing is sent any more.
func (l *loop) end() {
	l.admit(l.takeWoken()) // what was added to just before is lost too
	var lost int64
	for _, a := range l.accounts {
		for _, b := range a.batches {
			lost += l.giveUp(b)
		}
		l.report.stopped(a.grand.key)
	}
	l.lostAtClose = lost
}
