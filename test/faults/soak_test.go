package faults

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/otelcomcount/otelcomcount/internal/leaktest"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

var (
	length = flag.Duration("for", 10*time.Second, "how long faults go on")
	seed   = flag.Uint64("seed", 0, "of the choice of faults; 0: a new one")
)

func TestMain(m *testing.M) {
	flag.Parse()
	logging.Disable() // what go-redis logs of faults made on purpose
	leaktest.Main(m)
}

// "No amount is counted twice." "Losses are few and every one is reported with its
// amount." (DESIGN section 2).
func TestSoak(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	for name, start := range map[string]func(*testing.T, time.Duration) *network{
		"standalone": standalone,
		"cluster":    clustered,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soak(t, start(t, redistest.Interval(t)), *seed, *length)
		})
	}
}

func soak(t *testing.T, n *network, seed uint64, length time.Duration) {
	t.Helper()
	t.Logf("-seed %d -for %v", seed, length)
	rnd := rand.New(rand.NewPCG(seed, 0))
	prefix := redistest.Prefix(t)
	histories := map[string]*History{}
	for _, name := range n.names {
		histories[name] = NewHistory()
	}
	var stops []func()
	for _, server := range n.servers {
		stops = append(stops, watch(t, server, histories))
	}
	start := func(i int) *participant {
		return join(t, n.dial(i), n.interval, rnd.Uint64(), prefix, histories)
	}
	participants := make([]*participant, 5)
	for i := range participants {
		participants[i] = start(i)
	}

	for begin := time.Now(); time.Since(begin) < length; {
		time.Sleep(time.Duration(rnd.ExpFloat64() * float64(n.interval)))
		if rnd.IntN(20) == 0 {
			i := rnd.IntN(len(participants))
			participants[i].leave(time.Duration(rnd.Float64() * 3 * float64(n.interval)))
			participants[i] = start(i)
			n.done["leave"]++
		} else {
			n.fail(t, rnd)
		}
	}

	n.heal()
	for _, p := range participants {
		p.leave(patience)
	}
	for _, stop := range stops {
		stop()
	}
	t.Log(n)
	for name, history := range histories {
		t.Logf("%s: %v", name, history)
		if err := history.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
