package counter

import (
	"flag"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The protocol, by exhaustive search (DESIGN, section 2 and 6).
//
// A state ([world]) holds two participants, a server and a network. The
// participants run the pure core's own code, the ledger and the clock's decision
// on steps; the server is a model of flush.lua ([server]). From each state all
// that may happen next is tried ([model.successors]): a flush, an answer, a fault,
// a failover, a step of the clock, a crash, the passing of time; and each promise
// is checked in each state ([world.check]). What may happen, how often and for how
// long is a search's [bounds].
//
// The files: search_test.go goes through the states; searchbounds, searchserver,
// searchparticipant, searchworld and searchnetwork are the model; searchcheck the
// promises; searchtidy and searchcanon make one of states that behave alike;
// searchtraces shows what each rule is there for.

var searchLarge = flag.Bool("search.large", false, "search through the large scopes, too: takes long and needs gigabytes")

// DESIGN 2: "How it is held. (The rules below were checked by exhaustive search over small scopes: two participants,
// up to three faults of lost, delayed and repeated messages, a failover that loses a suffix of writes with a
// slightly slower clock, a clock step, a crash;"
//
// All rules hold in every state of these scopes.
func TestNoPromiseIsBrokenInAnyState(t *testing.T) {
	scopes := ordinaryScopes()
	if testing.Short() {
		small := scopes["messages"]
		small.faults = 1
		scopes = map[string]bounds{"messages, small": small}
	}
	if *searchLarge {
		scopes = largeScopes()
	}
	var (
		mu   sync.Mutex
		seen [numSights]int
	)
	inParallel(t, scopes, func(t *testing.T, b bounds) {
		s := newSearch(b)
		began := time.Now()
		found := s.run()
		s.report(t, time.Since(began))
		if found != nil {
			t.Errorf("%s:\n%s", found.broken, found)
		}
		mu.Lock()
		defer mu.Unlock()
		for i, n := range s.model.seen {
			seen[i] += n
		}
	})
	for i, n := range seen {
		if n == 0 && !testing.Short() {
			t.Errorf("no search has met %q: it proves nothing of that", sight(i))
		}
	}
}

// inParallel runs a test for each scope, and waits for all of them.
func inParallel[T any](t *testing.T, cases map[string]T, test func(*testing.T, T)) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	t.Run("scope", func(t *testing.T) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, c)
			})
		}
	})
}

// search is a breadth-first search through all states of a scope: the trace that
// it finds is a shortest one. It keeps a number for each state that it has met,
// and how it came there; the states themselves only until they are expanded.
type search struct {
	model model
	canon canon

	met     map[uint64]struct{}
	parents []int32  // by state, in the order met
	choices []uint16 // which successor of its parent it is
	ends    int      // after how many states a faultless time was tried
}

// trace is how a promise is broken.
type trace struct {
	broken string
	lines  []string
}

func (t *trace) String() string { return strings.Join(t.lines, "\n") }

// node is a state that is to be expanded.
type node struct {
	world *world
	id    int32
}

func newSearch(b bounds) *search {
	s := &search{model: model{bounds: b}, met: map[uint64]struct{}{}}
	s.canon = canon{model: &s.model, seed: maphash.MakeSeed()}
	return s
}

// run searches until a promise is broken, or there are no more states.
func (s *search) run() *trace {
	start := newWorld(&s.model.bounds)
	s.meet(start, -1, 0)
	for level := []node{{start, 0}}; len(level) > 0; {
		var next []node
		for _, n := range level {
			found, states := s.expand(n)
			if found != nil {
				return found
			}
			next = append(next, states...)
		}
		level = next
	}
	return nil
}

// expand looks at all that can follow on a state, and returns what is new of it.
func (s *search) expand(n node) (found *trace, states []node) {
	choice := uint16(0)
	s.model.successors(n.world, func(w *world) {
		defer func() { choice++ }()
		if found != nil {
			return
		}
		if broken := w.check(&s.model.bounds); broken != "" {
			found = &trace{broken, s.retrace(n.id, choice, false)}
			return
		}
		id, isNew := s.meet(w, n.id, choice)
		if !isNew {
			return
		}
		states = append(states, node{w, id})
		if s.model.calm && w.now == s.model.lastMoment() {
			s.ends++
			if _, broken := s.model.settle(w); broken != "" {
				found = &trace{broken, s.retrace(n.id, choice, true)}
			}
		}
	})
	return found, states
}

// meet numbers a state, and reports whether it is new.
func (s *search) meet(w *world, parent int32, choice uint16) (id int32, isNew bool) {
	s.model.tidy(w)
	number := s.canon.number(w)
	if _, known := s.met[number]; known {
		return 0, false
	}
	s.met[number] = struct{}{}
	s.parents = append(s.parents, parent)
	s.choices = append(s.choices, choice)
	return int32(len(s.parents) - 1), true
}

// retrace goes the way to a state again, and one choice further, and tells it; if
// asked, with the faultless time after.
func (s *search) retrace(id int32, last uint16, calm bool) (lines []string) {
	way := []uint16{last}
	for ; s.parents[id] >= 0; id = s.parents[id] {
		way = append(way, s.choices[id])
	}
	slices.Reverse(way)
	w := newWorld(&s.model.bounds)
	for _, choice := range way {
		s.model.tidy(w)
		from, i := w, uint16(0)
		from.telling, from.told = true, nil
		s.model.successors(from, func(x *world) {
			if i == choice {
				w = x
			}
			i++
		})
		lines = append(lines, w.told...)
	}
	if calm {
		w.told = nil
		end, _ := s.model.settle(w)
		lines = append(append(lines, "then, without faults:"), end.told...)
	}
	return lines
}

// report prints what a search went through.
func (s *search) report(t *testing.T, took time.Duration) {
	t.Helper()
	var met []string
	for i, n := range s.model.seen {
		if n > 0 {
			met = append(met, fmt.Sprintf("%v: %d", sight(i), n))
		}
	}
	t.Logf("%d states in %v, a faultless time after %d of them. %s", len(s.parents), took.Round(time.Millisecond), s.ends, strings.Join(met, "; "))
}
