package redistest

import (
	"testing"
	"time"
)

// Eventually calls check until it returns nil, and fails the test with the last
// error if that takes longer than the given time. Give it plenty: what it waits for
// is late on a loaded machine, not wrong.
func Eventually(tb testing.TB, within time.Duration, check func() error) {
	tb.Helper()
	start, pause := time.Now(), time.Millisecond
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Since(start) > within {
			tb.Fatalf("not within %v: %v", within, err)
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}
