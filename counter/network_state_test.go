package counter

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"pgregory.net/rapid"

	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

// DESIGN 2, promise 1: "This holds under lost replies, late and repeated commands, reconnects, failover, slot moves,
// clock steps of participants, ForceFlush and Shutdown."
//
// Slot moves need a cluster: see test/group. The participants' clocks do not enter;
// what steps here is the server's.
func TestPromise1_AnyHistoryOnTheWire(t *testing.T) {
	bubbletest.SkipInShortRace(t)
	var mu sync.Mutex
	reached := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			f := newFleet(t)
			t.Repeat(map[string]func(*rapid.T){
				"":         f.check,
				"add":      f.add,
				"add2":     f.add,
				"advance":  f.advance,
				"advance2": f.advance,
				"advance3": f.advance,
				"fault":    f.setFault,
				"flush":    f.flush,
				"join":     f.join,
				"part":     f.part,
				"clock":    f.clock,
				"server":   f.server,
			})
			f.finish(t)
			mu.Lock()
			defer mu.Unlock()
			for state := range f.reached {
				reached[state]++
			}
		})
	})
	for _, state := range []string{
		"applied", "repeated", "NOSCRIPT", "answer c", "answer n", string(lostUnknown), "crashed with a buffer", "shut down",
		"restarted", "stepped back", "failed over with a loss", "total told",
	} {
		if reached[state] == 0 && !testing.Short() { // -short draws few histories
			t.Errorf("no history reached %q: the test proves nothing of it", state)
		}
	}
	t.Log(reached)
}

// fleet is a random history of participants of one server.
type fleet struct {
	net       *network
	failovers bool      // the clock of this history's server steps by failover, else by itself
	saved     *replica  // as of before the last time that passed
	latest    time.Time // the server's, ever

	members []*member
	joined  int
	added   map[string]int64
	gone    map[string]int64 // in the buffers of participants that crashed
	undone  map[string]int64 // lost by failovers
	lost    map[string]map[reason]int64
	reached map[string]bool

	mu     sync.Mutex
	closed map[string]int64 // totals that participants were told, by key
}

// member is a participant.
type member struct {
	group  *Group
	client *redis.Client
	link   *link
	log    *lossLog
}

func newFleet(t *rapid.T) *fleet {
	f := &fleet{
		net: newNetwork(), failovers: rapid.Bool().Draw(t, "failovers"), added: map[string]int64{}, gone: map[string]int64{},
		undone: map[string]int64{}, lost: map[string]map[reason]int64{}, reached: map[string]bool{}, closed: map[string]int64{},
	}
	t.Cleanup(f.net.close)
	f.join(t)
	f.join(t)
	f.setFault(t)
	return f
}

func (f *fleet) join(t *rapid.T) {
	if len(f.members) == 3 {
		t.Skip("enough participants")
	}
	f.joined++
	m := &member{link: &link{net: f.net}, log: newLossLog()}
	m.client = redis.NewClient(m.link.options())
	var err error
	m.group, err = NewGroup(m.client, second, WithLogger(slog.New(m.log)), WithCarry(rapid.IntRange(0, 3).Draw(t, "carry")),
		withIdentity(fmt.Sprintf("member%02d", f.joined), float64(rapid.IntRange(0, 9).Draw(t, "phase"))/10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.group.Close()
		_ = m.client.Close()
	})
	m.group.OnTick(f.told)
	f.members = append(f.members, m)
}

// told notes the totals that a participant knows.
func (f *fleet) told(readings []Reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range readings {
		if r.Total.Known && r.Attributes.Len() == 0 {
			key := totalKey("", r.Name, r.Total.Interval)
			f.closed[key] = max(f.closed[key], r.Total.Closed)
		}
	}
}

func (f *fleet) pick(t *rapid.T) (*member, int) {
	if len(f.members) == 0 {
		t.Skip("no participant")
	}
	i := rapid.IntRange(0, len(f.members)-1).Draw(t, "participant")
	return f.members[i], i
}

