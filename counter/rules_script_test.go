package counter

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// watchScripts has see called for each command that a script does, with the keys
// that were declared. It returns why the command fails, or "".
func (n *network) watchScripts(t *testing.T, see func(keys, command []string) (refusal string)) {
	n.do(t, "PING") // there is a server now
	var mu sync.Mutex
	var keys []string
	n.mini.Server().SetPreHook(func(c *miniserver.Peer, name string, args ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		switch name {
		case "EVALSHA", "EVAL":
			var count int
			_, _ = fmt.Sscan(args[1], &count)
			keys = args[2 : 2+count]
		case "TIME", "GET", "INCRBY", "PEXPIRE", "HGET", "HMGET", "HSET", "HINCRBY":
			if refusal := see(keys, append([]string{name}, args...)); refusal != "" {
				c.WriteError(refusal)
				return true
			}
		}
		return false
	})
}

// DESIGN 2, rule 1: "N by the server's clock. n = floor(server ms / interval ms), from one TIME call inside the
// Lua script; participants' clocks never enter."
func TestRule1_TheIntervalIsThatOfTheServersClock(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Hour + 123*time.Millisecond, -time.Hour - 321*time.Millisecond} {
		t.Run(apart.String(), func(t *testing.T) {
			onNetwork(t, func(t *testing.T, n *network) {
				n.step(apart)
				clocks := 0
				n.watchScripts(t, func(_, command []string) string {
					if command[0] == "TIME" {
						clocks++
					}
					return ""
				})
				a, b := mustCounter(t, n.join(t, "alice---", 0), "c"), mustCounter(t, n.join(t, "bob-----", 0.9), "c")
				var added int64
				for range 60 {
					a.Add(1)
					b.Add(2)
					added += 3
					sleep(100 * time.Millisecond)
				}
				sleep(2 * second)
				unknown := 0
				for _, call := range n.ran() {
					if strings.Contains(call.err, "NOSCRIPT") {
						unknown++
					}
				}
				assert.Equal(t, len(n.ran())-unknown, clocks, "one reading of the clock a call")
				require.NotEmpty(t, n.additions())
				for _, s := range n.additions() {
					assert.Equal(t, int64(s.at)/1000/1000, s.n)
					assert.Equal(t, fmt.Sprintf("{c}:%d", s.n), s.key)
				}
				assert.Equal(t, added, n.sum("c"))
				assert.EqualValues(t, 2, a.Peek().Total.Participants, "they do not meet")
			})
		})
	}
}

// DESIGN 2, rule 1: "So a flush delayed anywhere can never land in a later interval, and every key is declared
// (Redis Cluster, Redis Enterprise, Dragonfly, ACLs)."
func TestRule1_ADelayedFlushNeverLandsLater(t *testing.T) {
	onNetwork(t, func(t *testing.T, n *network) {
		n.watchScripts(t, func(keys, command []string) string {
			if command[0] != "TIME" {
				assert.Contains(t, keys, command[1], "not declared: %v", command)
			}
			return ""
		})
		g := n.join(t, "alice---", 0)
		c, part := mustCounter(t, g, "c"), mustCounter(t, g, "c", attribute.Int("k", 1))
		late := map[string]int{}
		for delay := 137 * time.Microsecond; delay < 3600*time.Millisecond; delay += 130 * time.Millisecond {
			delayed := false
			n.setFault(func(call *wireCall) wireFault {
				if delayed || len(call.shares) == 0 {
					return wireFault{}
				}
				delayed = true
				return wireFault{before: delay}
			})
			c.Add(5)
			part.Add(3)
			_ = g.Flush(t.Context()) // ahead, now and then
			sleep(4 * second)
		}
		for _, call := range n.ran() {
			for _, s := range call.shares {
				word, _, _ := strings.Cut(s.answer, " ")
				if now := call.at.interval(second); s.n < now {
					late[word]++
					assert.NotEqual(t, "applied", word, "of interval %d, in %d", s.n, now)
				}
			}
		}
		assert.Positive(t, late["refused"])
		assert.Positive(t, late["late"])
		assert.Empty(t, n.addedTwice())
	})
}

