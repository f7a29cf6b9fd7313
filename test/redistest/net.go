package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports of test servers are taken from below the range that Linux and macOS give
// to outgoing connections, so that no client's socket sits on one. A cluster's bus
// is 10,000 above its port.
const (
	firstPort  = 12000
	lastPort   = 22000
	clusterBus = 10000
)

// freePort returns a port p of 127.0.0.1 on which nothing listens, nor on p's
// cluster bus.
func freePort(tb testing.TB) int {
	tb.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if free(port) && free(port+clusterBus) {
			return port
		}
	}
	tb.Fatal("no free port on 127.0.0.1")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", net127(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// net127 is an address literal on purpose: go-redis resolves host names, which
// breaks in synctest bubbles.
func net127(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
