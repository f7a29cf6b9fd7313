package jsclient_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/internal/leaktest"
	"github.com/otelcomcount/otelcomcount/test/jsclient"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
}

func TestTwoParticipantsAgree(t *testing.T) {
	rdb, prefix, interval := redistest.Client(t), redistest.Prefix(t), redistest.Interval(t)
	a := jsclient.Start(t, rdb, prefix, "name", interval)
	b := jsclient.Start(t, rdb, prefix, "name", interval)
	a.Add(3)
	b.Add(4)
	a.Add(5)

	// Both land, and every total that both were given is the same.
	redistest.Eventually(t, time.Minute, func() error {
		if len(a.Flushes()) < 5 || len(b.Flushes()) < 5 {
			return fmt.Errorf("%d and %d flushes", len(a.Flushes()), len(b.Flushes()))
		}
		return nil
	})
	require.NoError(t, a.Err())
	require.NoError(t, b.Err())
	require.EqualValues(t, 8, a.Landed())
	require.EqualValues(t, 4, b.Landed())
	common := 0
	for n, closed := range a.Closed() {
		if other, ok := b.Closed()[n]; ok {
			require.Equal(t, closed, other)
			common++
		}
	}
	require.NotZero(t, common)
}

func TestParticipantWritesTheDocumentedKeys(t *testing.T) {
	rdb, prefix := redistest.Client(t), redistest.Prefix(t)
	const interval = 2 * time.Second // the key lives three of them: long enough to look at it
	p := jsclient.Start(t, rdb, prefix, "name", interval)
	p.Add(7)
	var f jsclient.Flush
	redistest.Eventually(t, time.Minute, func() error {
		if len(p.Flushes()) == 0 {
			return fmt.Errorf("no flush yet: %w", p.Err())
		}
		f = p.Flushes()[0]
		return nil
	})
	now, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	require.InDelta(t, now.UnixMilli()/interval.Milliseconds(), f.Interval, 2)

	key := fmt.Sprintf("%s{name}:%d", prefix, f.Interval)
	require.Equal(t, "7", rdb.Get(t.Context(), key).Val())
	ttl := rdb.PTTL(t.Context(), key).Val()
	require.Positive(t, ttl)
	require.LessOrEqual(t, ttl, 3*interval)
	p.Stop()
	p.Stop()
}

func TestParticipantReportsErrors(t *testing.T) {
	s := redistest.NewStub(t, func([]string) string { return redistest.Pass })
	p := jsclient.Start(t, s.Client(), "", "name", 10*time.Millisecond)
	redistest.Eventually(t, time.Minute, func() error {
		if p.Err() == nil {
			return fmt.Errorf("no error yet")
		}
		return nil
	})
	require.ErrorContains(t, p.Err(), "unknown command")
}
