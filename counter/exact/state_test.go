package exact_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

// TestFlushEveryState drives two writers on one server through random adds, reads,
// deletions and faults. At every moment Redis holds at most what was accepted, and
// at the end, with the faults over, exactly that.
func TestFlushEveryState(t *testing.T) {
	bubbletest.SkipInShortRace(t)
	reached := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, (&stateMachine{reached: reached}).run)
	})
	for _, what := range []string{"lost reply", "lost request", "black hole", "outage", "restart", "delete under way"} {
		if reached[what] == 0 {
			t.Errorf("no run had a %s", what)
		}
	}
}

type stateMachine struct {
	reached map[string]int
	wire    *wire
	client  *redis.Client
	members []*exact.Counters

	accepted  map[string]int64 // since the key was last deleted
	uncertain map[string]bool  // a deletion had no answer: the count may be 0 or not
}

func (m *stateMachine) run(rt *rapid.T) {
	m.wire = newWire()
	m.client = m.wire.newClient()
	m.accepted, m.uncertain = map[string]int64{}, map[string]bool{}
	defer m.end()
	for range 2 {
		c, err := exact.Open(m.client, "seats", exact.FlushEvery(flush))
		if err != nil {
			rt.Fatal(err)
		}
		m.members = append(m.members, c)
	}
	rt.Repeat(map[string]func(*rapid.T){
		"":         m.neverMore,
		"add":      m.add,
		"add more": m.add,
		"wait":     m.wait,
		"fault":    m.fault,
		"outage":   m.outage,
		"restart":  m.restart,
		"get":      m.get,
		"delete":   m.delete,
	})
	m.heal(rt)
}

// end leaves no goroutine behind, also after a failure.
func (m *stateMachine) end() {
	m.wire.setDown(true)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range m.members {
		_ = c.Close(ctx)
	}
	_ = m.client.Close()
	time.Sleep(time.Minute)
	m.wire.Close()
	synctest.Wait()
}

func (m *stateMachine) key(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
}

func (m *stateMachine) member(t *rapid.T) *exact.Counters {
	return rapid.SampledFrom(m.members).Draw(t, "member")
}

func (m *stateMachine) add(t *rapid.T) {
	key, n := m.key(t), rapid.Int64Range(1, 9).Draw(t, "n")
	if _, err := m.member(t).Add(context.Background(), key, n); err != nil {
		t.Fatal(err)
	}
	m.accepted[key] += n
}

func (m *stateMachine) wait(*rapid.T) {
	time.Sleep(flush + time.Millisecond)
}

func (m *stateMachine) fault(t *rapid.T) {
	f := rapid.SampledFrom([]fault{loseReply, loseRequest, blackHole}).Draw(t, "fault")
	m.wire.inject(f)
	m.reached[map[fault]string{loseReply: "lost reply", loseRequest: "lost request", blackHole: "black hole"}[f]]++
}

func (m *stateMachine) outage(t *rapid.T) {
	m.reached["outage"]++
	m.wire.setDown(true)
	time.Sleep(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
	m.wire.setDown(false)
}

// restart loses the scripts, not the data.
func (m *stateMachine) restart(*rapid.T) {
	m.reached["restart"]++
	m.wire.setDown(true)
	m.wire.setDown(false)
	_ = m.client.ScriptFlush(context.Background()).Err()
}

func (m *stateMachine) get(t *rapid.T) {
	key := m.key(t)
	count, err := m.member(t).Get(context.Background(), key)
	if err == nil && !m.uncertain[key] && count > m.accepted[key] {
		t.Log(key, count, m.accepted[key])
		t.Fatal("Get returned more than was accepted")
	}
}

// delete first lets everything land, for what the other member holds would land
// after it.
func (m *stateMachine) delete(t *rapid.T) {
	key, c := m.key(t), m.member(t)
	m.heal(t)
	n := rapid.Int64Range(0, 5).Draw(t, "more")
	if n > 0 {
		_, _ = c.Add(context.Background(), key, n)
		m.accepted[key] += n
	}
	if rapid.Bool().Draw(t, "under way") {
		m.reached["delete under way"]++
		m.wire.inject(rapid.SampledFrom([]fault{loseReply, loseRequest}).Draw(t, "fault"))
		m.wait(t)
	}
	existed, err := c.Delete(context.Background(), key)
	if err != nil {
		m.uncertain[key] = true
		return
	}
	if existed != (m.accepted[key] > 0) && !m.uncertain[key] {
		t.Log(key, existed, m.accepted[key])
		t.Fatal("Delete was wrong about what there was")
	}
	m.accepted[key] = 0
	delete(m.uncertain, key)
}

func (m *stateMachine) inRedis(key string) int64 {
	text, err := m.wire.Get("seats:{" + key + "}")
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (m *stateMachine) neverMore(t *rapid.T) {
	synctest.Wait()
	for _, key := range slices.Sorted(maps.Keys(m.accepted)) {
		if n := m.inRedis(key); n > m.accepted[key] {
			t.Log(key, n, m.accepted[key])
			t.Fatal("Redis holds more than was accepted")
		}
	}
}

// heal ends the faults and waits until everything must have landed.
func (m *stateMachine) heal(t *rapid.T) {
	m.wire.clear()
	time.Sleep(20 * flush)
	synctest.Wait()
	for _, key := range slices.Sorted(maps.Keys(m.accepted)) {
		if n := m.inRedis(key); n != m.accepted[key] && !m.uncertain[key] {
			t.Log(key, n, m.accepted[key])
			t.Fatal("not all that was accepted has landed")
		}
	}
}
