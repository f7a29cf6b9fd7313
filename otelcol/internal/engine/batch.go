package engine

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/drop"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/stream"
)

// Batch is what was read of one request. It keeps no reference to the request's
// data. It is used by one goroutine: Commit at most once, Release in the end.
type Batch struct {
	engine *Engine
	member *Member
	hasher *identity.Hasher

	ints    amounts[int64]
	doubles amounts[float64]
	apart   int64 // points of which the series is above the limit
	dropped [drop.Count]int64

	// Of the resource, scope and metric that are being read; empty otherwise.
	resource resource
	scope    pcommon.InstrumentationScope
	scopeKey identity.Key
	scoped   bool // scopeKey is made
}

// resource is what is known of a resource while it is read.
type resource struct {
	pcommon.Resource
	service serviceKey
	key     identity.Key
	keyed   bool         // key is made
	series  identity.Key // of its part of a series
	some    bool         // there is one
}

// amounts is what a batch says in one number type.
type amounts[N stream.Number] struct {
	adds      []add[N]
	rises     []rise[N]
	unordered bool // the rises' times fall somewhere
}

// add is an amount of delta points in a row that go to one target.
type add[N stream.Number] struct {
	to     *target
	amount N
	points int64
}

// rise is a cumulative point.
type rise[N stream.Number] struct {
	to    *target
	key   identity.Key
	point stream.Point[N]
}

// add notes a delta point. Points in a row that go to one target are one amount, as
// long as it fits.
func (a *amounts[N]) add(to *target, n N) {
	if i := len(a.adds) - 1; i >= 0 && a.adds[i].to == to {
		if sum := a.adds[i].amount + n; sum >= n { // else it passed int64
			a.adds[i].amount = sum
			a.adds[i].points++
			return
		}
	}
	a.adds = append(a.adds, add[N]{to: to, amount: n, points: 1})
}

// rise notes a cumulative point.
func (a *amounts[N]) rise(to *target, key identity.Key, p stream.Point[N]) {
	if i := len(a.rises) - 1; i >= 0 && p.Time < a.rises[i].point.Time {
		a.unordered = true
	}
	a.rises = append(a.rises, rise[N]{to: to, key: key, point: p})
}

// commit adds what was noted. It returns how many points counted.
func (a *amounts[N]) commit(b *Batch, plus func(*target, N), take func(identity.Key, stream.Point[N]) (N, drop.Reason), now time.Time) (counted int64) {
	for i := range a.adds {
		to := a.adds[i].to
		to.use(now.UnixNano())
		plus(to, a.adds[i].amount)
		counted += a.adds[i].points
	}
	if a.unordered {
		// Points of one stream may come newest first, also from several resources of one
		// batch. What order streams have among each other does not matter.
		slices.SortStableFunc(a.rises, func(x, y rise[N]) int { return cmp.Compare(x.point.Time, y.point.Time) })
	}
	for i := range a.rises {
		r := &a.rises[i]
		n, why := take(r.key, r.point)
		if why == drop.None {
			counted++
		} else {
			b.dropped[why]++
		}
		r.to.use(now.UnixNano())
		plus(r.to, n) // also 0: the counter is in use
	}
	return counted
}

func (a *amounts[N]) reset() {
	clear(a.adds)
	clear(a.rises)
	a.adds, a.rises, a.unordered = a.adds[:0], a.rises[:0], false
}

// points is how many points were noted.
func (a *amounts[N]) points() (n int64) {
	for i := range a.adds {
		n += a.adds[i].points
	}
	return n + int64(len(a.rises))
}

// Commit counts the batch. It never waits.
func (b *Batch) Commit() {
	e := b.engine
	e.committing.RLock()
	defer e.committing.RUnlock()
	if e.closed {
		// Shutdown did not wait for the next component any longer, and nothing flushes
		// what is counted now.
		b.dropped[drop.Shutdown] += b.ints.points() + b.doubles.points()
		e.telemetry.batch(0, 0, &b.dropped)
		return
	}
	now := time.Now()
	counted := b.ints.commit(b, func(t *target, n int64) { t.ints.Add(n) },
		func(k identity.Key, p stream.Point[int64]) (int64, drop.Reason) { return e.streams.Int(k, p, now) }, now)
	counted += b.doubles.commit(b, func(t *target, x float64) { t.doubles.Add(x) },
		func(k identity.Key, p stream.Point[float64]) (float64, drop.Reason) {
			return e.streams.Double(k, p, now)
		}, now)
	e.telemetry.batch(counted, b.apart, &b.dropped)
	if b.dropped[drop.StreamLimit] > 0 {
		e.warnings.streams.warn("too many cumulative streams; points of further ones are not counted", e.config.MaxStreams)
	}
	if n := b.dropped[drop.SeveralWriters]; n > 0 {
		e.warnings.writers.warn("several writers seem to send one cumulative stream; their points are not counted", int(n))
	}
}

// Release ends the use of the batch. Without a Commit before, nothing of it counts.
func (b *Batch) Release() {
	b.ints.reset()
	b.doubles.reset()
	b.resource, b.scope, b.scoped = resource{}, pcommon.InstrumentationScope{}, false
	b.apart, b.dropped = 0, [drop.Count]int64{}
	m := b.member
	b.member = nil
	b.engine.batches.Put(b)
	m.gate.leave()
}
