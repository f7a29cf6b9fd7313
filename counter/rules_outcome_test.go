package counter

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// DESIGN 2, rule 2: "A flush has a sequence number s, rising per participant."
func TestRule2_SequenceNumbersRise(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		alice, bob := m.join(t, "alice---", 0), m.join(t, "bob-----", 0.5)
		flushes := 0
		m.setFault(func(*Flush) memFault {
			if flushes++; flushes%7 == 0 {
				m.skew += 1100 * time.Millisecond // it is declared again
			}
			return memFault{loseReply: flushes%3 == 0}
		})
		for range 20 {
			mustCounter(t, alice, "a").Add(1)
			mustCounter(t, alice, "b", attribute.Int("k", 1)).Add(1)
			mustCounter(t, bob, "a").Add(1)
			_ = alice.Flush(t.Context())
			sleep(300 * time.Millisecond)
		}
		last := map[string]int64{}
		for _, r := range m.ran() {
			if r.Mode == ModeRead {
				continue
			}
			assert.Greater(t, r.Seq, last[r.participant])
			last[r.participant] = r.Seq
		}
		assert.Len(t, last, 2)
		assert.Greater(t, last["alice---"], int64(40))
	})
}

// answering is a store that answers that a share was applied before.
type answering struct {
	*memStore
	outcome Outcome
}

func (s answering) Flush(ctx context.Context, f *Flush) []Result {
	results := s.memStore.Flush(ctx, f)
	for i := range results {
		if results[i].Outcome == Applied {
			results[i].Outcome = s.outcome
		}
	}
	return results
}

// DESIGN 2, rule 4: "Three outcomes. Applied or repeated: confirmed."
func TestRule4_AppliedAndRepeatedAreConfirmed(t *testing.T) {
	for _, outcome := range []Outcome{Applied, Repeated} {
		t.Run(outcome.String(), func(t *testing.T) {
			log := newLossLog()
			onStore(t, func(t *testing.T, m *memStore) {
				g := m.join(t, "alice---", 0, WithStore(answering{m, outcome}), WithLogger(slog.New(log)))
				c := mustCounter(t, g, "c")
				c.Add(5)
				sleep(500 * time.Millisecond)
				assert.Zero(t, c.Total().Buffer)
				sleep(5 * second)
				assert.Equal(t, int64(5), m.sum("c"))
				for _, r := range m.ran()[1:] {
					assert.Zero(t, r.Amount, "sent again")
					assert.Empty(t, r.Questions)
				}
				assert.Empty(t, log.losses)
			})
		})
	}
}

// setAside has a participant's flush of 5 get lost on its way, and returns its share.
func setAside(t *testing.T, m *memStore, c *Counter, fault memFault) (n, seq int64) {
	t.Helper()
	c.Add(1)
	sleep(3100 * time.Millisecond)
	m.setFault(func(f *Flush) memFault {
		n, seq = f.Shares[0].Interval, f.Shares[0].Seq
		return fault
	})
	c.Add(5)
	sleep(500 * time.Millisecond)
	m.setFault(nil)
	require.NotZero(t, seq)
	require.EqualValues(t, 5, c.Total().Buffer)
	return n, seq
}

// DESIGN 2, rule 5: "Asking back. The next flush of that counter carries a question about a set-aside one
// (M, s)."
func TestRule5_TheNextFlushAsks(t *testing.T) {
	onStore(t, func(t *testing.T, m *memStore) {
		c := mustCounter(t, m.join(t, "alice---", 0), "c")
		n, seq := setAside(t, m, c, memFault{loseRequest: true})
		from := len(m.ran())
		sleep(second)
		next := m.ran()[from]
		assert.Equal(t, []Question{{Interval: n, Seq: seq}}, next.Questions)
		assert.Equal(t, n+1, next.Interval)
		assert.Zero(t, next.Amount, "what is asked about is sent too")
	})
}

