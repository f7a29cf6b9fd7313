package store

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
)

const wraps = "miniredis wraps around where Redis answers with an error"

// errorCases are the cases of DESIGN, section 2, rule 3: all or nothing per
// counter.
var errorCases = []scriptCase{
	{name: "a hash of the wrong type: nothing changes", run: func(f *fixture) {
		f.setList(f.hashKey(f.n))
		f.wantFailed(counter.NotApplied, "WRONGTYPE", f.one(f.add(1, 7)))
		assert.Empty(f, f.total(f.n))
	}},
	{name: "a mark that is none: nothing changes", run: func(f *fixture) {
		f.setHash(f.n, mark(alice, 0), "x")
		f.wantFailed(counter.NotApplied, "the mark is not a number", f.one(f.add(1, 7)))
		assert.Empty(f, f.total(f.n))
		assert.Equal(f, map[string]string{mark(alice, 0): "x"}, f.hash(f.n))
	}},
	{name: "a total of the wrong type: nothing changes", run: func(f *fixture) {
		f.setList(f.totalKey(f.n))
		f.wantFailed(counter.NotApplied, "WRONGTYPE", f.one(f.add(1, 7)))
		assert.Empty(f, f.hash(f.n))
	}},
	{name: "a total that is no integer: nothing changes", run: func(f *fixture) {
		f.setTotal(f.n, "1.5")
		f.wantFailed(counter.NotApplied, "not an integer", f.one(f.add(1, 7)))
		assert.Equal(f, "1.5", f.total(f.n))
		assert.Empty(f, f.hash(f.n))
	}},
	{name: "a total that would overflow: nothing changes", realOnly: wraps, run: func(f *fixture) {
		for total, amount := range map[int64]int64{maxInt - 6: 7, minInt + 6: -7} {
			f.setTotal(f.n, itoa(total))
			f.wantFailed(counter.NotApplied, "overflow", f.one(f.add(1, amount)))
			assert.Equal(f, itoa(total), f.total(f.n))
			assert.Empty(f, f.hash(f.n))
			assert.Equal(f, counter.Applied, f.one(f.add(1, amount-amount/7)).Outcome, "its interval is still free")
			require.NoError(f, f.rdb.Del(f.Context(), f.hashKey(f.n)).Err())
		}
	}},
	{name: "a series that is no integer is left out", run: func(f *fixture) {
		f.setHash(f.n, "b=2", "x")
		share := f.add(1, 10)
		share.Series, share.Amounts = []string{"a=1", "b=2", "c=3"}, []int64{1, 2, 3}
		result := f.one(share)
		assert.Equal(f, counter.Applied, result.Outcome)
		require.Len(f, result.Failed, 1)
		assert.Equal(f, 1, result.Failed[0].Index)
		assert.ErrorContains(f, result.Failed[0].Err, "not an integer")
		assert.EqualValues(f, 8, result.Open)
		assert.Equal(f, "8", f.total(f.n))
		assert.Equal(f, map[string]string{
			"#": "1", mark(alice, 0): "1", "a=1": "1", "b=2": "x", "c=3": "3",
		}, f.hash(f.n))
	}},
	{name: "a series that would overflow is left out", realOnly: wraps, run: func(f *fixture) {
		f.setHash(f.n, "a=1", itoa(maxInt), "b=2", itoa(minInt))
		share := f.add(1, 10)
		share.Series, share.Amounts = []string{"a=1", "b=2", "c=3"}, []int64{20, -13, 3}
		result := f.one(share)
		assert.Equal(f, counter.Applied, result.Outcome)
		require.Len(f, result.Failed, 2)
		assert.Equal(f, 0, result.Failed[0].Index)
		assert.Equal(f, 1, result.Failed[1].Index)
		assert.ErrorContains(f, result.Failed[1].Err, "overflow")
		assert.EqualValues(f, 3, result.Open)
		assert.Equal(f, itoa(maxInt), f.hash(f.n)["a=1"])
		assert.Equal(f, itoa(minInt), f.hash(f.n)["b=2"])
	}},
	{name: "what is left out is exact to the last digit", run: func(f *fixture) {
		f.setHash(f.n, "a=1", "x", "b=2", "x")
		share := f.add(1, 5)
		share.Series, share.Amounts = []string{"a=1", "b=2"}, []int64{1<<53 + 1, -(1<<54 + 3)}
		share.Amount += share.Amounts[0] + share.Amounts[1]
		result := f.one(share)
		assert.Equal(f, counter.Applied, result.Outcome)
		assert.Len(f, result.Failed, 2)
		assert.EqualValues(f, 5, result.Open)
	}},
	{name: "a series that cannot be taken out of the total again is lost", realOnly: wraps, run: func(f *fixture) {
		f.setHash(f.n, "a=1", itoa(minInt))
		share := f.add(1, maxInt)
		share.Series, share.Amounts = []string{"a=1"}, []int64{-1} // the total cannot take one more
		f.wantFailed(counter.Lost, "overflow", f.one(share))
	}},
	// DESIGN 2, rule 3: "One counter's error leaves the other counters of the call alone."
	{name: "one counter's error leaves the others alone", run: func(f *fixture) {
		var shares []counter.Share
		for i, name := range []string{"a", "b", "c"} {
			share := f.add(int64(i+1), 7)
			share.Name = name
			shares = append(shares, share)
		}
		f.name = "b"
		f.setList(f.totalKey(f.n))
		results := f.flush(shares...)
		assert.Equal(f, counter.Applied, results[0].Outcome)
		f.wantFailed(counter.NotApplied, "WRONGTYPE", results[1])
		assert.Equal(f, counter.Applied, results[2].Outcome)
	}},
	{name: "a closed total that is no integer is not known", run: func(f *fixture) {
		for i, value := range []string{"x", "1.5", "", " 1", "1 2", "0x10", "99999999999999999999"} {
			f.setTotal(f.n-1, value)
			share := f.add(int64(i+1), 0)
			share.Mode, share.Series, share.Amounts = counter.ModeRead, []string{"a=1"}, []int64{0}
			result := f.one(share)
			assert.Equal(f, counter.Applied, result.Outcome, value)
			assert.False(f, result.Known, value)
			assert.Nil(f, result.SeriesClosed, value)
		}
	}},
	{name: "a closed total of the wrong type is not known", run: func(f *fixture) {
		f.setList(f.totalKey(f.n - 1))
		f.wantTotals(counter.Result{Outcome: counter.Applied, Open: 7, OpenKnown: true}, f.one(f.add(1, 7)))
	}},
	{name: "closed parts that cannot be read are zero", run: func(f *fixture) {
		f.setTotal(f.n-1, "5")
		f.setList(f.hashKey(f.n - 1))
		share := f.add(1, 7)
		share.Series, share.Amounts = []string{"a=1"}, []int64{7}
		want := counter.Result{
			Outcome: counter.Applied, Known: true, Closed: 5, SeriesClosed: []int64{0}, Open: 7, OpenKnown: true,
		}
		f.wantTotals(want, f.one(share))

		require.NoError(f, f.rdb.Del(f.Context(), f.hashKey(f.n-1)).Err())
		f.setHash(f.n-1, "#", "many", "a=1", "1 2")
		want.Outcome = counter.Repeated
		f.wantTotals(want, f.one(share))
	}},
	{name: "participants that cannot be counted do not hinder", run: func(f *fixture) {
		f.setHash(f.n, "#", "many")
		assert.Equal(f, counter.Applied, f.one(f.add(1, 7)).Outcome)
		assert.Equal(f, "many", f.hash(f.n)["#"])
	}},
}
