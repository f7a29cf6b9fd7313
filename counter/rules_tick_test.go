package counter

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gauge measures how many flushes are out at a time.
type gauge struct {
	*memStore
	out, most atomic.Int64
}

func (s *gauge) Flush(ctx context.Context, f *Flush) []Result {
	s.most.Store(max(s.most.Load(), s.out.Add(1)))
	defer s.out.Add(-1)
	return s.memStore.Flush(ctx, f)
}

// DESIGN 2, rule 6: "One flush in the air per server."
func TestRule6_OneFlushInTheAir(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		s := &gauge{memStore: m}
		m.setFault(func(*Flush) memFault { return memFault{before: 400 * time.Millisecond, after: 400 * time.Millisecond} })
		g := m.join(t, "alice---", 0.5, WithStore(s))
		for i := range 20 {
			c := mustCounter(t, g, fmt.Sprint("c", i%5))
			for range 10 {
				c.Add(1)
				go func() { _ = c.Flush(t.Context()) }()
				sleep(37 * time.Millisecond)
			}
		}
		require.NoError(t, g.Flush(t.Context()))
		assert.EqualValues(t, 1, s.most.Load())
		assert.Equal(t, int64(40), m.sum("c0"))
	})
}

// DESIGN 2, rule 6: "The reply's server time is steered to a phase of the participant's own, in
// [slack, 0.9 interval), spread over participants, measured with the local monotonic clock and corrected
// by the difference each time."
func TestRule6_FlushesRunAtThePhaseOfTheParticipant(t *testing.T) {
	const way, home = 40 * time.Millisecond, 20 * time.Millisecond
	onStore(t, func(t *testing.T, m *memStore) {
		m.step(12345678 * time.Microsecond) // the server's clock has nothing to do with the local one
		out := way
		m.setFault(func(*Flush) memFault {
			m.skew += time.Millisecond // and runs faster by a part in a thousand and more
			return memFault{before: out, after: home}
		})
		const participants = 5
		for range participants {
			g, err := NewGroup(nil, second, WithStore(m))
			require.NoError(t, err)
			t.Cleanup(g.Close)
			mustCounter(t, g, "c").Add(1)
			sleep(170 * time.Millisecond)
		}
		// phases returns where in an interval each participant's flushes ran.
		phases := func(from int) map[string][]time.Duration {
			at := map[string][]time.Duration{}
			for _, r := range m.ran()[from:] {
				at[r.participant] = append(at[r.participant], time.Duration(r.at%serverSecond)*time.Microsecond)
			}
			return at
		}
		sleep(4 * second) // all have come to their phases
		from := len(m.ran())
		sleep(60 * second)
		seen := map[time.Duration]bool{}
		own := map[string]time.Duration{}
		for id, at := range phases(from) {
			own[id] = at[0]
			seen[at[0].Round(20*time.Millisecond)] = true
			for _, p := range at {
				assert.GreaterOrEqual(t, p, slack(second))
				assert.Less(t, p, second*9/10+2*participants*time.Millisecond)
				assert.InDelta(t, own[id], p, float64(2*participants*time.Millisecond), "it drifts")
			}
		}
		assert.Len(t, own, participants)
		assert.Greater(t, len(seen), 1, "not spread: %v", own)

		// A way that gets longer is off once by the difference, and no more.
		m.mu.Lock()
		out += 50 * time.Millisecond
		from = len(m.runs)
		m.mu.Unlock()
		sleep(3 * second)
		for id, at := range phases(from) {
			first := slices.IndexFunc(at, func(p time.Duration) bool { return p > own[id]+30*time.Millisecond })
			require.GreaterOrEqual(t, first, 0)
			assert.InDelta(t, own[id], at[first+1], float64(2*participants*time.Millisecond))
		}
	})
}

