package counter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// memStore is a Store in memory, with a clock that can be set apart from the
// local one and faults that a test switches on. It is the contract of Store in
// Go, without keys' expiry.
type memStore struct {
	mu     sync.Mutex
	skew   time.Duration
	totals map[memKey]int64
	parts  map[memKey]map[string]int64
	marks  map[memMark]int64
	seen   map[memKey]int64
	first  map[memKey]string
	calls  int
	open   int      // calls that have not returned
	runs   []memRun // of shares, in their order

	// fault is asked for each flush, before it is carried out.
	fault func(f *Flush) memFault
	down  error // what a probe answers
}

// memRun is what became of a share in the store.
type memRun struct {
	Share
	participant string
	at          ServerTime
	local       time.Time
	outcome     Outcome
	answers     []Answer
}

type memKey struct {
	prefix, name string
	n            int64
}

type memMark struct {
	memKey
	id    string
	batch int
}

// memFault says what goes wrong with a flush.
type memFault struct {
	before, after time.Duration // delays
	loseRequest   bool
	loseReply     bool
	err           error // proven not applied
	hang          chan struct{}
	again         time.Duration // when the same flush comes a second time
}

var errLost = errors.New("EOF")

func newMemStore() *memStore {
	return &memStore{
		totals: map[memKey]int64{}, parts: map[memKey]map[string]int64{}, marks: map[memMark]int64{},
		seen: map[memKey]int64{}, first: map[memKey]string{},
	}
}

func (m *memStore) now() ServerTime { return ServerTime(time.Now().Add(m.skew).UnixMicro()) }

func (m *memStore) setFault(fault func(*Flush) memFault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

func (m *memStore) setDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}

func (m *memStore) step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skew += d
}

func (m *memStore) Server(context.Context, string, string) (string, error) { return "", nil }

func (m *memStore) Probe(context.Context, string, string, string) (ServerTime, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return m.now(), m.down
}

func (m *memStore) Flush(_ context.Context, f *Flush) []Result {
	m.mu.Lock()
	m.calls++
	m.open++
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.open--
	}()
	var fault memFault
	if m.fault != nil {
		fault = m.fault(f)
	}
	m.mu.Unlock()
	time.Sleep(fault.before)
	if fault.hang != nil {
		<-fault.hang
	}
	results := make([]Result, len(f.Shares))
	for i, share := range slices.Clone(f.Shares) {
		switch {
		case fault.err != nil:
			results[i] = Result{Outcome: NotApplied, Err: fault.err}
		case fault.loseRequest:
			results[i].Err = errLost
		default:
			results[i] = m.run(f, share)
			if fault.again > 0 {
				go func() {
					time.Sleep(fault.again)
					m.run(f, share)
				}()
			}
			if fault.loseReply {
				results[i] = Result{Err: errLost}
			}
		}
	}
	time.Sleep(fault.after)
	return results
}

func (m *memStore) run(f *Flush, s Share) Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.apply(f, &s)
	m.runs = append(m.runs, memRun{s, f.Participant, r.Time, time.Now(), r.Outcome, r.Answers})
	return r
}

func (m *memStore) apply(f *Flush, s *Share) Result {
	now := m.now()
	n := now.interval(f.Interval)
	key := memKey{s.Prefix, s.Name, s.Interval}
	r := Result{Time: now}
	if s.Mode == ModeRead {
		r.Outcome = Late
		if n == s.Interval {
			r.Outcome = Applied
			m.read(&r, s, n)
		}
		return r
	}
	mark := memMark{key, f.Participant, s.Batch}
	switch have := m.marks[mark]; {
	case have == s.Seq:
		r.Outcome = Repeated
	case have > 0:
		r.Outcome = Used
		return r
	case have < 0 && -have >= s.Seq:
		r.Outcome = Fenced
		return r
	case n == s.Interval, s.Mode == ModeAhead && s.Interval == n+1:
		r.Outcome = Applied
		m.add(mark, s)
	case n > s.Interval+1:
		r.Outcome = Late
		return r
	default:
		m.marks[mark] = -s.Seq
		r.Outcome = Refused
		return r
	}
	if s.AskFirst {
		if m.first[key] == "" {
			m.first[key] = f.Participant
		}
		r.First = m.first[key] == f.Participant
	}
	m.read(&r, s, n)
	for _, q := range s.Questions {
		r.Answers = append(r.Answers, m.answer(f, s, q, now))
	}
	return r
}

func (m *memStore) add(mark memMark, s *Share) {
	m.marks[mark] = s.Seq
	m.totals[mark.memKey] += s.Amount
	if s.Batch == 0 {
		m.seen[mark.memKey]++
	}
	if m.parts[mark.memKey] == nil {
		m.parts[mark.memKey] = map[string]int64{}
	}
	for i, a := range s.Amounts {
		if a != 0 {
			m.parts[mark.memKey][s.Series[i]] += a
		}
	}
}

func (m *memStore) read(r *Result, s *Share, n int64) {
	closed := memKey{s.Prefix, s.Name, n - 1}
	r.Closed, r.Known = m.totals[closed]
	r.Participants = m.seen[closed]
	r.Open, r.OpenKnown = m.totals[memKey{s.Prefix, s.Name, n}]
	if r.Known {
		r.SeriesClosed = make([]int64, len(s.Series))
		for i, name := range s.Series {
			r.SeriesClosed[i] = m.parts[closed][name]
		}
	}
}

func (m *memStore) answer(f *Flush, s *Share, q Question, now ServerTime) Answer {
	mark := memMark{memKey{s.Prefix, s.Name, q.Interval}, f.Participant, s.Batch}
	n := now.interval(f.Interval)
	if now < ServerTime(((q.Interval+1)*f.Interval.Microseconds())+slack(f.Interval).Microseconds()) {
		return StillOpen
	}
	switch have := m.marks[mark]; {
	case have == q.Seq:
		return Counted
	case n > q.Interval+2:
		return Unknowable
	case have > 0 || -have >= q.Seq:
		return NotCounted
	}
	m.marks[mark] = -q.Seq
	return NotCounted
}

// sent returns the shares that were carried out.
func (m *memStore) sent() (shares []Share) {
	for _, r := range m.ran() {
		shares = append(shares, r.Share)
	}
	return shares
}

func (m *memStore) ran() []memRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.runs)
}

// quiet reports whether no call is under way.
func (m *memStore) quiet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open == 0
}

func (m *memStore) callCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// sum adds up a counter's totals over all intervals.
func (m *memStore) sum(name string) (sum int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, v := range m.totals {
		if k.name == name {
			sum += v
		}
	}
	return sum
}

// byInterval returns a counter's totals.
func (m *memStore) byInterval(name string) map[int64]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	byN := map[int64]int64{}
	for k, v := range maps.All(m.totals) {
		if k.name == name {
			byN[k.n] = v
		}
	}
	return byN
}
