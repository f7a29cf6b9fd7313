package counter

import "strconv"

// sameCounter reports whether two shares are of one counter, so that their keys
// share a slot.
func (s *Share) sameCounter(other *Share) bool {
	return s.Name == other.Name && s.Prefix == other.Prefix
}

// depth is how many intervals before the declared one a share reads. One ahead of
// the running interval needs the one before that too.
func (s *Share) depth() int {
	if s.Mode == ModeAhead {
		return 2
	}
	return 1
}

// keys is how many keys a share declares.
func (s *Share) keys() int { return 2*(s.depth()+1) + len(s.Questions) }

// bytes is about what the texts of a share take in a script call.
func (s *Share) bytes() int {
	const key, header, number = 20, 40, 8 // without the counter's name
	n := s.keys()*(len(s.Prefix)+len(s.Name)+key) + header + len(s.Series)*number + len(s.Questions)*2*number
	for i := range s.Series {
		n += len(s.Series[i])
	}
	return n
}

// mode is a share's mode, as the script calls it.
func (s *Share) mode() string {
	switch {
	case s.Mode == ModeRead:
		return "read"
	case s.Mode == ModeAhead:
		return "ahead"
	case s.AskFirst:
		return "first"
	}
	return "add"
}

// encode returns the keys and arguments of a call that carries these shares, in
// the form that flush.lua describes. The arguments refer to the flush.
//
// However many series there are, it allocates a fixed number of times: all text
// is in one string, and arguments are pointers, which an interface holds as they
// are.
func encode(flush *Flush, shares []Share) (keys []string, args []any) {
	var nKeys, nArgs, nBytes int
	for i := range shares {
		nKeys += shares[i].keys()
		nArgs += 3 + len(shares[i].Series)
		nBytes += shares[i].bytes()
	}
	e := encoder{text: make([]byte, 0, nBytes), ends: make([]int, 0, nKeys+3*len(shares))}
	for i := range shares {
		e.keys(&shares[i])
	}
	for i := range shares {
		e.share(&shares[i])
	}
	texts := e.texts()
	keys, texts = texts[:nKeys:nKeys], texts[nKeys:]

	args = append(make([]any, 0, 2+nArgs), flush.Interval.Milliseconds(), &flush.Participant)
	next := func() {
		args = append(args, &texts[0])
		texts = texts[1:]
	}
	for i := range shares {
		share := &shares[i]
		next()
		if len(share.Series) > 0 {
			next()
			for j := range share.Series {
				args = append(args, &share.Series[j])
			}
		}
		if len(share.Questions) > 0 {
			next()
		}
	}
	return keys, args
}

// encoder writes texts one after the other.
type encoder struct {
	text  []byte
	start int   // of the current text
	ends  []int // of the others
}

func (e *encoder) keys(s *Share) {
	for n := s.Interval; n >= s.Interval-int64(s.depth()); n-- {
		e.text = appendTotalKey(e.text, s.Prefix, s.Name, n)
		e.end()
		e.text = appendPartsKey(e.text, s.Prefix, s.Name, n)
		e.end()
	}
	for _, q := range s.Questions {
		e.text = appendPartsKey(e.text, s.Prefix, s.Name, q.Interval)
		e.end()
	}
}

func (e *encoder) share(s *Share) {
	e.text = append(e.text, s.mode()...)
	e.numbers(int64(s.Batch), s.Interval, s.Seq, s.Amount, int64(len(s.Series)), int64(len(s.Questions)))
	e.end()
	if len(s.Series) > 0 {
		e.numbers(s.Amounts...)
		e.end()
	}
	if len(s.Questions) > 0 {
		for _, q := range s.Questions {
			e.numbers(q.Interval, q.Seq)
		}
		e.end()
	}
}

// numbers adds numbers to the current text, with spaces between.
func (e *encoder) numbers(numbers ...int64) {
	for _, n := range numbers {
		if len(e.text) > e.start {
			e.text = append(e.text, ' ')
		}
		e.text = strconv.AppendInt(e.text, n, 10)
	}
}

// end ends the current text.
func (e *encoder) end() {
	e.start = len(e.text)
	e.ends = append(e.ends, e.start)
}

func (e *encoder) texts() []string {
	all, start := string(e.text), 0
	texts := make([]string, len(e.ends))
	for i, end := range e.ends {
		texts[i] = all[start:end]
		start = end
	}
	return texts
}
