// Package leaktest looks for goroutines that the tests of a package leave behind.
package leaktest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package; it is what their TestMain calls.
func Main(m *testing.M) {
	// go-redis looks once a second whether a server that could not be dialed is back,
	// and notices only then that its client was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
