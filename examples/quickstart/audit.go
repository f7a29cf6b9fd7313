package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// audit adds up what the group counted, straight from Redis: the total of every
// interval, read once it is closed and before it expires.
type audit struct {
	client   *redis.Client
	key      string // without the interval's number
	interval time.Duration

	next   int64           // the first interval that was not read yet
	totals map[int64]int64 // by interval; those without a key are left out
	missed int64           // intervals that were read too late to tell

	stop chan struct{}
	done chan struct{}
}

func newAudit(ctx context.Context, client *redis.Client, key string, interval time.Duration) (*audit, error) {
	a := &audit{
		client: client, key: key, interval: interval,
		totals: map[int64]int64{},
		stop:   make(chan struct{}), done: make(chan struct{}),
	}
	now, err := client.Time(ctx).Result()
	a.next = a.number(now)
	return a, err
}

// number is that of the interval at a moment of Redis' clock.
func (a *audit) number(at time.Time) int64 {
	return at.UnixMilli() / a.interval.Milliseconds()
}

// start reads the closed intervals as they come, until finish.
func (a *audit) start() {
	go func() {
		defer close(a.done)
		ticker := time.NewTicker(min(a.interval, time.Second))
		defer ticker.Stop()
		for {
			select {
			case <-a.stop:
				return
			case <-ticker.C:
				_ = a.read(-1) // the next time reads on from there; finish reports what stays wrong
			}
		}
	}()
}

// finish reads the rest, once nobody counts any more. A parting flush may have
// gone to the interval after the running one.
func (a *audit) finish() error {
	close(a.stop)
	<-a.done
	if err := a.read(1); err != nil {
		return fmt.Errorf("read the group's totals: %w", err)
	}
	return nil
}

// read takes all totals up to the interval that runs now, plus offset.
func (a *audit) read(offset int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	now, err := a.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	// The key of a total lives for three intervals after it was last written, and
	// at least a second. One that is missing later than that may have been there.
	life := max(3*a.interval, time.Second)
	for ; a.next <= a.number(now)+offset; a.next++ {
		total, err := a.client.Get(ctx, a.key+strconv.FormatInt(a.next, 10)).Int64()
		switch began := time.UnixMilli(a.next * a.interval.Milliseconds()); {
		case err == nil:
			a.totals[a.next] = total
		case !errors.Is(err, redis.Nil):
			return err
		case now.Sub(began) >= life:
			a.missed++
		}
	}
	return nil
}

// sum is what the group counted in all intervals.
func (a *audit) sum() (total int64) {
	for _, t := range a.totals {
		total += t
	}
	return total
}
