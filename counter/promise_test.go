package counter

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The tests of this file and of rules_*_test.go quote section 2 of the design, one
// sentence each. Sentences about the script alone are quoted in test/store, those
// that need a real server or cluster in test/group.

// DESIGN 2, promise 1: "Never overstated. No amount is counted twice."
func TestPromise1_NoAmountIsCountedTwice(t *testing.T) {
	for name, fault := range map[string]memFault{
		"lost requests":             {loseRequest: true},
		"lost replies":              {loseReply: true},
		"late requests":             {before: 700 * time.Millisecond},
		"requests late by more":     {before: 2600 * time.Millisecond},
		"late replies":              {after: 1700 * time.Millisecond},
		"repeated at once":          {again: time.Millisecond},
		"repeated later":            {again: 900 * time.Millisecond},
		"lost, and repeated later":  {again: 2100 * time.Millisecond, loseReply: true},
		"late, and repeated later":  {before: 1300 * time.Millisecond, again: 1100 * time.Millisecond},
		"refused":                   {err: errors.New("connection refused")},
		"late, and the reply later": {before: 500 * time.Millisecond, after: 3 * second},
	} {
		t.Run(name, func(t *testing.T) {
			log := newLossLog()
			onStore(t, func(t *testing.T, m *memStore) {
				a, b := m.join(t, "alice---", 0, WithLogger(slog.New(log))), m.join(t, "bob-----", 0.8, WithLogger(slog.New(log)))
				flushes := 0
				m.setFault(func(*Flush) memFault {
					if flushes++; flushes%3 == 0 {
						return fault
					}
					return memFault{}
				})
				var added int64
				for i := range 300 {
					mustCounter(t, a, "c").Add(1)
					mustCounter(t, b, "c", attribute.Int("k", i%3)).Add(1)
					added += 2
					time.Sleep(100 * time.Millisecond)
					require.LessOrEqual(t, m.sum("c"), added)
				}
				m.setFault(nil)
				require.NoError(t, a.Flush(t.Context()))
				require.NoError(t, b.Flush(t.Context()))
				sleep(5 * second) // what is late or repeated comes
				lost := log.losses["c"]
				assert.LessOrEqual(t, m.sum("c"), added-lost[lostTries])
				assert.GreaterOrEqual(t, m.sum("c"), added-lost[lostTries]-lost[lostUnknown])
			})
		})
	}
}

// DESIGN 2, promise 1: "A participant adds to an interval at most once."
func TestPromise1_AParticipantAddsToAnIntervalAtMostOnce(t *testing.T) {
	onNetwork(t, func(t *testing.T, n *network) {
		g := n.join(t, "alice---", 0.5)
		c := mustCounter(t, g, "c")
		calls := 0
		n.setFault(func(call *wireCall) wireFault {
			if calls++; len(call.shares) == 0 {
				return wireFault{}
			}
			return wireFault{again: time.Duration(calls%5) * 400 * time.Millisecond, loseReply: calls%7 == 0}
		})
		count := func(times int) {
			for i := range times {
				c.Add(1)
				if i%12 == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					_ = g.Flush(ctx)
					cancel()
				}
				sleep(100 * time.Millisecond)
			}
		}
		count(60)
		n.step(-900 * time.Millisecond)
		count(60)
		n.setFault(nil)
		sleep(3*second + time.Duration(600_000-n.serverTime()%serverSecond)*time.Microsecond)
		n.step(-3100 * time.Millisecond) // back over intervals whose marks are still there
		count(60)
		require.NoError(t, g.Shutdown(t.Context()))
		sleep(5 * second)
		answers := map[string]int{}
		for _, s := range n.shares() {
			answers[s.answer]++
		}
		assert.Positive(t, answers["used"], "it never tried to")
		assert.Empty(t, n.addedTwice())
	})
}

// DESIGN 2, promise 2: "Never in the way. Nothing on the calling path waits for Redis, takes a lock that is held
// across I/O, or returns a network error."
func TestPromise2_NothingOnTheCallingPathWaits(t *testing.T) {
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				s := stuck{make(chan struct{})}
				defer close(s.release)
				g := m.join(t, "alice---", 0, WithStore(hang(m, s)))
				// In a bubble, time passes while a call waits for something, and a call
				// that waits for a lock which is held meanwhile fails the test.
				began := time.Now()
				for range 20 {
					c := mustCounter(t, g, "c")
					part := mustCounter(t, g, "c", attribute.Int("k", 1))
					f := mustFloat(t, g, "f")
					view, err := g.WithPrefix("v:")
					require.NoError(t, err)
					stopWatch := c.Watch(1, 1, func(Total, bool) {})
					stopTick := view.OnTick(func([]Reading) {})
					for range 100 {
						assert.Positive(t, c.Add(1))
						part.Add(1)
						f.Add(0.5)
						mustCounter(t, view, "d").Add(1)
						assert.Positive(t, c.Count())
						assert.False(t, c.Total().Known)
						f.Total()
					}
					stopWatch()
					stopTick()
					require.Equal(t, began, time.Now())
					sleep(second)
					began = time.Now()
				}
				mustCounter(t, g, "d").Close()
				g.Close()
				require.Equal(t, began, time.Now())
			})
		})
	}
}

// weight is about how much the loop of a group keeps.
func weight(t *testing.T, g *Group) (n int) {
	done := make(chan struct{})
	select {
	case g.events <- func(l *loop) {
		defer close(done)
		n = len(l.pending) + len(l.lanes) + len(l.accounts) + len(l.woken)
		for _, a := range l.accounts {
			for _, b := range a.batches {
				n += len(b.cells) + len(b.ledger.aside) + len(b.ledger.losses) + len(b.ledger.settle) + len(b.ledger.back)
				for _, row := range b.ledger.back {
					n += len(row)
				}
				for _, f := range b.ledger.aside {
					for _, row := range f.amounts {
						n += len(row)
					}
				}
			}
		}
	}:
	case <-g.done:
		t.Fatal("closed")
	}
	<-done
	return n
}

