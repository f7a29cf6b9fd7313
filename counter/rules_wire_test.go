package counter

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// comesBack is what keeps a flush from being applied, until undo.
type comesBack struct {
	name string
	do   func(t *testing.T, n *network, l *link, rdb *redis.Client) (undo func())
}

// errorReply has the server answer with an error.
func errorReply(text string) comesBack {
	return comesBack{text, func(_ *testing.T, n *network, _ *link, _ *redis.Client) func() {
		n.setFault(func(*wireCall) wireFault { return wireFault{answer: text} })
		return func() { n.setFault(nil) }
	}}
}

// marked has the next flush find this mark in its interval.
func marked(name, mark string) comesBack {
	return comesBack{name, func(_ *testing.T, n *network, _ *link, _ *redis.Client) func() {
		n.mini.HSet(partsKey("", "c", n.serverTime().interval(second)), "@alice---.0", mark)
		return func() {}
	}}
}

// DESIGN 2, rule 4: "Proven not applied: back to the buffer: dial error and pool timeout (nothing was written to
// the wire), the answers refused, used and fenced, and error replies that only the server's own refusal
// can be: NOSCRIPT, MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN, OOM, NOPERM, NOAUTH,
// MISCONF, NOREPLICAS, BUSY (some arrive wrapped, as text inside the reply: "ERR The user executing the
// script can't run this command", "-READONLY")."
func TestRule4_WhatIsProvenNotAppliedReturns(t *testing.T) {
	cases := []comesBack{
		{"dial error", func(_ *testing.T, n *network, l *link, _ *redis.Client) func() {
			l.refuse(true)
			n.cut(l)
			return func() { l.refuse(false) }
		}},
		{"pool timeout", func(t *testing.T, _ *network, _ *link, rdb *redis.Client) func() {
			conn := rdb.Conn() // the only one
			require.NoError(t, conn.Ping(t.Context()).Err())
			return func() { _ = conn.Close() }
		}},
		{"refused", func(_ *testing.T, n *network, _ *link, _ *redis.Client) func() {
			n.step(1100 * time.Millisecond)
			return func() {}
		}},
		marked("used", "999999"),
		marked("fenced", "-999999"),
		errorReply("ERR The user executing the script can't run this command or subcommand script: 7b2"),
		errorReply("ERR Error running script (call to f_7b2): @user_script:1: @user_script: 1: -READONLY You can't write"),
	}
	for code := range strings.SplitSeq("NOSCRIPT, MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN, OOM, NOPERM,"+
		" NOAUTH, MISCONF, NOREPLICAS, BUSY", ", ") {
		cases = append(cases, errorReply(code+" 1 127.0.0.1:6379"))
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			log := newLossLog()
			onNetwork(t, func(t *testing.T, n *network) {
				l := &link{net: n}
				options := l.options()
				options.PoolSize, options.PoolTimeout = 1, 10*time.Millisecond
				g, rdb := n.joinWith(t, options, "alice---", 0, WithLogger(slog.New(log)))
				c := mustCounter(t, g, "c")
				c.Add(1)
				sleep(3100 * time.Millisecond)
				undo := tc.do(t, n, l, rdb)
				c.Add(5)
				sleep(500 * time.Millisecond)
				undo()
				if tc.name != "refused" { // that one is declared again at once
					assert.Equal(t, int64(1), n.sum("c"))
					assert.EqualValues(t, 5, c.Total().Buffer)
				}
				sleep(2 * second)
				assert.Equal(t, int64(6), n.sum("c"))
				assert.Zero(t, c.Total().Buffer)
				assert.Empty(t, log.losses)
				for _, s := range n.shares() {
					assert.Zero(t, s.questions, "there was nothing to ask")
				}
			})
		})
	}
}

// DESIGN 2, rule 4: "After NOSCRIPT the same N, s and amounts are sent once more as EVAL (rule 2 makes that safe)."
func TestRule4_AfterNoScriptTheSameIsSentOnceMore(t *testing.T) {
	onNetwork(t, func(t *testing.T, n *network) {
		c := mustCounter(t, n.join(t, "alice---", 0), "c", attribute.Int("k", 1))
		c.Add(1)
		sleep(3100 * time.Millisecond)
		n.forgetScripts(t)
		from := len(n.ran())
		c.Add(5)
		sleep(500 * time.Millisecond)
		runs := n.ran()[from:]
		require.Len(t, runs, 2)
		assert.Equal(t, "evalsha", runs[0].args[0])
		assert.Contains(t, runs[0].err, "NOSCRIPT")
		assert.Equal(t, "eval", runs[1].args[0])
		assert.Equal(t, runs[0].args[2:], runs[1].args[2:])
		assert.True(t, runs[1].shares[0].applied())
		sleep(second)
		assert.Equal(t, "evalsha", n.ran()[from+2].args[0], "it is known now")
		assert.Equal(t, int64(6), n.sum("c"))
	})
}

