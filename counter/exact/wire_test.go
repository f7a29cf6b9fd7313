package exact_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// fault is what the wire does to a command that runs a script.
type fault int

const (
	loseRequest fault = iota + 1 // the server never sees it, the connection breaks
	loseReply                    // the server runs it, the connection breaks
	blackHole                    // the server runs it, and nothing comes back
)

// wire is an in-memory network before a miniredis whose clock is that of the
// bubble. It is for synctest bubbles, where real sockets stop the clock.
type wire struct {
	*miniredis.Miniredis

	mu      sync.Mutex
	down    bool    // dialing fails, connections are broken
	faults  []fault // for the next scripts, one each; then none
	scripts int     // commands that ran a script, or tried
	conns   map[*conn]bool
}

func newWire() *wire {
	w := &wire{Miniredis: miniredis.NewMiniRedis(), conns: map[*conn]bool{}}
	w.ClockTTL(true)
	return w
}

func (w *wire) client(t testing.TB) *redis.Client {
	c := w.newClient()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newClient returns a client with go-redis' default options.
func (w *wire) newClient() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", // never used, but a name would be resolved
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.down {
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			}
			inner, err := w.Dial()
			if err != nil {
				return nil, err
			}
			cn := &conn{Conn: inner, wire: w, out: make(chan []byte, 1024), closed: make(chan struct{})}
			go cn.copy()
			w.conns[cn] = true
			return cn, nil
		},
	})
}

// clear takes back the faults that have not happened yet.
func (w *wire) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = nil
}

func (w *wire) inject(faults ...fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, faults...)
}

func (w *wire) sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scripts
}

// setDown cuts the server off, or makes it reachable again.
func (w *wire) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	if down {
		for cn := range w.conns {
			cn.end()
			delete(w.conns, cn)
		}
	}
}

// next is what shall happen to what is written now.
func (w *wire) next(p []byte) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	scripts := bytes.Count(p, []byte("\r\nevalsha\r\n")) + bytes.Count(p, []byte("\r\neval\r\n"))
	w.scripts += scripts
	if scripts == 0 || len(w.faults) == 0 {
		return 0
	}
	f := w.faults[0]
	w.faults = w.faults[1:]
	return f
}

// conn is a pipe to the server. It buffers what is written, as a socket does.
type conn struct {
	net.Conn
	wire     *wire
	fault    fault
	deadline time.Time
	out      chan []byte
	closed   chan struct{}
	once     sync.Once
}

func (c *conn) copy() {
	for {
		select {
		case p := <-c.out:
			if _, err := c.Conn.Write(p); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

func (c *conn) end() {
	c.once.Do(func() { close(c.closed) })
	_ = c.Conn.Close()
}

func (c *conn) Write(p []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, io.ErrClosedPipe
	default:
	}
	if f := c.wire.next(p); f != 0 {
		c.fault = f
	}
	if c.fault == loseRequest {
		c.end()
		return 0, io.ErrClosedPipe
	}
	c.out <- bytes.Clone(p)
	return len(p), nil
}

func (c *conn) Read(p []byte) (int, error) {
	switch c.fault {
	case loseReply, blackHole:
		// The server runs all that was sent. It is done when nothing comes any more.
		for {
			_ = c.Conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Conn.Read(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		if c.fault == loseReply {
			c.end()
			return 0, io.EOF
		}
		_ = c.Conn.SetReadDeadline(c.deadline)
		return c.Conn.Read(make([]byte, 1)) // times out
	}
	return c.Conn.Read(p)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetDeadline(t)
}

func (c *conn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	c.end()
	return nil
}