// DESIGN 2, rule 6: "At most one immediate re-declaration after a refusal, then the phase again."
func TestRule6_OneImmediateRedeclaration(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0)
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3100 * time.Millisecond)
		from, steps := len(m.ran()), 0
		m.setFault(func(*Flush) memFault { // wherever a flush goes, the server has gone on
			if steps++; steps <= 4 {
				m.skew += 1300 * time.Millisecond
			}
			return memFault{}
		})
		c.Add(5)
		sleep(5 * second)
		runs := m.ran()[from:]
		require.Greater(t, len(runs), 5)
		for i, r := range runs[:4] {
			require.Equal(t, Refused, r.outcome)
			if i%2 == 1 { // at once
				assert.Equal(t, runs[i-1].local, r.local)
				assert.NotEqual(t, runs[i-1].Interval, r.Interval)
				continue
			}
			// The phase again: without its step it would have been there.
			assert.Equal(t, slack(second).Microseconds(), int64(r.at-1_300_000)%int64(serverSecond))
		}
		assert.Equal(t, Applied, runs[4].outcome)
		assert.Equal(t, int64(6), m.sum("c"))
	})
}

// stuck is a store whose calls do not come back, whatever their contexts.
type stuck struct{ release chan struct{} }

func (s stuck) Server(context.Context, string, string) (string, error) {
	<-s.release
	return "", errLost
}

func (s stuck) Probe(context.Context, string, string, string) (ServerTime, error) {
	<-s.release
	return 0, errLost
}

func (s stuck) Flush(_ context.Context, f *Flush) []Result {
	<-s.release
	return make([]Result, len(f.Shares))
}

// hangs are stores of which one call does not come back.
var hangs = map[string]func(m *memStore, s stuck) Store{
	"lookup": func(_ *memStore, s stuck) Store { return s },
	"probe": func(m *memStore, s stuck) Store {
		return struct {
			finder
			prober
			flusher
		}{m, s, s}
	},
	"flush": func(m *memStore, s stuck) Store {
		return struct {
			finder
			prober
			flusher
		}{m, m, s}
	},
}

// DESIGN 2, rule 6: "The loop owns all state; each store call runs in a goroutine of its own and answers by
// channel (go-redis does not obey a cancelled context while it reads, and its ReadTimeout is seconds)."
func TestRule6_TheLoopNeverWaitsForTheStore(t *testing.T) {
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				s := stuck{make(chan struct{})}
				defer close(s.release)
				g := m.join(t, "alice---", 0, WithStore(hang(m, s)))
				a, b := mustCounter(t, g, "a"), mustCounter(t, g, "b")
				a.Add(1)
				for range 5 {
					b.Add(1)
					sleep(second)
					before := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					require.ErrorIs(t, b.Flush(ctx), context.DeadlineExceeded)
					cancel()
					assert.Equal(t, 10*time.Millisecond, time.Since(before), "the loop took no notice")
				}
				before := time.Now()
				a.Close()
				g.Close()
				assert.Equal(t, before, time.Now(), "closing waits for a call")
			})
		})
	}
}

// The parts of a [Store], to put one together.
type (
	finder interface {
		Server(context.Context, string, string) (string, error)
	}
	prober interface {
		Probe(context.Context, string, string, string) (ServerTime, error)
	}
	flusher interface {
		Flush(context.Context, *Flush) []Result
	}
)

