package group

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/jsclient"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// DESIGN, section 3: "A mixed group must agree on the totals."
func TestJavaScriptParticipantsAgreeOnEveryClosedTotal(t *testing.T) {
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	rdb := redistest.Client(t)
	r := follow(t, rdb, prefix, "requests", interval)
	p := join(t, 2, func() redis.UniversalClient { return rdb }, prefix, "requests", interval)
	js := jsclient.Start(t, rdb, prefix, "requests", interval)

	ours := map[int64]counter.Total{}
	stop := p.groups[0].OnTick(func(readings []counter.Reading) {
		for _, reading := range readings {
			if reading.Total.Known {
				ours[reading.Total.Interval] = reading.Total
			}
		}
	})
	var jsAdded int64
	until := time.Now().Add(15 * interval)
	p.count(t, func() bool {
		js.Add(3)
		jsAdded += 3
		return time.Now().After(until)
	})
	p.flush(t)
	stop()
	p.groups[0].Close()
	time.Sleep(2 * interval)
	js.Stop()
	require.NoError(t, js.Err())

	totals, sum := r.finish(t)
	assert.Equal(t, p.added+js.Landed(), sum)
	assert.LessOrEqual(t, js.Landed(), jsAdded)
	require.NotEmpty(t, ours)
	for n, total := range ours {
		assert.Equal(t, totals[n], total.Closed, "interval %d, as ours knows it", n)
		assert.LessOrEqual(t, total.Participants, int64(2), "participants of the JavaScript protocol are not among them")
	}
	agreed := 0
	for n, closed := range js.Closed() {
		assert.Equal(t, totals[n], closed, "interval %d, as the JavaScript participant knows it", n)
		if _, both := ours[n]; both {
			agreed++
		}
	}
	assert.GreaterOrEqual(t, agreed, 5, "intervals that both know")
}
