package main

import (
	"context"
	"time"
)

// readings is what the replicas say they know, as the show goes on.
type readings struct {
	latest     []status           // by replica
	byInterval map[int64][]status // by replica too; not Known where one did not say
	complete   int64              // the last interval of which all replicas spoke; 0 is none
}

func newReadings(replicas int) *readings {
	return &readings{latest: make([]status, replicas), byInterval: map[int64][]status{}}
}

// follow asks the replicas a few times in each interval, and calls show after
// each round, until ctx is done.
func (r *readings) follow(ctx context.Context, f fleet, interval time.Duration, show func()) {
	ticker := time.NewTicker(min(interval/4, 200*time.Millisecond))
	defer ticker.Stop()
	for ctx.Err() == nil {
		for i, replica := range f {
			var s status
			// One that does not answer keeps its last status; its age tells.
			if err := replica.get(ctx, "/status", &s); err == nil {
				r.record(i, s)
			}
		}
		show()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// record keeps what replica i says.
func (r *readings) record(i int, s status) {
	r.latest[i] = s
	if !s.Known {
		return
	}
	all, ok := r.byInterval[s.Interval]
	if !ok {
		all = make([]status, len(r.latest))
		r.byInterval[s.Interval] = all
	}
	if all[i].Known {
		return // the first word counts: its age is that of a fresh number
	}
	all[i] = s
	for _, s := range all {
		if !s.Known {
			return
		}
	}
	r.complete = s.Interval
}
