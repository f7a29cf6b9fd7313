package counter

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// slotOf is the slot of a key in a Redis Cluster, as the cluster specification
// defines it: CRC16 (XMODEM) of the hash tag, or of the whole key if there is
// none, modulo 16384.
func slotOf(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	var crc uint16
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

func TestSlotOfTheTestsIsThatOfRedis(t *testing.T) {
	// Answers of CLUSTER KEYSLOT, redis-server 7.0.15.
	for key, want := range map[string]uint16{
		"123456789": 12739, "somekey": 11058, "foo{hash_tag}": 2515, "hash_tag": 2515,
		"p{a}b}:1": 15495, "a": 15495, "p{}x:1": 12947, "{{}:1": 4092, "{{}}:1": 4092, "a{{b}c}:7:by": 6215,
	} {
		assert.Equal(t, want, slotOf(key), key)
	}
}

// splitKey takes the key of a total or of its parts apart again, by the rule in
// the comment of validatePrefix. That it can is why keys are never shared.
func splitKey(t require.TestingT, key string) (prefix, name string, n int64, parts bool) {
	key, parts = strings.CutSuffix(key, ":by")
	first, last := strings.IndexByte(key, '{'), strings.LastIndexByte(key, '}')
	require.Less(t, first, last)
	n, err := strconv.ParseInt(strings.TrimPrefix(key[last+1:], ":"), 10, 64)
	require.NoError(t, err)
	return key[:first], key[first+1 : last], n, parts
}

func TestNames(t *testing.T) {
	for _, name := range []string{
		"http.requests", "a}b", "{", "{a", "{}", "{}}", "a{b}c", "a}", "a}:1", "a}:1:by", "a:by", ":", "a:1", "f", ":fx", "a:F",
		" ", "a b", "%", "é", "日本", "\u00a0", "\ufffd", "#", "!", "@x", strings.Repeat("a", 255), strings.Repeat("é", 127),
	} {
		assert.NoError(t, validateName(name), "%q", name)
	}
	for name, want := range map[string]string{
		"":                       `the name is empty: give one of 1 to 255 bytes`,
		"}":                      `name "}" begins with '}'`,
		"}a":                     `begin it with another character`,
		"hits:f":                 `reserved for the float counter named "hits"`,
		":f":                     `ends with ":f"`,
		strings.Repeat("a", 256): `has 256 bytes: shorten it to at most 255`,
		strings.Repeat("é", 150): `has 300 bytes`,
		"a\nb":                   `name "a\nb" has the control character U+000A at byte 1: take it out`,
		"a\x00":                  `U+0000 at byte 1`,
		"\x7f":                   `U+007F at byte 0`,
		"é\u0085":                `U+0085 at byte 2`,
		"a\xffb":                 `name "a\xffb" is not valid UTF-8 at byte 1: encode it as UTF-8`,
		"\xed\xa0\x80":           `not valid UTF-8 at byte 0`, // a surrogate
		"a\xc3":                  `not valid UTF-8 at byte 1`, // cut off
	} {
		err := validateName(name)
		if assert.Error(t, err, "%q", name) {
			assert.Contains(t, err.Error(), want)
			assert.True(t, strings.HasPrefix(err.Error(), "counter: "))
		}
	}
}

func TestPrefixes(t *testing.T) {
	for _, prefix := range []string{"", "app:", "shop/cart:", "}", "a}b:", " ", ":", "é", strings.Repeat("a", 255)} {
		assert.NoError(t, validatePrefix(prefix), "%q", prefix)
	}
	for prefix, want := range map[string]string{
		"{}":                     `prefix "{}" has a '{' at byte 0`,
		"a{b}":                   `take it out`,
		"a{":                     `has a '{' at byte 1`,
		"}{":                     `has a '{' at byte 1`,
		strings.Repeat("a", 256): `has 256 bytes`,
		"a\tb":                   `U+0009 at byte 1`,
		"\xff":                   `not valid UTF-8 at byte 0`,
	} {
		err := validatePrefix(prefix)
		if assert.Error(t, err, "%q", prefix) {
			assert.Contains(t, err.Error(), want)
		}
	}
}

// Why a '{' in a prefix is refused, both kinds.
func TestBracesInAPrefixWouldBreakKeys(t *testing.T) {
	assert.Equal(t, totalKey("a", "{b", 1), totalKey("a{", "b", 1), "one key for two counters")
	assert.NotEqual(t, slotOf(totalKey("{}", "a", 1)), slotOf(totalKey("{}", "a", 2)), "two slots for one counter")
	assert.NotEqual(t, slotOf(totalKey("", "}", 1)), slotOf(totalKey("", "}", 2)), "two slots for one counter")
}

func TestIntervals(t *testing.T) {
	for _, d := range []time.Duration{10 * time.Millisecond, 11 * time.Millisecond, time.Second, 5 * time.Second, 24 * time.Hour} {
		assert.NoError(t, validateInterval(d), d)
	}
	for d, want := range map[time.Duration]string{
		0:                                 "the interval is 0s: give one from 10ms to 24h0m0s",
		-time.Second:                      "the interval is -1s: give one",
		1:                                 "the interval is 1ns: give one",
		1500 * time.Microsecond:           "the interval is 1.5ms: give one",
		9 * time.Millisecond:              "the interval is 9ms: give one",
		10*time.Millisecond - 1:           "give one from 10ms",
		10*time.Millisecond + 1:           "not a whole number of milliseconds: give 10ms or 11ms",
		12500 * time.Microsecond:          "the interval is 12.5ms, which is not a whole number of milliseconds: give 12ms or 13ms",
		24*time.Hour + 1:                  "give one from 10ms to 24h0m0s",
		25 * time.Hour:                    "the interval is 25h0m0s: give one",
		math.MaxInt64:                     "give one from 10ms to 24h0m0s",
		math.MinInt64:                     "give one from 10ms to 24h0m0s",
		24*time.Hour - time.Microsecond/2: "not a whole number of milliseconds",
	} {
		assert.ErrorContains(t, validateInterval(d), want)
	}
}

func TestErrorsQuoteLongNamesShortened(t *testing.T) {
	err := validateName(strings.Repeat("x", 10_000) + "\n")
	assert.Less(t, len(err.Error()), 200)
	assert.Contains(t, err.Error(), "has 10001 bytes")
	// The cut is between two characters.
	assert.NotContains(t, validateName("x"+strings.Repeat("é", 200)).Error(), `\x`)
	assert.NotContains(t, validateName(strings.Repeat("\xa0", 300)).Error(), "é")
}

func TestKeys(t *testing.T) {
	assert.Equal(t, "{hits}:7", totalKey("", "hits", 7))
	assert.Equal(t, "{hits}:7:by", partsKey("", "hits", 7))
	assert.Equal(t, "shop/cart:{a}b}:9223372036854775807", totalKey("shop/cart:", "a}b", math.MaxInt64))
	b := make([]byte, 0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b = appendTotalKey(b[:0], "shop/cart:", "hits", 1)
		b = appendPartsKey(b, "shop/cart:", "hits", 2)
	}))
	assert.Equal(t, "shop/cart:{hits}:1shop/cart:{hits}:2:by", string(b))
}

