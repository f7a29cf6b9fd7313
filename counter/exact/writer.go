package exact

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// writer keeps the book of a Counters with FlushEvery and writes it. One goroutine,
// run, sends whatever changes Redis; the mutex guards the book and is never held
// while something is sent.
type writer struct {
	c   *Counters
	id  string // new for each Open: it tells this writer's markers from others'
	log logger

	mu   sync.Mutex
	book *book

	flying  []*tally // batches to send or repeat; only run touches it
	failing bool     // the last flush failed; only run touches it

	deletes chan deletion
	closing chan context.Context // gets the context of the first close
	closed  sync.Once
	done    chan struct{} // closed as run ends
	result  error         // of close; to be read after done
}

// idLength characters of base32 are 65 bits: ids of different writers must never
// meet, for one would take the other's batches for its own.
const idLength = 13

func startWriter(c *Counters) *writer {
	w := &writer{
		c:       c,
		id:      rand.Text()[:idLength],
		log:     newLogger(c.config.logger, c.name),
		book:    newBook(c.args.limit),
		deletes: make(chan deletion),
		closing: make(chan context.Context, 1),
		done:    make(chan struct{}),
	}
	w.log.log(slog.LevelInfo, "counter started",
		slog.Duration("interval", *c.config.flushEvery), slog.String("prefix", c.config.prefix), slog.String("store", "redis"))
	go w.run(*c.config.flushEvery)
	return w
}

// add accepts n into the book.
func (w *writer) add(kind kind, key string, n int64) (added, count int64, err error) {
	now := time.Now()
	w.mu.Lock()
	added, count, left, err := w.book.add(kind, key, n, now)
	w.mu.Unlock()
	if errors.Is(err, ErrMax) {
		err = w.c.refused(count, n, left)
	}
	return added, count, err
}

// get reads a count from Redis and adds what is not in it yet.
func (w *writer) get(ctx context.Context, key string) (int64, error) {
	count := w.c.keys.count(key)
	for {
		version := w.version(key)
		a, err := w.c.read(ctx, []string{count, markerKey(count, w.id)})
		if err != nil {
			return 0, err
		}
		if n, ok := w.merge(key, version, a, time.Now()); ok {
			return n, nil
		}
	}
}

func (w *writer) version(key string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.book.keys[key]; t != nil {
		return t.version
	}
	return 0
}

// merge returns the count that follows from an answer which was asked for as the
// key had this version; false if that does not tell.
func (w *writer) merge(key string, version int64, a answer, now time.Time) (int64, bool) {
	inRedis, mark := a.numbers[0], a.numbers[2]
	w.mu.Lock()
	defer w.mu.Unlock()
	switch t := w.book.keys[key]; {
	case t == nil:
		return inRedis, version == 0
	case t.version != version:
		// Something landed meanwhile: what the book knows is newer than the answer.
		return t.count(now), true
	case t.flight.n > 0 && mark >= t.flight.seq:
		return saturate(inRedis, t.pending), true // the batch has landed, we were not told yet
	default:
		return saturate(inRedis, t.flight.n, t.pending), true
	}
}

// run writes the book every interval until it is closed.
func (w *writer) run(interval time.Duration) {
	defer close(w.done)
	defer w.log.log(slog.LevelInfo, "counter stopped")
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = w.flush(context.Background()) // it reports itself
		case d := <-w.deletes:
			d.reply <- w.remove(d)
		case ctx := <-w.closing:
			failed := w.drain(ctx, min(interval, 100*time.Millisecond))
			cause := ctx.Err()
			if cause != nil && failed != nil {
				cause = fmt.Errorf("%w: %w", cause, failed)
			}
			w.result = w.unwritten(cause)
			w.reportUnwritten()
			return
		}
	}
}

// drain flushes until everything is written or ctx has ended. It returns why the last
// flush failed, if it did.
func (w *writer) drain(ctx context.Context, wait time.Duration) (err error) {
	for ctx.Err() == nil {
		failed := w.flush(ctx)
		if ctx.Err() == nil || err == nil {
			err = failed // else it may only have been cut short
		}
		w.mu.Lock()
		dirty := w.book.dirty
		w.mu.Unlock()
		if dirty == 0 || failed != nil && !pause(ctx, wait) {
			return err
		}
	}
	return err
}

// close stops the writer; what it has not written by the end of ctx is lost.
func (w *writer) close(ctx context.Context) error {
	w.closed.Do(func() {
		w.mu.Lock()
		w.book.closed = true
		w.mu.Unlock()
		w.closing <- ctx
	})
	select {
	case <-w.done:
		return w.result
	default:
	}
	select {
	case <-w.done:
		return w.result
	case <-ctx.Done():
		return w.unwritten(ctx.Err())
	}
}

// unwritten is the error of close, nil if nothing was lost.
func (w *writer) unwritten(cause error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	if amount, keys := w.book.unwritten(); keys > 0 {
		errs = append(errs, fmt.Errorf("exact: %d in %d keys was not written, or may not have been: %w", amount, keys, cause))
	}
	if n := w.book.lost.dropped; n > 0 {
		errs = append(errs, fmt.Errorf("exact: %d was dropped: %w", n, ErrLimit))
	}
	if n := w.book.lost.maybe; n > 0 {
		errs = append(errs, fmt.Errorf("exact: %d was dropped: %w", n, ErrUnknown))
	}
	return errors.Join(errs...)
}

// deletion asks run to delete a key.
type deletion struct {
	ctx   context.Context
	key   string
	reply chan deleted // holds one, so that run never waits
}

type deleted struct {
	existed bool
	err     error
}

// delete goes through run, so that no batch of ours is sent meanwhile.
func (w *writer) delete(ctx context.Context, key string) (bool, error) {
	d := deletion{ctx: ctx, key: key, reply: make(chan deleted, 1)}
	select {
	case w.deletes <- d:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.done:
		return false, ErrClosed
	}
	select {
	case r := <-d.reply:
		return r.existed, r.err
	case <-ctx.Done():
		return false, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
}

// remove deletes a key, and with it what the book held as it began.
func (w *writer) remove(d deletion) deleted {
	if err := d.ctx.Err(); err != nil {
		return deleted{err: err}
	}
	w.mu.Lock()
	t := w.book.keys[d.key]
	var pending, under, seq int64
	if t != nil {
		pending, under = t.pending, t.flight.n
	}
	if under > 0 {
		w.book.seq++
		seq = w.book.seq
	}
	w.mu.Unlock()

	count := w.c.keys.count(d.key)
	var existed bool
	var err error
	if under > 0 {
		existed, err = w.deleteFenced(d.ctx, count, seq)
	} else {
		existed, err = w.c.delete(d.ctx, count)
	}
	if err != nil {
		return deleted{err: err}
	}
	if t != nil {
		w.mu.Lock()
		w.book.deleted(t, pending)
		w.mu.Unlock()
	}
	return deleted{existed: existed || pending > 0 || under > 0}
}

// deleteFenced deletes a count so that the batch under way, whose seq is lower, is
// not added afterwards.
func (w *writer) deleteFenced(ctx context.Context, count string, seq int64) (bool, error) {
	keys := []string{count, markerKey(count, w.id)}
	a, err := answerOf(w.c.run(ctx, deleteScript, keys, decimal(seq), markerLifeText))
	switch {
	case err != nil:
		return false, err
	case !a.is("deleted", 1):
		return false, fmt.Errorf("%w: %w", ErrUnknown, errAnswer)
	}
	return a.numbers[0] > 0, nil
}
