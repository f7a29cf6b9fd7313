package counter_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/counter/internal/resptest"
)

func TestFlushReadsTheAnswer(t *testing.T) {
	applied := counter.Result{
		Outcome: counter.Applied, Time: clock, Known: true, Closed: 10, Open: 12, OpenKnown: true, Participants: 2,
		SeriesClosed: []int64{5, 0}, Answers: []counter.Answer{counter.Counted},
	}
	with := func(change func(*counter.Result)) counter.Result {
		result := applied
		change(&result)
		return result
	}
	for text, want := range map[string]counter.Result{
		"applied 10 12 0 c 2 5 0":  applied,
		"applied 10 12 0 c 2 5 -":  applied,
		"repeated 10 12 0 c 2 5 0": with(func(r *counter.Result) { r.Outcome = counter.Repeated }),
		"applied 10 12 1 c 2 5 0":  with(func(r *counter.Result) { r.First = true }),
		"applied 10 12 0 o 2 5 0":  with(func(r *counter.Result) { r.Answers = []counter.Answer{counter.StillOpen} }),
		"applied 10 12 0 n 2 5 0":  with(func(r *counter.Result) { r.Answers = []counter.Answer{counter.NotCounted} }),
		"applied 10 12 0 u 2 5 0":  with(func(r *counter.Result) { r.Answers = []counter.Answer{counter.Unknowable} }),
		"applied 10 12 0 c - 5 0":  with(func(r *counter.Result) { r.Participants = 0 }),
		"applied 10 - 0 c 2 5 0":   with(func(r *counter.Result) { r.Open, r.OpenKnown = 0, false }),
		"applied - 12 0 c": with(func(r *counter.Result) {
			r.Known, r.Closed, r.Participants, r.SeriesClosed = false, 0, 0, nil
		}),
		"applied 99999999999999999999 12 0 c 2 5 0": with(func(r *counter.Result) {
			r.Known, r.Closed, r.Participants, r.SeriesClosed = false, 0, 0, nil
		}),
		"applied -9223372036854775808 9223372036854775807 0 c 2 -5 0": with(func(r *counter.Result) {
			r.Closed, r.Open, r.SeriesClosed = math.MinInt64, math.MaxInt64, []int64{-5, 0}
		}),
		"applied 10 12 0 c 2 5 0\n1 ERR hash value is not an integer": with(func(r *counter.Result) {
			r.Failed = []counter.Failure{{Index: 1, Err: errors.New("ERR hash value is not an integer")}}
		}),
		"refused":                {Outcome: counter.Refused, Time: clock},
		"used":                   {Outcome: counter.Used, Time: clock},
		"fenced":                 {Outcome: counter.Fenced, Time: clock},
		"late":                   {Outcome: counter.Late, Time: clock},
		"failed WRONGTYPE a key": {Outcome: counter.NotApplied, Time: clock, Err: errors.New("WRONGTYPE a key")},
		"lost NOPERM a key":      {Outcome: counter.Lost, Time: clock, Err: errors.New("NOPERM a key")},
	} {
		t.Run(text, func(t *testing.T) {
			store, _ := stubbed(t, func([]string) string { return reply(text) })
			assert.Equal(t, want, flush(t, store, share())[0])
		})
	}
}

// Others panicked on a reply of another type: B49 in the cases.
func TestAMalformedAnswerIsUnknown(t *testing.T) {
	good := "applied 10 12 0 c 2 5 0"
	tests := map[string]string{
		"an int":                ":1\r\n",
		"a double":              ",3.5\r\n",
		"a boolean":             "#t\r\n",
		"a big number":          "(3492890328409238509324850943850943825024385\r\n",
		"a verbatim string":     "=15\r\ntxt:Some string\r\n",
		"nil":                   "$-1\r\n",
		"a RESP3 nil":           "_\r\n",
		"a nil array":           "*-1\r\n",
		"an empty array":        "*0\r\n",
		"a short array":         "*1\r\n" + resptest.Bulk("1800000000123456"),
		"a long array":          reply(good, good),
		"a map":                 "%1\r\n+a\r\n+b\r\n",
		"a map of arrays":       "%1\r\n*1\r\n+a\r\n+b\r\n",
		"a set":                 "~2\r\n" + resptest.Bulk("x") + resptest.Bulk(good),
		"no time":               resptest.Array(resptest.Bulk(""), resptest.Bulk(good)),
		"time zero":             resptest.Array(":0\r\n", resptest.Bulk(good)),
		"time before 1970":      resptest.Array(resptest.Bulk("-5"), resptest.Bulk(good)),
		"a nil time":            resptest.Array("$-1\r\n", resptest.Bulk(good)),
		"a double as time":      resptest.Array(",3.5\r\n", resptest.Bulk(good)),
		"an int as share":       resptest.Array(resptest.Bulk("5"), ":1\r\n"),
		"nil as share":          resptest.Array(resptest.Bulk("5"), "$-1\r\n"),
		"an array as share":     resptest.Array(resptest.Bulk("5"), resptest.Array(resptest.Bulk(good))),
		"an error as share":     resptest.Array(resptest.Bulk("5"), "-WRONGTYPE Operation\r\n"),
		"a string":              resptest.Bulk(good),
		"nothing as share":      reply(""),
		"an unknown word":       reply("ok"),
		"a word too many":       reply(good + " 7"),
		"a word too few":        reply("applied 10 12 0 c 2 5"),
		"two words too few":     reply("applied 10 12 0 c 2"),
		"no parts":              reply("applied 10 12 0 c"),
		"no answers":            reply("applied 10 12 0 - 2 5 0"),
		"too many answers":      reply("applied 10 12 0 cc 2 5 0"),
		"an unknown answer":     reply("applied 10 12 0 x 2 5 0"),
		"neither first nor not": reply("applied 10 12 2 c 2 5 0"),
		"only applied":          reply("applied"),
		"used, and more":        reply("used 1"),
		"late, and lines":       reply("late\n0 why"),
		"failure out of range":  reply(good + "\n2 why"),
		"failure below range":   reply(good + "\n-1 why"),
		"failure of nothing":    reply(good + "\nwhy"),
	}
	for name, answer := range tests {
		for _, protocol := range []int{2, 3} {
			t.Run(fmt.Sprint(name, " in RESP", protocol), func(t *testing.T) {
				server := resptest.New(func([]string) string { return answer })
				options := server.Options()
				options.Protocol = protocol
				client := redis.NewClient(options)
				defer client.Close()
				defer server.Stop()
				store, err := counter.NewStore(client)
				require.NoError(t, err)

				result := flush(t, store, share())[0]
				assert.Equal(t, counter.Unknown, result.Outcome)
				require.Error(t, result.Err)
				assert.Nil(t, result.SeriesClosed)
				assert.Nil(t, result.Answers)
				assert.Equal(t, 1, server.Calls("evalsha"))
				assert.Zero(t, server.Calls("eval"))
			})
		}
	}
}

func TestAMalformedShareHarmsNoOther(t *testing.T) {
	store, _ := stubbed(t, func([]string) string { return reply("used", "nonsense", "late") })
	results := flush(t, store, share(), share(), share())
	assert.Equal(t, counter.Used, results[0].Outcome)
	assert.Equal(t, counter.Unknown, results[1].Outcome)
	assert.Equal(t, counter.Late, results[2].Outcome)
}

func TestTimeMayBeANumber(t *testing.T) {
	store, _ := stubbed(t, func([]string) string { return resptest.Array(":5\r\n", resptest.Bulk("used")) })
	assert.Equal(t, counter.Result{Outcome: counter.Used, Time: 5}, flush(t, store, share())[0])
}
