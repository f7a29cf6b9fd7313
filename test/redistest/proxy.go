package redistest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Proxy is a network between clients and a Redis server that fails on demand. It
// understands RESP2 and RESP3 well enough to tell commands apart and to pair
// replies with them, also in pipelines. It does not follow TLS, MONITOR and
// subscriptions.
//
// All methods may be called from any goroutine.
type Proxy struct {
	*listener
	tb testing.TB

	mu        sync.Mutex
	target    string
	faults    []*Injection
	counts    []*count
	forwarded map[string]int // commands that reached the server, by upper-case name
}

type count struct {
	match Match
	n     int
}

// NewProxy puts a proxy before the server at target (host:port). Without faults it
// passes everything on. It is closed in Cleanup.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{listener: listen(tb), tb: tb, target: target, forwarded: map[string]int{}}
	p.serve(p.relay)
	return p
}

// Client returns a client that goes through the proxy, with go-redis' default
// options, changed by opts. It is closed in Cleanup.
func (p *Proxy) Client(opts ...func(*redis.Options)) *redis.Client {
	return newClient(p.tb, p.Addr, opts...)
}

// Inject switches a fault on. Where several are on, each [Delay] takes effect, and
// of the others the first that hits a command. Faults that have been used up, by
// Fault.Times, are out of the way of the next.
func (p *Proxy) Inject(f Fault) *Injection {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := &Injection{proxy: p, fault: f, rand: rand.New(rand.NewPCG(f.Seed, f.Seed))}
	p.faults = append(p.faults, i)
	return i
}

// Heal switches all faults off.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.faults {
		i.ended = true
	}
	p.faults = nil
}

// Count counts the commands that match, from now on, as clients send them. The
// function that it returns tells how many there were.
func (p *Proxy) Count(match Match) func() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &count{match: match}
	p.counts = append(p.counts, c)
	return func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return c.n
	}
}

// Forwarded returns how many commands of the given names have been passed to the
// server whole, repeats included.
func (p *Proxy) Forwarded(names ...string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := 0
	for _, name := range names {
		sum += p.forwarded[strings.ToUpper(name)]
	}
	return sum
}

// setTarget names the server for connections to come.
func (p *Proxy) setTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

func (p *Proxy) targetAddr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// received counts a command and decides what becomes of it.
func (p *Proxy) received(args []string, raw []byte) exchange {
	ex := exchange{args: args, raw: raw}
	p.saw(args)

	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.counts {
		if c.match(args) {
			c.n++
		}
	}
	var delay time.Duration
	for _, i := range p.faults {
		if ex.kind != "" && i.fault.Kind != Delay {
			continue
		}
		if !i.hit(args) {
			continue
		}
		if i.fault.Kind == Delay {
			delay += i.fault.Delay
			continue
		}
		ex.kind, ex.fault = i.fault.Kind, i.fault
	}
	ex.due = time.Now().Add(delay / 2)
	ex.way = delay - delay/2
	if ex.kind == Late {
		ex.due = ex.due.Add(ex.fault.Delay)
	}
	return ex
}

func (p *Proxy) passed(args []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(args) > 0 {
		p.forwarded[strings.ToUpper(args[0])]++
	}
}