// DESIGN 2, rule 4: "Unknown: everything else (EOF, timeout, late, any other text): set aside, never re-sent
// blindly."
func TestRule4_WhatIsUnknownIsSetAside(t *testing.T) {
	for name, fault := range map[string]wireFault{
		"EOF, and it was counted":         {loseReply: true},
		"EOF, and it was not":             {loseRequest: true},
		"timeout, and it was counted":     {after: 5 * second},
		"late":                            {before: 2300 * time.Millisecond},
		"an error":                        {answer: "ERR internal error"},
		"an error that is no refusal":     {answer: "UNKILLABLE Sorry the script already executed write commands"},
		"an error of a command inside it": {answer: "WRONGTYPE Operation against a key holding the wrong kind of value"},
	} {
		t.Run(name, func(t *testing.T) {
			log := newLossLog()
			onNetwork(t, func(t *testing.T, n *network) {
				c := mustCounter(t, n.join(t, "alice---", 0, WithLogger(slog.New(log))), "c")
				c.Add(1)
				sleep(3100 * time.Millisecond)
				began := time.Now()
				hit := false
				n.setFault(func(*wireCall) wireFault {
					if hit {
						return wireFault{}
					}
					hit = true
					return fault
				})
				c.Add(5)
				sleep(1500 * time.Millisecond)
				var next []wireShare // of the tick after
				for _, call := range n.ran() {
					if call.local.After(began.Add(second)) {
						next = append(next, call.shares...)
					}
				}
				require.Len(t, next, 1)
				assert.Zero(t, next[0].amount, "sent again blindly")
				assert.Equal(t, 1, next[0].questions)
				sleep(5 * second)
				assert.Equal(t, int64(6), n.sum("c"))
				assert.Zero(t, c.Total().Buffer)
				assert.Empty(t, log.losses)
				assert.Empty(t, n.addedTwice())
			})
		})
	}
}

var answerLetters = regexp.MustCompile(`^applied \S+ \S+ [01] ([conu]+)`)

// answers returns the answers to all questions.
func (n *network) answers() (letters string) {
	for _, s := range n.shares() {
		if m := answerLetters.FindStringSubmatch(s.answer); m != nil {
			letters += m[1]
		}
	}
	return letters
}

// DESIGN 2, rule 5: "n > M + 2: unknowable: dropped, reported with the reason "may have been counted"."
func TestRule5_AfterTwoIntervalsItIsUnknowable(t *testing.T) {
	log := newLossLog()
	onNetwork(t, func(t *testing.T, n *network) {
		c := mustCounter(t, n.join(t, "alice---", 0, WithLogger(slog.New(log))), "c")
		c.Add(1)
		sleep(3100 * time.Millisecond)
		n.setFault(func(*wireCall) wireFault { return wireFault{loseRequest: true} })
		c.Add(5)
		sleep(400 * time.Millisecond)
		n.setFault(nil)
		n.stop()
		sleep(3 * second)
		n.start(t)
		sleep(3 * second)
		assert.Equal(t, "u", n.answers())
		assert.Equal(t, map[reason]int64{"may have been counted": 5}, log.losses["c"])
		assert.Zero(t, c.Total().Buffer)
		assert.Equal(t, int64(1), n.sum("c"))
	})
}

// DESIGN 2, rule 6: "Before the first flush, a probe (the script without counters) brings the server's time."
func TestRule6_AProbeComesBeforeTheFirstFlush(t *testing.T) {
	onNetwork(t, func(t *testing.T, n *network) {
		n.step(time.Hour) // nobody could guess it
		c := mustCounter(t, n.join(t, "alice---", 0), "c")
		c.Add(5)
		sleep(2 * second)
		runs := n.ran()
		require.GreaterOrEqual(t, len(runs), 3)
		assert.Equal(t, "eval", runs[1].args[0]) // as the script is not known yet
		for _, probe := range runs[:2] {
			assert.Empty(t, probe.shares)
		}
		for _, flush := range runs[2:] {
			require.Len(t, flush.shares, 1)
			assert.True(t, flush.shares[0].applied(), "the first guess was wrong")
		}
		assert.Equal(t, int64(5), n.sum("c"))
	})
}

// DESIGN 2, rule 11: "More than three intervals is reported and followed; markers keep us from adding twice to one
// key; Closed is unknown until N is past the old highest N."
func TestRule11_ALargeStepBackIsFollowed(t *testing.T) {
	for _, back := range []time.Duration{4500 * time.Millisecond, 12 * second} {
		t.Run(back.String(), func(t *testing.T) {
			log := newLossLog()
			onNetwork(t, func(t *testing.T, n *network) {
				c := mustCounter(t, n.join(t, "alice---", 0, WithLogger(slog.New(log))), "c")
				var added int64
				count := func(d time.Duration, check func()) {
					for range d / (100 * time.Millisecond) {
						c.Add(1)
						added++
						sleep(100 * time.Millisecond)
						check()
					}
				}
				count(6*second, func() {})
				highest := n.serverTime().interval(second)
				assert.Zero(t, log.msgs["server clock stepped back"])
				from := len(n.ran())
				n.step(-back)
				stepped := time.Now()
				count(back+5*second, func() {
					if total := c.Total(); time.Since(stepped) > second && total.Known {
						assert.Greater(t, total.Interval, highest-1, "from before the step")
					}
				})
				assert.Equal(t, 1, log.msgs["server clock stepped back"])
				assert.True(t, c.Total().Known)
				followed, used := false, 0
				for _, call := range n.ran()[from:] {
					for _, s := range call.shares {
						followed = followed || s.n < highest-1 && s.n == call.at.interval(second) && call.local.Sub(stepped) < 3*second
						if s.answer == "used" {
							used++
						}
					}
				}
				assert.True(t, followed, "it was waited for")
				sleep(2 * second)
				if back < 5*second { // the old keys, and their marks, are still there
					assert.Positive(t, used)
					assert.Empty(t, n.addedTwice())
					assert.Equal(t, added, n.sum("c")+log.sum("c"))
				}
			})
		})
	}
}
