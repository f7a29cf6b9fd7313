package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Slots is how many hash slots a Redis cluster has.
const Slots = 16384

// Cluster is a Redis cluster of the test's own, masters only.
type Cluster struct {
	Nodes []*Node

	tb     testing.TB
	owners [Slots]int // index of the node that holds a slot
}

// Node is a master of a [Cluster].
type Node struct {
	*Server
	Proxy *Proxy // in front of the node; nil unless the cluster has proxies

	client *redis.Client // straight to the server
	id     string
}

// StartCluster starts a cluster of that many masters, gives each an equal share of
// the slots, and waits until all agree that it is up. A master that is down or
// paused leaves the slots of the others served.
func StartCluster(tb testing.TB, masters int) *Cluster {
	tb.Helper()
	return startCluster(tb, masters, func(*Node) {})
}

// StartProxiedCluster is StartCluster with a [Proxy] before each node. The nodes
// announce their proxies' addresses, so that every client goes through them.
func StartProxiedCluster(tb testing.TB, masters int) *Cluster {
	tb.Helper()
	return startCluster(tb, masters, func(n *Node) { n.Proxy = NewProxy(tb, "") })
}

func startCluster(tb testing.TB, masters int, prepare func(*Node)) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	for range masters {
		n := &Node{}
		prepare(n)
		n.Server = launch(tb, n.command)
		if n.Proxy != nil {
			n.Proxy.setTarget(n.Server.Addr)
		}
		n.client = n.Client()
		c.Nodes = append(c.Nodes, n)
	}
	c.share()
	c.meet()
	c.await()
	return c
}

func (n *Node) command(s *Server) []string {
	args := append(s.defaults(),
		"--cluster-enabled", "yes",
		// Long: on a loaded machine a slow node must not be taken for a dead one.
		"--cluster-node-timeout", "10000",
		"--cluster-require-full-coverage", "no",
	)
	if n.Proxy != nil {
		args = append(args, "--cluster-announce-port", strconv.Itoa(n.Proxy.port()),
			"--cluster-announce-bus-port", strconv.Itoa(s.port+clusterBus))
	}
	return args
}

// Addr returns where clients find the node: its proxy, if it has one.
func (n *Node) Addr() string {
	if n.Proxy != nil {
		return n.Proxy.Addr
	}
	return n.Server.Addr
}

// Addrs returns where clients find the nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// Client returns a client of the cluster with go-redis' default options, changed by
// opts. It is closed in Cleanup.
func (c *Cluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	opt := &redis.ClusterOptions{Addrs: c.Addrs()}
	for _, set := range opts {
		set(opt)
	}
	client := redis.NewClusterClient(opt)
	c.tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Slot returns the hash slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	slot, err := c.Nodes[0].client.ClusterKeySlot(c.tb.Context(), key).Result()
	if err != nil {
		c.tb.Fatal(err)
	}
	return int(slot)
}

// Owner returns the index of the node that holds a key, as the test has arranged
// it: a slot on its way belongs to the old one until [Move.Finish].
func (c *Cluster) Owner(key string) int {
	c.tb.Helper()
	return c.owners[c.Slot(key)]
}

// NameOn returns a name that begins with base, and which a node holds: as a key,
// and in braces as a key's hash tag.
func (c *Cluster) NameOn(node int, base string) string {
	c.tb.Helper()
	for i := range 10000 {
		if name := base + strconv.Itoa(i); c.Owner(name) == node {
			return name
		}
	}
	c.tb.Fatalf("no name on node %d", node)
	return ""
}

// share gives each node its slots and an epoch of its own.
func (c *Cluster) share() {
	c.tb.Helper()
	ctx := c.tb.Context()
	for i, n := range c.Nodes {
		first, end := i*Slots/len(c.Nodes), (i+1)*Slots/len(c.Nodes)
		slots := make([]int, 0, end-first)
		for slot := first; slot < end; slot++ {
			slots = append(slots, slot)
			c.owners[slot] = i
		}
		id, err := n.client.Do(ctx, "CLUSTER", "MYID").Text()
		c.must(err)
		n.id = id
		c.must(n.client.ClusterAddSlots(ctx, slots...).Err())
		c.must(n.client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
	}
}

func (c *Cluster) meet() {
	c.tb.Helper()
	for _, n := range c.Nodes[1:] {
		// The bus' port too: the other one may be a proxy's.
		c.must(c.Nodes[0].client.Do(c.tb.Context(),
			"CLUSTER", "MEET", "127.0.0.1", n.port, n.port+clusterBus).Err())
	}
}

// await waits until each node knows where clients find every slot.
func (c *Cluster) await() {
	c.tb.Helper()
	for _, n := range c.Nodes {
		Eventually(c.tb, startTimeout, func() error { return c.agrees(n) })
	}
}

func (c *Cluster) agrees(n *Node) error {
	ctx, cancel := context.WithTimeout(c.tb.Context(), startTimeout)
	defer cancel()
	info, err := n.client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "cluster_state:ok\r\n") {
		return fmt.Errorf("node %s: the cluster is not up", n.Addr())
	}
	ranges, err := n.client.ClusterSlots(ctx).Result() //nolint:staticcheck // it is what go-redis itself asks
	if err != nil {
		return err
	}
	known := 0
	for _, r := range ranges {
		for slot := r.Start; slot <= r.End; slot++ {
			if want := c.Nodes[c.owners[slot]].Addr(); len(r.Nodes) == 0 || r.Nodes[0].Addr != want {
				return fmt.Errorf("node %s: slot %d: %v, want %s", n.Addr(), slot, r.Nodes, want)
			}
			known++
		}
	}
	if known != Slots {
		return fmt.Errorf("node %s knows %d of %d slots", n.Addr(), known, Slots)
	}
	return nil
}

func (c *Cluster) must(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}
