package reader

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// minGap is the least time between collections that only make a total fresher.
const minGap = 100 * time.Millisecond

// loop is the goroutine that collects. Nobody else does, so that no lock is held
// while an application's callbacks run; whoever needs a collection asks for it.
type loop struct {
	requests chan chan error
	wake     chan struct{}
	stop     chan struct{}
	ended    chan struct{}
	began    time.Time
	wanted   atomic.Int64 // when Total was called last, since began; 0: never
	last     atomic.Int64 // when the last collection ended, since began; 0: never

	err   error                      // of the last collection; set before ended is closed
	batch metricdata.ResourceMetrics // the loop's, used again
	lazy  bool                       // ticks of the group see to collections
}

func newLoop() loop {
	return loop{
		requests: make(chan chan error), wake: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}), began: time.Now(),
	}
}

// now is the time since the loop began. It is never 0.
func (l *loop) now() time.Duration { return max(1, time.Since(l.began)) }

func (r *Reader) run() {
	l := &r.loop
	defer close(l.ended)
	timer := time.NewTimer(r.interval)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			l.err = r.collect()
			return
		case reply := <-l.requests:
			l.lazy = true
			r.serve(reply)
		case <-l.wake:
		case <-timer.C:
			if l.now() >= r.due() {
				l.lazy = false
				handle(r.collect())
			}
		}
		timer.Reset(r.due() - l.now())
	}
}

// serve collects once for all who ask now.
func (r *Reader) serve(reply chan error) {
	replies := []chan error{reply}
	for {
		select {
		case reply := <-r.loop.requests:
			replies = append(replies, reply)
			continue
		default:
		}
		break
	}
	err := r.collect()
	for _, reply := range replies {
		reply <- err
	}
}

// due is when the loop collects unasked: at least once an interval. While ticks
// ask for it, it waits a little longer, for they may come a little late.
func (r *Reader) due() time.Duration {
	l := &r.loop
	last := time.Duration(l.last.Load())
	every := r.interval
	if l.lazy {
		every += r.interval / 4
	}
	if r.wantsMore() {
		every = min(every, max(r.interval/10, minGap))
	}
	return last + every
}

// wantsMore reports whether somebody looks at totals now.
func (r *Reader) wantsMore() bool {
	wanted := time.Duration(r.loop.wanted.Load())
	return wanted != 0 && r.loop.now()-wanted <= r.interval || r.feed.Watching()
}

// wantMore notes that somebody looks at a total.
func (r *Reader) wantMore() {
	now := r.loop.now()
	if before := time.Duration(r.loop.wanted.Swap(int64(now))); before == 0 || now-before > r.interval {
		r.wake()
	}
}

// wake has the loop look when it is due.
func (r *Reader) wake() {
	select {
	case r.loop.wake <- struct{}{}:
	default:
	}
}

// byReader is the key under which a collection's context names its reader.
type byReader struct{}

// collect adds what the SDK has collected since the last time to the group. What
// comes with the error of a callback counts all the same.
func (r *Reader) collect() error {
	l := &r.loop
	l.batch.ScopeMetrics = l.batch.ScopeMetrics[:0]
	// No caller's context: a collection that is cut short would lose amounts.
	err := r.manualReader.Collect(context.WithValue(context.Background(), byReader{}, r), &l.batch)
	if l.batch.Resource != nil {
		r.feed.Take(&l.batch)
	}
	l.last.Store(int64(l.now()))
	for _, g := range *r.gauges.Load() {
		g.refresh()
	}
	return err
}

// request has the loop collect, and waits for it.
func (r *Reader) request(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case r.loop.requests <- reply:
	case <-r.loop.ended:
		return sdkmetric.ErrReaderShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// beforeTick collects what the tick is to take. A group has a tick for each
// server, and one collection serves those that come together; and it serves a
// flush that was just collected for.
func (r *Reader) beforeTick() {
	last := time.Duration(r.loop.last.Load())
	if last != 0 && r.loop.now()-last < max(r.interval/50, 5*time.Millisecond) {
		return
	}
	handle(r.request(context.Background()))
}

// handle reports the error of a collection that nobody asked for by hand.
func handle(err error) {
	if err != nil && !errors.Is(err, sdkmetric.ErrReaderNotRegistered) && !errors.Is(err, sdkmetric.ErrReaderShutdown) {
		otel.Handle(err)
	}
}
