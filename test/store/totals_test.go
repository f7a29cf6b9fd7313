package store

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
)

// totals are the cases of what is added and read.
var totals = []scriptCase{
	{name: "an interval that nobody counted in is not known", run: func(f *fixture) {
		share := f.add(1, 7)
		share.Series, share.Amounts = []string{"x=1"}, []int64{7}
		f.wantTotals(counter.Result{Outcome: counter.Applied, Open: 7, OpenKnown: true}, f.one(share))
	}},
	{name: "an interval with zero is known", run: func(f *fixture) {
		f.setTotal(f.n-1, "0")
		f.wantTotals(counter.Result{Outcome: counter.Applied, Known: true, Open: 7, OpenKnown: true}, f.one(f.add(1, 7)))
	}},
	{name: "series are added, and read in their order", run: func(f *fixture) {
		f.setTotal(f.n-1, "30")
		f.setHash(f.n-1, "#", "4", "c=3", "13", "a=1", "11")
		share := f.add(1, 10)
		share.Series, share.Amounts = []string{"a=1", "b=2", "c=3"}, []int64{1, 2, 3}
		f.wantTotals(counter.Result{
			Outcome: counter.Applied, Known: true, Closed: 30, Participants: 4, SeriesClosed: []int64{11, 0, 13},
			Open: 10, OpenKnown: true,
		}, f.one(share))
		assert.Equal(f, "10", f.total(f.n))
		assert.Equal(f, map[string]string{"#": "1", mark(alice, 0): "1", "a=1": "1", "b=2": "2", "c=3": "3"}, f.hash(f.n))
	}},
	// DESIGN 2, rule 7: "Series with amount 0 are only read."
	{name: "series of zero are only read", run: func(f *fixture) {
		f.setTotal(f.n-1, "30")
		f.setHash(f.n-1, "a=1", "11")
		share := f.add(1, 0)
		share.Series, share.Amounts = []string{"a=1"}, []int64{0}
		assert.Equal(f, []int64{11}, f.one(share).SeriesClosed)
		assert.NotContains(f, f.hash(f.n), "a=1")
	}},
	{name: "participants add up", run: func(f *fixture) {
		for i, participant := range []string{alice, bob} {
			share := f.add(1, 7)
			share.Series, share.Amounts = []string{"a=1"}, []int64{5}
			assert.EqualValues(f, 7*(i+1), f.oneAs(participant, share).Open)
		}
		assert.Equal(f, "14", f.total(f.n))
		assert.Equal(f, "10", f.hash(f.n)["a=1"])
		assert.Equal(f, "2", f.hash(f.n)["#"])
	}},
	{name: "only the first batch counts as a participant", run: func(f *fixture) {
		share := f.add(1, 7)
		share.Batch = 1
		f.one(share)
		assert.NotContains(f, f.hash(f.n), "#")
		f.setTotal(f.n-1, "1")
		f.setHash(f.n-1, "#", "2")
		share.Seq, share.Batch = 2, 2
		assert.EqualValues(f, 2, f.one(share).Participants, "every batch is told")
	}},
	{name: "a total of a participant without a hash is known", run: func(f *fixture) {
		f.setTotal(f.n-1, "30") // as the JavaScript library leaves it
		share := f.add(1, 7)
		share.Series, share.Amounts = []string{"a=1"}, []int64{5}
		f.wantTotals(counter.Result{
			Outcome: counter.Applied, Known: true, Closed: 30, SeriesClosed: []int64{0}, Open: 7, OpenKnown: true,
		}, f.one(share))
	}},
	{name: "integers are exact to the last digit", run: func(f *fixture) {
		for i, n := range []int64{1<<53 + 1, 100000000000000001, maxInt, minInt, -(1<<53 + 1)} {
			name := f.name
			f.name = fmt.Sprint("exact", i)
			f.setTotal(f.n-1, itoa(n))
			f.setHash(f.n-1, "#", itoa(n), "a=1", itoa(n))
			share := f.add(1, n)
			share.Series, share.Amounts = []string{"a=1"}, []int64{n}
			f.wantTotals(counter.Result{
				Outcome: counter.Applied, Known: true, Closed: n, Participants: n, SeriesClosed: []int64{n}, Open: n, OpenKnown: true,
			}, f.one(share))
			assert.Equal(f, itoa(n), f.total(f.n))
			assert.Equal(f, itoa(n), f.hash(f.n)["a=1"])
			f.name = name
		}
	}},
	{name: "sequence numbers are exact below 2^53", run: func(f *fixture) {
		const seq = 1<<53 - 1
		share := f.add(seq, 7)
		f.one(share)
		assert.Equal(f, itoa(seq), f.hash(f.n)[mark(alice, 0)])
		assert.Equal(f, counter.Repeated, f.one(share).Outcome)
		share.Seq--
		f.want(counter.Used, f.one(share))
		share.Interval--
		f.want(counter.Refused, f.one(share))
		assert.Equal(f, itoa(1-seq), f.hash(f.n - 1)[mark(alice, 0)])
	}},
	{name: "amounts may be negative, and so may totals", run: func(f *fixture) {
		f.setTotal(f.n-1, "-30")
		f.setHash(f.n-1, "a=1", "-11")
		share := f.add(1, -7)
		share.Series, share.Amounts = []string{"a=1", "b=2"}, []int64{-9, 2}
		f.wantTotals(counter.Result{
			Outcome: counter.Applied, Known: true, Closed: -30, SeriesClosed: []int64{-11, 0}, Open: -7, OpenKnown: true,
		}, f.one(share))
		assert.Equal(f, "-7", f.total(f.n))
		assert.Equal(f, "-9", f.hash(f.n)["a=1"])
		assert.Equal(f, "2", f.hash(f.n)["b=2"])
	}},
	{name: "attribute sets may hold anything", run: func(f *fixture) {
		series := []string{"", " ", "\n", "a=\"b c\"", "\x00\xff", "#1", "ü", strings.Repeat("x", 1000), "1 2"}
		f.setTotal(f.n-1, "1")
		share := f.add(1, 0)
		for i, field := range series {
			f.setHash(f.n-1, field, itoa(int64(i+1)))
			share.Series = append(share.Series, field)
			share.Amounts = append(share.Amounts, int64(i+1))
		}
		result := f.one(share)
		require.Equal(f, counter.Applied, result.Outcome)
		assert.Equal(f, share.Amounts, result.SeriesClosed)
		for i, field := range series {
			assert.Equal(f, itoa(int64(i+1)), f.hash(f.n)[field])
		}
	}},
	{name: "names and prefixes may hold anything", run: func(f *fixture) {
		for _, name := range []string{"a b", "a}b", "{a", "a{b}c", "ü", strings.Repeat("x", 255)} {
			f.name = name
			assert.Equal(f, counter.Applied, f.one(f.add(1, 7)).Outcome, name)
			assert.Equal(f, "7", f.total(f.n), name)
		}
	}},
	{name: "a total that was rolled back is shown as it is", run: func(f *fixture) {
		assert.EqualValues(f, 10, f.one(f.add(1, 10)).Open)
		f.setTotal(f.n, "7") // a failover lost a write
		assert.EqualValues(f, 8, f.oneAs(bob, f.add(1, 1)).Open)
	}},
	{name: "one call holds many counters", run: func(f *fixture) {
		var shares []counter.Share
		for i := range int64(50) {
			share := f.add(i+1, i)
			share.Name = fmt.Sprint(i)
			share.Mode = counter.Mode(i % 3) // some are ahead, some read
			share.Series, share.Amounts = []string{"a=1", "b=2"}[:i%3], []int64{i, 0}[:i%3]
			if i%5 == 0 {
				share.Questions = []counter.Question{{Interval: f.n - 1, Seq: 1}, {Interval: f.n - 2, Seq: 1}}[:1+i%2]
			}
			shares = append(shares, share)
		}
		results := f.flush(shares...)
		for i, result := range results {
			require.Equal(f, counter.Applied, result.Outcome, "%d: %v", i, result.Err)
			assert.Equal(f, results[0].Time, result.Time, "one reading of the clock")
			f.name = fmt.Sprint(i)
			if shares[i].Mode == counter.ModeRead {
				assert.False(f, result.OpenKnown)
				assert.Empty(f, f.total(f.n))
				continue
			}
			assert.EqualValues(f, i, result.Open)
			assert.Equal(f, fmt.Sprint(i), f.total(f.n))
			assert.Len(f, result.Answers, len(shares[i].Questions))
		}
	}},
	{name: "one counter may have several batches in a flush", run: func(f *fixture) {
		a, b := f.add(1, 7), f.add(2, 8)
		a.Series, a.Amounts = []string{"a=1"}, []int64{7}
		b.Series, b.Amounts, b.Batch = []string{"b=2"}, []int64{8}, 1
		results := f.flush(a, b)
		assert.EqualValues(f, 7, results[0].Open)
		assert.EqualValues(f, 15, results[1].Open)
		assert.Equal(f, map[string]string{
			"#": "1", mark(alice, 0): "1", mark(alice, 1): "2", "a=1": "7", "b=2": "8",
		}, f.hash(f.n))
	}},
	{name: "a share of 500 series", run: func(f *fixture) {
		share := f.add(1, 0)
		f.setTotal(f.n-1, "1")
		var pairs []string
		for i := range int64(500) {
			share.Series = append(share.Series, fmt.Sprintf("http.route=%q", fmt.Sprint("/", i)))
			share.Amounts = append(share.Amounts, i+1)
			share.Amount += i + 1
			pairs = append(pairs, share.Series[i], itoa(i+1))
		}
		f.setHash(f.n-1, pairs...)
		result := f.one(share)
		require.Equal(f, counter.Applied, result.Outcome, result.Err)
		assert.Equal(f, share.Amounts, result.SeriesClosed)
		assert.Equal(f, itoa(share.Amount), f.total(f.n))
		assert.Len(f, f.hash(f.n), 500+2)
	}},
	{name: "a flush of more than one call", run: func(f *fixture) {
		var shares []counter.Share
		for i := range int64(1200) {
			share := f.add(i+1, i)
			share.Name = fmt.Sprint(i)
			shares = append(shares, share)
		}
		for i, result := range f.flush(shares...) {
			require.Equal(f, counter.Applied, result.Outcome, result.Err)
			assert.EqualValues(f, i, result.Open)
		}
	}},
	{name: "an empty flush", run: func(f *fixture) {
		assert.Empty(f, f.flush())
	}},
}
