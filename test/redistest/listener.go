package redistest

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// listener accepts connections on a free port of 127.0.0.1 and owns them, and the
// goroutines that serve them, until it is closed.
type listener struct {
	Addr string // host:port

	socket net.Listener
	done   chan struct{} // closed by Close
	work   sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	accepted int
	seen     map[string]int // commands received, by upper-case name
	closed   bool
}

// listen serves each connection in a goroutine of its own until Cleanup. A
// connection is closed once serve returns.
func listen(tb testing.TB) *listener {
	tb.Helper()
	socket, err := net.Listen("tcp", net127(0))
	if err != nil {
		tb.Fatal(err)
	}
	l := &listener{
		Addr: socket.Addr().String(), socket: socket, done: make(chan struct{}),
		conns: map[net.Conn]struct{}{}, seen: map[string]int{},
	}
	tb.Cleanup(l.Close)
	return l
}

func (l *listener) serve(serve func(net.Conn)) {
	l.work.Go(func() {
		for {
			conn, err := l.socket.Accept()
			if err != nil {
				return // closed
			}
			l.mu.Lock()
			l.accepted++
			l.mu.Unlock()
			if !l.own(conn) {
				return
			}
			l.work.Go(func() {
				defer l.release(conn)
				serve(conn)
			})
		}
	})
}

// Close ends all connections and waits for their goroutines. Closing again does
// nothing.
func (l *listener) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.done)
		_ = l.socket.Close()
	}
	l.mu.Unlock()
	l.Disconnect()
	l.work.Wait()
}

// Disconnect closes the connections that are open now, on both sides. New ones are
// accepted as before.
func (l *listener) Disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close()
	}
}

// Accepted returns how many connections have been opened so far.
func (l *listener) Accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted
}

// Seen returns how many commands of the given names clients have sent so far,
// whatever became of them. Names are compared without case.
func (l *listener) Seen(names ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for _, name := range names {
		sum += l.seen[strings.ToUpper(name)]
	}
	return sum
}

// saw counts a command.
func (l *listener) saw(args []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(args) > 0 {
		l.seen[strings.ToUpper(args[0])]++
	}
}

// URL returns the address as redis.ParseURL takes it.
func (l *listener) URL() string {
	return "redis://" + l.Addr + "/0"
}

func (l *listener) port() int {
	_, text, _ := net.SplitHostPort(l.Addr)
	port, _ := strconv.Atoi(text)
	return port
}

// own has a connection closed by Close and Disconnect; false if it is too late,
// the connection is closed then.
func (l *listener) own(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return false
	}
	l.conns[conn] = struct{}{}
	return true
}

func (l *listener) release(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = conn.Close()
	delete(l.conns, conn)
}
