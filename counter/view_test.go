package counter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// DESIGN 2, data layout: "per counter one `counted atomic.Int64` that only Adds change, and an atomic pointer to
// the loop's last immutable {Closed, settled, awake, ...}. Buffer = counted - settled. What is in the cells, in the
// air and set aside are plain integers of the loop."
func TestBufferIsWhatWasCountedAndIsNotSettled(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0) // flushes 250 ms into a second
		c := mustCounter(t, g, "c")
		buffer := func(want int64, when string) {
			t.Helper()
			v := c.view.Load()
			assert.Equal(t, want, c.counted.Load()-v.settled, when)
			assert.Equal(t, want, c.Total().Buffer, when)
		}
		c.Add(1)
		sleep(3 * second)
		buffer(0, "confirmed")

		c.Add(4)
		buffer(4, "waiting")
		m.setFault(func(*Flush) memFault { return memFault{after: 500 * time.Millisecond} })
		sleep(400 * time.Millisecond)
		buffer(4, "in the air")
		assert.EqualValues(t, 5, m.sum("c"))
		sleep(500 * time.Millisecond)
		buffer(0, "answered")

		m.setFault(func(*Flush) memFault { return memFault{loseReply: true} })
		c.Add(8)
		sleep(second)
		buffer(8, "set aside")
		assert.EqualValues(t, 13, m.sum("c"))
		m.setFault(nil)
		sleep(3 * second)
		buffer(0, "asked back")

		m.setFault(func(*Flush) memFault { return memFault{err: errLost} })
		c.Add(16)
		sleep(2 * second)
		buffer(16, "came back")
		sleep(5 * second)
		buffer(0, "given up")
		assert.EqualValues(t, 13, m.sum("c"))
		assert.EqualValues(t, 29, c.counted.Load())
	})
}

// loseAll has no request reach the store any more.
func loseAll(m *memStore) { m.setFault(func(*Flush) memFault { return memFault{loseRequest: true} }) }

// DESIGN 1: "While it is unknown, Count is Buffer."
func TestAStaleTotalIsNotInCount(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		c.Add(100)
		for c.Total().Closed != 100 || c.Total().Buffer != 0 {
			sleep(second / 100)
		}
		assert.EqualValues(t, 100, c.Count())
		loseAll(m)
		sleep(3100 * time.Millisecond)
		assert.False(t, c.Total().Known)
		assert.Zero(t, c.Count())
	})
}

// DESIGN 1: Open is "dropped once that interval has ended".
func TestOpenEndsWithItsInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		c := mustCounter(t, g, "c")
		c.Add(100)
		for c.Total().Open != 100 {
			sleep(second / 100)
		}
		assert.EqualValues(t, 100, c.Count())
		loseAll(m)
		sleep(second)
		assert.EqualValues(t, -1, c.Total().Open)
		assert.Zero(t, c.Count())
	}, WithOpenInterval())
}
