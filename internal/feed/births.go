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

// Births tells the cumulative sums of counters from those of observable
// counters, which look alike but differ in what their first value means: the one
// was counted since the start, the other may be as old as the machine.
//
// The SDK asks for the temporality of a kind as it makes an instrument's sum,
// and takes its start time right after. So a sum belongs to the last question
// before its start.
type Births struct {
	mu     sync.Mutex
	events []birth
}

type birth struct {
	at         time.Time
	observable bool
}

// Note notes that the SDK asked for the temporality of a kind.
func (b *Births) Note(kind sdkmetric.InstrumentKind) {
	observable := false
	switch kind {
	case sdkmetric.InstrumentKindObservableCounter, sdkmetric.InstrumentKindObservableUpDownCounter, sdkmetric.InstrumentKindObservableGauge:
		observable = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, birth{at: time.Now(), observable: observable})
}

// counted reports whether a sum with this start holds only what was counted
// since. Where that is not certain, as for sums that do not come from the SDK's
// instruments, it does not.
func (b *Births) counted(start time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	after, _ := slices.BinarySearchFunc(b.events, start, func(e birth, start time.Time) int {
		if e.at.After(start) {
			return 1
		}
		return -1
	})
	if after == 0 {
		return false
	}
	last := b.events[after-1]
	return !last.observable && start.Sub(last.at) < lag
}