func (f *fleet) add(t *rapid.T) {
	m, _ := f.pick(t)
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
	var attrs []attribute.KeyValue
	if k := rapid.IntRange(0, 2).Draw(t, "series"); k > 0 {
		attrs = append(attrs, attribute.Int("k", k))
	}
	c, err := m.group.Counter(name, attrs...)
	if err != nil {
		t.Fatal(err)
	}
	n := rapid.Int64Range(0, 5).Draw(t, "n")
	c.Add(n)
	f.added[name] += n
}

func (f *fleet) advance(t *rapid.T) {
	if f.failovers {
		f.saved = f.net.replicate(t)
	}
	ms := rapid.IntRange(0, 2500).Draw(t, "ms")
	time.Sleep(time.Duration(ms)*time.Millisecond + 13*time.Microsecond)
	synctest.Wait()
}

func (f *fleet) setFault(t *rapid.T) {
	kind := rapid.SampledFrom([]string{
		"none", "lose request", "lose reply", "late request", "late reply", "repeat", "repeat, lose reply", "READONLY", "ERR",
	}).Draw(t, "fault")
	d := time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms"))*time.Millisecond + 7*time.Microsecond
	every, n := rapid.IntRange(1, 3).Draw(t, "every"), 0
	f.net.setFault(func(*wireCall) wireFault {
		if n++; n%every != 0 {
			return wireFault{}
		}
		switch kind {
		case "lose request":
			return wireFault{loseRequest: true}
		case "lose reply":
			return wireFault{loseReply: true}
		case "late request":
			return wireFault{before: d}
		case "late reply":
			return wireFault{after: d}
		case "repeat":
			return wireFault{again: d}
		case "repeat, lose reply":
			return wireFault{again: d, loseReply: true}
		case "READONLY", "ERR":
			return wireFault{answer: kind + " You can't"}
		}
		return wireFault{}
	})
}

func (f *fleet) flush(t *rapid.T) {
	m, _ := f.pick(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rapid.IntRange(1, 1500).Draw(t, "timeout"))*time.Millisecond)
	defer cancel()
	_ = m.group.Flush(ctx)
}

// part takes a participant away: closed, or as it is.
func (f *fleet) part(t *rapid.T) {
	m, i := f.pick(t)
	f.members = slices.Delete(f.members, i, i+1)
	how := rapid.SampledFrom([]string{"shut down", "closed", "crashed"}).Draw(t, "how")
	f.reached[how] = true
	switch how {
	case "shut down":
		ctx, cancel := context.WithTimeout(context.Background(), second)
		defer cancel()
		_ = m.group.Shutdown(ctx)
	case "closed":
		m.group.Close()
	case "crashed":
		m.link.crash()
		for name, kept := range m.buffers(t) {
			f.gone[name] += kept
			if kept > 0 {
				f.reached["crashed with a buffer"] = true
			}
		}
	}
	f.settle(m)
}

// settle notes what a participant has reported, after which nobody listens.
func (f *fleet) settle(m *member) {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	for name, byReason := range m.log.losses {
		if f.lost[name] == nil {
			f.lost[name] = map[reason]int64{}
		}
		for why, n := range byReason {
			f.lost[name][why] += n
		}
	}
}

// buffers returns what a participant keeps.
func (m *member) buffers(t *rapid.T) map[string]int64 {
	kept := map[string]int64{}
	for _, name := range []string{"a", "b"} {
		c, err := m.group.Counter(name)
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = c.Peek().Total.Buffer
	}
	return kept
}

// server takes the server down for a while, or has it forget its scripts. Its data
// stay.
func (f *fleet) server(t *rapid.T) {
	if rapid.Bool().Draw(t, "only forget") {
		f.net.forgetScripts(t)
		return
	}
	f.net.stop()
	time.Sleep(time.Duration(rapid.IntRange(0, 2500).Draw(t, "ms")) * time.Millisecond)
	f.net.start(t)
	f.reached["restarted"] = true
}

