package counter

import (
	"slices"
	"testing"
)

// The search takes states with one number for one state. That hides nothing: from
// two such states the same states follow, by their numbers, as does any breach.
// Checked here for each state that is met again, in scopes that reach every kind.
func TestStatesWithOneNumberBehaveAlike(t *testing.T) {
	scopes := map[string]bounds{
		"messages":                  base().with(func(b *bounds) { b.adds, b.faults = [2]int{1, 0}, 2 }),
		"slips":                     base().with(func(b *bounds) { b.faults, b.slips = 1, 1 }),
		"both":                      base().with(func(b *bounds) { b.faults, b.equals = 1, true }),
		"two amounts":               base().with(func(b *bounds) { b.adds, b.faults, b.partings = [2]int{2, 0}, 1, 1 }),
		"two faults and a failover": base().with(func(b *bounds) { b.adds, b.faults, b.failovers = [2]int{1, 0}, 2, 1 }),
		"followed":                  followed(),
		"partings":                  base().with(func(b *bounds) { b.faults, b.partings = 1, 1 }),
		"failover":                  base().with(func(b *bounds) { b.adds, b.faults, b.failovers = [2]int{1, 0}, 1, 1 }),
		"failover, step, end": base().with(func(b *bounds) {
			b.adds, b.faults, b.failovers, b.steps, b.ends = [2]int{1, 0}, 1, 1, []int8{2, 4}, 1
		}),
		"step back":                  base().with(func(b *bounds) { b.faults, b.steps = 1, []int8{2, 4} }),
		"two participants, failover": base().with(func(b *bounds) { b.faults, b.failovers = 1, 1 }),
		"wide":                       base().with(func(b *bounds) { b.adds, b.faults, b.wide = [2]int{1, 0}, 1, true }),
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	inParallel(t, scopes, func(t *testing.T, b bounds) {
		s := newSearch(b)
		first := map[uint64][]uint64{} // what follows on the state met first
		start := newWorld(&b)
		s.meet(start, -1, 0)
		again := 0
		for level := []*world{start}; len(level) > 0; {
			var next []*world
			for _, w := range level {
				number := s.canon.number(w)
				follow, states := s.followers(w)
				if known, met := first[number]; !met {
					first[number] = follow
					next = append(next, states...)
				} else if again++; !slices.Equal(known, follow) {
					t.Fatalf("two states with one number, and other states follow on them: %d and %d", len(known), len(follow))
				}
			}
			level = next
		}
		t.Logf("%d states, %d of them met again", len(first), again)
	})
}

// followers returns the numbers of all states that can follow on one, and those states.
func (s *search) followers(w *world) (numbers []uint64, states []*world) {
	s.model.successors(w, func(x *world) {
		if broken := x.check(&s.model.bounds); broken != "" {
			numbers = append(numbers, 0)
			return
		}
		s.model.tidy(x)
		numbers = append(numbers, s.canon.number(x))
		states = append(states, x)
	})
	slices.Sort(numbers)
	return slices.Compact(numbers), states
}
