package counter

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

func setOf(kvs ...attribute.KeyValue) attribute.Set { return attribute.NewSet(kvs...) }

// setOfOne is a set with one value under the key k.
func setOfOne(v attribute.Value) attribute.Set {
	return setOf(attribute.KeyValue{Key: "k", Value: v})
}

// The form is on the wire; this table must not change.
func TestCanonicalForm(t *testing.T) {
	negativeZero := math.Copysign(0, -1)
	for _, c := range []struct {
		want string
		set  attribute.Set
	}{
		{``, setOf()},
		{``, attribute.Set{}},
		{`http.route="/x",http.status=200`, setOf(attribute.Int("http.status", 200), attribute.String("http.route", "/x"))},
		{`a="b,c=\"d\"",ok=true,ratio=1.0`, setOf(
			attribute.Float64("ratio", 1), attribute.Bool("ok", true), attribute.String("a", `b,c="d"`))},
		{`k=["1","2"]`, setOfOne(attribute.StringSliceValue([]string{"1", "2"}))},

		// Keys.
		{`A_z.9=1`, setOf(attribute.Int("A_z.9", 1))},
		{`_=1`, setOf(attribute.Int("_", 1))},
		{`""=1`, setOf(attribute.Int("", 1))},
		{`"."=1`, setOf(attribute.Int(".", 1))},
		{`"9a"=1`, setOf(attribute.Int("9a", 1))},
		{`"a-b"=1`, setOf(attribute.Int("a-b", 1))},
		{`"é"=1`, setOf(attribute.Int("é", 1))},
		{`"#"=1`, setOf(attribute.Int("#", 1))},
		{`"!"=1`, setOf(attribute.Int("!", 1))},
		{`"@12345678.0"=1`, setOf(attribute.Int("@12345678.0", 1))},
		{`"a=1,b"=2`, setOf(attribute.Int("a=1,b", 2))},
		{`B=1,a=1,"b c"=1,"é"=1`, setOf(
			attribute.Int("é", 1), attribute.Int("a", 1), attribute.Int("B", 1), attribute.Int("b c", 1))},

		// Plain values.
		{`k=false`, setOfOne(attribute.BoolValue(false))},
		{`k=-9223372036854775808`, setOfOne(attribute.Int64Value(math.MinInt64))},
		{`k=0`, setOfOne(attribute.Int64Value(0))},
		{`k="x y/é日\\u2028"`, setOfOne(attribute.StringValue(`x y/é日\u2028`))},
		{`k="\\\"\n\r\t\x00\x7f\xc2\x85\xff"`, setOfOne(attribute.StringValue("\\\"\n\r\t\x00\x7f\u0085\xff"))},
		{"k=\"\u2028\ufffd\u00a0\u202e\"", setOfOne(attribute.StringValue("\u2028\ufffd\u00a0\u202e"))},
		{`k=null`, setOfOne(attribute.Value{})},
		{`k=b"a\x00\xff"`, setOfOne(attribute.ByteSliceValue([]byte("a\x00\xff")))},
		{`k=b""`, setOfOne(attribute.ByteSliceValue(nil))},

		// Floats: digits of ECMAScript, and ".0".
		{`k=0.0`, setOfOne(attribute.Float64Value(0))},
		{`k=-0.0`, setOfOne(attribute.Float64Value(negativeZero))},
		{`k=0.1`, setOfOne(attribute.Float64Value(0.1))},
		{`k=-1000000.0`, setOfOne(attribute.Float64Value(-1e6))},
		{`k=0.000001`, setOfOne(attribute.Float64Value(1e-6))},
		{`k=1e-7`, setOfOne(attribute.Float64Value(1e-7))},
		{`k=1.5e-10`, setOfOne(attribute.Float64Value(1.5e-10))},
		{`k=100000000000000000000.0`, setOfOne(attribute.Float64Value(1e20))},
		{`k=1e+21`, setOfOne(attribute.Float64Value(1e21))},
		{`k=9007199254740994.0`, setOfOne(attribute.Float64Value(1<<53 + 2))},
		{`k=1152921504606847000.0`, setOfOne(attribute.Float64Value(1 << 60))},
		{`k=1.7976931348623157e+308`, setOfOne(attribute.Float64Value(math.MaxFloat64))},
		{`k=5e-324`, setOfOne(attribute.Float64Value(math.SmallestNonzeroFloat64))},
		{`k=NaN`, setOfOne(attribute.Float64Value(math.NaN()))},
		{`k=NaN`, setOfOne(attribute.Float64Value(math.Float64frombits(0xfff8000000000000)))},
		{`k=Infinity`, setOfOne(attribute.Float64Value(math.Inf(1)))},
		{`k=-Infinity`, setOfOne(attribute.Float64Value(math.Inf(-1)))},

		// Arrays, lists, maps.
		{`k=[true,false]`, setOfOne(attribute.BoolSliceValue([]bool{true, false}))},
		{`k=[1,-2]`, setOfOne(attribute.IntSliceValue([]int{1, -2}))},
		{`k=[1.0,NaN,-0.0]`, setOfOne(attribute.Float64SliceValue([]float64{1, math.NaN(), negativeZero}))},
		{`k=bool[]`, setOfOne(attribute.BoolSliceValue(nil))},
		{`k=int[]`, setOfOne(attribute.Int64SliceValue(nil))},
		{`k=float[]`, setOfOne(attribute.Float64SliceValue(nil))},
		{`k=string[]`, setOfOne(attribute.StringSliceValue(nil))},
		{`k=()`, setOfOne(attribute.SliceValue())},
		{`k=(1,"a",null,[1],(()))`, setOfOne(attribute.SliceValue(attribute.IntValue(1), attribute.StringValue("a"), attribute.Value{},
			attribute.IntSliceValue([]int{1}), attribute.SliceValue(attribute.SliceValue())))},
		{`k={}`, setOfOne(attribute.MapValue())},
		{`k={a=1,a=0,"b c"={}}`, setOfOne(attribute.MapValue(
			attribute.Map("b c"), attribute.Int("a", 1), attribute.Int("a", 0)))},
	} {
		got := encodeSet(c.set)
		assert.Equal(t, c.want, got)
		back, err := decodeSet(got)
		if assert.NoError(t, err, got) {
			assert.True(t, sameSet(c.set, back), got)
		}
	}
}

