package counter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// hangOnce keeps the next flush from coming back until the end is closed.
func hangOnce(m *memStore) (end chan struct{}) {
	end = make(chan struct{})
	hung := false
	m.setFault(func(*Flush) memFault {
		if hung {
			return memFault{}
		}
		hung = true
		return memFault{hang: end}
	})
	return end
}

// Once it crashed: nothing of a closed counter is in the air any more.
func TestACounterMayCloseWhileItsFlushHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		a, b := mustCounter(t, g, "a"), mustCounter(t, g, "b")
		a.Add(1)
		b.Add(2)
		end := hangOnce(m)
		sleep(second)
		a.Close()
		sleep(5 * second)
		close(end)
		sleep(3 * second)
		assert.Equal(t, int64(2), m.sum("b"))
		assert.Zero(t, b.Total().Buffer)
	})
}

// Once it crashed: the series of the hanging call had gone to rest.
func TestSeriesMayRestWhileACallThatReadsThemHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		for i := range 600 { // two batches
			mustCounter(t, g, "c", attribute.Int("i", i)).Add(1)
		}
		sleep(5 * second)
		end := hangOnce(m)
		grand := mustCounter(t, g, "c")
		for range 200 {
			grand.Add(1)
			sleep(second / 10)
		}
		close(end)
		sleep(3 * second)
		assert.Equal(t, int64(800), m.sum("c"))
	})
}

// As a series goes to rest, another takes its place in the batch. A late answer
// must not give the one the total of the other.
func TestALateAnswerIsForTheSeriesThatItReads(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		for i := range maxCells - 1 { // the first batch is full with them
			mustCounter(t, g, "c", attribute.Int("i", i)).Add(0)
		}
		rests, moves := mustCounter(t, g, "c", attribute.Int("i", 1000)), mustCounter(t, g, "c", attribute.Int("i", 1001))
		rests.Add(0)
		moves.Add(0)
		other, err := NewGroup(nil, second, WithStore(m), withIdentity("bob-----", 0.5))
		require.NoError(t, err)
		defer other.Close()
		flushes := 0
		m.setFault(func(f *Flush) memFault {
			if f.Participant != "alice---" {
				return memFault{}
			}
			flushes++
			if flushes == idleIntervals { // the last one that reads the series at rest
				return memFault{after: 1500 * time.Millisecond}
			}
			return memFault{loseReply: flushes > idleIntervals}
		})
		for range 140 {
			mustCounter(t, other, "c", attribute.Int("i", 1000)).Add(7)
			moves.Count()
			assert.Zero(t, moves.Peek().Total.Closed)
			sleep(second / 10)
		}
		require.False(t, rests.view.Load().awake)
		require.Zero(t, moves.cell.index, "it has not moved")
	}, withIdentity("alice---", 0))
}

// "It is unknown [...] when nothing has refreshed it for two intervals" (section 1):
// an answer that took longer refreshes nothing.
func TestALateAnswerOfLongAgoIsNoNews(t *testing.T) {
	for _, late := range []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *memStore, g *Group) {
				c := mustCounter(t, g, "c")
				c.Add(7)
				sleep(4 * second)
				flushes := 0
				m.setFault(func(*Flush) memFault {
					if flushes++; flushes == 1 {
						return memFault{after: late}
					}
					return memFault{loseReply: true}
				})
				known := 0
				for range 60 {
					sleep(second / 10)
					if c.Total().Known {
						known++
					}
				}
				// The last answer, at 3.575 s, holds for two intervals, and so does the late one.
				want := 15
				if late < 2*second {
					want += 20
				}
				assert.InDelta(t, want, known, 1)
			}, withIdentity("alice---", 0.5))
		})
	}
}
