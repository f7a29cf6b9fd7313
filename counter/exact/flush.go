package exact

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

// perPipeline is how many keys one pipeline carries. That many do not hold up the
// server, for each key is a script call of its own.
const perPipeline = 500

var markerLifeText = decimal(markerLife.Milliseconds())

// outcome is what a flush, or a part of one, has brought.
type outcome struct {
	amount int64 // known to be written
	keys   int
	err    error // the first one
}

func (o *outcome) add(p outcome) {
	o.amount = saturate(o.amount, p.amount)
	o.keys += p.keys
	if o.err == nil {
		o.err = p.err
	}
}

// flush sends every batch that waits, and asks for the counts for which somebody
// was refused. It returns the first error.
func (w *writer) flush(ctx context.Context) error {
	w.mu.Lock()
	lost := w.book.lost
	now := time.Now()
	w.flying = slices.DeleteFunc(w.flying, func(t *tally) bool {
		return t.flight.n == 0 || w.book.overdue(t, now) // landed, deleted, or given up
	})
	w.flying = append(w.flying, w.book.depart()...)
	w.mu.Unlock()

	all := w.sendAll(ctx, w.flying)
	w.askAll(ctx)
	w.report(all, lost)
	return all.err
}

// sendAll sends batches, to each server of a cluster apart, so that one that stalls
// delays no batch of another's.
func (w *writer) sendAll(ctx context.Context, batches []*tally) outcome {
	var (
		all outcome
		mu  sync.Mutex
		wg  sync.WaitGroup
	)
	for _, batches := range w.byServer(ctx, batches) {
		wg.Go(func() {
			o := w.sendServer(ctx, batches)
			mu.Lock()
			defer mu.Unlock()
			all.add(o)
		})
	}
	wg.Wait()
	return all
}

func (w *writer) byServer(ctx context.Context, batches []*tally) map[*redis.Client][]*tally {
	cluster, ok := w.c.rdb.(interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	})
	servers := map[*redis.Client][]*tally{}
	for _, t := range batches {
		var server *redis.Client
		if ok {
			// An error leaves it to the pipeline to find the server, or why not.
			server, _ = cluster.MasterForKey(ctx, w.c.keys.count(t.key))
		}
		servers[server] = append(servers[server], t)
	}
	return servers
}

// sendServer sends the batches of one server, as long as it answers.
func (w *writer) sendServer(ctx context.Context, batches []*tally) outcome {
	var all outcome
	for chunk := range slices.Chunk(batches, perPipeline) {
		o, answered := w.send(ctx, chunk)
		all.add(o)
		if !answered {
			break
		}
	}
	return all
}

// send sends one pipeline of batches and notes what became of each. It reports
// whether a server answered at all.
func (w *writer) send(ctx context.Context, batches []*tally) (o outcome, answered bool) {
	cmds := make([]*script.Cmd, len(batches))
	for i, t := range batches {
		count := w.c.keys.count(t.key)
		cmds[i] = batchScript.EvalSha(ctx, []string{count, markerKey(count, w.id)},
			decimal(t.flight.n), room(math.MaxInt64, t.flight.n), w.c.args.ttl, decimal(t.flight.seq), markerLifeText)
	}
	sent := time.Now()
	batchScript.RunAll(ctx, w.c.rdb, cmds)
	now := time.Now()

	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range batches {
		n := t.flight.n
		a, err := answerOf(cmds[i])
		switch {
		case err == nil && (a.is("added", 2) || a.is("repeated", 2)):
			w.book.landed(t, a.numbers[0], left(a.numbers[1]), now)
			o.add(outcome{amount: n, keys: 1})
		case err == nil && a.is("full", 2):
			w.book.refused(t, a.numbers[0], left(a.numbers[1]), now)
			o.add(outcome{err: ErrLimit})
		case err == nil:
			w.book.unproven(t, sent)
			o.add(outcome{err: errAnswer})
		default:
			if errors.Is(err, ErrUnknown) {
				w.book.unproven(t, sent)
			}
			o.add(outcome{err: err})
		}
		answered = answered || err == nil || isAnswer(err)
	}
	return o, answered
}

// isAnswer reports whether the error is one that a server answered with.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// askAll reads again the counts for which somebody was refused: another process may
// have deleted the key. If that fails, the next refusal asks again.
func (w *writer) askAll(ctx context.Context) {
	w.mu.Lock()
	asks := w.book.asked()
	w.mu.Unlock()
	for chunk := range slices.Chunk(asks, perPipeline) {
		w.askSome(ctx, chunk)
	}
}

func (w *writer) askSome(ctx context.Context, asks []*tally) {
	cmds := make([]*script.Cmd, len(asks))
	for i, t := range asks {
		cmds[i] = readScript.EvalSha(ctx, []string{w.c.keys.count(t.key)})
	}
	readScript.RunAll(ctx, w.c.rdb, cmds)
	now := time.Now()

	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range asks {
		if a, err := answerOf(cmds[i]); err == nil && a.is("count", 3) {
			w.book.told(t, a.numbers[0], left(a.numbers[1]), now)
		}
	}
}

// report logs a flush: of an outage the first one that failed, and all that lost
// something.
func (w *writer) report(o outcome, before loss) {
	w.mu.Lock()
	lost := w.book.lost
	w.mu.Unlock()
	dropped, maybe := lost.dropped-before.dropped, lost.maybe-before.maybe
	if o.keys > 0 {
		w.log.log(slog.LevelDebug, "flush completed",
			slog.Duration("interval", *w.c.config.flushEvery), slog.Int64("amount", o.amount), slog.Int("keys", o.keys))
	}
	err := o.err
	if maybe > 0 {
		err = errors.Join(ErrUnknown, err)
	}
	if err != nil && (!w.failing || dropped > 0 || maybe > 0) {
		w.log.log(slog.LevelError, "flush failed",
			slog.String("error", err.Error()), slog.Int64("dropped", saturate(dropped, maybe)))
	}
	if w.failing && o.err == nil && o.keys > 0 {
		w.log.log(slog.LevelInfo, "flush recovered")
	}
	w.failing = o.err != nil
}

// reportUnwritten logs what the writer has not written as it ends.
func (w *writer) reportUnwritten() {
	w.mu.Lock()
	amount, _ := w.book.unwritten()
	w.mu.Unlock()
	if amount > 0 {
		w.log.log(slog.LevelError, "flush failed", slog.String("error", "closed"), slog.Int64("dropped", amount))
	}
}