func TestOnlyPlainKeysGoWithoutQuotes(t *testing.T) {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	for c := range 256 {
		first, later := string([]byte{byte(c)}), "a"+string([]byte{byte(c)})
		assert.Equal(t, strings.Contains(plain, first), encodeSet(setOf(attribute.Int(first, 1)))[0] != '"', "%q", first)
		assert.Equal(t, strings.Contains(plain+"0123456789.", first), encodeSet(setOf(attribute.Int(later, 1)))[0] != '"', "%q", later)
	}
}

// Sets that are easily taken for one another. Each pair has been confused by
// some encoding without types, quotes or escapes.
func TestLookAlikesStayDistinct(t *testing.T) {
	values := []attribute.Value{
		{},
		attribute.BoolValue(true), attribute.BoolValue(false),
		attribute.IntValue(0), attribute.IntValue(1), attribute.IntValue(-1), attribute.IntValue(10),
		attribute.Float64Value(0), attribute.Float64Value(math.Copysign(0, -1)), attribute.Float64Value(1), attribute.Float64Value(10),
		attribute.Float64Value(math.NaN()), attribute.Float64Value(math.Inf(1)), attribute.Float64Value(math.Inf(-1)),
		attribute.Int64Value(math.MaxInt64), attribute.Float64Value(math.MaxInt64),
		attribute.Int64Value(1 << 53), attribute.Int64Value(1<<53 + 1), attribute.Float64Value(1 << 53),
	}
	for _, s := range []string{
		"", "null", "true", "false", "0", "1", "1.0", "-0.0", "NaN", "Infinity", "[1]", `["1"]`, `"1"`, `1"`, `\"1`, `\`, `\\`, "\n", `\n`,
		"\\\n", `\x00`, "\x00", "\xff", `\xff`, "\ufffd", "é", "e\u0301", "b", `b""`, "()", "{}", "{a=1}", "string[]", "1,2", `1","2`, " ", "  ",
		"a,b=1", `a",b="1`, "\u0085", "\xc2", "\x85",
	} {
		values = append(values, attribute.StringValue(s), attribute.ByteSliceValue([]byte(s)), attribute.StringSliceValue([]string{s}),
			attribute.SliceValue(attribute.StringValue(s)), attribute.MapValue(attribute.String(s, "")), attribute.MapValue(attribute.Int(s, 1)))
	}
	values = append(values,
		attribute.BoolSliceValue(nil), attribute.IntSliceValue(nil), attribute.Float64SliceValue(nil), attribute.StringSliceValue(nil),
		attribute.SliceValue(), attribute.MapValue(), attribute.SliceValue(attribute.Value{}), attribute.SliceValue(attribute.SliceValue()),
		attribute.BoolSliceValue([]bool{true}), attribute.IntSliceValue([]int{1}), attribute.Float64SliceValue([]float64{1}),
		attribute.IntSliceValue([]int{1, 2}), attribute.IntSliceValue([]int{12}), attribute.Float64SliceValue([]float64{1, 2}),
		attribute.SliceValue(attribute.IntValue(1)), attribute.SliceValue(attribute.IntValue(1), attribute.IntValue(2)),
		attribute.SliceValue(attribute.SliceValue(attribute.IntValue(1)), attribute.IntValue(2)),
		attribute.SliceValue(attribute.IntSliceValue([]int{1})), attribute.SliceValue(attribute.Float64Value(1)),
		attribute.StringSliceValue([]string{"1", "2"}), attribute.StringSliceValue([]string{"ab", "c"}), attribute.StringSliceValue([]string{"a", "bc"}),
		attribute.MapValue(attribute.Int("a", 1), attribute.Int("a", 2)), attribute.MapValue(attribute.Int("a", 2), attribute.Int("a", 1)),
	)
	var sets []attribute.Set
	for _, v := range values {
		sets = append(sets, setOfOne(v))
	}
	sets = append(sets, setOf(), setOf(attribute.Int("", 0)), setOf(attribute.String("", "")), setOf(attribute.Int("K", 1)),
		setOf(attribute.Int("a", 1), attribute.Int("b", 2)), setOf(attribute.Int("a=1,b", 2)), setOf(attribute.String("a", "1,b=2")),
		setOf(attribute.Int(`"a"`, 1)), setOf(attribute.Int("a", 1)), setOf(attribute.Int(`a"`, 1)), setOf(attribute.Int("a ", 1)),
		setOf(attribute.Int("a.b", 1)), setOf(attribute.Int("a-b", 1)), setOf(attribute.Int("#", 1)), setOf(attribute.Int("!", 1)), setOf(attribute.Int("@", 1)))

	seen := map[string]attribute.Set{}
	for _, s := range sets {
		field := encodeSet(s)
		if other, ok := seen[field]; ok && !sameSet(s, other) {
			assert.Failf(t, "two sets share a field", "%s and %s: %s", s.String(), other.String(), field)
		}
		seen[field] = s
		if field != "" {
			assert.NotContains(t, "#!@", field[:1], "a reserved field")
		}
		back, err := decodeSet(field)
		require.NoError(t, err)
		assert.True(t, sameSet(s, back), field)
	}
}