// clock steps the server's clock, at most an interval back from where it ever was,
// or has a replica take over, whose clock is behind by the slack at most.
func (f *fleet) clock(t *rapid.T) {
	now := f.net.now()
	if now.After(f.latest) {
		f.latest = now
	}
	if !f.failovers {
		ms := rapid.OneOf(rapid.IntRange(-1000, 0), rapid.IntRange(0, 5000)).Draw(t, "step ms")
		to := now.Add(time.Duration(ms) * time.Millisecond)
		if to.Before(f.latest.Add(-second)) {
			t.Skip("back too far")
		}
		f.net.step(to.Sub(now))
		if ms < 0 {
			f.reached["stepped back"] = true
		}
		return
	}
	if f.saved == nil {
		t.Skip("nothing replicated")
	}
	behind := time.Duration(rapid.IntRange(0, int(slack(second)/time.Millisecond)).Draw(t, "behind ms")) * time.Millisecond
	if now.Add(-behind).Before(f.latest.Add(-slack(second))) {
		t.Skip("behind too far")
	}
	for key, n := range f.net.failover(t, f.saved, behind) {
		f.undone[key[1:2]] += n
		if n > 0 {
			f.reached["failed over with a loss"] = true
		}
	}
	f.saved = nil
}

// check holds at any time: nothing is overstated, and all is accounted for.
func (f *fleet) check(t *rapid.T) {
	synctest.Wait()
	if len(f.net.addedTwice()) > 0 {
		t.Fatal("a participant added twice to one interval")
	}
	for name, added := range f.added {
		sum := f.net.sum(name)
		if sum > added {
			t.Fatal("overstated")
		}
		for _, m := range f.members {
			sum += m.log.sum(name) + m.buffers(t)[name]
		}
		for _, n := range f.lost[name] {
			sum += n
		}
		if sum+f.gone[name]+f.undone[name] < added {
			t.Log(fmt.Sprintf("%s: added %d, accounted for %d, gone %d, undone %d", name, added, sum, f.gone[name], f.undone[name]))
			t.Fatal("unaccounted")
		}
	}
}

// finish heals everything and lets all settle.
func (f *fleet) finish(t *rapid.T) {
	f.net.setFault(nil)
	time.Sleep(10 * second)
	f.check(t)
	for _, m := range f.members {
		ctx, cancel := context.WithTimeout(context.Background(), 20*second)
		if err := m.group.Flush(ctx); err != nil {
			t.Fatal("a flush without faults does not end")
		}
		cancel()
		for _, kept := range m.buffers(t) {
			if kept != 0 {
				t.Fatal("a flush leaves something behind")
			}
		}
		f.settle(m)
	}
	members := f.members
	f.members = nil
	f.check(t)
	for name, added := range f.added {
		for why, n := range f.lost[name] {
			if why != lostUnknown {
				added -= n
			}
		}
		if f.net.sum(name) > added {
			t.Log(fmt.Sprintf("%s: added %d, in the store %d, reported %v", name, f.added[name], f.net.sum(name), f.lost[name]))
			t.Fatal("what was reported lost was counted")
		}
	}
	f.checkClosed(t)
	f.note()
	for _, m := range members {
		m.group.Close()
	}
}

// checkClosed compares what participants were told with what the server held.
func (f *fleet) checkClosed(t *rapid.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failovers {
		return // totals may have been undone
	}
	for _, key := range slices.Sorted(maps.Keys(f.closed)) {
		f.reached["total told"] = true
		told, held := f.closed[key], f.net.totals[key]
		if told > held || told < held && !f.reached["stepped back"] {
			t.Log(fmt.Sprintf("%s: told %d, held %d", key, told, held))
			t.Fatal("a wrong total")
		}
	}
}

// note takes from the wire which states the history has reached.
func (f *fleet) note() {
	for _, call := range f.net.ran() {
		if strings.Contains(call.err, "NOSCRIPT") {
			f.reached["NOSCRIPT"] = true
		}
		for _, s := range call.shares {
			word, _, _ := strings.Cut(s.answer, " ")
			f.reached[word] = true
		}
	}
	for _, letter := range f.net.answers() {
		f.reached["answer "+string(letter)] = true
	}
	for _, lost := range f.lost {
		for why := range lost {
			f.reached[string(why)] = true
		}
	}
}
