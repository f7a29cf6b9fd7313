package reader

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/internal/feed"
)

// timeout is how long ForceFlush and Shutdown take where their context has no
// deadline, as a PeriodicReader's do by default.
const timeout = 30 * time.Second

// patience is how long Shutdown may take even where its context is over already:
// a reader that was shut down before may have used it up. It is a little more
// than the parting flush may take.
const patience = 250 * time.Millisecond

// errInCallback is what ForceFlush and Shutdown return to a callback.
var errInCallback = errors.New("reader: called by a callback of a collection, which it would wait for")

// ForceFlush collects, and waits until all that was counted before the call is
// settled: known to have reached the group, or reported as lost. If ctx ends
// first, the error wraps its cause, and what is unsettled goes with the next
// tick. Without a deadline, it has 30 s.
//
// It returns the errors of callbacks as well; what was collected with them
// counts. Before the reader is registered it returns
// [sdkmetric.ErrReaderNotRegistered], after Shutdown
// [sdkmetric.ErrReaderShutdown]. Called by a callback of the reader's own
// collection it returns an error at once.
func (r *Reader) ForceFlush(ctx context.Context) error {
	if inCallback() {
		return errInCallback
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	err := r.request(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("reader: not all that was counted is collected yet: %w", context.Cause(ctx))
	}
	if errors.Is(err, sdkmetric.ErrReaderNotRegistered) || errors.Is(err, sdkmetric.ErrReaderShutdown) {
		return err
	}
	return errors.Join(err, r.feed.Flush(ctx))
}

// Shutdown collects once more, sends what is left, and ends the reader, whatever
// comes of it. What could not be sent, or is not known to have arrived, is lost;
// it is reported and makes the error. After that nothing is known of totals.
//
// It returns when ctx ends, without a deadline after 30 s; but it takes up to a
// quarter of a second even if ctx has ended already: MeterProvider.Shutdown gives
// all readers one context, and one before may have used it up. A second Shutdown waits for the first and returns
// [sdkmetric.ErrReaderShutdown]. Called by a callback of the reader's own
// collection it returns an error at once, and goes on by itself.
func (r *Reader) Shutdown(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx)
	first := r.down.CompareAndSwap(false, true)
	if first {
		close(r.loop.stop)
		go func() {
			defer cancel()
			r.finish(ctx)
		}()
	} else {
		defer cancel()
	}
	if inCallback() {
		return errInCallback
	}
	wait, stop := feed.AtLeast(ctx, patience)
	defer stop()
	select {
	case <-r.done:
	case <-wait.Done():
		return fmt.Errorf("reader: the reader is not shut down yet: %w", context.Cause(wait))
	}
	if !first {
		return sdkmetric.ErrReaderShutdown
	}
	return r.err
}

func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// finish is what Shutdown does after the last collection.
func (r *Reader) finish(ctx context.Context) {
	<-r.loop.ended
	_ = r.manualReader.Shutdown(ctx) // lets go of the provider
	err := r.loop.err
	if errors.Is(err, sdkmetric.ErrReaderNotRegistered) {
		err = nil
	}
	r.err = errors.Join(err, r.feed.Shutdown(ctx))
	close(r.done)
}

// inCallback reports whether a callback of a collection of ours is calling.
// Waiting for the end of that collection would never end.
func inCallback() bool {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "/reader.(*Reader).collect") {
			return true
		}
		if !more {
			return false
		}
	}
}
