package stream

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
)

// writer is a process that reports one cumulative sum.
type writer struct {
	start, value uint64
}

// "What counts is a lower bound of what was added": whatever the writers under one
// identity do, as long as their start times differ, and in whatever order their
// points come, what counts is at most what was added since the first point.
func TestNeverMoreThanWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		table := NewTable(Settings{Limit: 10, Staleness: time.Minute}, now)
		clock := uint64(1)
		var writers []*writer
		var late []Point[int64]
		var added, counted int64
		started := false

		begin := func() *writer {
			clock++
			w := &writer{start: clock}
			writers = append(writers, w)
			clock++
			return w
		}
		send := func(p Point[int64]) {
			n, _ := table.Int(identity.Key{}, p, now)
			started = true
			counted += n
		}
		pick := func() *writer { return writers[rapid.IntRange(0, len(writers)-1).Draw(t, "writer")] }
		begin()
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) { begin() },
			"restart": func(*rapid.T) {
				w := pick()
				clock++
				w.start, w.value = clock, 0
				clock++
			},
			"count": func(t *rapid.T) {
				n := rapid.Uint64Range(0, 1000).Draw(t, "n")
				pick().value += n
				if started {
					added += int64(n)
				}
			},
			"send": func(t *rapid.T) {
				clock++
				w := pick()
				p := Point[int64]{w.start, clock, int64(w.value)}
				if rapid.Bool().Draw(t, "delay") {
					late = append(late, p)
					return
				}
				send(p)
			},
			"arrive late": func(t *rapid.T) {
				if len(late) == 0 || !started {
					t.Skip()
				}
				i := rapid.IntRange(0, len(late)-1).Draw(t, "which")
				send(late[i])
				if rapid.Bool().Draw(t, "once") {
					late = append(late[:i], late[i+1:]...)
				}
			},
			"silence": func(*rapid.T) {
				now = now.Add(50 * time.Second)
				late = nil // a point that comes later than max_staleness is outside the promise
			},
			"": func(t *rapid.T) {
				if counted > added {
					t.Fatalf("counted more than was added")
				}
			},
		})
	})
}

// One writer whose points come in order, with restarts: all is counted that is
// added while it is known, except what a restarted process has on top of a value
// that it had outgrown, and what a process adds after its last point.
func TestOneWriterCountsInFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		table := NewTable(Settings{Limit: 10}, now)
		w, clock := writer{start: 1}, uint64(2)
		var added, counted, last int64
		send := func() {
			clock++
			n, _ := table.Int(identity.Key{}, Point[int64]{w.start, clock, int64(w.value)}, now)
			counted += n
			last = int64(w.value)
		}
		send()
		for range rapid.IntRange(1, 20).Draw(t, "points") {
			if last > 0 && rapid.Bool().Draw(t, "restart") {
				clock++
				w = writer{start: clock}
				n := rapid.Int64Range(0, last-1).Draw(t, "n")
				w.value, added = uint64(n), added+n
				send()
				continue
			}
			n := rapid.Int64Range(0, 1000).Draw(t, "n")
			w.value, added = w.value+uint64(n), added+n
			send()
		}
		if counted != added {
			t.Fatalf("counted something else than was added")
		}
	})
}
