package counter

import (
	"context"
	"fmt"
	"slices"
)

// send makes a call on a goroutine of its own.
func (l *loop) send(c *call, do func(context.Context) (event func(*loop, *call))) {
	ln := c.lane
	ln.call = c
	c.sent, c.highest = l.now, ln.clock.highest
	c.deadline = l.now + max(l.interval, minPatience)
	l.async(func() func(*loop) {
		event := do(l.ctx)
		return func(l *loop) {
			if c.late = ln.hanging == c; c.late {
				ln.hanging = nil
			} else {
				ln.call = nil
			}
			event(l, c)
		}
	})
}

// lookup asks where the accounts in the lobby live.
func (l *loop) lookup(ln *lane) {
	c := &call{lane: ln, accounts: slices.Clone(ln.accounts)}
	l.send(c, func(ctx context.Context) func(*loop, *call) {
		servers := make([]string, len(c.accounts))
		var failed error
		for i, a := range c.accounts {
			server, err := l.store.Server(ctx, a.grand.key.prefix, a.grand.key.name)
			if err != nil {
				failed = err
				break
			}
			servers[i] = server
		}
		return func(l *loop, c *call) { l.found(c, servers, failed) }
	})
}

// found moves accounts to the lanes of their servers.
func (l *loop) found(c *call, servers []string, failed error) {
	c.lane.failed = false
	if failed != nil {
		l.failed(c)
		l.reportFailure(c.accounts, failed)
		return
	}
	for i, a := range c.accounts {
		if a.lane == c.lane { // not closed meanwhile
			l.move(a, servers[i])
		}
	}
	if len(c.lane.accounts) > 0 {
		c.lane.due = l.now // they came while this was out
	}
}

func (l *loop) move(a *account, server string) {
	ln := l.lanes[server]
	if ln == nil {
		ln = &lane{server: server, clock: newClock(l.interval, l.config.phase), due: l.now}
		l.lanes[server] = ln
	}
	a.lane.remove(a)
	ln.add(a)
}

// probe asks for the server's time, before anything is declared.
func (l *loop) probe(ln *lane) {
	key := ln.accounts[0].grand.key
	looked := ln.policy
	ln.policy = true
	l.send(&call{lane: ln, accounts: slices.Clone(ln.accounts)}, func(ctx context.Context) func(*loop, *call) {
		now, err := l.store.Probe(ctx, ln.server, key.prefix, key.name)
		policy := ""
		if p, ok := l.store.(evictionPolicy); ok && err == nil && !looked {
			policy, _ = p.EvictionPolicy(ctx, key.prefix, key.name)
		}
		return func(l *loop, c *call) {
			ln.failed = false
			if err != nil {
				l.failed(c)
				ln.policy = looked
				ln.rotate() // it may be this counter's keys only
				l.reportFailure(c.accounts, err)
				return
			}
			l.observe(ln, c, now)
			ln.schedule(l.now, l.interval)
			if policy != "" && policy != "noeviction" {
				l.report.evicts(key, policy)
			}
		}
	})
}

// observe lets a lane's clock follow the server's.
func (l *loop) observe(ln *lane, c *call, times ...ServerTime) step {
	seen := stepNone
	for _, t := range times {
		if t != 0 {
			seen = max(seen, ln.clock.observe(c.sent, c.highest, t))
		}
	}
	switch seen {
	case stepFollow:
		ln.last = 0
		ln.eachBatch(func(b *batch) {
			b.ledger.follow()
			l.reportLosses(b)
			b.known = false
			b.show(func(_ int, v *view) { v.blank() })
		})
		l.report.stepped(ln.key(), "followed")
	case stepBack:
		ln.eachBatch(func(b *batch) { b.ledger.doubt() })
		l.report.stepped(ln.key(), "waited for")
	}
	return seen
}

// flushAll sends what all counters of a lane have counted.
func (l *loop) flushAll(ln *lane) {
	n := ln.clock.interval(l.now)
	c := &call{lane: ln, tick: true}
	ln.eachBatch(func(b *batch) { l.load(c, b, n, l.isAsked(b)) })
	l.sendFlush(c)
}

// load adds a batch's share to a call.
func (l *loop) load(c *call, b *batch, n int64, parting bool) {
	s := b.share(n, parting, l.nextSeq)
	s.AskFirst = s.Mode == ModeAdd && b.k == 0 && !l.config.noFirst && l.hooks.listens(s.Prefix)
	l.reportLosses(b)
	c.batches = append(c.batches, b)
	c.shares = append(c.shares, s)
}

func (l *loop) nextSeq() int64 {
	l.seq++
	return l.seq
}

func (l *loop) sendFlush(c *call) {
	if len(c.shares) == 0 {
		return
	}
	f := &Flush{Server: c.lane.server, Participant: l.config.id, Interval: l.interval, Shares: c.shares}
	l.send(c, func(ctx context.Context) func(*loop, *call) {
		results := l.store.Flush(ctx, f)
		return func(l *loop, c *call) { l.flushed(c, results) }
	})
}

// flushed takes the answers to a flush.
func (l *loop) flushed(c *call, results []Result) {
	ln := c.lane
	if len(results) != len(c.shares) {
		err := fmt.Errorf("counter: the store answered %d of %d shares", len(results), len(c.shares))
		results = make([]Result, len(c.shares))
		for i := range results {
			results[i].Err = err
		}
	}
	l.report.roundTrip(l.now - c.sent)
	times := make([]ServerTime, len(results))
	reached := false // by something, or perhaps
	for i := range results {
		times[i] = results[i].Time
		reached = reached || results[i].Outcome != NotApplied
	}
	seen := l.observe(ln, c, times...)
	redo := &call{lane: ln, tick: c.tick, again: true}
	for i := range results {
		l.landed(c, redo, i, &results[i], seen)
	}
	l.told(c, results)
	l.moved(c, results)
	if !reached {
		ln.clock.known = false // ask for the time and the rights again first
	}
	ln.failed = !reached
	if c.late {
		return
	}
	// Shares run in their order. The last one's time says how far the tick got.
	if c.tick && times[len(times)-1] != 0 {
		ln.last = times[len(times)-1].interval(l.interval)
	}
	ln.schedule(l.now, l.interval)
	l.sendFlush(redo)
}