// anyKeyText draws short texts of what keys and names are made of, so that two of
// them are often alike.
func anyKeyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom([]rune("{}:1ab/%.")), 0, 5, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune("{}:fyb1 -é\n\u0085")), 0, 6, -1),
		rapid.SampledFrom([]string{"a:1", "a}:1", "a}:1:by", "{a}:1", "a\xff", "%2F", "%~", strings.Repeat("a", 260)}),
	)
}

func TestKeysOfACounterShareASlotAndNothingElse(t *testing.T) {
	names := anyKeyText().Filter(func(s string) bool { return validateName(s) == nil })
	prefixes := anyKeyText().Filter(func(s string) bool { return validatePrefix(s) == nil })
	rapid.Check(t, func(t *rapid.T) {
		prefix, name := prefixes.Draw(t, "prefix"), names.Draw(t, "name")
		if rapid.Bool().Draw(t, "float") {
			name += floatSuffix
		}
		n := rapid.Int64Min(0).Draw(t, "n")

		for _, key := range []string{totalKey(prefix, name, n), partsKey(prefix, name, n)} {
			if slotOf(key) != slotOf(totalKey(prefix, name, 0)) {
				t.Fatal("two slots")
			}
			p, nm, i, parts := splitKey(t, key)
			if p != prefix || nm != name || i != n || parts != (key == partsKey(prefix, name, n)) {
				t.Fatal("the key does not lead back to its counter")
			}
		}
	})
}

func TestIntAndFloatCountersOfOneNameDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		integer, float := anyKeyText().Draw(t, "integer"), anyKeyText().Draw(t, "float")
		if validateName(integer) == nil && validateName(float) == nil && integer == float+floatSuffix {
			t.Fatal("an integer counter has the name of a float counter")
		}
	})
}

func TestGroupName(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ namespace, name, want string }{
		{"shop", "cart", "shop/cart:"},
		{"", "cart", "cart:"},
		{"shop", "", "shop/:"},
		{"", "", ":"},
		{"a/b", "c", "a%2Fb/c:"},
		{"a", "b/c", "a/b%2Fc:"},
		{"", "a/b", "a%2Fb:"},
		{"", "unknown_service:go", "unknown_service%3Ago:"},
		{"{x}", "100%", "%7Bx%7D/100%25:"},
		{"", "a b-é.日", "a b-é.日:"},
		{"", "a\n\x7f\u0085\xff", "a%0A%7F%C2%85%FF:"},
		{"", strings.Repeat("x", 254), strings.Repeat("x", 254) + ":"},
		// Cut: printf '%300s:' | tr ' ' x | sha256sum
		{"", long, strings.Repeat("x", 220) + "%~d98aa2d7537a0a0e2dede7fc45c5a175:"},
	} {
		got := GroupName(c.namespace, c.name)
		assert.Equal(t, c.want, got)
		assert.NoError(t, validatePrefix(got))
	}
}

