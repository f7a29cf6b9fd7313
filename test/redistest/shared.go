package redistest

import (
	"crypto/rand"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultInterval is the length of an interval in tests against real servers,
// where TEST_INTERVAL does not set another.
const DefaultInterval = 300 * time.Millisecond

// URL returns the server that tests share: REDIS_URL where it is set, else that of
// a server started for this test. Take keys from [Prefix]: a shared server is not
// empty, and is not the test's to flush.
func URL(tb testing.TB) string {
	tb.Helper()
	if url := os.Getenv("REDIS_URL"); url != "" {
		return url
	}
	return Start(tb).URL()
}

// Client returns a client of the server at [URL], changed by opts. It is closed in
// Cleanup.
func Client(tb testing.TB, opts ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	opt, err := redis.ParseURL(URL(tb))
	if err != nil {
		tb.Fatalf("REDIS_URL: %v", err)
	}
	return openClient(tb, opt, opts)
}

// Prefix returns a key prefix that nobody else uses.
func Prefix(tb testing.TB) string {
	tb.Helper()
	return "test:" + rand.Text()[:10] + ":"
}

// Interval returns the length of an interval: TEST_INTERVAL milliseconds, or
// [DefaultInterval].
func Interval(tb testing.TB) time.Duration {
	tb.Helper()
	text := os.Getenv("TEST_INTERVAL")
	if text == "" {
		return DefaultInterval
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 10 {
		tb.Fatalf("TEST_INTERVAL must be whole milliseconds, at least 10, not %q", text)
	}
	return time.Duration(ms) * time.Millisecond
}

func newClient(tb testing.TB, addr string, opts ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	return openClient(tb, &redis.Options{Addr: addr}, opts)
}

func openClient(tb testing.TB, opt *redis.Options, opts []func(*redis.Options)) *redis.Client {
	tb.Helper()
	for _, set := range opts {
		set(opt)
	}
	client := redis.NewClient(opt)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}
