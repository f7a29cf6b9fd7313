package feed

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"http.requests", "http.requests", true},
		{"http.requests", "http.request", false},
		{"http.requests", "http.requestss", false},
		{"http.*", "http.requests", true},
		{"http.*", "http.", true},
		{"http.*", "http", false},
		{"*", "", true},
		{"*", "a/b.c-d_e", true},
		{"*.requests", "http.server.requests", true},
		{"*.requests", "http.requests.failed", false},
		{"a*b*c", "a.b.b.c", true},
		{"a*b*c", "a.c.b", false},
		{"a**b", "ab", true},
		{"?", "a", true},
		{"?", "", false},
		{"a?c", "abc", true},
		{"*?", "a", true},
		{"[a]", "a", false},
		{"[a]", "[a]", true},
		{"A", "a", false},
	} {
		assert.Equal(t, tt.want, glob(tt.pattern, tt.name), "%q of %q", tt.pattern, tt.name)
	}
	assert.True(t, globs(nil).match("any"))
	assert.True(t, globs{"a", "b*"}.match("bc"))
	assert.False(t, globs{"a", "b*"}.match("c"))
}
