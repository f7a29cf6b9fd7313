package exact

import (
	"math"
	"time"
)

const (
	// maxDirty bounds the keys that wait to be written.
	maxDirty = 100_000
	// maxKnown bounds the keys in memory. At least half of them are clean, so that
	// one to forget is found at once.
	maxKnown = 2 * maxDirty

	// markerLife is how long Redis knows the last batch of a writer for a key.
	markerLife = 24 * time.Hour
	// giveUp is how long a batch whose outcome is unknown is repeated. The rest of
	// the marker's life is for a batch that is delayed on its way, and for clocks.
	giveUp = markerLife - time.Hour
)

// book is what a process has accepted and not yet written. It has no clock and does
// no I/O; the writer guards it.
type book struct {
	limit  int64
	keys   map[string]*tally
	queue  []*tally // dirty, with nothing under way
	asks   []*tally // to be read again
	dirty  int      // keys with a pending amount or a batch under way
	seq    int64    // the last one given out
	lost   loss
	closed bool
}

// tally is one key's part of the book.
type tally struct {
	key     string
	known   int64     // the count in Redis, as the last answer said
	until   time.Time // when the window of known ends; zero: never
	version int64     // rises with every answer
	pending int64     // accepted, in no batch
	flight  flight    // the batch under way
	asked   bool
}

// flight is a batch of one key, repeated until it is known to have landed. There is
// none if n is 0.
type flight struct {
	seq, n int64
	since  time.Time // first sent without proof that it was not executed; zero: never
}

// loss sums up what was accepted and not written.
type loss struct {
	dropped int64 // not counted: the count would have passed 2^63-1
	maybe   int64 // may have been counted
}

func newBook(limit int64) *book {
	return &book{limit: limit, keys: map[string]*tally{}}
}

// count is the best known count: what Redis had, if its window is not over, and
// what has come since.
func (t *tally) count(now time.Time) int64 {
	if t == nil {
		return 0
	}
	return saturate(t.base(now), t.flight.n, t.pending)
}

func (t *tally) base(now time.Time) int64 {
	if t.left(now) < 0 {
		return 0
	}
	return t.known
}

// left is how long the window still is, 0 if it has no end, negative if it is over.
func (t *tally) left(now time.Time) time.Duration {
	if t == nil || t.until.IsZero() {
		return 0
	}
	if d := t.until.Sub(now); d > 0 {
		return d
	}
	return -1
}

// saturate sums amounts that are not negative.
func saturate(amounts ...int64) int64 {
	var sum int64
	for _, n := range amounts {
		if n > math.MaxInt64-sum {
			return math.MaxInt64
		}
		sum += n
	}
	return sum
}

// add accepts n, or with upTo as much as fits, and returns how much that was, the
// count and, with ErrMax, the time until the window ends.
func (b *book) add(kind kind, key string, n int64, now time.Time) (added, count int64, left time.Duration, err error) {
	if b.closed {
		return 0, 0, 0, ErrClosed
	}
	t := b.keys[key]
	count = t.count(now)
	if fits := b.limit - count; n > fits {
		// What is known may be out of date: somebody may have deleted the key.
		b.ask(t)
		switch {
		case kind == whole:
			return 0, count, max(t.left(now), 0), ErrMax
		case fits <= 0:
			return 0, count, 0, nil
		}
		n = fits
	}
	clean := t == nil || !t.dirty()
	if clean && b.dirty >= maxDirty {
		return 0, count, 0, ErrFull
	}
	if t == nil {
		t = b.create(key)
	}
	if clean {
		b.dirty++
		b.queue = append(b.queue, t)
	}
	t.pending += n
	return n, count + n, 0, nil
}

func (t *tally) dirty() bool { return t.pending > 0 || t.flight.n > 0 }

// create makes room for a key, at the cost of the count of some clean one.
func (b *book) create(key string) *tally {
	if len(b.keys) >= maxKnown {
		for k, t := range b.keys {
			if !t.dirty() {
				delete(b.keys, k)
				break
			}
		}
	}
	t := &tally{key: key}
	b.keys[key] = t
	return t
}

func (b *book) ask(t *tally) {
	if t != nil && !t.asked {
		t.asked = true
		b.asks = append(b.asks, t)
	}
}

// depart turns all pending amounts that may leave into batches and returns them.
// What becomes pending on a key while its batch is under way leaves after it.
func (b *book) depart() []*tally {
	queue := b.queue
	b.queue = nil
	batch := queue[:0]
	for _, t := range queue {
		if t.pending == 0 { // deleted, or queued twice since
			continue
		}
		b.seq++
		t.flight = flight{seq: b.seq, n: t.pending}
		t.pending = 0
		batch = append(batch, t)
	}
	return batch
}

// landed notes that the batch of t was added, now or by an earlier sending.
func (b *book) landed(t *tally, count int64, left time.Duration, now time.Time) {
	t.learn(count, left, now)
	b.arrived(t)
}

// refused notes that the batch of t did not fit into an int64. It is lost.
func (b *book) refused(t *tally, count int64, left time.Duration, now time.Time) {
	t.learn(count, left, now)
	b.lost.dropped = saturate(b.lost.dropped, t.flight.n)
	b.arrived(t)
}

// unproven notes that the batch of t was sent and may have been added.
func (b *book) unproven(t *tally, sent time.Time) {
	if t.flight.since.IsZero() {
		t.flight.since = sent
	}
}

// overdue reports whether the batch of t must not be sent again, since Redis may
// have forgotten that it was added, and drops it then.
func (b *book) overdue(t *tally, now time.Time) bool {
	if t.flight.since.IsZero() || elapsed(t.flight.since, now) < giveUp {
		return false
	}
	b.lost.maybe = saturate(b.lost.maybe, t.flight.n)
	b.arrived(t)
	return true
}

// elapsed is by the clock that has run further: the monotonic one stands still
// while a machine sleeps, the other one is set.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// arrived ends the flight of t.
func (b *book) arrived(t *tally) {
	t.flight = flight{}
	if t.pending > 0 {
		b.queue = append(b.queue, t)
	} else {
		b.dirty--
	}
}

// learn takes in what Redis says.
func (t *tally) learn(count int64, left time.Duration, now time.Time) {
	t.known, t.until = count, time.Time{}
	if left > 0 {
		t.until = now.Add(left)
	}
	t.version++
}

// asked returns the keys to read again.
func (b *book) asked() []*tally {
	asks := b.asks
	b.asks = nil
	for _, t := range asks {
		t.asked = false
	}
	return asks
}

// told takes in the answer to a question. While a batch is under way it does not
// tell what of it is counted, and the batch's answer tells more.
func (b *book) told(t *tally, count int64, left time.Duration, now time.Time) {
	if t.flight.n == 0 {
		t.learn(count, left, now)
	}
}

// deleted notes that the key of t is gone from Redis, and that its batch under way
// will not come any more. Pending is what was pending as the deletion was sent.
func (b *book) deleted(t *tally, pending int64) {
	if t.flight.n > 0 {
		t.pending -= pending
		b.arrived(t)
	} else if t.pending -= pending; t.pending == 0 && pending > 0 {
		b.dirty-- // it stays in the queue, where depart passes over it
	}
	t.known, t.until = 0, time.Time{}
	t.version++
}

// unwritten is how much waits, in how many keys.
func (b *book) unwritten() (amount int64, keys int) {
	for _, t := range b.keys {
		if t.dirty() {
			amount = saturate(amount, t.flight.n, t.pending)
		}
	}
	return amount, b.dirty
}
