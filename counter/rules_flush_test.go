package counter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

// onStore runs a test in a bubble with a store in memory.
func onStore(t *testing.T, test func(t *testing.T, m *memStore)) {
	bubbletest.Run(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // calls that are out come back
		test(t, newMemStore())
	})
}

// join returns a participant that flushes at this place of an interval's phases.
func (m *memStore) join(t *testing.T, id string, where float64, opts ...Option) *Group {
	t.Helper()
	g, err := NewGroup(nil, second, append([]Option{WithStore(m), withIdentity(id, where)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

// DESIGN 2, rule 8: "Parting flush. Shutdown and Flush do not wait for the next interval: if N is
// spent they declare N + 1 ahead."
func TestRule8_ShutdownAndFlushDeclareTheNextIntervalAhead(t *testing.T) {
	for name, part := range map[string]func(*Group) error{
		"flush":    func(g *Group) error { return g.Flush(context.Background()) },
		"shutdown": func(g *Group) error { return g.Shutdown(context.Background()) },
	} {
		for _, spent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, spent: %v", name, spent), func(t *testing.T) {
				onStore(t, func(t *testing.T, m *memStore) {
					g := m.join(t, "alice---", 0.5) // at 575 ms
					c := mustCounter(t, g, "c")
					c.Add(1)
					sleep(3100 * time.Millisecond)
					if spent {
						sleep(500 * time.Millisecond)
					}
					n, before := m.now().interval(second), time.Now()
					c.Add(5)
					require.NoError(t, part(g))
					assert.Zero(t, time.Since(before), "it waited")
					if spent {
						n++
					}
					assert.Equal(t, int64(5), m.byInterval("c")[n])
				})
			})
		}
	}
}

// DESIGN 2, rule 8: "The participant does not add to N + 1 again."
func TestRule8_NothingIsAddedToTheIntervalAheadAgain(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0)
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3500 * time.Millisecond)
		n := m.now().interval(second)
		c.Add(5)
		require.NoError(t, c.Flush(t.Context())) // in n + 1, ahead
		c.Add(7)
		sleep(second) // the tick of n + 1 has passed
		assert.Equal(t, int64(5), m.byInterval("c")[n+1])
		sleep(second)
		assert.Equal(t, int64(7), m.byInterval("c")[n+2])
		for _, r := range m.ran() {
			assert.NotEqual(t, Used, r.outcome, "it tried to")
		}
	})
}

// DESIGN 2, rule 8: "With N and N + 1 spent, Flush and Shutdown wait for the next free N as long as ctx
// allows, then Shutdown reports what it drops; a Flush with nothing to send uses no N; Flush waits until
// set-aside amounts are settled too (which may take two intervals and the slack), Shutdown reports what
// is still set aside."
func TestRule8_FlushAndShutdownWaitAsLongAsTheContextAllows(t *testing.T) {
	// spend has a participant use up the running interval and the next.
	spend := func(t *testing.T, m *memStore, opts ...Option) (*Group, *Counter) {
		g := m.join(t, "alice---", 0, opts...)
		c := mustCounter(t, g, "c")
		c.Add(1)
		sleep(3500 * time.Millisecond)
		c.Add(1)
		require.NoError(t, g.Flush(t.Context()))
		return g, c
	}
	for name, part := range map[string]func(*Group, context.Context) error{"flush": (*Group).Flush, "shutdown": (*Group).Shutdown} {
		t.Run(name+" waits for the next free interval", func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				g, c := spend(t, m)
				n, before := m.now().interval(second), time.Now()
				c.Add(5)
				require.NoError(t, part(g, t.Context()))
				assert.Equal(t, int64(5), m.byInterval("c")[n+2])
				assert.Less(t, time.Since(before), second)
			})
		})
		t.Run(name+" waits as long as the context allows", func(t *testing.T) {
			log := newLossLog()
			onStore(t, func(t *testing.T, m *memStore) {
				g, c := spend(t, m, WithLogger(slog.New(log)))
				before := time.Now()
				c.Add(5)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, part(g, ctx), context.DeadlineExceeded)
				assert.Equal(t, 100*time.Millisecond, time.Since(before))
				sleep(3 * second)
				if name == "flush" { // the tick sends it
					assert.Equal(t, int64(7), m.sum("c"))
					assert.Empty(t, log.losses)
				} else {
					assert.Equal(t, int64(2), m.sum("c"))
					assert.Equal(t, map[reason]int64{lostClosed: 5}, log.losses["c"])
				}
			})
		})
	}
	t.Run("a flush with nothing to send", func(t *testing.T) {
		onStore(t, func(t *testing.T, m *memStore) {
			g := m.join(t, "alice---", 0)
			c := mustCounter(t, g, "c")
			c.Add(1)
			sleep(3500 * time.Millisecond)
			calls := m.callCount()
			for range 5 {
				require.NoError(t, g.Flush(t.Context()))
			}
			assert.Equal(t, calls, m.callCount())
			n := m.now().interval(second)
			c.Add(5)
			require.NoError(t, g.Flush(t.Context()))
			assert.Equal(t, int64(5), m.byInterval("c")[n+1], "the next interval was still free")
		})
	})
	t.Run("a flush waits for what is set aside", func(t *testing.T) {
		for _, fault := range []memFault{{loseReply: true}, {loseRequest: true}} {
			onStore(t, func(t *testing.T, m *memStore) {
				g := m.join(t, "alice---", 0)
				c := mustCounter(t, g, "c")
				c.Add(1)
				sleep(3500 * time.Millisecond)
				faults := 0
				m.setFault(func(*Flush) memFault {
					if faults++; faults == 1 {
						return fault
					}
					return memFault{}
				})
				c.Add(5)
				before := time.Now()
				require.NoError(t, c.Flush(t.Context()))
				assert.Zero(t, c.Total().Buffer)
				assert.Equal(t, int64(6), m.sum("c"))
				assert.Greater(t, time.Since(before), second)
				assert.Less(t, time.Since(before), 4*second)
			})
		}
	})
	t.Run("shutdown reports what is set aside", func(t *testing.T) {
		log := newLossLog()
		onStore(t, func(t *testing.T, m *memStore) {
			g := m.join(t, "alice---", 0, WithLogger(slog.New(log)))
			c := mustCounter(t, g, "c")
			c.Add(1)
			sleep(3500 * time.Millisecond)
			m.setFault(func(*Flush) memFault { return memFault{loseReply: true} })
			c.Add(5)
			before := time.Now()
			require.ErrorContains(t, g.Shutdown(t.Context()), "5 that is not known to have arrived")
			assert.Zero(t, time.Since(before))
			assert.Equal(t, map[reason]int64{lostUnknown: 5}, log.losses["c"])
		})
	})
}

