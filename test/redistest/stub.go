package redistest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Stub is a server that answers commands with whatever the test wants, right or
// wrong. All methods may be called from any goroutine.
type Stub struct {
	*listener
	tb testing.TB
}

// Answers for [NewStub] that are no replies.
const (
	Silence = ""           // no reply; the connection stays open
	Hangup  = "\x00hangup" // the connection is closed without a reply
	Pass    = "\x00pass"   // what a plain Redis answers; see NewStub
)

// NewStub starts a stub on a free port of 127.0.0.1. It asks answer for the raw
// bytes that each command gets; [BulkReply] and the like make some. To [Pass] it
// answers itself, enough for go-redis to connect: HELLO (RESP3, or RESP2 where
// that is asked for), PING, and OK to AUTH, CLIENT, SELECT, READONLY; and an error
// to all others.
//
// Answer is called for the commands of one connection in their order, and for
// several connections at the same time. The stub is closed in Cleanup.
func NewStub(tb testing.TB, answer func(args []string) string) *Stub {
	tb.Helper()
	s := &Stub{listener: listen(tb), tb: tb}
	s.serve(func(conn net.Conn) { s.talk(conn, answer) })
	return s
}

// Client returns a client of the stub, with go-redis' default options, changed by
// opts. It is closed in Cleanup.
func (s *Stub) Client(opts ...func(*redis.Options)) *redis.Client {
	return newClient(s.tb, s.Addr, opts...)
}

func (s *Stub) talk(conn net.Conn, answer func(args []string) string) {
	r := bufio.NewReader(conn)
	for {
		args, _, err := readCommand(r)
		if err != nil {
			return
		}
		s.saw(args)
		reply := answer(args)
		switch reply {
		case Silence:
			continue
		case Hangup:
			return
		case Pass:
			reply = plainReply(args)
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
	}
}

func plainReply(args []string) string {
	if len(args) == 0 {
		return ErrorReply("ERR empty command")
	}
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		if len(args) > 1 && args[1] == "3" {
			return "%3\r\n" + BulkReply("server") + BulkReply("redis") +
				BulkReply("version") + BulkReply("7.0.15") + BulkReply("proto") + ":3\r\n"
		}
		return ArrayReply(BulkReply("server"), BulkReply("redis"),
			BulkReply("version"), BulkReply("7.0.15"), BulkReply("proto"), ":2\r\n")
	case "PING":
		return "+PONG\r\n"
	case "AUTH", "CLIENT", "SELECT", "READONLY":
		return "+OK\r\n"
	default:
		return ErrorReply(fmt.Sprintf("ERR unknown command '%s'", args[0]))
	}
}

// BulkReply is a string on the wire.
func BulkReply(text string) string {
	return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
}

// IntReply is an integer on the wire.
func IntReply(n int64) string {
	return fmt.Sprintf(":%d\r\n", n)
}

// ErrorReply is an error on the wire; text begins with its code, such as "NOSCRIPT".
func ErrorReply(text string) string {
	return "-" + text + "\r\n"
}

// ArrayReply is an array of replies on the wire.
func ArrayReply(replies ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(replies), strings.Join(replies, ""))
}
