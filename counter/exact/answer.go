package exact

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// answer is what a script answers: a word and up to three integers, in one string,
// since numbers that cross Lua as numbers lose precision.
type answer struct {
	word    string
	numbers [3]int64
	len     int
}

// parseAnswer takes any reply, for what stands between us and the script may
// answer anything.
func parseAnswer(reply any) (answer, error) {
	text, ok := reply.(string)
	if !ok {
		return answer{}, fmt.Errorf("exact: an answer of type %T", reply)
	}
	word, rest, more := strings.Cut(text, " ")
	a := answer{word: word}
	for more {
		var number string
		number, rest, more = strings.Cut(rest, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || a.len == len(a.numbers) {
			return answer{}, fmt.Errorf("exact: an answer that reads %.100q", text)
		}
		a.numbers[a.len] = n
		a.len++
	}
	return a, nil
}

// is reports whether the answer is this word with so many numbers.
func (a answer) is(word string, numbers int) bool {
	return a.word == word && a.len == numbers
}

var errAnswer = errors.New("exact: an answer that the script does not give")

// left turns what PTTL answers, which is negative for "never" and "no key", into
// the time until the window ends, 0 where there is none.
func left(pttl int64) time.Duration {
	return time.Duration(max(pttl, 0)) * time.Millisecond
}
