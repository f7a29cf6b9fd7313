package engine

import (
	"context"
	"sync"
)

// gate lets callers in between its opening and its closing, and lets the closing
// one wait for those inside.
type gate struct {
	mu     sync.Mutex
	open   bool
	inside int
	empty  chan struct{} // closed when the last one leaves a closed gate
}

func (g *gate) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
}

// enter reports whether the caller is in; then it must leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		g.inside++
	}
	return g.open
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// close lets nobody in any more, and waits for those inside as long as ctx allows.
func (g *gate) close(ctx context.Context) {
	g.mu.Lock()
	g.open = false
	if g.inside > 0 && g.empty == nil {
		g.empty = make(chan struct{})
	}
	empty := g.empty
	g.mu.Unlock()
	if empty != nil {
		select {
		case <-empty:
		case <-ctx.Done():
		}
	}
}
