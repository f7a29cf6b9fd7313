package redistest

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// exchange is a command on its way, and what becomes of it.
type exchange struct {
	args  []string
	raw   []byte
	due   time.Time     // when it may go on to the server
	way   time.Duration // how long its reply is on the way
	kind  Kind          // "" if nothing happens to it
	fault Fault
}

// answer is a reply on its way.
type answer struct {
	raw  []byte
	due  time.Time
	last bool // the client's connection ends after it
}

// relay serves one client. Four stages, each with one way out, pass the commands
// to the server and the replies back:
//
//	client -> receive -> forward -> server -> reply -> deliver -> client
//
// A stage that has failed drains what the one before it sends, so that each ends
// once the one before it has; the first ends when the client's connection does.
// Commands that were received are forwarded even if the client is gone by then.
func (p *Proxy) relay(client net.Conn) {
	server, err := net.Dial("tcp", p.targetAddr())
	if err != nil || !p.own(server) {
		return // the client sees its connection closed
	}
	defer p.release(server)

	received := make(chan exchange, 64)
	forwarded := make(chan exchange, 64)
	answers := make(chan answer, 64)
	var stages sync.WaitGroup
	stages.Go(func() { p.receive(client, received) })
	stages.Go(func() { p.forward(received, server, forwarded) })
	stages.Go(func() { p.reply(forwarded, server, answers) })
	stages.Go(func() { p.deliver(answers, client) })
	stages.Wait()
}

// receive reads the client's commands and decides what becomes of each.
func (p *Proxy) receive(client net.Conn, out chan<- exchange) {
	defer close(out)
	r := bufio.NewReader(client)
	for {
		args, raw, err := readCommand(r)
		if err != nil {
			return
		}
		out <- p.received(args, raw)
	}
}

// forward sends commands to the server when they are due.
func (p *Proxy) forward(in <-chan exchange, server net.Conn, out chan<- exchange) {
	defer close(out)
	for ex := range in {
		p.wait(ex.due)
		if ex.kind == Drop || ex.kind == CutRequest {
			if ex.kind == CutRequest {
				_, _ = server.Write(ex.raw[:min(ex.fault.Bytes, len(ex.raw))])
			}
			break
		}
		// Both before the write: the reply must find its command, and a test that has
		// the reply must find it counted.
		out <- ex
		p.passed(ex.args)
		if _, err := server.Write(ex.raw); err != nil {
			break
		}
		if ex.kind == Repeat {
			p.repeat(ex)
		}
	}
	// The server answers what it has and then closes its side, which ends the client's.
	if tcp, ok := server.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	for range in { // drained, so that receive ends
	}
}

// reply reads the server's replies and pairs them with the commands.
func (p *Proxy) reply(in <-chan exchange, server net.Conn, out chan<- answer) {
	defer close(out)
	r := bufio.NewReader(server)
	silent := false
	for {
		raw, push, err := readReply(r, nil)
		if err != nil { // the server is gone, or does not speak RESP
			out <- answer{last: true}
			break
		}
		a := answer{raw: raw}
		if !push {
			ex := <-in
			a.due = time.Now().Add(ex.way)
			switch ex.kind {
			case Close:
				a.raw, a.last = nil, true
			case CutReply:
				a.raw, a.last = raw[:min(ex.fault.Bytes, len(raw))], true
			case Stall:
				silent = true
			}
		}
		if !silent {
			out <- a
		}
	}
	for range in { // drained, so that forward ends
	}
}

// deliver gives replies to the client when they are due.
func (p *Proxy) deliver(in <-chan answer, client net.Conn) {
	open := true
	for a := range in {
		if !open {
			continue
		}
		p.wait(a.due)
		if len(a.raw) > 0 {
			_, _ = client.Write(a.raw)
		}
		if a.last {
			open = false
			_ = client.Close()
		}
	}
	_ = client.Close()
}

// repeat sends a command once more, later, as a network does that delivers twice.
func (p *Proxy) repeat(ex exchange) {
	p.work.Go(func() {
		p.wait(time.Now().Add(ex.fault.Delay))
		server, err := net.Dial("tcp", p.targetAddr())
		if err != nil || !p.own(server) {
			return
		}
		defer p.release(server)
		p.passed(ex.args)
		if _, err := server.Write(ex.raw); err == nil {
			_, _, _ = readReply(bufio.NewReader(server), nil)
		}
	})
}

// wait returns at the given time, or when the proxy is closed.
func (p *Proxy) wait(until time.Time) {
	d := time.Until(until)
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.done:
	}
}
