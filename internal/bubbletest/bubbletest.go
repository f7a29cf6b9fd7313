// Package bubbletest runs tests in bubbles of testing/synctest.
//
// On Go 1.26 the race detector can crash a test binary that uses bubbles
// (golang/go#76691 and golang/go#78156; the fix is in 1.27). So the tests in
// bubbles run without -race always, and with -race only where -short is not set:
// `go test -race -short`, which CI runs, leaves them out, visibly. What they test
// for races is tested outside bubbles too.
package bubbletest

import (
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// Run is synctest.Test, for tests that the short race pass leaves out.
func Run(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	SkipInShortRace(t)
	synctest.Test(t, f)
}

// SkipInShortRace skips the test under -race -short. It is for bubbles that others
// make, such as rapid.SyncTest.
func SkipInShortRace(tb testing.TB) {
	tb.Helper()
	if testing.Short() && race() {
		tb.Skip("bubbles may crash under the race detector of Go 1.26; without -short they run")
	}
}

// race reports whether the binary was built with -race.
func race() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, setting := range info.Settings {
		if setting.Key == "-race" {
			return setting.Value == "true"
		}
	}
	return false
}
