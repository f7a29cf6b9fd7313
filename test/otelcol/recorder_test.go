package otelcol

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// recorder keeps what Redis holds of a counter, before it expires: the truth that
// the collectors' totals are held against.
type recorder struct {
	counter string // prefix{name}
	cancel  context.CancelFunc
	done    chan struct{}

	mu     sync.Mutex
	totals map[int64]int64 // by interval
	asked  map[int64]bool  // somebody was told to be the first in it
}

func record(t *testing.T, server *redistest.Server, counter string, interval time.Duration) *recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{counter: counter, cancel: cancel, done: make(chan struct{}), totals: map[int64]int64{}, asked: map[int64]bool{}}
	client := server.Client()
	go func() {
		defer close(r.done)
		for ctx.Err() == nil {
			r.read(ctx, client)
			select {
			case <-ctx.Done():
			case <-time.After(interval / 5):
			}
		}
	}()
	t.Cleanup(r.stop)
	return r
}

func (r *recorder) stop() {
	r.cancel()
	<-r.done
}

func (r *recorder) read(ctx context.Context, client *redis.Client) {
	keys, err := client.Keys(ctx, strings.NewReplacer("{", "\\{", "}", "\\}").Replace(r.counter)+":*").Result()
	if err != nil {
		return // the server is down
	}
	for _, key := range keys {
		n, by := strings.CutSuffix(strings.TrimPrefix(key, r.counter+":"), ":by")
		interval, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			continue
		}
		if by {
			asked, err := client.HExists(ctx, key, "!").Result()
			r.mu.Lock()
			r.asked[interval] = r.asked[interval] || err == nil && asked
			r.mu.Unlock()
			continue
		}
		if total, err := client.Get(ctx, key).Int64(); err == nil {
			r.mu.Lock()
			r.totals[interval] = total
			r.mu.Unlock()
		}
	}
}

// snapshot returns what was recorded so far.
func (r *recorder) snapshot() (totals map[int64]int64, asked map[int64]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.totals), maps.Clone(r.asked)
}

func (r *recorder) sum() (sum int64) {
	totals, _ := r.snapshot()
	for _, n := range totals {
		sum += n
	}
	return sum
}
