package group

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// DESIGN 2, rule 6: "A lane is all counters of a group whose slot one master holds (without a cluster: all
// counters; in a cluster by `MasterForKey`, looked up again when slots move), with that server's clock, its own
// tick and its own flight, so that a stalled node delays nobody else's counters."
func TestStalledMasterDelaysNoCounterOfTheOther(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	g, err := counter.NewGroup(cluster.Client(), interval, counter.WithPrefix(prefix))
	require.NoError(t, err)
	t.Cleanup(g.Close)
	here, there := cluster.NameOn(0, "here"), cluster.NameOn(1, "there")
	a, err := g.Counter(here)
	require.NoError(t, err)
	b, err := g.Counter(there)
	require.NoError(t, err)
	a.Add(1)
	b.Add(1)
	redistest.Eventually(t, 20*interval, func() error { return known(a, b) })

	cluster.Nodes[1].Pause()
	t.Cleanup(cluster.Nodes[1].Resume)
	r := follow(t, cluster.Nodes[0].Client(), prefix, here, interval)
	seen := map[int64]bool{}
	for range 100 { // ten intervals
		a.Add(1)
		b.Add(1)
		if total := a.Total(); total.Known {
			seen[total.Interval] = true
		}
		time.Sleep(interval / 10)
	}
	assert.False(t, b.Total().Known, "a total that nothing refreshes goes stale")
	assert.True(t, a.Total().Known)
	totals, _ := r.finish(t)
	r.err = nil
	ns := slices.Sorted(maps.Keys(totals))
	require.NotEmpty(t, ns)
	assert.Len(t, ns, int(ns[len(ns)-1]-ns[0]+1), "an interval without our contribution: %v", ns)
	assert.GreaterOrEqual(t, len(seen), 7, "totals that came while the other master was stalled")

	cluster.Nodes[1].Resume()
	redistest.Eventually(t, 20*interval+10*time.Second, func() error { return known(a, b) })
}

// A counter whose slot moves to another master is flushed there.
func TestCounterFollowsItsSlot(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	interval, prefix := redistest.Interval(t), redistest.Prefix(t)
	name := cluster.NameOn(0, "moves")
	p := join(t, 3, clusterClient(cluster), prefix, name, interval)
	r := follow(t, cluster.Client(), prefix, name, interval)
	until := time.Now().Add(6 * interval)
	p.count(t, func() bool { return time.Now().After(until) })
	move := cluster.BeginMove("{"+name+"}", 1)
	until = time.Now().Add(3 * interval)
	p.count(t, func() bool { return time.Now().After(until) })
	move.Finish()
	until = time.Now().Add(6 * interval)
	p.count(t, func() bool { return time.Now().After(until) })
	p.flush(t)
	_, sum := r.finish(t)
	assert.Equal(t, p.added-p.losses.sum(), sum, "TRYAGAIN proves that nothing was counted: %v", p.losses.why)
}
