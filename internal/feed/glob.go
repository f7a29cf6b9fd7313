package feed

import "slices"

// globs is a choice of instrument names: * stands for any characters, ? for
// one, as in the SDK's views. An empty choice is all names.
type globs []string

func (g globs) match(name string) bool {
	return len(g) == 0 || slices.ContainsFunc(g, func(pattern string) bool { return glob(pattern, name) })
}

// glob walks pattern and name once, and back to the last * where they part.
func glob(pattern, name string) bool {
	p, n := 0, 0
	star, resume := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
