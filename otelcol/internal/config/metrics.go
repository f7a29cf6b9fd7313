package config

import (
	"errors"
	"slices"
	"unicode/utf8"
)

// Metrics selects metrics by glob patterns on their names: '*' is any text, '?'
// one character, all else itself. Upper and lower case differ.
type Metrics struct {
	// Include is what is counted; empty means all.
	Include []string `mapstructure:"include"`

	// Exclude is what is not, though included.
	Exclude []string `mapstructure:"exclude"`
}

// Validate implements the Collector's validation.
func (m Metrics) Validate() error {
	if slices.Contains(slices.Concat(m.Include, m.Exclude), "") {
		return errors.New("a pattern is empty")
	}
	return nil
}

// Selects reports whether a metric is to be counted.
func (m Metrics) Selects(name string) bool {
	matches := func(pattern string) bool { return glob(pattern, name) }
	return (len(m.Include) == 0 || slices.ContainsFunc(m.Include, matches)) && !slices.ContainsFunc(m.Exclude, matches)
}

// glob reports whether name is of the pattern's form, in time of the product of
// their lengths at most.
func glob(pattern, name string) bool {
	star, from := -1, 0 // the last '*', and where the text that it stands for ends
	p, n := 0, 0
	for n < len(name) {
		want, wantSize := utf8.DecodeRuneInString(pattern[p:])
		have, haveSize := utf8.DecodeRuneInString(name[n:])
		switch {
		case want == '*' && wantSize > 0:
			star, from = p, n
			p++
		case wantSize > 0 && (want == '?' || want == have):
			p += wantSize
			n += haveSize
		case star >= 0: // one more character belongs to the '*'
			_, size := utf8.DecodeRuneInString(name[from:])
			from += size
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