// DESIGN 2, rule 2: "One marker per participant, counter and N (and per batch k, where a counter's series need
// several calls; a series always belongs to the same k)."
func TestRule2_OneMarkerPerParticipantCounterIntervalAndBatch(t *testing.T) {
	onNetwork(t, func(t *testing.T, n *network) {
		alice, bob := n.join(t, "alice---", 0), n.join(t, "bob-----", 0.5)
		for range 4 {
			for i := range 2*maxCells + 10 {
				mustCounter(t, alice, "c", attribute.Int("i", i)).Add(1)
			}
			mustCounter(t, alice, "d").Add(1)
			mustCounter(t, bob, "c", attribute.Int("i", 3)).Add(1)
			sleep(second)
		}
		batch := map[string]string{}
		for _, s := range n.additions() {
			for _, series := range s.series {
				if s.id == "alice---" {
					require.Contains(t, []string{"", s.batch}, batch[series], "%s in two batches", series)
					batch[series] = s.batch
				}
			}
		}
		assert.Len(t, batch, 2*maxCells+10)
		marks := func(name string, interval int64) (marks []string) {
			fields, err := n.mini.HKeys(partsKey("", name, interval))
			require.NoError(t, err)
			for _, field := range fields {
				if field[0] == '@' {
					marks = append(marks, field)
				}
			}
			return marks
		}
		for interval := n.serverTime().interval(second) - 2; interval < n.serverTime().interval(second); interval++ {
			assert.ElementsMatch(t, []string{"@alice---.0", "@alice---.1", "@alice---.2", "@bob-----.0"}, marks("c", interval))
			assert.Equal(t, []string{"@alice---.0"}, marks("d", interval))
		}
	})
}

// DESIGN 2, rule 3: "All or nothing per counter, without aborts. Every redis call in the script is a pcall."
func TestRule3_EveryCallIsAPcall(t *testing.T) {
	code := regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(flushSource, "")
	calls := regexp.MustCompile(`redis\.(\w+)`).FindAllStringSubmatch(code, -1)
	assert.Greater(t, len(calls), 5)
	for _, call := range calls {
		assert.Equal(t, "pcall", call[1])
	}
}

// DESIGN 2, rule 3: "Order: marker read (a wrong type ends it here), total (INCRBY; an error ends it here, nothing
// changed) with its TTL, marker with its TTL (an error takes the total back), then the series; a series
// that fails (type, overflow) is named in the reply and its amount taken out of the total again."
func TestRule3_TheOrderOfTheScript(t *testing.T) {
	order := []struct {
		command string // as a regular expression
		outcome Outcome
		total   string // after it fails here
		failed  int    // series
	}{
		{"TIME", Unknown, "20", 0},
		{"HGET .*:by @alice---.0", NotApplied, "20", 0},
		{"INCRBY .* 7", NotApplied, "20", 0},
		{"PEXPIRE [^ ]*[0-9] 3000", NotApplied, "20", 0},
		{"HSET .*:by @alice---.0 3", NotApplied, "20", 0},
		{"PEXPIRE .*:by 4000", NotApplied, "20", 0},
		{"HINCRBY .*:by # 1", Applied, "27", 0},
		{"HINCRBY .*:by a=1 3", Applied, "24", 1},
		{"HINCRBY .*:by b=2 4", Applied, "23", 1},
	}
	for fails := -1; fails < len(order); fails++ {
		t.Run(fmt.Sprintf("command %d fails", fails), func(t *testing.T) {
			onNetwork(t, func(t *testing.T, n *network) {
				rdb := redis.NewClient((&link{net: n}).options())
				t.Cleanup(func() { _ = rdb.Close() })
				store, err := NewStore(rdb)
				require.NoError(t, err)
				now, err := store.Probe(t.Context(), "", "", "c")
				require.NoError(t, err)
				interval := now.interval(second)
				total, hash := totalKey("", "c", interval), partsKey("", "c", interval)
				require.NoError(t, n.mini.Set(total, "20"))
				n.mini.HSet(hash, "x=1", "20")

				var did []string
				n.watchScripts(t, func(_, command []string) string {
					did = append(did, strings.Join(command, " "))
					if len(did) == fails+1 {
						return "ERR it fails here"
					}
					return ""
				})
				r := store.Flush(t.Context(), &Flush{Participant: "alice---", Interval: second, Shares: []Share{{
					Name: "c", Interval: interval, Seq: 3, Amount: 7, Series: []string{"a=1", "b=2"}, Amounts: []int64{3, 4},
				}}})[0]
				for i, step := range order {
					if fails < 0 || i <= fails {
						assert.Regexp(t, "^"+step.command+"$", did[i])
					}
				}
				value, err := n.mini.Get(total)
				require.NoError(t, err)
				if fails < 0 {
					assert.Equal(t, Applied, r.Outcome)
					assert.Equal(t, "27", value)
					return
				}
				want := order[fails]
				assert.Equal(t, want.outcome, r.Outcome, r.Err)
				assert.Equal(t, want.total, value)
				assert.Len(t, r.Failed, want.failed)
				if want.outcome != Applied {
					assert.ErrorContains(t, r.Err, "it fails here")
					assert.NotEqual(t, "3", n.mini.HGet(hash, "@alice---.0"), "a mark for nothing")
				}
			})
		})
	}
}
