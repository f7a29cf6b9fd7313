package feed

import (
	"slices"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// lag bounds the time between the SDK's question for an instrument's temporality
// and the start of its sums.
const lag = time.Second

// Births tells the sums of observable counters from those of counters, which look
// alike but differ in what their first value means: an observable's may be as
// old as the machine, a counter's was counted since the start.
//
// The SDK asks for the temporality of a kind as it makes an instrument's sum,
// and takes its start time right after. So a sum belongs to the last question
// before its start.
type Births struct {
	mu     sync.Mutex
	events []birth
}

type birth struct {
	at     time.Time
	parent parent
}

// parent is the kind of instrument that a sum is of.
type parent uint8

const (
	unclear parent = iota // what does not come from the SDK's instruments, for one
	counting
	observable
)

// Note notes that the SDK asked for the temporality of a kind.
func (b *Births) Note(kind sdkmetric.InstrumentKind) {
	p := counting
	switch kind {
	case sdkmetric.InstrumentKindObservableCounter, sdkmetric.InstrumentKindObservableUpDownCounter, sdkmetric.InstrumentKindObservableGauge:
		p = observable
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, birth{time.Now(), p})
}

// parent returns the kind of instrument whose sum has this start.
func (b *Births) parent(start time.Time) parent {
	b.mu.Lock()
	defer b.mu.Unlock()
	after, _ := slices.BinarySearchFunc(b.events, start, func(e birth, start time.Time) int {
		if e.at.After(start) {
			return 1
		}
		return -1
	})
	if after == 0 || start.Sub(b.events[after-1].at) >= lag {
		return unclear
	}
	last := b.events[after-1]
	for i := after - 2; i >= 0 && b.events[i].at.Equal(last.at); i-- {
		if b.events[i].parent != last.parent {
			return unclear // a clock that stood still
		}
	}
	return last.parent
}
