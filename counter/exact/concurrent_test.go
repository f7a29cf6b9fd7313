package exact_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

// Outside of bubbles, for the race detector.
func TestFlushEveryConcurrentSafe(t *testing.T) {
	s := newServer(t)
	c := open(t, s.client, exact.FlushEvery(time.Millisecond), exact.Max(1_000_000), exact.TTL(time.Hour))
	ctx := context.Background()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				key := strconv.Itoa(i % 10)
				if _, err := c.Add(ctx, key, 1); err != nil {
					t.Error(err)
				}
				if _, _, err := c.AddUpTo(ctx, key, 1); err != nil {
					t.Error(err)
				}
				if i%20 == 0 {
					if _, err := c.Get(ctx, key); err != nil {
						t.Error(err)
					}
					if _, err := c.Delete(ctx, "deleted"+key); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for range 3 {
		wg.Go(func() {
			if err := c.Close(ctx); err != nil {
				t.Error(err)
			}
			if _, err := c.Add(ctx, "late", 1); !errors.Is(err, exact.ErrClosed) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 10 {
		got, err := s.Get("seats:{" + strconv.Itoa(i) + "}")
		require.NoError(t, err)
		require.Equal(t, "160", got)
	}
}
