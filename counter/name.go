package counter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what a counter is made of.
const (
	maxName     = 255 // bytes
	maxPrefix   = 255 // bytes
	minInterval = 10 * time.Millisecond
	maxInterval = 24 * time.Hour
)

// floatSuffix ends the stored name of a float counter, so that an integer and
// a float counter of one name never share a key.
const floatSuffix = ":f"

// validateName reports why name cannot name a counter, or nil.
//
// The keys of a counter are prefix{name}:N, and a Redis Cluster places a key by
// what is between its first '{' and the next '}', if that is not empty. All
// keys of a counter must be in one slot. An accepted prefix has no '{', so the
// first one is ours, and any name that does not begin with '}' puts at least
// one byte before the next '}'. Braces further on do no harm: for the name
// "a}b" the slot is that of "a", for all N alike.
func validateName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("counter: the name is empty: give one of 1 to %d bytes", maxName)
	case name[0] == '}':
		return fmt.Errorf("counter: name %s begins with '}': that leaves the hash tag of its keys empty, and a Redis Cluster would"+
			" spread them over several slots; begin it with another character", clip(name))
	case strings.HasSuffix(name, floatSuffix):
		return fmt.Errorf("counter: name %s ends with %q, which is reserved for the float counter named %s:"+
			" use FloatCounter for that one, or end the name in another way", clip(name), floatSuffix,
			clip(strings.TrimSuffix(name, floatSuffix)))
	}
	return validateText("name", name, maxName)
}

// validatePrefix reports why prefix cannot stand before a counter's keys, or nil.
//
// A '{' is refused wherever it stands. Followed by a '}', it takes the place of
// the hash tag: prefix "{}" leaves the tag empty, and the keys of one counter
// are spread over several slots. On its own it keeps the slot, but two counters
// may then share a key: prefix "a{" with name "b", and prefix "a" with name "{b"
// both give "a{{b}:1". Without it the first '{' of a key ends the prefix and
// the last '}' ends the name, so a key belongs to one counter only. A '}' needs
// a '{' before it to mean anything, so it is accepted.
func validatePrefix(prefix string) error {
	if i := strings.IndexByte(prefix, '{'); i >= 0 {
		return fmt.Errorf("counter: prefix %s has a '{' at byte %d: the part of a key in braces must be the counter's name, or counters"+
			" share keys and a Redis Cluster places them wrongly; take it out, or let GroupName escape it", clip(prefix), i)
	}
	return validateText("prefix", prefix, maxPrefix)
}

// validateInterval reports why a group cannot flush once per d, or nil.
func validateInterval(d time.Duration) error {
	switch {
	case d < minInterval || d > maxInterval:
		return fmt.Errorf("counter: the interval is %v: give one from %v to %v", d, minInterval, maxInterval)
	case d%time.Millisecond != 0:
		below := d.Truncate(time.Millisecond)
		return fmt.Errorf("counter: the interval is %v, which is not a whole number of milliseconds: give %v or %v",
			d, below, below+time.Millisecond)
	}
	return nil
}

// validateText holds s, a name or a prefix, to what is readable in redis-cli
// and in logs: valid UTF-8 of at most limit bytes without control characters.
func validateText(what, s string, limit int) error {
	if len(s) > limit {
		return fmt.Errorf("counter: %s %s has %d bytes: shorten it to at most %d", what, clip(s), len(s), limit)
	}
	for i := 0; i < len(s); {
		size, unprintable := firstRune(s[i:])
		if !unprintable {
			i += size
			continue
		}
		if r, _ := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError {
			return fmt.Errorf("counter: %s %s has the control character %U at byte %d: take it out", what, clip(s), r, i)
		}
		return fmt.Errorf("counter: %s %s is not valid UTF-8 at byte %d: encode it as UTF-8", what, clip(s), i)
	}
	return nil
}

// firstRune returns the size of the first rune of s, which is not empty, and
// whether it is a control character (C0, DEL, C1) or a byte that is not UTF-8.
func firstRune(s string) (size int, unprintable bool) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return 1, true
	}
	return size, r < ' ' || 0x7f <= r && r < 0xa0
}

// clip quotes s for an error, and cuts it to a length that a log line bears.
func clip(s string) string {
	const limit = 64
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return strconv.Quote(s[:end]) + "..."
}

// totalKey is the key of a counter's total of interval n: prefix{name}:n.
func totalKey(prefix, name string, n int64) string {
	var buf [maxName + maxPrefix + 32]byte
	return string(appendTotalKey(buf[:0], prefix, name, n))
}

// partsKey is the key of the hash with the parts of that total, by attribute
// set and participant: prefix{name}:n:by.
func partsKey(prefix, name string, n int64) string {
	var buf [maxName + maxPrefix + 32]byte
	return string(appendPartsKey(buf[:0], prefix, name, n))
}

// appendTotalKey appends what totalKey returns.
func appendTotalKey(b []byte, prefix, name string, n int64) []byte {
	b = append(b, prefix...)
	b = append(b, '{')
	b = append(b, name...)
	b = append(b, "}:"...)
	return strconv.AppendInt(b, n, 10)
}

// appendPartsKey appends what partsKey returns.
func appendPartsKey(b []byte, prefix, name string, n int64) []byte {
	return append(appendTotalKey(b, prefix, name, n), ":by"...)
}

// GroupName returns the prefix under which the instances of a service meet:
// "namespace/name:", or "name:" where the namespace is empty. Pass it to
// [WithPrefix]. The reader makes its prefix with it from service.namespace and
// service.name.
//
// Different services get different prefixes, and none is the beginning of
// another, so that one pattern of SCAN or of an ACL can cover the keys of one
// service only. For that the characters '/', ':', '{', '}' and '%', control
// characters and bytes that are not UTF-8 are percent-encoded, byte by byte:
// the name "a/b" becomes "a%2Fb:". Every result is a valid prefix: one that
// would be longer than 255 bytes is cut, and ends with "%~" and 32 hexadecimal
// digits of the SHA-256 sum of the whole, before the colon.
//
// It is a pure function, safe for concurrent use.
func GroupName(namespace, name string) string {
	b := make([]byte, 0, len(namespace)+len("/")+len(name)+len(":"))
	if namespace != "" {
		b = appendPercent(b, namespace)
		b = append(b, '/')
	}
	b = appendPercent(b, name)
	b = append(b, ':')
	if len(b) > maxPrefix {
		b = shorten(b)
	}
	return string(b)
}

// appendPercent appends s with everything escaped that has a meaning in a
// group's name or that validatePrefix refuses.
func appendPercent(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); {
		size, escape := firstRune(s[i:])
		if !escape && strings.IndexByte("/:{}%", s[i]) < 0 {
			b = append(b, s[i:i+size]...)
		} else {
			for _, c := range []byte(s[i : i+size]) {
				b = append(b, '%', digits[c>>4], digits[c&15])
			}
		}
		i += size
	}
	return b
}

// shorten replaces the tail of a group's name that is too long by a hash of the
// whole. No other group's name has a '%' before a '~', so the two kinds never meet.
func shorten(b []byte) []byte {
	sum := sha256.Sum256(b)
	tail := "%~" + hex.EncodeToString(sum[:16]) + ":"
	end := maxPrefix - len(tail)
	for !utf8.RuneStart(b[end]) {
		end--
	}
	// An escape has three bytes; a half one would be no escape.
	for i := end - 1; i >= end-2; i-- {
		if b[i] == '%' {
			end = i
			break
		}
	}
	return append(b[:end], tail...)
}
