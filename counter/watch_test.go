package counter

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calls are those that a watch made.
type calls struct {
	mu   sync.Mutex
	over []bool
	at   []time.Time
	seen []Total
}

func (c *calls) note(t Total, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.at, c.seen = append(c.over, over), append(c.at, time.Now()), append(c.seen, t)
}

func (c *calls) list() []bool {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]bool(nil), c.over...)
}

// API: "Watch: over once Count >= high, back once Count < low".
func TestWatchCallsOncePerCrossing(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		c := mustCounter(t, m.join(t, "alice---", 0), "c")
		var got calls
		defer c.Watch(10, 5, got.note)()
		// rate counts so many an interval, for some intervals.
		rate := func(n int64, intervals int) {
			for range intervals {
				c.Add(n)
				sleep(second)
			}
		}
		rate(9, 4)
		assert.Empty(t, got.list(), "below high")
		rate(10, 4)
		assert.Equal(t, []bool{true}, got.list())
		rate(20, 4)
		rate(6, 4)
		assert.Equal(t, []bool{true}, got.list(), "between low and high")
		rate(5, 4)
		assert.Equal(t, []bool{true}, got.list(), "at low")
		rate(4, 4)
		assert.Equal(t, []bool{true, false}, got.list())
		rate(9, 4)
		assert.Equal(t, []bool{true, false}, got.list())
		rate(10, 4)
		assert.Equal(t, []bool{true, false, true}, got.list())
		for i, over := range got.over {
			assert.Equal(t, over, got.seen[i].Count >= 10)
			assert.Equal(t, !over, got.seen[i].Count < 5)
		}
	})
}

func TestWatchSeesTheGroup(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		c := mustCounter(t, m.join(t, "alice---", 0), "c")
		var got calls
		defer c.Watch(10, 10, got.note)()
		c.Add(0)
		sleep(2 * second)
		mustCounter(t, m.join(t, "bob-----", 0.5), "c").Add(10)
		sleep(2 * second)
		assert.Equal(t, []bool{true, false}, got.list()[:2], "for an interval")
	})
}

// "It is evaluated at replies and at most every max(interval/10, 10 ms)": the
// participant's own buffer is enough to cross.
func TestWatchSeesTheBufferWithoutAnswers(t *testing.T) {
	for interval, within := range map[time.Duration]time.Duration{
		20 * time.Millisecond: 10 * time.Millisecond,
		second:                second / 10,
		20 * second:           2 * second,
	} {
		onStore(t, func(t *testing.T, _ *memStore) {
			s := stuck{make(chan struct{})}
			defer close(s.release)
			g, err := NewGroup(nil, interval, WithStore(s))
			require.NoError(t, err)
			defer g.Close()
			c := mustCounter(t, g, "c")
			var got calls
			defer c.Watch(10, 10, got.note)()
			sleep(3*within + within/2)
			added := time.Now()
			c.Add(10)
			sleep(within)
			require.Equal(t, []bool{true}, got.list())
			assert.LessOrEqual(t, got.at[0].Sub(added), within)
		})
	}
}

// "At once if already over."
func TestWatchCallsAtOnceIfOverAlready(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		c := mustCounter(t, m.join(t, "alice---", 0), "c")
		c.Add(10)
		var got calls
		began := time.Now()
		defer c.Watch(10, 0, got.note)()
		assert.Equal(t, []bool{true}, got.list())
		assert.Equal(t, began, got.at[0])
	})
}

// "A slow or panicking fn delays nothing else"; "fn runs on a goroutine of the
// watch's own, one call at a time".
func TestWatchThatIsSlowOrPanicsDelaysNothing(t *testing.T) {
	log := newLossLog()
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0, WithLogger(slog.New(log)))
		c := mustCounter(t, g, "c")
		var slow, panics, good calls
		blocked := make(chan struct{})
		defer c.Watch(10, 10, func(t Total, over bool) {
			slow.note(t, over)
			<-blocked
		})()
		defer c.Watch(10, 10, func(t Total, over bool) {
			panics.note(t, over)
			panic("a bug of the user")
		})()
		defer c.Watch(10, 10, good.note)()
		for range 5 { // over, and back
			c.Add(10)
			sleep(4 * second)
		}
		assert.Equal(t, []bool{true}, slow.list())
		assert.GreaterOrEqual(t, len(good.list()), 10)
		for i, over := range good.list() {
			assert.Equal(t, i%2 == 0, over)
		}
		assert.Equal(t, good.list(), panics.list(), "a panic ends the watch")
		assert.Len(t, panics.list(), log.msgs["callback panicked"])
		assert.Equal(t, int64(50), m.sum("c"))
		close(blocked)
	})
}

// "Stop does not wait and may be called inside fn."
func TestWatchStops(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		c := mustCounter(t, m.join(t, "alice---", 0), "c")
		var inside, outside calls
		var stop func()
		stop = c.Watch(10, 10, func(t Total, over bool) {
			inside.note(t, over)
			stop()
			stop()
		})
		running := make(chan struct{})
		stopOutside := c.Watch(10, 10, func(t Total, over bool) {
			outside.note(t, over)
			<-running
		})
		c.Add(10)
		sleep(second / 2)
		before := time.Now()
		stopOutside()
		assert.Equal(t, before, time.Now(), "it waits")
		close(running)
		for range 5 {
			sleep(4 * second)
			c.Add(10)
		}
		assert.Equal(t, []bool{true}, inside.list())
		assert.Equal(t, []bool{true}, outside.list())
	})
}

func TestWatchEndsWithItsCounterOrGroup(t *testing.T) {
	for name, end := range map[string]func(*Group, *Counter){
		"counter": func(_ *Group, c *Counter) { c.Close() },
		"group":   func(g *Group, _ *Counter) { g.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				g := m.join(t, "alice---", 0)
				c := mustCounter(t, g, "c")
				var got calls
				c.Watch(10, 10, got.note) // its goroutine would be found at the end of the bubble
				c.Add(1)
				sleep(2 * second)
				end(g, c)
				sleep(second)
				c.Add(100)
				sleep(5 * second)
				assert.Empty(t, got.list())
			})
		})
	}
}

// "Low <= high, else it panics."
func TestWatchRefusesLowAboveHigh(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *memStore, g *Group) {
		c := mustCounter(t, g, "requests")
		assert.PanicsWithValue(t, `counter: Watch of "requests" with low 11 above high 10: want low <= high`, func() {
			c.Watch(10, 11, func(Total, bool) {})
		})
		assert.NotPanics(t, func() { c.Watch(10, 10, func(Total, bool) {})() })
	})
}
