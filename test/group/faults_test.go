package group

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// everyNth matches a flush of each participant in turn: the one numbered at of
// every n.
func everyNth(n, at int) redistest.Match {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(args []string) bool {
		if !redistest.Script(args) || len(args) < 3 {
			return false
		}
		keys, err := strconv.Atoi(args[2])
		if err != nil || len(args) < keys+5 {
			return false // a probe
		}
		mu.Lock()
		defer mu.Unlock()
		id := args[keys+4]
		seen[id]++
		return seen[id]%n == at
	}
}

const (
	many       = 50   // participants
	faultsEach = 1000 // of each kind

	// calm is the shortest interval of a test in which nothing may be lost. A machine
	// that stands still for two intervals after a lost reply makes losses that no network
	// made.
	calm = 500 * time.Millisecond
)

func TestThousandLostRepliesAndRequestsCostNothing(t *testing.T) {
	skipShort(t)
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		proxy := redistest.NewProxy(t, server.Addr)
		closed := proxy.Inject(redistest.Fault{Kind: redistest.Close, Match: everyNth(6, 1), Times: faultsEach})
		dropped := proxy.Inject(redistest.Fault{Kind: redistest.Drop, Match: everyNth(6, 4), Times: faultsEach})
		lostNothing(t, server.Client(), func() redis.UniversalClient { return proxy.Client() },
			func() int { return min(closed.Hits(), dropped.Hits()) })
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := redistest.StartProxiedCluster(t, 2)
		var injected []*redistest.Injection
		closes, drops := everyNth(6, 1), everyNth(6, 4)
		for _, n := range cluster.Nodes {
			injected = append(injected,
				n.Proxy.Inject(redistest.Fault{Kind: redistest.Close, Match: closes, Times: faultsEach}),
				n.Proxy.Inject(redistest.Fault{Kind: redistest.Drop, Match: drops, Times: faultsEach}))
		}
		lostNothing(t, cluster.Client(), func() redis.UniversalClient { return cluster.Client() },
			func() int {
				return min(injected[0].Hits()+injected[2].Hits(), injected[1].Hits()+injected[3].Hits())
			})
	})
}

func lostNothing(t *testing.T, direct redis.UniversalClient, client func() redis.UniversalClient, hits func() int) {
	interval, prefix := max(redistest.Interval(t), calm), redistest.Prefix(t)
	r := follow(t, direct, prefix, "requests", interval)
	p := join(t, many, client, prefix, "requests", interval)
	p.count(t, func() bool { return hits() >= faultsEach })
	p.flush(t)
	_, sum := r.finish(t)
	assert.Equal(t, p.added, sum, "neither counted twice nor lost")
	assert.Zero(t, p.losses.sum(), "reported as lost: %v", p.losses.why)
}

func TestStallsAreNeverCountedTwiceAndEachLossIsReported(t *testing.T) {
	skipShort(t)
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	r := follow(t, server.Client(), prefix, "requests", interval)
	stalled := proxy.Inject(redistest.Fault{Kind: redistest.Stall, Match: everyNth(5, 2), Times: 50})
	p := join(t, 10, func() redis.UniversalClient { return proxy.Client() }, prefix, "requests", interval)
	p.count(t, func() bool { return stalled.Hits() >= 50 })
	p.flush(t)
	_, sum := r.finish(t)
	assert.LessOrEqual(t, sum, p.added, "never counted twice")
	assert.GreaterOrEqual(t, sum, p.added-p.losses.sum(), "each loss is reported: %v", p.losses.why)
}

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes half a minute: left out with -short")
	}
}
