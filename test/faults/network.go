package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// network is the servers, and what lies between them and the participants.
type network struct {
	names    []string // of counters; on a cluster each lives on another node
	servers  []*redistest.Server
	proxies  []*redistest.Proxy
	cluster  *redistest.Cluster // nil if there is one server
	dial     func(i int) redis.UniversalClient
	interval time.Duration
	move     *redistest.Move
	done     map[string]int // how often each fault was switched on
}

// standalone is one server behind several proxies, so that a fault meets some
// participants and not others.
func standalone(t *testing.T, interval time.Duration) *network {
	t.Helper()
	server := redistest.Start(t)
	n := &network{
		names: []string{"one", "two"}, servers: []*redistest.Server{server},
		interval: interval, done: map[string]int{},
	}
	for range 3 {
		n.proxies = append(n.proxies, redistest.NewProxy(t, server.Addr))
	}
	n.dial = func(i int) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: n.proxies[i%len(n.proxies)].Addr})
	}
	return n
}

// clustered is a cluster, each node behind a proxy.
func clustered(t *testing.T, interval time.Duration) *network {
	t.Helper()
	cluster := redistest.StartProxiedCluster(t, 2)
	n := &network{cluster: cluster, interval: interval, done: map[string]int{}}
	for i, node := range cluster.Nodes {
		n.names = append(n.names, cluster.NameOn(i, "name"))
		n.servers = append(n.servers, node.Server)
		n.proxies = append(n.proxies, node.Proxy)
	}
	n.dial = func(int) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	}
	return n
}

// fail switches one fault on, chosen by rnd. Faults of the wire meet script calls.
func (n *network) fail(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	if n.move != nil && rnd.IntN(3) == 0 {
		n.finishMove()
		return
	}
	proxy := n.proxies[rnd.IntN(len(n.proxies))]
	server := n.servers[rnd.IntN(len(n.servers))]
	upTo := func(intervals float64) time.Duration {
		return time.Duration(rnd.Float64() * intervals * float64(n.interval))
	}
	wire := func(f redistest.Fault) string {
		f.Match, f.Times = redistest.Script, 1+rnd.IntN(3)
		proxy.Inject(f)
		return string(f.Kind)
	}
	var fault string
	switch rnd.IntN(12) {
	case 0, 1, 2:
		fault = wire(redistest.Fault{Kind: redistest.Close})
	case 3:
		fault = wire(redistest.Fault{Kind: redistest.Stall})
	case 4:
		fault = wire(redistest.Fault{Kind: redistest.Drop})
	case 5:
		fault = wire(redistest.Fault{Kind: redistest.Late, Delay: upTo(4)})
	case 6:
		fault = wire(redistest.Fault{Kind: redistest.Repeat, Delay: upTo(6)})
	case 7:
		fault = wire(redistest.Fault{Kind: redistest.CutRequest, Bytes: rnd.IntN(300)})
	case 8:
		fault = wire(redistest.Fault{Kind: redistest.CutReply, Bytes: rnd.IntN(30)})
	case 9:
		fault = "slow"
		proxy.Inject(redistest.Fault{Kind: redistest.Delay, Times: 1 + rnd.IntN(20), Delay: upTo(0.8)})
	case 10:
		fault = n.shake(t, rnd, proxy, server)
	default:
		fault = n.reshard(t, rnd)
	}
	n.done[fault]++
}

// shake is what befalls a server, or all connections at once.
func (n *network) shake(t *testing.T, rnd *rand.Rand, proxy *redistest.Proxy, server *redistest.Server) string {
	t.Helper()
	switch rnd.IntN(3) {
	case 0:
		proxy.Disconnect()
		return "disconnect"
	case 1:
		server.Pause()
		time.Sleep(time.Duration(rnd.Float64() * 2 * float64(n.interval)))
		server.Resume()
		return "pause"
	default:
		if err := server.Client().ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return "script flush"
	}
}

// reshard begins to move a counter's slot to another node.
func (n *network) reshard(t *testing.T, rnd *rand.Rand) string {
	t.Helper()
	if n.cluster == nil || n.move != nil {
		return "none"
	}
	name := n.names[rnd.IntN(len(n.names))]
	n.move = n.cluster.BeginMove(name, (n.cluster.Owner(name)+1)%len(n.cluster.Nodes))
	return "move"
}

func (n *network) finishMove() {
	if n.move != nil {
		n.move.Finish()
		n.move = nil
	}
}

// heal ends all faults. Late and repeated commands may still be on their way.
func (n *network) heal() {
	for _, p := range n.proxies {
		p.Heal()
	}
	n.finishMove()
}

func (n *network) String() string {
	return fmt.Sprint("faults: ", n.done)
}