// DESIGN 2, rule 5: "Not counted: the amount returns to the buffer."
func TestRule5_WhatWasNotCountedReturns(t *testing.T) {
	log := newLossLog()
	onStore(t, func(t *testing.T, m *memStore) {
		c := mustCounter(t, m.join(t, "alice---", 0, WithLogger(slog.New(log))), "c")
		n, _ := setAside(t, m, c, memFault{loseRequest: true})
		from := len(m.ran())
		sleep(second)
		require.Equal(t, []Answer{NotCounted}, m.ran()[from].answers)
		assert.EqualValues(t, 5, c.Total().Buffer)
		sleep(second)
		assert.Equal(t, int64(5), m.byInterval("c")[n+2])
		assert.Zero(t, c.Total().Buffer)
		assert.Empty(t, log.losses)
	})
}

// DESIGN 2, rule 5: "A lost ask is simply asked again."
func TestRule5_ALostAskIsAskedAgain(t *testing.T) {
	for name, fault := range map[string]memFault{"the ask": {loseRequest: true}, "its answer": {loseReply: true}} {
		for counted, first := range map[bool]memFault{false: {loseRequest: true}, true: {loseReply: true}} {
			t.Run(name, func(t *testing.T) {
				log := newLossLog()
				onStore(t, func(t *testing.T, m *memStore) {
					c := mustCounter(t, m.join(t, "alice---", 0, WithLogger(slog.New(log))), "c")
					n, seq := setAside(t, m, c, first)
					asks := 0
					m.setFault(func(f *Flush) memFault {
						for _, q := range f.Shares[0].Questions {
							if q == (Question{Interval: n, Seq: seq}) {
								asks++
							}
						}
						if asks == 1 {
							return fault
						}
						return memFault{}
					})
					sleep(6 * second)
					assert.Equal(t, 2, asks)
					assert.Equal(t, int64(6), m.sum("c"), "counted before: %v", counted)
					assert.Zero(t, c.Total().Buffer)
					assert.Empty(t, log.losses)
				})
			})
		}
	}
}

// DESIGN 2, rule 5: "After a seen step back of the server's clock questions prove nothing."
func TestRule5_AfterAStepBackQuestionsProveNothing(t *testing.T) {
	log := newLossLog()
	onStore(t, func(t *testing.T, m *memStore) {
		c := mustCounter(t, m.join(t, "alice---", 0, WithLogger(slog.New(log))), "c")
		setAside(t, m, c, memFault{loseRequest: true})
		m.step(-2500 * time.Millisecond)
		sleep(10 * second)
		var answers []Answer
		for _, r := range m.ran() {
			answers = append(answers, r.answers...)
		}
		assert.Contains(t, answers, NotCounted, "it was never asked")
		assert.Equal(t, map[reason]int64{lostUnknown: 5}, log.losses["c"])
		assert.Equal(t, int64(1), m.sum("c"), "sent again")
		assert.Zero(t, c.Total().Buffer)
	})
}

// DESIGN 2, rule 5: "So a lost reply costs nothing in the normal case and never doubles."
func TestRule5_ALostReplyCostsNothing(t *testing.T) {
	for every := 1; every <= 4; every++ {
		log := newLossLog()
		onStore(t, func(t *testing.T, m *memStore) {
			c := mustCounter(t, m.join(t, "alice---", 0.4, WithLogger(slog.New(log))), "c")
			flushes := 0
			m.setFault(func(*Flush) memFault {
				flushes++
				return memFault{loseReply: flushes%every == 0 && flushes%5 != 0} // five in a row are no normal case
			})
			for range 300 {
				c.Add(1)
				time.Sleep(100 * time.Millisecond)
			}
			m.setFault(nil)
			require.NoError(t, c.Flush(t.Context()))
			assert.Equal(t, int64(300), m.sum("c"))
			assert.Empty(t, log.losses)
		})
	}
}
