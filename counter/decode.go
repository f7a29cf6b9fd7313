package counter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

// decode reads what became of a call into the results of its shares. What cannot
// be read leaves its share's outcome unknown.
func decode(cmd *script.Cmd, shares []Share, results []Result) {
	reply, err := cmd.Reply()
	var answers []any
	var time ServerTime
	if err == nil {
		time, answers, err = splitReply(reply, len(shares))
	}
	if err != nil {
		outcome := Unknown
		if cmd.NotExecuted() {
			outcome = NotApplied
		}
		for i := range results {
			results[i] = Result{Outcome: outcome, Err: err}
		}
		return
	}

	var series int
	for i := range shares {
		series += len(shares[i].Series)
	}
	closed := make([]int64, series) // for all shares, to allocate once
	for i := range shares {
		n := len(shares[i].Series)
		results[i] = decodeShare(answers[i], &shares[i], closed[:n:n])
		results[i].Time = time
		closed = closed[n:]
	}
}

// splitReply parts the answer to a call into its time and the answers to its shares.
func splitReply(reply any, shares int) (ServerTime, []any, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != shares+1 {
		return 0, nil, malformed(reply)
	}
	time, err := decodeTime(parts[0])
	return time, parts[1:], err
}

// decodeProbe reads the answer to a probe: the time, and the commands that are
// not permitted.
func decodeProbe(reply any) (time ServerTime, denied string, err error) {
	time, parts, err := splitReply(reply, 1)
	if err != nil {
		return 0, "", err
	}
	denied, ok := parts[0].(string)
	if !ok {
		return 0, "", malformed(reply)
	}
	return time, denied, nil
}

func decodeTime(part any) (ServerTime, error) {
	switch t := part.(type) {
	case int64:
		if t > 0 {
			return ServerTime(t), nil
		}
	case string:
		if n, err := strconv.ParseInt(t, 10, 64); err == nil && n > 0 {
			return ServerTime(n), nil
		}
	}
	return 0, malformed(part)
}

func malformed(answer any) error {
	if err, ok := answer.(error); ok {
		return fmt.Errorf("counter: malformed answer: %w", err)
	}
	return fmt.Errorf("counter: malformed answer: %.100q", fmt.Sprint(answer))
}

// decodeShare reads the answer to one share. Closed is for its series.
func decodeShare(part any, share *Share, closed []int64) Result {
	text, ok := part.(string)
	if !ok {
		return Result{Err: malformed(part)}
	}
	line, failures, _ := strings.Cut(text, "\n")
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "applied", "repeated":
		result := Result{Outcome: Applied}
		if word == "repeated" {
			result.Outcome = Repeated
		}
		if !result.decodeTotals(rest, share, closed) || !result.decodeFailures(failures, len(share.Series)) {
			return Result{Err: malformed(text)}
		}
		return result
	case "failed":
		return Result{Outcome: NotApplied, Err: errors.New(rest)}
	case "lost":
		return Result{Outcome: Lost, Err: errors.New(rest)}
	}
	if text == word {
		switch word {
		case "refused":
			return Result{Outcome: Refused}
		case "used":
			return Result{Outcome: Used}
		case "fenced":
			return Result{Outcome: Fenced}
		case "late":
			return Result{Outcome: Late}
		}
	}
	return Result{Err: malformed(text)}
}

// decodeTotals reads "closed open first answers participants series...", and
// reports whether it could.
func (r *Result) decodeTotals(text string, share *Share, closed []int64) bool {
	w := words(text)
	r.Closed, r.Known = parseInteger(w.next())
	r.Open, r.OpenKnown = parseInteger(w.next())
	first := w.next()
	r.First = first == "1"
	if first != "0" && first != "1" || !r.decodeAnswers(w.next(), share) {
		return false
	}
	if !r.Known {
		return true // parts follow all the same where the total is one that no int64 holds
	}
	r.Participants, _ = parseInteger(w.next())
	for i := range closed {
		if w == "" {
			return false
		}
		closed[i], _ = parseInteger(w.next())
	}
	if len(closed) > 0 {
		r.SeriesClosed = closed
	}
	return w == ""
}

// decodeAnswers reads a letter for each question. A share that adds nothing asks
// nothing.
func (r *Result) decodeAnswers(letters string, share *Share) bool {
	if letters == "-" {
		return len(share.Questions) == 0 || share.Mode == ModeRead
	}
	if len(letters) != len(share.Questions) {
		return false
	}
	r.Answers = make([]Answer, len(letters))
	for i := range letters {
		switch letters[i] {
		case 'o':
			r.Answers[i] = StillOpen
		case 'c':
			r.Answers[i] = Counted
		case 'n':
			r.Answers[i] = NotCounted
		case 'u':
			r.Answers[i] = Unknowable
		default:
			return false
		}
	}
	return true
}

// decodeFailures reads a line "index why" for each series that failed.
func (r *Result) decodeFailures(lines string, series int) bool {
	for lines != "" {
		var line string
		line, lines, _ = strings.Cut(lines, "\n")
		number, why, _ := strings.Cut(line, " ")
		index, err := strconv.Atoi(number)
		if err != nil || index < 0 || index >= series {
			return false
		}
		r.Failed = append(r.Failed, Failure{Index: index, Err: errors.New(why)})
	}
	return true
}

// words are separated by single spaces.
type words string

// next takes the first word off.
func (w *words) next() string {
	word, rest, _ := strings.Cut(string(*w), " ")
	*w = words(rest)
	return word
}

// parseInteger returns the value of a word, and false if it is none that an int64 holds.
func parseInteger(word string) (int64, bool) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}