// DESIGN 2, rule 9: "Carry. An amount leaves with the first tick after it was counted; when it comes back
// it may leave again WithCarry(n) times (default 2), then it is dropped and reported, so that an outage
// of minutes does not come back as one false spike."
func TestRule9_AnAmountMayLeaveAgainAsOftenAsCarryAllows(t *testing.T) {
	for _, outage := range []string{"flushes refused", "server down"} {
		for carry := -1; carry <= 3; carry++ {
			opts, allowed := []Option{WithCarry(carry)}, carry
			if carry < 0 {
				opts, allowed = nil, 2 // the default
			}
			for fails := range 5 {
				t.Run(fmt.Sprintf("%s, carry %d, comes back %d times", outage, carry, fails), func(t *testing.T) {
					log := newLossLog()
					onStore(t, func(t *testing.T, m *memStore) {
						g := m.join(t, "alice---", 0, append(opts, WithLogger(slog.New(log)))...)
						c := mustCounter(t, g, "c")
						c.Add(1)
						sleep(3 * second)
						back, flushes := time.Now().Add(time.Duration(fails)*second), 0
						m.setFault(func(f *Flush) memFault {
							if flushes++; flushes == 1 {
								assert.EqualValues(t, 5, f.Shares[0].Amount, "it leaves with the first tick")
							}
							if outage == "server down" && time.Now().Before(back) || outage != "server down" && flushes <= fails {
								return memFault{err: errors.New("refused")}
							}
							return memFault{}
						})
						if outage == "server down" && fails > 0 {
							m.setDown(errors.New("refused"))
						}
						c.Add(5)
						sleep(time.Duration(fails) * second)
						m.setDown(nil)
						sleep(3 * second)
						if fails <= allowed {
							assert.Equal(t, int64(6), m.sum("c"))
							assert.Empty(t, log.losses)
						} else {
							assert.Equal(t, int64(1), m.sum("c"))
							assert.Equal(t, map[reason]int64{lostTries: 5}, log.losses["c"])
						}
						assert.Zero(t, c.Total().Buffer)
					})
				})
			}
		}
	}
	t.Run("no spike after an outage", func(t *testing.T) {
		onStore(t, func(t *testing.T, m *memStore) {
			c := mustCounter(t, m.join(t, "alice---", 0.3), "c")
			for i := range 1200 {
				switch i {
				case 300:
					m.setFault(func(*Flush) memFault { return memFault{err: errors.New("refused")} })
					m.setDown(errors.New("refused"))
				case 900:
					m.setFault(nil)
					m.setDown(nil)
				}
				c.Add(1)
				time.Sleep(second / 10)
			}
			for n, v := range m.byInterval("c") {
				assert.LessOrEqual(t, v, int64(10*(2+2)), "interval %d", n)
			}
		})
	})
}

// DESIGN 2, rule 9: "Its age is judged only when it would leave again; set-aside amounts do not age."
func TestRule9_AgeIsJudgedWhenAnAmountWouldLeave(t *testing.T) {
	l := ledger{carry: 1}
	l.take(1, 1, []int64{5})
	l.land(Refused, nil)
	l.take(2, 2, nil)
	l.land(Refused, nil)
	assert.Empty(t, l.losses, "it has left as often as it may, but it has not come to leave again")
	assert.True(t, l.unsent())
	l.take(3, 3, nil)
	assert.Equal(t, []loss{{lostTries, []int64{5}}}, l.losses)

	l = ledger{carry: 1}
	l.take(1, 1, []int64{5})
	l.land(Unknown, nil)
	for n := int64(2); n <= 4; n++ {
		l.take(n, n, nil)
		l.land(Applied, nil)
	}
	l.learn(Question{1, 1}, NotCounted)
	assert.Equal(t, []int64{5}, l.take(5, 5, nil).amounts.sum(), "once set aside, it has left once")
	assert.Empty(t, l.losses)
}

// DESIGN 2, rule 9: "Buffers are therefore carry + 1 cells per series, by tries."
func TestRule9_BuffersAreCarryPlusOneCells(t *testing.T) {
	for carry := range 4 {
		l := ledger{carry: carry}
		most := 0
		for n := int64(1); n < 20; n++ {
			if n%2 == 0 {
				l.skip([]int64{1})
			} else {
				l.take(n, n, []int64{1})
				l.land(NotApplied, nil)
			}
			kept := 0
			for _, row := range l.back {
				if !zero(row) {
					kept++
				}
			}
			most = max(most, kept)
		}
		assert.Equal(t, carry+1, most)
	}
}
