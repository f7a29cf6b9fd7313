package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestServerAnswersAndIsGoneAfterStop(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())

	s.Stop()
	require.False(t, s.Running())
	require.Error(t, c.Get(t.Context(), "k").Err())
	s.Stop() // again: nothing happens
}

func TestServerRestartsOnItsPort(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want error
	}{
		"nothing kept": {nil, redis.Nil},
		"appendonly":   {[]string{"--appendonly", "yes", "--appendfsync", "always"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, test.args...)
			c, addr := s.Client(), s.Addr
			require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
			s.Kill()
			s.Restart()
			require.Equal(t, addr, s.Addr)
			require.ErrorIs(t, c.Get(t.Context(), "k").Err(), test.want)
		})
	}
}

func TestServerPausedAnswersAfterResume(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, 100*time.Millisecond })
	require.NoError(t, c.Ping(t.Context()).Err())
	s.Pause()
	require.ErrorContains(t, c.Ping(t.Context()).Err(), "timeout")
	s.Resume()
	require.NoError(t, c.Ping(t.Context()).Err())
	s.Pause()
	s.Stop() // a paused server ends too
	require.False(t, s.Running())
}

func TestInterval(t *testing.T) {
	t.Setenv("TEST_INTERVAL", "")
	require.Equal(t, redistest.DefaultInterval, redistest.Interval(t))
	t.Setenv("TEST_INTERVAL", "50")
	require.Equal(t, 50*time.Millisecond, redistest.Interval(t))
}

func TestURL(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1/3")
	require.Equal(t, "redis://127.0.0.1:1/3", redistest.URL(t))
	t.Setenv("REDIS_URL", "")
	require.NoError(t, redistest.Client(t).Ping(t.Context()).Err())
	require.NotEqual(t, redistest.Prefix(t), redistest.Prefix(t))
}
