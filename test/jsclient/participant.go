// Package jsclient takes part in a counter as the JavaScript library comcount does,
// so that tests can mix its participants with ours. It is written from the
// description of the wire, not from that library's code.
package jsclient

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed flush.lua
var source string

// Flush is an answered flush of a [Participant].
type Flush struct {
	Interval int64     // N, the interval that the amount was added to
	Amount   int64     // what was added
	Closed   int64     // the total of N-1, as the reply brought it
	Known    bool      // there was one
	At       time.Time // when the reply came
}

// Participant counts on one counter by the JavaScript library's protocol. All
// methods may be called from any goroutine.
type Participant struct {
	rdb      redis.UniversalClient
	script   *redis.Script
	key      string
	interval time.Duration
	cancel   context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	buffer  int64
	flushes []Flush
	errs    []error
}

// Start starts a participant. From one interval after the start it flushes what was
// added, zero too; each next flush leaves one interval after the last one's reply.
// It is stopped in Cleanup. Where replies may be lost, give it a client whose
// MaxRetries is -1: the protocol cannot tell a second send from a second flush.
func Start(tb testing.TB, rdb redis.UniversalClient, prefix, name string, interval time.Duration) *Participant {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Participant{
		rdb: rdb, script: redis.NewScript(source), key: fmt.Sprintf("%s{%s}", prefix, name),
		interval: interval, cancel: cancel, done: make(chan struct{}),
	}
	go p.run(ctx)
	tb.Cleanup(p.Stop)
	return p
}

// Add counts n, which the next flush sends.
func (p *Participant) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffer += n
}

// Stop ends the participant. A flush that is under way is given up; what has not
// been sent is dropped. Stopping again does nothing.
func (p *Participant) Stop() {
	p.cancel()
	<-p.done
}

// Flushes returns the answered flushes so far, in their order.
func (p *Participant) Flushes() []Flush {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Flush(nil), p.flushes...)
}

// Landed returns the sum of the amounts of the answered flushes.
func (p *Participant) Landed() int64 {
	var sum int64
	for _, f := range p.Flushes() {
		sum += f.Amount
	}
	return sum
}

// Closed returns the total of each closed interval that the participant was given,
// by the interval's number.
func (p *Participant) Closed() map[int64]int64 {
	closed := map[int64]int64{}
	for _, f := range p.Flushes() {
		if f.Known {
			closed[f.Interval-1] = f.Closed
		}
	}
	return closed
}

// Err returns the errors of flushes that failed, joined. Their amounts are dropped;
// they may have been counted.
func (p *Participant) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

func (p *Participant) run(ctx context.Context) {
	defer close(p.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.interval):
			p.flush(ctx)
		}
	}
}

func (p *Participant) flush(ctx context.Context) {
	p.mu.Lock()
	amount := p.buffer
	p.buffer = 0
	p.mu.Unlock()

	f, err := p.send(ctx, amount)

	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.flushes = append(p.flushes, f)
	case ctx.Err() == nil:
		p.errs = append(p.errs, fmt.Errorf("flush of %d: %w", amount, err))
	}
}

func (p *Participant) send(ctx context.Context, amount int64) (Flush, error) {
	// The reply is N and the total of N-1; nil where there is none.
	reply, err := p.script.Run(ctx, p.rdb, []string{p.key}, amount, p.interval.Milliseconds()).Slice()
	if err != nil {
		return Flush{}, err
	}
	f := Flush{Amount: amount, At: time.Now()}
	if len(reply) > 0 {
		_, err = fmt.Sscan(fmt.Sprint(reply[0]), &f.Interval)
	}
	if err == nil && len(reply) > 1 && reply[1] != nil {
		f.Known = true
		_, err = fmt.Sscan(fmt.Sprint(reply[1]), &f.Closed)
	}
	return f, err
}
