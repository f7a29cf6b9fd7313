package faults

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// History is what happened to one counter, as its participants and the servers saw
// it. Its methods may be called from any goroutine.
type History struct {
	mu      sync.Mutex
	offered int64
	dropped map[string]int64 // what participants have reported, by reason
	held    map[int64]int64
	seen    map[sight]bool
	own     map[sight]bool
}

// sight is a figure of a closed interval that a participant was given.
type sight struct {
	interval, value int64
}

// NewHistory returns an empty history.
func NewHistory() *History {
	return &History{dropped: map[string]int64{}, held: map[int64]int64{}, seen: map[sight]bool{}, own: map[sight]bool{}}
}

// Offered records that n was added.
func (h *History) Offered(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offered += n
}

// Unsure is the reason with which a participant drops what may have been counted.
// What it drops for another reason has surely not been.
const Unsure = "may have been counted"

// Dropped records that a participant has reported n as dropped, and why.
func (h *History) Dropped(why string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped[why] += n
}

// Held records that a server has added n to the total of an interval.
func (h *History) Held(interval, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[interval] += n
}

// Seen records what a participant was told of a closed interval.
func (h *History) Seen(interval, closed, own int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[sight{interval, closed}] = true
	h.own[sight{interval, own}] = true
}

// Validate says where the history breaks the promise, or that it shows nothing.
func (h *History) Validate() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	total, most := int64(0), h.offered
	for _, n := range h.held {
		total += n
	}
	for why, n := range h.dropped {
		if why != Unsure {
			most -= n
		}
	}
	var errs []error
	if h.offered == 0 || total == 0 || len(h.seen) == 0 {
		errs = append(errs, errors.New("nothing was counted or seen: this run shows nothing"))
	}
	if total > most {
		errs = append(errs, fmt.Errorf("overstated: %d counted, %d offered and not dropped", total, most))
	}
	if least := most - h.dropped[Unsure]; total < least {
		errs = append(errs, fmt.Errorf("lost without a report: %d counted, at least %d expected", total, least))
	}
	for _, s := range sorted(h.seen) {
		if held := h.held[s.interval]; s.value != held {
			errs = append(errs, fmt.Errorf("interval %d: a participant was told %d, the server held %d", s.interval, s.value, held))
		}
	}
	for _, s := range sorted(h.own) {
		if held := h.held[s.interval]; s.value > held {
			errs = append(errs, fmt.Errorf("interval %d: a participant's own part is %d of %d", s.interval, s.value, held))
		}
	}
	return errors.Join(errs...)
}

// String sums the history up.
func (h *History) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("offered %d in %d intervals; reported as dropped: %v; %d totals seen",
		h.offered, len(h.held), h.dropped, len(h.seen))
}

func sorted(sights map[sight]bool) []sight {
	return slices.SortedFunc(maps.Keys(sights), func(a, b sight) int { return int(a.interval - b.interval) })
}