func TestGroupNameCutsBetweenCharacters(t *testing.T) {
	for n := range 8 {
		for _, unit := range []string{"é", "日", "😀", "/", "%", "\xff", "é/"} {
			got := GroupName("", strings.Repeat("x", n)+strings.Repeat(unit, 300))
			require.NoError(t, validatePrefix(got))
			head, _, cut := strings.Cut(got, "%~")
			require.True(t, cut)
			// What is left of the head is whole: it decodes to the beginning of the name.
			require.True(t, strings.HasPrefix(strings.Repeat("x", n)+strings.Repeat(unit, 300), unpercent(t, head)))
			require.Greater(t, len(got), maxPrefix-4)
		}
	}
}

// A service whose name is what another's was cut to gets a prefix of its own.
func TestGroupNameThatWasCutMeetsNoOther(t *testing.T) {
	cut := GroupName("", strings.Repeat("x", 300))
	assert.NotEqual(t, cut, GroupName("", strings.TrimSuffix(cut, ":")))
	assert.NotEqual(t, cut, GroupName("", unpercentTail(cut)))
	assert.NotEqual(t, cut, GroupName("x", strings.Repeat("x", 298)))
	assert.NotEqual(t, cut, GroupName("", strings.Repeat("x", 299)))
}

// unpercentTail takes the mark out of a prefix that was cut.
func unpercentTail(cut string) string {
	return strings.TrimSuffix(strings.Replace(cut, "%~", "~", 1), ":")
}

// unpercent is the inverse of appendPercent, written apart from it.
func unpercent(t require.TestingT, s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		require.NoError(t, err)
		b = append(b, byte(c))
		i += 2
	}
	return string(b)
}

func TestGroupNameIsInjective(t *testing.T) {
	parts := rapid.OneOf(anyKeyText(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		s1, n1 := parts.Draw(t, "namespace 1"), parts.Draw(t, "name 1")
		s2, n2 := parts.Draw(t, "namespace 2"), parts.Draw(t, "name 2")
		g1, g2 := GroupName(s1, n1), GroupName(s2, n2)
		if err := validatePrefix(g1); err != nil {
			t.Fatal(err)
		}
		if same := s1 == s2 && n1 == n2; same != (g1 == g2) {
			t.Fatal("two services share a prefix")
		}
		if g1 != g2 && strings.HasPrefix(g1, g2) {
			t.Fatal("the prefix of one service is the beginning of another's")
		}
		if !strings.Contains(g1, "%~") {
			namespace, name, both := strings.Cut(strings.TrimSuffix(g1, ":"), "/")
			if !both {
				namespace, name = "", namespace
			}
			if unpercent(t, namespace) != s1 || unpercent(t, name) != n1 {
				t.Fatal("the prefix does not lead back to its service")
			}
		}
	})
}

func FuzzGroupName(f *testing.F) {
	f.Add("shop", "cart")
	f.Add("a/b", "{}%\xff")
	f.Add("", strings.Repeat("é/", 200))
	f.Fuzz(func(t *testing.T, namespace, name string) {
		require.NoError(t, validatePrefix(GroupName(namespace, name)))
		require.NotEqual(t, GroupName(namespace, name), GroupName(namespace, name+"x"))
		require.NotEqual(t, GroupName(namespace+"x", name), GroupName(namespace, name))
	})
}

// Braces in names, as in redis/redis#6027, redis/ioredis#2172 and
// Kong/resty-redis-cluster#35: each name is refused, or all its keys are in one
// slot and no key is that of another counter.
func TestBracesInNames(t *testing.T) {
	names := []string{
		"", "}", "{", "{}", "}{", "a}b", "{a", "a{", "a}", "a{b}c", "{a}", "a}b}", "{}:1", "a}:1", "a}:1:by", "a}:0{b", "b", "a", "c",
		" ", "a b", " a}", "a\n", "a\x00b", "\x00", "a\xff", "\xff}", "a:f", "a}:f", strings.Repeat("}", 255), strings.Repeat("{", 255),
		strings.Repeat("a", 300),
	}
	refused := map[string]bool{
		"": true, "}": true, "}{": true, "a\n": true, "a\x00b": true, "\x00": true, "a\xff": true, "\xff}": true, "a:f": true, "a}:f": true,
		strings.Repeat("}", 255): true, strings.Repeat("a", 300): true,
	}
	taken := map[string]bool{}
	for _, prefix := range []string{"", "a", "}", "a}", "a}:1", "p:", GroupName("{", "}")} {
		require.NoError(t, validatePrefix(prefix))
		for _, name := range names {
			require.Equal(t, refused[name], validateName(name) != nil, "%q", name)
			if refused[name] {
				continue
			}
			for _, stored := range []string{name, name + floatSuffix} {
				want := slotOf(totalKey(prefix, stored, 0))
				for _, n := range []int64{0, 1, 2, 10, 11, 345678901, math.MaxInt64} {
					for _, key := range []string{totalKey(prefix, stored, n), partsKey(prefix, stored, n)} {
						require.Equal(t, want, slotOf(key), "%q", key)
						require.False(t, taken[key], "%q", key)
						taken[key] = true
					}
				}
			}
		}
	}
}
