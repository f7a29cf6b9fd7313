package counter

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// DESIGN 2, rule 11: "Server clock back. Up to one interval: declarations are refused or used until N passes
// the last one."
func TestRule11_AfterASmallStepBackDeclarationsWait(t *testing.T) {
	for _, back := range []time.Duration{time.Millisecond, 400 * time.Millisecond, 700 * time.Millisecond, second} {
		for _, at := range []time.Duration{0, 300 * time.Millisecond, 600 * time.Millisecond} {
			t.Run(fmt.Sprint(back, " at ", at), func(t *testing.T) {
				log := newLossLog()
				onStore(t, func(t *testing.T, m *memStore) {
					c := mustCounter(t, m.join(t, "alice---", 0, WithLogger(slog.New(log))), "c")
					c.Add(1)
					sleep(3*second + at)
					last := m.ran()[len(m.ran())-1].Interval
					from := len(m.ran())
					m.step(-back)
					c.Add(5)
					sleep(4 * second)
					applied := last
					for _, r := range m.ran()[from:] {
						switch {
						case r.Mode == ModeRead:
						case r.outcome == Applied:
							assert.Equal(t, applied+1, r.Interval, "intervals follow on each other across the step")
							applied = r.Interval
						default:
							assert.Contains(t, []Outcome{Refused, Used}, r.outcome)
							assert.LessOrEqual(t, r.at.interval(second), last, "N has passed the last one")
						}
					}
					assert.GreaterOrEqual(t, applied, last+2)
					assert.Equal(t, int64(6), m.sum("c"))
					assert.Empty(t, log.losses)
				})
			})
		}
	}
}

// DESIGN 2, rule 12: "Where only one of a group should report a total, the first in N + 1 reports that of N: no
// lease, no leader."
func TestRule12_OneOfTheGroupReportsEachTotal(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		var mu sync.Mutex
		reported := map[int64][]int64{}
		var counters []*Counter
		for i := range 4 {
			g := m.join(t, fmt.Sprint("member-", i), float64(i)/4)
			counters = append(counters, mustCounter(t, g, "c"))
			if i == 3 {
				continue // it does not report, and takes nobody's turn
			}
			g.OnTick(func(readings []Reading) {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range readings {
					if r.Total.Known && r.Total.First {
						reported[r.Total.Interval] = append(reported[r.Total.Interval], r.Total.Closed)
					}
				}
			})
		}
		began := m.now().interval(second)
		for i := range 200 {
			for k, c := range counters {
				c.Add(int64(k + 1))
				if i == 100 && k == 0 {
					c.group.Close() // the first one so far: another takes its place
				}
			}
			sleep(100 * time.Millisecond)
		}
		ended := m.now().interval(second)
		totals := m.byInterval("c")
		for n := began + 1; n < ended-1; n++ {
			require.Len(t, reported[n], 1, "interval %d of %d to %d", n, began, ended)
			assert.Equal(t, totals[n], reported[n][0])
		}
	})
}
