package exact

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// groupKey is the form of a group counter's keys: any prefix, any name.
var groupKey = regexp.MustCompile(`(?s)^.*\{.+\}:-?\d+(:by)?$`)

func TestB33KeysOfAnyTextShareTheHashTagAndStayDistinct(t *testing.T) {
	text := rapid.OneOf(
		rapid.StringOf(rapid.SampledFrom([]rune("{}%:a1 \n\x00"))),
		rapid.SampledFrom([]string{"5", "x}:5", "x}:5:by", "}:id:5", "%7B", "\xff\xfe", strings.Repeat("k", 300)}),
	)
	full := text.Filter(func(s string) bool { return s != "" })
	k := newKeys("prefix:", "name")
	rapid.Check(t, func(t *rapid.T) {
		key, other := full.Draw(t, "key"), full.Draw(t, "other")
		id, otherID := full.Draw(t, "id"), full.Draw(t, "other id")
		count := k.count(key)
		all := []string{count, idKey(count, id), markerKey(count, "ABC234")}
		for _, name := range all {
			if tag := hashTag(name); tag != escape(key) {
				t.Fatalf("%q has the hash tag %q", name, tag)
			}
			if groupKey.MatchString(name) {
				t.Fatalf("%q has the form of a group counter's key", name)
			}
		}
		if key != other && (count == k.count(other) || all[1] == k.count(other) || all[1] == idKey(k.count(other), id)) {
			t.Fatalf("%q and %q collide", key, other)
		}
		if id != otherID && all[1] == idKey(count, otherID) {
			t.Fatalf("ids %q and %q collide", id, otherID)
		}
	})
}

func TestKeysAreReadable(t *testing.T) {
	count := newKeys("app:", "sign-ins").count("2001:db8::1")
	require.Equal(t, "app:sign-ins:{2001:db8::1}", count)
	require.Equal(t, "app:sign-ins:{2001:db8::1}:id:7f3a", idKey(count, "7f3a"))
	require.Equal(t, "n:{a%7Bb%7Dc%25}", newKeys("", "n").count("a{b}c%"))
}

// hashTag is Redis' rule.
func hashTag(key string) string {
	_, after, ok := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(after, "}")
	if !ok || !closed || tag == "" {
		return key
	}
	return tag
}
