package stream

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/drop"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
)

// Initial is what the first point of a stream counts.
type Initial uint8

// The policies. Only Drop keeps the promise that nothing is counted twice: what a
// stream counted before this process, or elsewhere, is in its first value.
const (
	// Drop counts nothing.
	Drop Initial = iota
	// Auto counts the value if the stream began after the table, and so recently that
	// it cannot have been forgotten for staleness.
	Auto
	// Keep counts the value.
	Keep
)

// Settings are what a table needs to know.
type Settings struct {
	Limit     int           // of streams
	Staleness time.Duration // of silence after which a stream is forgotten; 0: never
	Initial   Initial
}

// shards spreads the streams over locks.
const shards = 64

// Table remembers the streams of integers and of fractions, up to a limit that
// they share. All methods may be called from any number of goroutines.
type Table struct {
	settings Settings
	began    time.Time
	size     atomic.Int64
	ints     half[int64]
	doubles  half[float64]
}

// half is the streams of one number type.
type half[N Number] struct{ shards [shards]shard[N] }

type shard[N Number] struct {
	mu      sync.Mutex // held for nothing but the state machine
	streams map[identity.Key]*state[N]
}

// NewTable returns an empty table, as of now.
func NewTable(s Settings, now time.Time) *Table {
	return &Table{settings: s, began: now}
}

// Int takes a point of an integer stream at the given local time. It returns what
// the point counts, or why it counts nothing.
func (t *Table) Int(key identity.Key, p Point[int64], now time.Time) (int64, drop.Reason) {
	return take(t, &t.ints, key, p, now)
}

// Double is Int for a stream of fractions.
func (t *Table) Double(key identity.Key, p Point[float64], now time.Time) (float64, drop.Reason) {
	return take(t, &t.doubles, key, p, now)
}

// Len is how many streams are remembered.
func (t *Table) Len() int64 { return t.size.Load() }

// Sweep forgets the streams that are stale, and returns how many they were.
func (t *Table) Sweep(now time.Time) int64 {
	if t.settings.Staleness == 0 {
		return 0
	}
	return sweep(t, &t.ints, now) + sweep(t, &t.doubles, now)
}

func take[N Number](t *Table, h *half[N], key identity.Key, p Point[N], now time.Time) (N, drop.Reason) {
	sh := &h.shards[key[0]%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.streams[key]
	if s == nil {
		if t.size.Add(1) > int64(t.settings.Limit) {
			t.size.Add(-1)
			return 0, drop.StreamLimit
		}
		if sh.streams == nil {
			sh.streams = map[identity.Key]*state[N]{}
		}
		s = &state[N]{}
		sh.streams[key] = s
	} else if !t.stale(s.seen, now) {
		amount, why, used := s.advance(p)
		if used {
			s.seen = now.UnixNano()
		}
		return amount, why
	}
	s.restart(p)
	s.seen = now.UnixNano()
	if t.keeps(p.Start, p.Time, now) {
		return p.Value, drop.None
	}
	return 0, drop.Initial
}

func (t *Table) stale(seen int64, now time.Time) bool {
	return t.settings.Staleness > 0 && now.UnixNano()-seen > int64(t.settings.Staleness)
}

// keeps reports whether the first value of a stream counts.
func (t *Table) keeps(start, time uint64, now time.Time) bool {
	switch t.settings.Initial {
	case Keep:
		return true
	case Auto:
		earliest := t.began
		if s := t.settings.Staleness; s > 0 && now.Add(-s).After(earliest) {
			earliest = now.Add(-s)
		}
		return start != time && start > uint64(earliest.UnixNano())
	default:
		return false
	}
}

func sweep[N Number](t *Table, h *half[N], now time.Time) (gone int64) {
	for i := range h.shards {
		sh := &h.shards[i]
		sh.mu.Lock()
		for key, s := range sh.streams {
			if t.stale(s.seen, now) {
				delete(sh.streams, key)
				gone++
			}
		}
		sh.mu.Unlock()
	}
	t.size.Add(-gone)
	return gone
}
