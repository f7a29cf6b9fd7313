package store

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
)

// ask is a share that asks whether the one with this interval and sequence number
// was counted.
func (f *fixture) ask(seq int64, questions ...counter.Question) counter.Share {
	share := f.add(seq, 0)
	share.Questions = questions
	return share
}

// questions are the cases of DESIGN, section 2, rule 5.
var questions = []scriptCase{
	// DESIGN 2, rule 5: "m = s: counted."
	{name: "its mark: it was counted", run: func(f *fixture) {
		f.setHash(f.n-1, mark(alice, 0), "5")
		result := f.one(f.ask(6, counter.Question{Interval: f.n - 1, Seq: 5}))
		assert.Equal(f, []counter.Answer{counter.Counted}, result.Answers)
		assert.Equal(f, map[string]string{mark(alice, 0): "5"}, f.hash(f.n-1))
	}},
	// DESIGN 2, rule 5: "Otherwise m := -s with its TTL, not counted."
	{name: "no mark: it was not counted, and never will be", run: func(f *fixture) {
		result := f.one(f.ask(6, counter.Question{Interval: f.n - 1, Seq: 5}))
		assert.Equal(f, []counter.Answer{counter.NotCounted}, result.Answers)
		assert.Equal(f, map[string]string{mark(alice, 0): "-5"}, f.hash(f.n-1))
		f.wantLife(4, f.hashKey(f.n-1))

		late := f.add(5, 7)
		late.Interval--
		f.want(counter.Fenced, f.one(late))
	}},
	{name: "asked again: the fence is not taken for its mark", run: func(f *fixture) {
		question := counter.Question{Interval: f.n - 1, Seq: 5}
		f.one(f.ask(6, question))
		share := f.ask(7, question)
		share.Batch = 0
		require.NoError(f, f.rdb.Del(f.Context(), f.hashKey(f.n)).Err())
		assert.Equal(f, []counter.Answer{counter.NotCounted}, f.one(share).Answers)
	}},
	// DESIGN 2, rule 5: "m > 0 or |m| >= s: not counted."
	{name: "another mark: it was not counted", run: func(f *fixture) {
		for i, m := range []string{"4", "6", "-5", "-6"} {
			f.setHash(f.n-1, mark(alice, 0), m)
			require.NoError(f, f.rdb.Del(f.Context(), f.hashKey(f.n)).Err())
			result := f.one(f.ask(int64(i+7), counter.Question{Interval: f.n - 1, Seq: 5}))
			assert.Equal(f, []counter.Answer{counter.NotCounted}, result.Answers, m)
			assert.Equal(f, m, f.hash(f.n - 1)[mark(alice, 0)], "the mark stays")
		}
	}},
	{name: "an older fence: it was not counted, and is fenced now", run: func(f *fixture) {
		f.setHash(f.n-1, mark(alice, 0), "-4")
		result := f.one(f.ask(6, counter.Question{Interval: f.n - 1, Seq: 5}))
		assert.Equal(f, []counter.Answer{counter.NotCounted}, result.Answers)
		assert.Equal(f, "-5", f.hash(f.n - 1)[mark(alice, 0)])
	}},
	{name: "sequence numbers in questions are exact below 2^53", run: func(f *fixture) {
		const seq = 1<<53 - 2
		result := f.one(f.ask(seq+1, counter.Question{Interval: f.n - 1, Seq: seq}))
		assert.Equal(f, []counter.Answer{counter.NotCounted}, result.Answers)
		assert.Equal(f, itoa(-seq), f.hash(f.n - 1)[mark(alice, 0)])
	}},
	{name: "while its interval runs or is to come it is open", run: func(f *fixture) {
		result := f.one(f.ask(6,
			counter.Question{Interval: f.n, Seq: 5},
			counter.Question{Interval: f.n + 1, Seq: 5},
		))
		assert.Equal(f, []counter.Answer{counter.StillOpen, counter.StillOpen}, result.Answers)
		assert.Empty(f, f.hash(f.n+1))
		assert.Equal(f, "6", f.hash(f.n)[mark(alice, 0)])
	}},
	{name: "after two intervals without a mark nothing can be known", run: func(f *fixture) {
		f.setHash(f.n-4, mark(alice, 0), "5")
		result := f.one(f.ask(9,
			counter.Question{Interval: f.n - 2, Seq: 6},
			counter.Question{Interval: f.n - 3, Seq: 7},
			counter.Question{Interval: f.n - 4, Seq: 5},
			counter.Question{Interval: f.n - 4, Seq: 8},
		))
		assert.Equal(f, []counter.Answer{
			counter.NotCounted, counter.Unknowable, counter.Counted, counter.Unknowable,
		}, result.Answers)
		assert.Empty(f, f.hash(f.n-3))
	}},
	{name: "a mark that cannot be read stays open, then is unknowable", run: func(f *fixture) {
		f.setHash(f.n-1, mark(alice, 0), "x")
		f.setList(f.hashKey(f.n - 2))
		f.setList(f.hashKey(f.n - 3))
		result := f.one(f.ask(9,
			counter.Question{Interval: f.n - 1, Seq: 6},
			counter.Question{Interval: f.n - 2, Seq: 6},
			counter.Question{Interval: f.n - 3, Seq: 6},
		))
		assert.Equal(f, counter.Applied, result.Outcome)
		assert.Equal(f, []counter.Answer{counter.StillOpen, counter.StillOpen, counter.Unknowable}, result.Answers)
	}},
	{name: "questions are about the share's own batch and participant", run: func(f *fixture) {
		f.setHash(f.n-1, mark(alice, 0), "5", mark(bob, 1), "5")
		share := f.ask(6, counter.Question{Interval: f.n - 1, Seq: 5})
		share.Batch = 1
		assert.Equal(f, []counter.Answer{counter.NotCounted}, f.one(share).Answers)
		assert.Equal(f, []counter.Answer{counter.Counted}, f.oneAs(bob, share).Answers)
		assert.Equal(f, map[string]string{mark(alice, 0): "5", mark(bob, 1): "5", mark(alice, 1): "-5"}, f.hash(f.n-1))
	}},
	{name: "a repeated share is answered too", run: func(f *fixture) {
		f.setHash(f.n-1, mark(alice, 0), "5")
		share := f.ask(6, counter.Question{Interval: f.n - 1, Seq: 5})
		f.one(share)
		result := f.one(share)
		assert.Equal(f, counter.Repeated, result.Outcome)
		assert.Equal(f, []counter.Answer{counter.Counted}, result.Answers)
	}},
	{name: "a share that is not applied is not answered", run: func(f *fixture) {
		f.setHash(f.n-1, mark(bob, 0), "5")
		f.one(f.add(6, 0))
		question := counter.Question{Interval: f.n - 1, Seq: 5}
		f.want(counter.Used, f.one(f.ask(7, question)))
		for _, n := range []int64{f.n - 2, f.n + 1} {
			share := f.ask(8, question)
			share.Interval = n
			assert.Nil(f, f.one(share).Answers)
		}
		assert.NotContains(f, f.hash(f.n-1), mark(alice, 0), "no fence")
	}},
	// DESIGN 2, rule 5: "The script answers it, in applied and repeated calls, once M is over by the slack (a
	// quarter of the interval, at most 500 ms), else leaves it open."
	{name: "it is open until the slack is over", miniOnly: "a real server's clock cannot be set", run: func(f *fixture) {
		for _, tt := range []struct{ interval, slack time.Duration }{
			{time.Hour, 500 * time.Millisecond},
			{2 * time.Second, 500 * time.Millisecond},
			{time.Second, 250 * time.Millisecond},
			{10 * time.Millisecond, 3 * time.Millisecond}, // 2.5, in whole milliseconds
		} {
			f.interval = tt.interval
			start := time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC)
			for after, want := range map[time.Duration]counter.Answer{
				tt.slack - time.Millisecond: counter.StillOpen,
				tt.slack:                    counter.NotCounted,
			} {
				f.setTime(start.Add(after))
				f.n = f.running()
				f.name = tt.interval.String() + after.String()
				result := f.one(f.ask(6, counter.Question{Interval: f.n - 1, Seq: 5}))
				assert.Equal(f, []counter.Answer{want}, result.Answers, f.name)
			}
		}
	}},
}
