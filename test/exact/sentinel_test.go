package exact

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// "Sentinel failover: never more, equality only for adds acknowledged with
// WaitReplicas(1)."
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	client := s.Client()
	plain := open(t, client, "plain")
	batch := open(t, client, "batch", exact.FlushEvery(20*time.Millisecond))
	safe := open(t, client, "safe", exact.WaitReplicas(1, 200*time.Millisecond), exact.TTL(time.Hour))

	var accepted, maybe, batched, acknowledged, others atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	loop := func(add func(i int)) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					add(i)
				}
			}
		})
	}
	for caller := range 2 {
		loop(func(int) {
			switch _, err := plain.Add(t.Context(), "k", 1); {
			case err == nil:
				accepted.Add(1)
			case errors.Is(err, exact.ErrUnknown):
				maybe.Add(1)
			}
		})
		loop(func(int) {
			if _, err := batch.Add(t.Context(), "k", 1); err != nil {
				t.Error(err)
			}
			batched.Add(1)
		})
		// Half of these are repeated until they are acknowledged.
		loop(func(i int) {
			for {
				var opts []exact.AddOption
				if caller == 0 {
					opts = append(opts, exact.ID(fmt.Sprint(i)))
				}
				_, err := safe.Add(t.Context(), fmt.Sprint("k", caller), 1, opts...)
				switch {
				case err == nil && caller == 0:
					acknowledged.Add(1)
				case err == nil:
					others.Add(1)
				case caller == 0:
					continue // until it is
				case errors.Is(err, exact.ErrUnknown), errors.Is(err, exact.ErrNotReplicated):
					maybe.Add(1)
				}
				return
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	before := accepted.Load()
	s.Primary.Kill()
	s.Failover()
	s.Primary.Restart() // comes back as the replica of the new one
	redistest.Eventually(t, 60*time.Second, func() error {
		if _, err := safe.Add(t.Context(), "probe", 1); err != nil {
			return err
		}
		if accepted.Load() == before {
			return errors.New("nothing is accepted yet")
		}
		return nil
	})
	time.Sleep(500 * time.Millisecond)
	close(stop)
	wg.Wait()
	require.NoError(t, batch.Close(t.Context()))

	get := func(c *exact.Counters, key string) int64 {
		n, err := c.Get(t.Context(), key)
		require.NoError(t, err)
		return n
	}
	probe := open(t, client, "batch")
	t.Logf("plain: %d accepted, %d unknown, %d counted", accepted.Load(), maybe.Load(), get(plain, "k"))
	require.LessOrEqual(t, get(plain, "k"), accepted.Load()+maybe.Load(), "never more")
	require.LessOrEqual(t, get(probe, "k"), batched.Load(), "never more")
	require.Equal(t, acknowledged.Load(), get(safe, "k0"), "each add that replicas have confirmed, once")
	require.GreaterOrEqual(t, get(safe, "k1"), others.Load(), "no acknowledged add is lost")
	require.LessOrEqual(t, get(safe, "k1"), others.Load()+maybe.Load())
	require.Greater(t, acknowledged.Load(), int64(100))
}
