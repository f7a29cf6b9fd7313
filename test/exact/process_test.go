package exact

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

var (
	killFor = flag.Duration("for", 8*time.Second, "how long the test of killed processes runs")
	kills   = flag.Int("kills", 20, "how many processes the test of keys without TTL kills")
)

// "10 processes with FlushEvery under kill -9, proxy faults and Redis restarts
// (appendonly, fsync always): final = sum accepted minus at most what the killed
// ones had accepted since their last confirmed batch; never more."
func TestKilledProcessesLoseAtMostTheirLastBatch(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	proxy := redistest.NewProxy(t, server.Addr)
	for i, kind := range []redistest.Kind{redistest.Close, redistest.Drop, redistest.Stall, redistest.Late, redistest.Repeat} {
		proxy.Inject(redistest.Fault{Kind: kind, Match: adding, Probability: 0.01, Seed: uint64(i + 1), Delay: 300 * time.Millisecond})
	}
	var all []*process
	start := func() {
		all = append(all, startProcess(t, orders{Addr: proxy.Addr, Own: fmt.Sprint("own", len(all)), Flush: 50 * time.Millisecond}))
	}
	for range 10 {
		start()
	}
	for deadline, next := time.Now().Add(*killFor), 0; time.Now().Before(deadline); next++ {
		time.Sleep(*killFor / 16)
		if next%5 == 4 {
			server.Restart() // kill -9
			continue
		}
		for _, p := range rand.Perm(len(all)) {
			if !all[p].killed {
				all[p].kill()
				break
			}
		}
		start()
	}
	proxy.Heal()
	var killed, sum int64
	var low, high int64 // of all counts together
	for _, p := range all {
		if !p.killed {
			p.finish(t)
			sum += p.did
			low, high = low+2*p.did, high+2*p.did
			continue
		}
		killed++
		low, high = low+p.safe, high+2*p.tried
	}
	time.Sleep(400 * time.Millisecond) // what is late or repeated arrives

	c := open(t, server.Client(), "proc")
	get := func(key string) int64 {
		n, err := c.Get(t.Context(), key)
		require.NoError(t, err)
		return n
	}
	total := get("shared")
	sharedHigh := sum
	for _, p := range all {
		own := get(p.own)
		total += own
		if !p.killed {
			require.Equal(t, p.did, own, "nothing was killed here, so nothing is lost")
			continue
		}
		require.LessOrEqual(t, own, p.tried)
		sharedHigh += p.tried
	}
	require.LessOrEqual(t, get("shared"), sharedHigh)
	require.LessOrEqual(t, total, high, "never more")
	require.GreaterOrEqual(t, total, low, "what a batch had confirmed is there")
	t.Logf("%d processes, %d killed; accepted at most %d, confirmed at least %d, counted %d", len(all), killed, high, low, total)
	require.Positive(t, killed)
	require.Greater(t, low, int64(1000))
}

// B16: processes that are killed, and connections cut in the middle of a command,
// leave no key without its TTL, markers and ids included.
func TestB16KilledProcessesLeaveNoImmortalKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	for i, f := range []redistest.Fault{{Kind: redistest.CutRequest, Bytes: 150}, {Kind: redistest.CutReply, Bytes: 3}} {
		f.Match, f.Probability, f.Seed = adding, 0.05, uint64(i+1)
		proxy.Inject(f)
	}
	c := open(t, proxy.Client(), "proc", exact.TTL(time.Hour))
	for i := range *kills {
		p := startProcess(t, orders{Addr: proxy.Addr, Own: fmt.Sprint("own", i), Flush: 5 * time.Millisecond, TTL: time.Hour})
		for end := time.Now().Add(time.Duration(50+rand.IntN(100)) * time.Millisecond); time.Now().Before(end); {
			_, _ = c.Add(t.Context(), fmt.Sprint("direct", i), 1, exact.ID(fmt.Sprint(rand.Int())))
		}
		p.kill()
	}
	admin := server.Client()
	keys := 0
	for iter := admin.Scan(t.Context(), 0, "*", 1000).Iterator(); iter.Next(t.Context()); keys++ {
		ttl, err := admin.PTTL(t.Context(), iter.Val()).Result()
		require.NoError(t, err)
		require.NotEqual(t, time.Duration(-1), ttl, iter.Val())
	}
	require.Greater(t, keys, *kills)
	t.Logf("%d keys", keys)
}
