package store

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
)

// outcomes are the cases of DESIGN, section 2, rules 1, 2, 8 and 12.
var outcomes = []scriptCase{
	// DESIGN 2, rule 1: "The participant *declares* N, by naming the keys of N. The script applies the flush only
	// if N = n (or N = n + 1 where the call says *ahead*)."
	{name: "a share of the running interval is applied", run: func(f *fixture) {
		f.wantTotals(counter.Result{Outcome: counter.Applied, Open: 7, OpenKnown: true}, f.one(f.add(1, 7)))
		assert.Equal(f, "7", f.total(f.n))
		assert.Equal(f, map[string]string{"#": "1", mark(alice, 0): "1"}, f.hash(f.n))
		f.wantLife(3, f.totalKey(f.n))
		f.wantLife(4, f.hashKey(f.n))
		assert.Len(f, f.keys(), 2)
	}},
	{name: "a share of zero is applied too", run: func(f *fixture) {
		f.wantTotals(counter.Result{Outcome: counter.Applied, OpenKnown: true}, f.one(f.add(1, 0)))
		assert.Equal(f, "0", f.total(f.n))
	}},
	{name: "each write renews the life of its keys", run: func(f *fixture) {
		f.setTotal(f.n, "1")
		f.setHash(f.n, "#", "1")
		f.one(f.add(1, 7))
		f.wantLife(3, f.totalKey(f.n))
		f.wantLife(4, f.hashKey(f.n))
	}},
	{name: "no key lives less than a second", miniOnly: "intervals of 10 ms are over before they are asked", run: func(f *fixture) {
		f.interval = 10 * time.Millisecond
		f.n = f.running()
		for i, n := range []int64{f.n, f.n + 1} {
			share := f.add(int64(i+1), 7)
			share.Interval, share.Mode = n, counter.ModeAhead
			require.Equal(f, counter.Applied, f.one(share).Outcome)
			for _, key := range []string{f.totalKey(n), f.hashKey(n)} {
				assert.Equal(f, time.Second, f.rdb.PTTL(f.Context(), key).Val(), key)
			}
		}
	}},
	// DESIGN 2, rule 2: "m = s: *repeated*: it was applied already; nothing changes, the answer is that of an
	// applied one."
	{name: "the same share again is repeated and changes nothing", run: func(f *fixture) {
		f.setTotal(f.n-1, "5")
		share := f.add(1, 7)
		share.Series, share.Amounts = []string{`a="b"`}, []int64{7}
		first := f.one(share)
		before := f.hash(f.n)
		second := f.one(share)
		first.Outcome = counter.Repeated
		first.Time = second.Time
		assert.Equal(f, first, second)
		assert.Equal(f, "7", f.total(f.n))
		assert.Equal(f, before, f.hash(f.n))
	}},
	// DESIGN 2, rule 2: "Other m > 0: *used*: nothing changes."
	{name: "another share in the same interval is used", run: func(f *fixture) {
		f.one(f.add(1, 7))
		before := f.hash(f.n)
		f.want(counter.Used, f.one(f.add(2, 8)))
		assert.Equal(f, "7", f.total(f.n))
		assert.Equal(f, before, f.hash(f.n))
	}},
	{name: "participants and batches have marks of their own", run: func(f *fixture) {
		f.one(f.add(1, 7))
		assert.Equal(f, counter.Applied, f.oneAs(bob, f.add(1, 8)).Outcome)
		batch := f.add(1, 9)
		batch.Batch = 12
		assert.Equal(f, counter.Applied, f.one(batch).Outcome)
		assert.Equal(f, "24", f.total(f.n))
		assert.Equal(f, map[string]string{"#": "2", mark(alice, 0): "1", mark(bob, 0): "1", mark(alice, 12): "1"}, f.hash(f.n))
	}},
	// DESIGN 2, rule 2: "Otherwise, by the clock: N is right: apply, m := s. n > N + 1: *late*: write nothing;
	// this proves nothing. Else: m := -s, *refused*: the refusal is its own fence."
	{name: "too early by one is refused, with a fence", run: func(f *fixture) {
		share := f.add(5, 7)
		share.Interval++
		f.want(counter.Refused, f.one(share))
		assert.Empty(f, f.total(f.n+1))
		assert.Equal(f, map[string]string{mark(alice, 0): "-5"}, f.hash(f.n+1))
		f.wantLife(5, f.hashKey(f.n+1))
		assert.Len(f, f.keys(), 1)
	}},
	{name: "too late by one is refused, with a fence", run: func(f *fixture) {
		share := f.add(5, 7)
		share.Interval--
		f.want(counter.Refused, f.one(share))
		assert.Empty(f, f.total(f.n-1))
		assert.Equal(f, map[string]string{mark(alice, 0): "-5"}, f.hash(f.n-1))
		f.wantLife(4, f.hashKey(f.n-1))
	}},
	{name: "too early by more is refused, ahead or not", run: func(f *fixture) {
		for _, mode := range []counter.Mode{counter.ModeAdd, counter.ModeAhead} {
			share := f.add(int64(mode)+1, 7)
			share.Interval, share.Mode = f.n+2, mode
			f.want(counter.Refused, f.one(share))
		}
		assert.Equal(f, map[string]string{mark(alice, 0): "-2"}, f.hash(f.n+2))
		f.wantLife(5, f.hashKey(f.n+2))
	}},
	{name: "too late by more is late: nothing is written or proven", run: func(f *fixture) {
		for _, mode := range []counter.Mode{counter.ModeAdd, counter.ModeAhead} {
			share := f.add(1, 7)
			share.Interval, share.Mode = f.n-2, mode
			f.want(counter.Late, f.one(share))
		}
		assert.Empty(f, f.keys())
	}},
	// DESIGN 2, rule 2: "m < 0 and |m| >= s: *fenced*: it never was and never will be applied."
	{name: "what was refused is fenced, and so is all before", run: func(f *fixture) {
		f.setHash(f.n, mark(alice, 0), "-5")
		for _, seq := range []int64{5, 4, 1} {
			f.want(counter.Fenced, f.one(f.add(seq, 7)))
		}
		assert.Empty(f, f.total(f.n))
		assert.Equal(f, map[string]string{mark(alice, 0): "-5"}, f.hash(f.n))
	}},
	// DESIGN 2, rule 2: "So "at most once per interval" is kept by the server, and a refused flush stays unapplied
	// whatever is repeated later; N may be declared again with a larger s."
	{name: "after a refusal the interval is free for later shares", run: func(f *fixture) {
		f.setHash(f.n, mark(alice, 0), "-5")
		assert.Equal(f, counter.Applied, f.one(f.add(6, 7)).Outcome)
		assert.Equal(f, "7", f.total(f.n))
		assert.Equal(f, "6", f.hash(f.n)[mark(alice, 0)])
		share := f.add(8, 7)
		share.Interval++
		f.one(share)
		share.Seq = 9
		f.want(counter.Refused, f.one(share))
		assert.Equal(f, "-9", f.hash(f.n + 1)[mark(alice, 0)])
	}},
	// DESIGN 2, rule 2: "The script reads the marker m, before it looks at the clock:"
	{name: "the mark decides before the clock does", run: func(f *fixture) {
		for _, n := range []int64{f.n - 3, f.n - 2, f.n - 1, f.n + 1, f.n + 2} {
			f.setHash(n, mark(alice, 0), "5", mark(bob, 0), "-5")
			share := f.add(5, 7)
			share.Interval = n
			assert.Equal(f, counter.Repeated, f.one(share).Outcome, "%d", n-f.n)
			assert.Equal(f, counter.Fenced, f.oneAs(bob, share).Outcome, "%d", n-f.n)
			share.Seq = 6
			assert.Equal(f, counter.Used, f.one(share).Outcome, "%d", n-f.n)
			assert.Empty(f, f.total(n))
		}
	}},
	{name: "a late share does not fall into the fence of an earlier one", run: func(f *fixture) {
		f.setHash(f.n-2, mark(alice, 0), "-5")
		share := f.add(6, 7)
		share.Interval = f.n - 2
		f.want(counter.Late, f.one(share))
		assert.Equal(f, "-5", f.hash(f.n - 2)[mark(alice, 0)])
	}},
	{name: "an ahead share is applied in the running interval", run: func(f *fixture) {
		f.setTotal(f.n-1, "5")
		share := f.add(1, 7)
		share.Mode = counter.ModeAhead
		f.wantTotals(counter.Result{Outcome: counter.Applied, Known: true, Closed: 5, Open: 7, OpenKnown: true}, f.one(share))
		f.wantLife(3, f.totalKey(f.n))
		f.wantLife(4, f.hashKey(f.n))
	}},
	// DESIGN 2, rule 8: "An ahead call reads Closed (n - 1) and Open (n) by the server's clock like any other."
	{name: "an ahead share is applied in the next interval, and reads by the clock", run: func(f *fixture) {
		f.setTotal(f.n-1, "5")
		f.setHash(f.n-1, "#", "3", `a="b"`, "4")
		f.one(f.add(1, 7))
		share := f.add(2, 8)
		share.Interval, share.Mode = f.n+1, counter.ModeAhead
		share.Series, share.Amounts = []string{`a="b"`}, []int64{8}
		want := counter.Result{
			Outcome: counter.Applied, Known: true, Closed: 5, Participants: 3, SeriesClosed: []int64{4},
			Open: 7, OpenKnown: true,
		}
		f.wantTotals(want, f.one(share))
		assert.Equal(f, "8", f.total(f.n+1))
		assert.Equal(f, map[string]string{"#": "1", mark(alice, 0): "2", `a="b"`: "8"}, f.hash(f.n+1))
		f.wantLife(4, f.totalKey(f.n+1))
		f.wantLife(5, f.hashKey(f.n+1))

		want.Outcome = counter.Repeated
		f.wantTotals(want, f.one(share))
		assert.Equal(f, "8", f.total(f.n+1))
		share.Seq, share.Mode = 3, counter.ModeAdd
		f.want(counter.Used, f.one(share))
	}},
	{name: "a share that is repeated after its time reads what it has declared", run: func(f *fixture) {
		f.setTotal(f.n, "9")
		for back, want := range map[int64]counter.Result{
			1: {Outcome: counter.Repeated, Known: true, Closed: 3},
			2: {Outcome: counter.Repeated},
		} {
			share := f.add(1, 7)
			share.Interval = f.n - back
			f.setTotal(share.Interval, "3")
			f.setHash(share.Interval, mark(alice, 0), "1")
			f.wantTotals(want, f.one(share))
		}
	}},
	{name: "reading writes nothing", run: func(f *fixture) {
		f.setTotal(f.n-1, "5")
		f.setHash(f.n-1, "#", "2", "x=1", "3")
		f.setTotal(f.n, "6")
		share := f.add(1, 0)
		share.Mode, share.Series, share.Amounts = counter.ModeRead, []string{"x=1", "x=2"}, []int64{0, 0}
		f.wantTotals(counter.Result{
			Outcome: counter.Applied, Known: true, Closed: 5, Participants: 2, SeriesClosed: []int64{3, 0},
			Open: 6, OpenKnown: true,
		}, f.one(share))
		assert.Len(f, f.keys(), 3)
		f.wantLife(1, f.totalKey(f.n))
	}},
	{name: "reading in a spent interval does not mind the mark", run: func(f *fixture) {
		f.one(f.add(1, 7))
		share := f.add(2, 0)
		share.Mode = counter.ModeRead
		f.wantTotals(counter.Result{Outcome: counter.Applied, Open: 7, OpenKnown: true}, f.one(share))
	}},
	{name: "reading with a wrong interval brings the time", run: func(f *fixture) {
		for _, n := range []int64{f.n - 2, f.n - 1, f.n + 1} {
			share := f.add(1, 0)
			share.Interval, share.Mode = n, counter.ModeRead
			f.want(counter.Late, f.one(share))
		}
		assert.Empty(f, f.keys())
	}},
	// DESIGN 2, rule 12: "Of the calls that ask for it (a flag; never ahead calls), at most one per counter and
	// interval is told that it was the first to flush there ('!')."
	{name: "one of those that ask is the first", run: func(f *fixture) {
		f.oneAs("carol--1", f.add(1, 7)) // does not ask
		share := f.add(1, 7)
		share.AskFirst = true
		assert.True(f, f.one(share).First)
		assert.False(f, f.oneAs(bob, share).First)
		assert.Equal(f, alice, f.hash(f.n)["!"])
	}},
	{name: "the first is told again if it repeats, and nobody else", run: func(f *fixture) {
		share := f.add(1, 7)
		share.AskFirst = true
		f.one(share)
		f.oneAs(bob, share)
		first, second := f.one(share), f.oneAs(bob, share)
		require.Equal(f, counter.Repeated, first.Outcome)
		require.Equal(f, counter.Repeated, second.Outcome)
		assert.True(f, first.First)
		assert.False(f, second.First)
	}},
	{name: "a refused or used share is not the first", run: func(f *fixture) {
		share := f.add(1, 7)
		share.AskFirst = true
		share.Interval++
		f.want(counter.Refused, f.one(share))
		assert.NotContains(f, f.hash(f.n+1), "!")
	}},
	{name: "an ahead share never asks", run: func(f *fixture) {
		share := f.add(1, 7)
		share.AskFirst, share.Mode = true, counter.ModeAhead
		assert.False(f, f.one(share).First)
		assert.NotContains(f, f.hash(f.n), "!")
	}},
}