// DESIGN 2, rule 6: "A call without an answer after one interval (at least 250 ms) is set aside and the loop
// goes on; at most one such abandoned call may still hang, then the lane waits for it."
func TestRule6_OneCallMayHang(t *testing.T) {
	for interval, patience := range map[time.Duration]time.Duration{
		50 * time.Millisecond: 250 * time.Millisecond,
		second:                second,
		3 * second:            3 * second,
	} {
		t.Run(interval.String(), func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				g, err := NewGroup(nil, interval, WithStore(m), withIdentity("alice---", 0))
				require.NoError(t, err)
				t.Cleanup(g.Close)
				c := mustCounter(t, g, "c")
				var left []time.Time
				var hang []chan struct{}
				m.setFault(func(*Flush) memFault {
					left = append(left, time.Now())
					if len(left) > 2 {
						return memFault{}
					}
					hang = append(hang, make(chan struct{}))
					return memFault{hang: hang[len(hang)-1]}
				})
				c.Add(5)
				sleep(slack(interval)) // its phase
				require.Len(t, left, 1)
				sleep(patience - time.Millisecond)
				assert.Len(t, left, 1)
				assert.EqualValues(t, 5, c.Total().Buffer)
				sleep(interval + 2*time.Millisecond)
				require.Len(t, left, 2, "the loop does not go on")

				c.Add(7)
				sleep(20*interval + patience)
				require.Len(t, left, 2, "two calls hang already")
				close(hang[0])
				sleep(2 * interval)
				assert.GreaterOrEqual(t, len(left), 3, "one of them has answered")
				close(hang[1])
				require.NoError(t, c.Flush(t.Context()))
				assert.LessOrEqual(t, m.sum("c"), int64(12))
			})
		})
	}
}

// DESIGN 2, rule 7: "Every counter in use flushes every interval, also with amount 0 (as the JavaScript
// library does: the group's zero is known, and Participants is who is alive), until it was idle for ten
// intervals, when it goes unknown without a warning; Add (also of 0), Count, Total and a Watch wake it
// again."
func TestRule7_EveryCounterInUseFlushesEveryInterval(t *testing.T) {
	for name, use := range map[string]func(*Counter){
		"Add":      func(c *Counter) { c.Add(1) },
		"Add of 0": func(c *Counter) { c.Add(0) },
		"Count":    func(c *Counter) { c.Count() },
		"Total":    func(c *Counter) { c.Total() },
		"Watch":    func(c *Counter) { c.Watch(1000, 1000, func(Total, bool) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			log := newLossLog()
			onStore(t, func(t *testing.T, m *memStore) {
				g, other := m.join(t, "alice---", 0, WithLogger(slog.New(log))), m.join(t, "bob-----", 0.5)
				c, d := mustCounter(t, g, "c"), mustCounter(t, other, "c")
				c.Add(0)
				d.Add(0)
				sleep(3 * second)
				total := c.Peek().Total
				assert.True(t, total.Known, "the group's zero is not known")
				assert.Zero(t, total.Closed)
				assert.EqualValues(t, 2, total.Participants)
				other.Close()
				sleep(2 * second)
				assert.EqualValues(t, 1, c.Peek().Total.Participants)

				c.Count() // used for the last time
				n := m.now().interval(second)
				sleep(15 * second)
				for i := n; i < n+idleIntervals; i++ {
					assert.Contains(t, m.byInterval("c"), i)
				}
				assert.NotContains(t, m.byInterval("c"), n+idleIntervals+1)
				assert.False(t, c.Peek().Total.Known)
				assert.Zero(t, log.msgs["total went stale"])

				use(c)
				sleep(3 * second)
				assert.True(t, c.Peek().Total.Known, "it sleeps on")
			})
		})
	}
}

// DESIGN 2, rule 7: "A tick whose N is spent is a read-only call (no marker, no add)."
func TestRule7_ATickWhoseIntervalIsSpentOnlyReads(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0.5)
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3100 * time.Millisecond)
		c.Add(2)
		require.NoError(t, c.Flush(t.Context())) // in this interval, before its tick
		c.Add(4)
		from, n := len(m.ran()), m.now().interval(second)
		before := m.byInterval("c")
		sleep(600 * time.Millisecond)
		runs := m.ran()[from:]
		require.Len(t, runs, 1)
		assert.Equal(t, n, runs[0].Interval)
		assert.Equal(t, ModeRead, runs[0].Mode)
		assert.Zero(t, runs[0].Amount)
		assert.Zero(t, runs[0].Seq)
		assert.Equal(t, before, m.byInterval("c"))
		assert.Equal(t, n-1, c.Total().Interval, "it has read")
		assert.EqualValues(t, 4, c.Total().Buffer)
	})
}
