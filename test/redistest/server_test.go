package redistest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/internal/leaktest"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
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

// Cleanup does not run when a test binary panics or is killed; no server may stay
// behind.
func TestServerEndsWithItsProcess(t *testing.T) {
	if os.Getenv("REDISTEST_CHILD") != "" {
		fmt.Printf("addr=%s\n", redistest.Start(t).Addr)
		os.Exit(0)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "REDISTEST_CHILD=1", "TMPDIR="+t.TempDir())
	out, err := child.Output()
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(out), "addr=")
	require.True(t, ok, "no server was started:\n%s", out)
	addr, _, _ := strings.Cut(after, "\n")
	redistest.Eventually(t, 10*time.Second, func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return nil
		}
		_ = conn.Close()
		return fmt.Errorf("a server still answers on %s", addr)
	})
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
	one, other := redistest.Prefix(t), redistest.Prefix(t)
	require.NotEqual(t, one, other)
}
