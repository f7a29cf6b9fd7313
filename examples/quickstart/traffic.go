package main

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// requestsPerSecond is the mean over all replicas. It is a demo, not a load test.
const requestsPerSecond = 200

// traffic sends requests to all replicas, to some more than to others, and counts
// the answers on its own: this is what the group's numbers are held against.
type traffic struct {
	answered atomic.Int64
	failed   atomic.Int64 // without an answer: whether they were served is not known
	senders  sync.WaitGroup
}

// startTraffic sends until ctx is done.
func startTraffic(ctx context.Context, f fleet) *traffic {
	t := &traffic{}
	start := time.Now()
	for i, r := range f {
		t.senders.Go(func() {
			for pause(ctx, rate(i, len(f), time.Since(start))) {
				// Not ctx: a request that has begun is not broken off.
				if err := r.get(context.WithoutCancel(ctx), path(), nil); err != nil {
					t.failed.Add(1)
				} else {
					t.answered.Add(1)
				}
			}
		})
	}
	return t
}

// wait returns when every request has had its answer.
func (t *traffic) wait() { t.senders.Wait() }

// rate is the number of requests per second that a replica gets at a moment: the
// last one gets most, and each goes up and down at a pace of its own.
func rate(i, replicas int, at time.Duration) float64 {
	share := float64(2*(i+1)) / float64(replicas*(replicas+1)) // they add up to 1
	wave := 1 + 0.5*math.Sin(at.Seconds()/float64(2+i%5))
	return requestsPerSecond * share * wave
}

// pause waits for the next request at a rate, as independent clients make them.
// It reports whether to go on.
func pause(ctx context.Context, perSecond float64) bool {
	gap := time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second)) //nolint:gosec // chance, no secret
	select {
	case <-ctx.Done():
		return false
	case <-time.After(gap):
		return ctx.Err() == nil
	}
}

// path draws what to ask for: mostly what there is, sometimes what there is not.
func path() string {
	paths := []string{"/items", "/items", "/items/1", "/items/2", "/items/3", "/items/none"}
	return paths[rand.IntN(len(paths))] //nolint:gosec // chance, no secret
}
