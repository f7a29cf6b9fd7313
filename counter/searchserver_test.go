package counter

import "time"

// Time in the model is in sub-steps, four to an interval, so that one is the
// slack. As a ServerTime a sub-step is a microsecond.
const (
	subSteps    = 4
	modelSlack  = 1
	modelLength = subSteps * time.Microsecond
	firstMoment = subSteps // of interval 1
)

// server is the model of the script, and of what the server keeps of one
// counter. Amounts are powers of four, a different one for each Add, so that
// counted shows how often each of them is in the totals.
type server struct {
	now     int8
	keys    [lastInterval + 1]keys
	counted int64
}

// lastInterval is one that no scope comes to.
const lastInterval = 20

// keys are prefix{name}:N and prefix{name}:N:by.
type keys struct {
	totalEnds, hashEnds int8    // when they expire; 0: there is no such key
	marks               [2]int8 // by participant
	contributed         [2]bool // to this total
}

// request is what a call carries of one share.
type request struct {
	from          int8
	mode          Mode
	interval, seq int64
	amount        int64
	questions     []Question
}

// reply is what the script answers.
type reply struct {
	outcome Outcome
	time    int8
	answers []Answer
}

func (s *server) interval() int64 { return intervalAt(s.now) }

func intervalAt(t int8) int64 { return ServerTime(t).interval(modelLength) }

// expire removes the keys whose time has come.
func (s *server) expire() {
	for i := range s.keys {
		k := &s.keys[i]
		if k.totalEnds <= s.now {
			k.totalEnds, k.contributed = 0, [2]bool{}
		}
		if k.hashEnds <= s.now {
			k.hashEnds, k.marks = 0, [2]int8{}
		}
	}
}

// run is the script, with the decision order of rules 2, 3 and 5. It reports
// whether it wrote anything, and whether it broke a promise.
func (s *server) run(r *request, out rules) (answer reply, wrote bool, broken string) {
	k, n := &s.keys[r.interval], s.interval()
	mark := int64(k.marks[r.from])
	running := r.interval == n || r.mode == ModeAhead && r.interval == n+1
	answer.time = s.now
	if out.clockFirst && !running || out.markPerCall && mark != r.seq {
		mark = 0
	}
	switch {
	case mark == r.seq:
		answer.outcome = Repeated
	case mark > 0:
		answer.outcome = Used
	case mark < 0 && -mark >= r.seq:
		answer.outcome = Fenced
	case running:
		answer.outcome, wrote = Applied, true
		if k.contributed[r.from] {
			broken = "a participant added to a total twice"
		}
		s.counted += r.amount
		k.contributed[r.from] = true
		k.totalEnds = s.now + s.life(3, r.interval, out)
		s.mark(r.interval, r.from, r.seq, out)
	case n > r.interval+1 && !out.noLate:
		answer.outcome = Late
	default:
		answer.outcome, wrote = Refused, !out.noRefusal
		if wrote {
			s.mark(r.interval, r.from, -r.seq, out)
		}
	}
	if answer.outcome != Applied && answer.outcome != Repeated {
		return answer, wrote, broken
	}
	for _, q := range r.questions {
		a, fenced := s.answer(r.from, q, out)
		answer.answers = append(answer.answers, a)
		wrote = wrote || fenced
	}
	return answer, wrote, broken
}

// answer tells whether a share was counted (rule 5), and whether it left a fence.
func (s *server) answer(from int8, q Question, out rules) (a Answer, fenced bool) {
	n, mark := s.interval(), int64(s.keys[q.Interval].marks[from])
	over := int64(s.now) >= (q.Interval+1)*subSteps+modelSlack
	if out.noSlack {
		over = n > q.Interval
	}
	switch {
	case !over && !out.askOpen:
		return StillOpen, false
	case mark == q.Seq:
		return Counted, false
	case n > q.Interval+2 && !out.noUnknowable:
		return Unknowable, false
	case mark > 0, -mark >= q.Seq, out.noAskFence:
		return NotCounted, false
	case out.unsigned:
		s.mark(q.Interval, from, q.Seq, out)
		return NotCounted, true
	default:
		s.mark(q.Interval, from, -q.Seq, out)
		return NotCounted, true
	}
}

// mark writes a mark and sets the hash's life.
func (s *server) mark(interval int64, from int8, mark int64, out rules) {
	k, life := &s.keys[interval], int8(4)
	if out.shortHash {
		life = 3
	}
	k.marks[from] = int8(mark)
	k.hashEnds = s.now + s.life(life, interval, out)
}

// life is a number of intervals in sub-steps, one more where the interval has
// not begun.
func (s *server) life(intervals int8, interval int64, out rules) int8 {
	if interval > s.interval() && !out.noExtraLife {
		intervals++
	}
	return intervals * subSteps
}
