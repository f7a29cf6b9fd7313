package counter_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
)

// The call is what flush.lua describes.
func TestFlushOnTheWire(t *testing.T) {
	var got []string
	store, _ := stubbed(t, func(args []string) string {
		got = args
		return reply("used", "used", "used", "used")
	})
	ahead, read, first := share(), share(), share()
	ahead.Mode, ahead.Series, ahead.Amounts, ahead.Amount = counter.ModeAhead, nil, nil, math.MinInt64
	ahead.Questions = []counter.Question{{Interval: 98, Seq: 1}, {Interval: 97, Seq: 2}}
	read.Mode, read.Questions, read.Name = counter.ModeRead, nil, "m"
	first.AskFirst, first.Questions, first.Batch = true, nil, 2
	flush(t, store, share(), ahead, read, first)

	require.NotEmpty(t, got)
	assert.Equal(t, "evalsha", got[0])
	assert.Equal(t, []string{
		"21",
		"p:{n}:100", "p:{n}:100:by", "p:{n}:99", "p:{n}:99:by", "p:{n}:98:by",
		"p:{n}:100", "p:{n}:100:by", "p:{n}:99", "p:{n}:99:by", "p:{n}:98", "p:{n}:98:by", "p:{n}:98:by", "p:{n}:97:by",
		"p:{m}:100", "p:{m}:100:by", "p:{m}:99", "p:{m}:99:by",
		"p:{n}:100", "p:{n}:100:by", "p:{n}:99", "p:{n}:99:by",

		"1000", "alice--1",
		"add 0 100 3 7 2 1", "3 4", "a=1", "b=2", "98 1",
		"ahead 0 100 3 -9223372036854775808 0 2", "98 1 97 2",
		"read 0 100 3 7 2 0", "3 4", "a=1", "b=2",
		"first 2 100 3 7 2 0", "3 4", "a=1", "b=2",
	}, got[2:])
}

func TestCallsAreBounded(t *testing.T) {
	var calls []int
	store, _ := stubbed(t, func(args []string) string {
		cells := 0
		for _, arg := range args {
			if strings.HasPrefix(arg, "add ") {
				cells++
			}
		}
		calls = append(calls, cells)
		answers := make([]string, cells)
		for i := range answers {
			answers[i] = "used"
		}
		return reply(answers...)
	})
	one := func(i int, series ...string) counter.Share {
		return counter.Share{Name: fmt.Sprint(i), Interval: 100, Seq: 3, Series: series, Amounts: make([]int64, len(series))}
	}
	var many, long []counter.Share
	for i := range 1001 {
		many = append(many, one(i%10))
	}
	for i := range 9 {
		long = append(long, one(i, strings.Repeat("x", 10_000)))
	}
	for name, tt := range map[string]struct {
		shares []counter.Share
		want   []int
	}{
		"by counters":      {many, []int{500, 500, 1}},
		"by series":        {append(wide(2), one(1), one(2)), []int{1, 1, 2}},
		"by bytes":         {long, []int{6, 3}},
		"all in one":       {many[:500], []int{500}},
		"more than a call": {[]counter.Share{one(1), one(2, make([]string, 600)...), one(3)}, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			for _, result := range flush(t, store, tt.shares...) {
				require.Equal(t, counter.Used, result.Outcome)
			}
			assert.Equal(t, tt.want, calls)
		})
	}
}
