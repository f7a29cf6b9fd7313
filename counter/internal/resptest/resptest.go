// Package resptest is a Redis server for tests that answers whatever the test
// wants, also what no real server would.
package resptest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Hang and Close are what a handler answers to keep the client waiting, and to
// cut the connection without a reply.
const (
	Hang  = "hang"
	Close = "close"
)

// Server answers commands over connections in memory. It is safe for concurrent
// use.
type Server struct {
	answer func(args []string) string

	mu    sync.Mutex
	calls map[string]int
	conns []net.Conn
}

// New returns a server that answers with what answer returns: a reply as it goes
// over the wire, [Hang], [Close], or a reply followed by [Close]. Greetings (HELLO,
// CLIENT) are refused before answer sees them; go-redis does without.
func New(answer func(args []string) string) *Server {
	return &Server{answer: answer, calls: map[string]int{}}
}

// Options returns options for a client of this server, all else being default.
func (s *Server) Options() *redis.Options {
	// An address that is no name, for go-redis looks names up.
	return &redis.Options{Addr: "127.0.0.1:1", Dialer: s.Dial}
}

// Dial opens a connection, in the form of redis.Options.Dialer.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	s.mu.Lock()
	s.conns = append(s.conns, server)
	s.mu.Unlock()
	go s.serve(server)
	return client, nil
}

// Calls returns how many commands of this name came in.
func (s *Server) Calls(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[strings.ToLower(name)]
}

// Conns returns how many connections were opened.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Stop closes all connections.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *Server) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	// A pipe holds nothing: read on while a pipeline is still being written.
	requests := make(chan []string, 1<<16)
	go func() {
		defer close(requests)
		r := bufio.NewReaderSize(conn, 1<<16)
		for {
			args, err := readCommand(r)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.calls[strings.ToLower(args[0])]++
			s.mu.Unlock()
			requests <- args
		}
	}()
	for args := range requests {
		name := strings.ToLower(args[0])
		reply := "-ERR unknown command\r\n"
		if name != "hello" && name != "client" {
			reply = s.answer(args)
		}
		text, closed := strings.CutSuffix(reply, Close)
		if text == Hang {
			continue
		}
		if _, err := io.WriteString(conn, text); err != nil || closed {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLen(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLen(r, '$')
		if err != nil {
			return nil, err
		}
		buf := make([]byte, size+2)
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil, err
		}
		args[i] = string(buf[:size])
	}
	if n == 0 {
		return nil, errors.New("empty command")
	}
	return args, nil
}

func readLen(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("want %q, got %q", kind, line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// Bulk returns a string as it goes over the wire.
func Bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// Array returns an array of replies as it goes over the wire.
func Array(replies ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(replies), strings.Join(replies, ""))
}
