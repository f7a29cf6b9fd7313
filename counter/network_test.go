package counter

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

// network is a Redis in memory, with a clock of its own, and the ways to it, on
// which a test loses and delays what it likes. It notes what the server did. It
// lives in a bubble, where time passes only when all wait.
type network struct {
	mini *miniredis.Miniredis

	mu      sync.Mutex
	skew    time.Duration // how far the server's clock is ahead of the local one
	down    bool
	life    int // rises when what is on its way for a second time gets lost
	wires   map[*wire]bool
	fault   func(*wireCall) wireFault // asked for each call of the script
	calls   []*wireCall               // that the server has run, in their order
	totals  map[string]int64          // by key, past the keys' lives
	applied map[string]int            // by participant, key and batch: how often a share was added
}

func newNetwork() *network {
	n := &network{
		mini: miniredis.NewMiniRedis(), wires: map[*wire]bool{},
		totals: map[string]int64{}, applied: map[string]int{},
	}
	n.mini.ClockTTL(true)
	n.mini.SetTime(time.Now())
	return n
}

// close ends it. All that was delayed comes before, and finds nobody.
func (n *network) close() {
	n.cut(nil)
	n.mini.Close()
	time.Sleep(time.Minute)
}

// onNetwork runs a test in a bubble with a network.
func onNetwork(t *testing.T, test func(t *testing.T, n *network)) {
	bubbletest.Run(t, func(t *testing.T) {
		n := newNetwork()
		t.Cleanup(n.close)
		test(t, n)
	})
}

// link is a participant's way to the server.
type link struct {
	net     *network
	refused bool
}

// options are a client's, default ones, but for the address, which is no name: the
// resolver's pools would outlive the bubble.
func (l *link) options() *redis.Options {
	return &redis.Options{Addr: "127.0.0.1:6379", Dialer: l.dial}
}

// join returns a participant with a client of its own, that flushes at this place
// of an interval's phases.
func (n *network) join(t *testing.T, id string, where float64, opts ...Option) *Group {
	t.Helper()
	g, _ := n.joinWith(t, (&link{net: n}).options(), id, where, opts...)
	return g
}

func (n *network) joinWith(t *testing.T, options *redis.Options, id string, where float64, opts ...Option) (*Group, *redis.Client) {
	t.Helper()
	rdb := redis.NewClient(options)
	g, err := NewGroup(rdb, second, append([]Option{withIdentity(id, where)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		g.Close()
		_ = rdb.Close()
	})
	return g, rdb
}

func (n *network) setFault(fault func(*wireCall) wireFault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = fault
}

// now is the server's time. Only whole microseconds of it are seen.
func (n *network) now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Add(n.skew)
}

func (n *network) serverTime() ServerTime { return ServerTime(n.now().UnixMicro()) }

// step moves the server's clock. Keys expire at the time that was set for them, as
// in Redis: miniredis would keep what is left of their lives.
func (n *network) step(d time.Duration) {
	n.mini.SetTime(n.now())
	keys := n.mini.Keys()
	n.mu.Lock()
	n.skew += d
	n.mu.Unlock()
	n.mini.SetTime(n.now())
	for _, key := range keys {
		if d < 0 {
			n.mini.SetTTL(key, n.mini.TTL(key)-d)
		}
	}
}

// stop takes the server down; its data stay. start brings it back, without the
// scripts that it knew.
func (n *network) stop() {
	n.mu.Lock()
	n.down = true
	n.life++
	n.mu.Unlock()
	n.cut(nil)
}

func (n *network) start(t require.TestingT) {
	n.forgetScripts(t)
	n.mu.Lock()
	n.down = false
	n.mu.Unlock()
}

func (n *network) forgetScripts(t require.TestingT) { n.do(t, "SCRIPT", "FLUSH") }

// refuse has the server refuse new connections of a participant.
func (l *link) refuse(on bool) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.refused = on
}

// crash cuts a participant off for good.
func (l *link) crash() {
	l.refuse(true)
	l.net.cut(l)
}

// cut breaks the connections of a link, or with nil all.
func (n *network) cut(l *link) {
	n.mu.Lock()
	wires := slices.Collect(maps.Keys(n.wires))
	n.mu.Unlock()
	for _, w := range wires {
		if l == nil || w.link == l {
			w.close()
		}
	}
}

// do runs a command on the server.
func (n *network) do(t require.TestingT, args ...string) string {
	conn, err := n.mini.Dial()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	reply, err := proto.NewClient(conn).Do(args...)
	require.NoError(t, err)
	return reply
}

// sum adds up a counter's totals over all intervals.
func (n *network) sum(name string) (sum int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, v := range n.totals {
		if strings.Contains(key, "{"+name+"}:") {
			sum += v
		}
	}
	return sum
}

// ran returns the calls that the server has run.
func (n *network) ran() []*wireCall {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.calls)
}

// shares returns the shares of all calls.
func (n *network) shares() (shares []wireShare) {
	for _, call := range n.ran() {
		shares = append(shares, call.shares...)
	}
	return shares
}

// addition is a share that was added to its interval.
type addition struct {
	wireShare
	id    string
	at    ServerTime
	local time.Time
}

func (n *network) additions() (added []addition) {
	for _, call := range n.ran() {
		for _, s := range call.shares {
			if s.applied() {
				added = append(added, addition{s, call.id, call.at, call.local})
			}
		}
	}
	return added
}

// addedTwice returns whose share was added to one interval more than once.
func (n *network) addedTwice() (who []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, times := range n.applied {
		if times > 1 {
			who = append(who, key)
		}
	}
	return who
}
