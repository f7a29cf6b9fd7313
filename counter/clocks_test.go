package counter

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Where the participants' clocks stand says nothing: an interval is the server's. And
// a server's clock that steps back has nobody add to an interval again.
func TestB28_TheServersClockCutsTheIntervals(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -10 * second, -time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				m.step(-ahead)
				a, b := mustCounter(t, m.join(t, "alice---", 0), "c"), mustCounter(t, m.join(t, "bob-----", 0.5), "c")
				for range 5 {
					a.Add(1)
					b.Add(1)
					sleep(second)
				}
				sleep(700 * time.Millisecond) // both have flushed in this interval
				closed := a.Total()
				assert.True(t, closed.Known)
				assert.EqualValues(t, 2, closed.Closed)
				assert.EqualValues(t, 2, closed.Participants)
				assert.Equal(t, closed.Interval, b.Total().Interval)
				assert.EqualValues(t, 2, b.Total().Closed)
				assert.Equal(t, m.now().interval(second)-1, closed.Interval)
				assert.EqualValues(t, 2, m.byInterval("c")[closed.Interval])

				m.step(-2 * second)
				for range 10 {
					a.Add(1)
					b.Add(1)
					sleep(second)
				}
				seen := map[string]bool{}
				for _, r := range m.ran() {
					if r.outcome == Applied && r.Mode != ModeRead {
						key := fmt.Sprint(r.participant, r.Interval)
						assert.False(t, seen[key], "%s added twice", key)
						seen[key] = true
					}
				}
				assert.LessOrEqual(t, m.sum("c"), int64(30))
			})
		})
	}
}
