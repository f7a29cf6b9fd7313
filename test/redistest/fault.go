package redistest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a way in which the network fails a command.
type Kind string

// The kinds of faults. Each is seen by the client as named; what the server sees
// is said here.
const (
	// Close: the server runs the command; once the whole reply is there the client's
	// connection is closed without it. What was pipelined behind it runs as well.
	Close Kind = "close"
	// Stall: the server runs the command; its reply, and all later ones of that
	// connection, are swallowed. The connection stays open.
	Stall Kind = "stall"
	// Late: the command reaches the server after Fault.Delay, even if the client has
	// closed its connection in the meantime. What is pipelined behind it waits too.
	Late Kind = "late"
	// Repeat: the command passes as usual, and reaches the server once more after
	// Fault.Delay, on a connection of its own.
	Repeat Kind = "repeat"
	// Drop: the connection is closed and the command never reaches the server. What
	// was pipelined before it runs and is answered; what came behind it is lost too.
	Drop Kind = "drop"
	// Delay: Fault.Delay of added round trip, half of it on each way. Pipelined
	// commands keep their distance. It is combined with any other fault.
	Delay Kind = "delay"
	// CutRequest: the server gets the first Fault.Bytes bytes of the command, then
	// both connections are closed.
	CutRequest Kind = "cut request"
	// CutReply: the server runs the command; the client gets the first Fault.Bytes
	// bytes of the reply, then its connection is closed.
	CutReply Kind = "cut reply"
)

// Fault says what happens to which commands.
type Fault struct {
	Kind        Kind
	Match       Match   // which commands; nil: all, those of the connection's handshake included
	Times       int     // how many of them; 0: all until Heal
	Probability float64 // with which each of them is hit; 0: always
	Seed        uint64  // of the random numbers behind Probability
	Delay       time.Duration
	Bytes       int
}

// Match says whether a command is meant. args[0] is its name as the client sent
// it. It is called while the proxy holds a lock: it must not call the proxy.
type Match func(args []string) bool

// Command matches commands by name, without case.
func Command(names ...string) Match {
	return func(args []string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return len(args) > 0 && strings.EqualFold(name, args[0])
		})
	}
}

// Script matches EVALSHA, EVAL and their read-only forms.
func Script(args []string) bool {
	return Command("EVALSHA", "EVAL", "EVALSHA_RO", "EVAL_RO")(args)
}

// ScriptWithKeys matches script calls that declare at least one key.
func ScriptWithKeys(args []string) bool {
	return Script(args) && len(args) > 2 && args[2] != "0"
}

// Injection is a fault that has been switched on. All methods may be called from
// any goroutine.
type Injection struct {
	proxy *Proxy
	fault Fault
	rand  *rand.Rand
	hits  int
	ended bool
}

// Hits returns how many commands the fault has hit so far.
func (i *Injection) Hits() int {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	return i.hits
}

// Heal switches the fault off. What it has already done stays: a stalled
// connection remains stalled, a late command comes late.
func (i *Injection) Heal() {
	i.proxy.mu.Lock()
	defer i.proxy.mu.Unlock()
	i.ended = true
	i.proxy.faults = slices.DeleteFunc(i.proxy.faults, func(f *Injection) bool { return f == i })
}

// hit decides whether the fault meets this command. The proxy's lock is held.
func (i *Injection) hit(args []string) bool {
	f := i.fault
	switch {
	case i.ended, f.Times > 0 && i.hits >= f.Times:
		return false
	case f.Match != nil && !f.Match(args):
		return false
	case f.Probability > 0 && i.rand.Float64() >= f.Probability:
		return false
	}
	i.hits++
	return true
}