// DESIGN 2, promise 2: "Memory is bounded whatever Redis does."
func TestPromise2_MemoryIsBounded(t *testing.T) {
	for name, fault := range map[string]memFault{
		"it does not answer":  {},
		"requests are lost":   {loseRequest: true},
		"replies are lost":    {loseReply: true},
		"it is slow":          {before: 800 * time.Millisecond, after: 900 * time.Millisecond},
		"connections refused": {err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, m *memStore) {
				if name == "it does not answer" {
					fault.hang = make(chan struct{})
					defer close(fault.hang)
				}
				m.setFault(func(*Flush) memFault { return fault })
				g := m.join(t, "alice---", 0)
				blocked := make(chan struct{})
				defer close(blocked)
				g.OnTick(func([]Reading) { <-blocked })
				mustCounter(t, g, "c").Watch(1, 1, func(Total, bool) { <-blocked })
				measure := func() (kept, goroutines int) {
					for i := range 400 {
						for range 10 {
							mustCounter(t, g, "c", attribute.Int("k", i%7)).Add(1)
							mustCounter(t, g, "d").Add(1)
						}
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
						_ = g.Flush(ctx)
						cancel()
						sleep(400 * time.Millisecond)
					}
					return weight(t, g), runtime.NumGoroutine()
				}
				kept, goroutines := measure()
				for range 3 {
					again, more := measure()
					assert.InDelta(t, kept, again, float64(kept)/4)
					assert.InDelta(t, goroutines, more, 2)
				}
				assert.Less(t, kept, 500)
			})
		})
	}
}

// DESIGN 2, promise 3: "Losses are few and every one is reported with its amount."
func TestPromise3_EveryLossIsReportedWithItsAmount(t *testing.T) {
	for why, lose := range map[reason]func(t *testing.T, m *memStore, g *Group){
		lostTries: func(t *testing.T, m *memStore, g *Group) {
			m.setFault(func(*Flush) memFault { return memFault{err: errors.New("connection refused")} })
			mustCounter(t, g, "c").Add(5)
			sleep(20 * second)
		},
		lostUnknown: func(t *testing.T, m *memStore, g *Group) {
			m.setFault(func(*Flush) memFault { return memFault{loseReply: true} })
			mustCounter(t, g, "c").Add(5)
			sleep(20 * second)
		},
		lostClosed: func(t *testing.T, _ *memStore, g *Group) {
			mustCounter(t, g, "c").Add(5)
			g.Close()
		},
		lostOverflow: func(t *testing.T, _ *memStore, g *Group) {
			c := mustCounter(t, g, "c")
			c.Add(math.MaxInt64)
			c.Add(5)
			sleep(3 * second)
		},
	} {
		t.Run(string(why), func(t *testing.T) {
			log, reader := newLossLog(), sdkmetric.NewManualReader()
			onStore(t, func(t *testing.T, m *memStore) {
				g := m.join(t, "alice---", 0, WithLogger(slog.New(log)), WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
				lose(t, m, g)
				assert.Equal(t, map[reason]int64{why: 5}, log.losses["c"])
				assert.Equal(t, map[string]int64{string(why): 5}, dropped(t, reader))
			})
		})
	}
	t.Run("nothing fails", func(t *testing.T) {
		log := newLossLog()
		onStore(t, func(t *testing.T, m *memStore) {
			g := m.join(t, "alice---", 0.7, WithLogger(slog.New(log)))
			for range 600 {
				mustCounter(t, g, "c").Add(1)
				time.Sleep(100 * time.Millisecond)
			}
			require.NoError(t, g.Shutdown(t.Context()))
			assert.Empty(t, log.losses)
			assert.Equal(t, int64(600), m.sum("c"))
		})
	})
}

// dropped returns what a group's own telemetry counts as given up, by reason.
func dropped(t *testing.T, reader sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &rm))
	byReason := map[string]int64{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != "comcount.dropped" {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				why, _ := p.Attributes.Value("reason")
				byReason[why.AsString()] += p.Value
			}
		}
	}
	return byReason
}

// evicting is a store whose server may drop live keys.
type evicting struct {
	*memStore
	policy string
	err    error
}

func (s evicting) EvictionPolicy(context.Context, string, string) (string, error) {
	return s.policy, s.err
}

// DESIGN 2: "Outside it, and said so in the README: eviction of live keys (use noeviction; checked at start where
// CONFIG may be read, warned of), active-active replication, a failover to a host whose clock is more than the
// slack (rule 5) behind, a server clock stepped back by more than one interval, a middlebox that repeats a command
// across a failover or after an error reply."
func TestOutsideThePromise_EvictionIsWarnedOf(t *testing.T) {
	for name, tc := range map[string]struct {
		store evicting
		warns int
	}{
		"may evict":              {evicting{policy: "allkeys-lru"}, 1},
		"evicts nothing":         {evicting{policy: "noeviction"}, 0},
		"CONFIG may not be read": {evicting{err: errors.New("NOPERM")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			log := newLossLog()
			onStore(t, func(t *testing.T, m *memStore) {
				tc.store.memStore = m
				g := m.join(t, "alice---", 0, WithStore(tc.store), WithLogger(slog.New(log)))
				mustCounter(t, g, "c").Add(1)
				mustCounter(t, g, "d").Add(1)
				sleep(5 * second)
				assert.Equal(t, tc.warns, log.msgs["server may evict live keys"])
				assert.Equal(t, int64(1), m.sum("c"))
			})
		})
	}
}
