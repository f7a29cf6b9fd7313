package counter

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
)

// wireFault says what becomes of a call on its way.
type wireFault struct {
	before, after          time.Duration // delays of the request and of the reply
	loseRequest, loseReply bool          // and the connection is cut
	answer                 string        // an error in place of the server's answer
	again                  time.Duration // when the same request comes a second time
}

// wireCall is one call of the script; a probe has no shares.
type wireCall struct {
	args   []string
	at     ServerTime // the server's clock
	id     string
	shares []wireShare
	err    string // the answer, if it was an error
	local  time.Time
}

// wireShare is one share of a call, with the server's answer.
type wireShare struct {
	mode, key, batch string
	n, seq, amount   int64
	series           []string
	questions        int
	answer           string
}

func (s wireShare) applied() bool { return strings.HasPrefix(s.answer, "applied") && s.mode != "read" }

// wire is one connection.
type wire struct {
	link   *link
	client net.Conn
	conn   net.Conn // to the server
	server *proto.Client
}

func (l *link) dial(context.Context, string, string) (net.Conn, error) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.net.down || l.refused {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	conn, err := l.net.mini.Dial()
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	w := &wire{link: l, client: far, conn: conn, server: proto.NewClient(conn)}
	l.net.wires[w] = true
	go w.run()
	return near, nil
}

func (w *wire) close() {
	_ = w.client.Close()
	_ = w.conn.Close()
	w.link.net.mu.Lock()
	delete(w.link.net.wires, w)
	w.link.net.mu.Unlock()
}

func (w *wire) run() {
	defer w.close()
	// A pipe holds nothing: read on while a pipeline is still being written.
	commands := make(chan []string, 1<<12)
	go func() {
		defer close(commands)
		r := bufio.NewReader(w.client)
		for {
			raw, err := proto.Read(r)
			if err != nil {
				return
			}
			args, err := proto.ReadStrings(raw)
			if err != nil {
				return
			}
			commands <- args
		}
	}()
	for args := range commands {
		reply, err := w.carry(args)
		if err != nil {
			return
		}
		if _, err := io.WriteString(w.client, reply); err != nil {
			return
		}
	}
}

// carry takes a command to the server and returns what comes back.
func (w *wire) carry(args []string) (string, error) {
	call := parseCall(args)
	if call == nil {
		return w.server.Do(args...)
	}
	f := w.link.net.faultOf(call)
	time.Sleep(f.before)
	switch {
	case f.loseRequest:
		return "", io.EOF
	case f.answer != "":
		return proto.Error(f.answer), nil
	}
	reply, err := w.link.net.run(w.server, call)
	if f.again > 0 && err == nil && call.err == "" {
		go w.link.net.repeat(args, f.again)
	}
	time.Sleep(f.after)
	if f.loseReply {
		return "", io.EOF
	}
	return reply, err
}

func (n *network) faultOf(call *wireCall) wireFault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault == nil {
		return wireFault{}
	}
	return n.fault(call)
}

// repeat runs a call a second time, unless the server went down meanwhile.
func (n *network) repeat(args []string, after time.Duration) {
	n.mu.Lock()
	life := n.life
	n.mu.Unlock()
	time.Sleep(after)
	n.mu.Lock()
	gone := n.life != life
	n.mu.Unlock()
	if gone {
		return
	}
	if conn, err := n.mini.Dial(); err == nil {
		defer func() { _ = conn.Close() }()
		_, _ = n.run(proto.NewClient(conn), parseCall(args))
	}
}

// run has the server run a call, and notes what it did.
func (n *network) run(server *proto.Client, call *wireCall) (string, error) {
	n.mini.SetTime(n.now())
	call.at, call.local = n.serverTime(), time.Now()
	reply, err := server.Do(call.args...)
	if err != nil {
		return "", err
	}
	answers, err := proto.ReadStrings(reply)
	if err != nil {
		call.err = reply
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
	for i := range call.shares {
		s := &call.shares[i]
		if i+1 < len(answers) {
			s.answer = answers[i+1]
		}
		if s.applied() {
			n.applied[fmt.Sprint(call.id, " ", s.key, " ", s.batch)]++
		}
		if value, err := n.mini.Get(s.key); err == nil {
			n.totals[s.key] = parseTotal(value)
		}
	}
	return reply, nil
}

func parseTotal(value string) int64 {
	total, _ := strconv.ParseInt(value, 10, 64)
	return total
}

var shareHeader = regexp.MustCompile(`^([a-z]+) (\d+) (\d+) (\d+) (-?\d+) (\d+) (\d+)$`)

// parseCall reads a call of the script as flush.lua describes it, and returns nil
// for any other command.
func parseCall(args []string) *wireCall {
	if name := strings.ToLower(args[0]); name != "evalsha" && name != "eval" {
		return nil
	}
	call := &wireCall{args: args}
	keys, argv := args[3:], []string(nil)
	count, _ := strconv.Atoi(args[2])
	keys, argv = keys[:count], keys[count:]
	if len(argv) == 0 {
		return call
	}
	call.id, argv = argv[1], argv[2:]
	for len(argv) > 0 {
		m := shareHeader.FindStringSubmatch(argv[0])
		number := func(i int) int64 {
			v, _ := strconv.ParseInt(m[i], 10, 64)
			return v
		}
		call.shares = append(call.shares, wireShare{
			mode: m[1], key: keys[0], batch: m[2], n: number(3), seq: number(4), amount: number(5),
		})
		series, questions := int(number(6)), int(number(7))
		share := &call.shares[len(call.shares)-1]
		share.questions = questions
		argv = argv[1:]
		if series > 0 {
			share.series = argv[1 : 1+series]
			argv = argv[1+series:]
		}
		depth := 1
		if m[1] == "ahead" {
			depth = 2
		}
		keys = keys[2*(depth+1)+questions:]
		if questions > 0 {
			argv = argv[1:]
		}
	}
	return call
}