func TestDecodeSetRefusesWhatIsNotCanonical(t *testing.T) {
	for text, want := range map[string]string{
		`#`:                     `at byte 0: want a key`,
		`!`:                     `want a key`,
		`@12345678.0`:           `want a key`,
		`a`:                     `at byte 1: want '='`,
		`a=`:                    `at byte 2: want a value`,
		`a=1,`:                  `at byte 4: want a key`,
		`a=1 `:                  `at byte 2: want a value`,
		`a=1,,b=1`:              `want a key`,
		`,`:                     `want a key`,
		` a=1`:                  `want a key`,
		`a="b`:                  `want '"'`,
		`a="b\"`:                `want '"'`,
		`a="b\`:                 `want one of`,
		`a="\q"`:                `want one of`,
		`a="\x0"`:               `want one of`,
		`a="\x+1"`:              `want one of`,
		`a="b"c`:                `want ',' or the end`,
		`a=[]`:                  `want a value`,
		`a=[1,"2"]`:             `at byte 3: want elements of one type`,
		`a=[1,2.0]`:             `want elements of one type`,
		`a=[[1]]`:               `want booleans, numbers or strings`,
		`a=[1`:                  `want ',' or ']'`,
		`a=[1}`:                 `want ',' or ']'`,
		`a=(1`:                  `want ',' or ')'`,
		`a={b=1`:                `want ',' or '}'`,
		`a={1}`:                 `want a key`,
		`a=truest`:              `want ',' or the end`,
		`a=b`:                   `want '"'`,
		`a=?12"x"`:              `want a value`,
		`a=1e999`:               `want a value`,
		`b=1,a=1`:               `not in canonical form, which is "a=1,b=1"`,
		`a=1,a=2`:               `not in canonical form`,
		`"a"=1`:                 `not in canonical form, which is "a=1"`,
		`a=+1`:                  `not in canonical form`,
		`a=01`:                  `not in canonical form`,
		`a=-0`:                  `not in canonical form`,
		`a=1.00`:                `not in canonical form`,
		`a=1e6`:                 `not in canonical form, which is "a=1000000.0"`,
		`a=0x1p4`:               `not in canonical form`,
		`a=inf`:                 `not in canonical form`,
		`a=nan`:                 `not in canonical form`,
		`a=9223372036854775808`: `not in canonical form`,
		`a="\x41"`:              `not in canonical form, which is "a=\"A\""`,
		`a="\xFF"`:              `not in canonical form`,
		"a=\"\n\"":              `not in canonical form`,
		"a=\"\xff\"":            `not in canonical form`,
		`a={c=1,b=1}`:           `not in canonical form`,
		"a=1\x00":               `want a value`,
		"\x00":                  `want a key`,
	} {
		got, err := decodeSet(text)
		if assert.Error(t, err, text) {
			assert.Contains(t, err.Error(), want, text)
			assert.Zero(t, got.Len())
		}
	}
}

func TestDecodeSetBoundsItsDepth(t *testing.T) {
	for _, c := range []struct{ open, end string }{{"(", ")"}, {"{a=", "}"}, {"[", "]"}} {
		_, err := decodeSet("a=" + strings.Repeat(c.open, 1_000_000))
		assert.ErrorContains(t, err, "less deeply nested")
	}
	nested := func(depth int) attribute.Set {
		v := attribute.IntValue(1)
		for range depth {
			v = attribute.SliceValue(v)
		}
		return setOfOne(v)
	}
	_, err := decodeSet(encodeSet(nested(maxDepth - 1)))
	assert.NoError(t, err)
	_, err = decodeSet(encodeSet(nested(maxDepth)))
	assert.ErrorContains(t, err, "less deeply nested")
}

func TestDecodeSetDoesNotTakeWideForDeep(t *testing.T) {
	wide := attribute.SliceValue(make([]attribute.Value, 3*maxDepth)...)
	s := setOf(attribute.KeyValue{Key: "a", Value: wide}, attribute.KeyValue{Key: "b", Value: attribute.SliceValue(wide, wide)})
	back, err := decodeSet(encodeSet(s))
	require.NoError(t, err)
	assert.True(t, sameSet(s, back))
}

// sameSet compares bit by bit, and is an oracle apart from the encoding and
// from attribute.Set.Equals. Only NaNs are all alike.
func sameSet(a, b attribute.Set) bool { return samePairs(a.ToSlice(), b.ToSlice()) }

func samePairs(a, b []attribute.KeyValue) bool {
	return sameAll(a, b, func(a, b attribute.KeyValue) bool { return a.Key == b.Key && sameValue(a.Value, b.Value) })
}

func sameValue(a, b attribute.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Type() {
	case attribute.FLOAT64:
		return sameFloat(a.AsFloat64(), b.AsFloat64())
	case attribute.FLOAT64SLICE:
		return sameAll(a.AsFloat64Slice(), b.AsFloat64Slice(), sameFloat)
	case attribute.BYTESLICE:
		return bytes.Equal(a.AsByteSlice(), b.AsByteSlice())
	case attribute.SLICE:
		return sameAll(a.AsSlice(), b.AsSlice(), sameValue)
	case attribute.MAP:
		return samePairs(a.AsMap(), b.AsMap())
	default: // no floats inside, so comparing is exact
		return a == b
	}
}

func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

func sameAll[T any](a, b []T, same func(a, b T) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}
