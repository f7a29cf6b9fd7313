package counter

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"pgregory.net/rapid"
)

// anyText draws what keys and strings may hold: much of it is short and made of
// the characters that the form itself uses, so that mix-ups are likely.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom([]rune(`ab1.,="\[](){}#!@ x`)), 0, 4, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"", "a", "b", "true", "1", "1.0", "null", "NaN", "\ufffd", "\xed\xa0\x80", "\u0085", "\u2028", "😀"}),
		rapid.String(),
	)
}

func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 1e-6, 1e-7, 1e20, 1e21, 1 << 53, math.NaN(), math.Inf(1), math.Inf(-1)}),
		rapid.Float64(),
		rapid.Map(rapid.Uint64(), math.Float64frombits),
	)
}

func anyInt() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(-2, 2), rapid.Int64())
}

// anyValue draws a value of any type, nested up to depth.
func anyValue(depth int) *rapid.Generator[attribute.Value] {
	kinds := []*rapid.Generator[attribute.Value]{
		rapid.Just(attribute.Value{}),
		rapid.Map(rapid.Bool(), attribute.BoolValue),
		rapid.Map(anyInt(), attribute.Int64Value),
		rapid.Map(anyFloat(), attribute.Float64Value),
		rapid.Map(anyText(), attribute.StringValue),
		rapid.Map(rapid.SliceOfN(rapid.Bool(), 0, 4), attribute.BoolSliceValue),
		rapid.Map(rapid.SliceOfN(anyInt(), 0, 4), attribute.Int64SliceValue),
		rapid.Map(rapid.SliceOfN(anyFloat(), 0, 4), attribute.Float64SliceValue),
		rapid.Map(rapid.SliceOfN(anyText(), 0, 4), attribute.StringSliceValue),
		rapid.Map(anyText(), func(s string) attribute.Value { return attribute.ByteSliceValue([]byte(s)) }),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 7), func(l []attribute.Value) attribute.Value { return attribute.SliceValue(l...) }),
			rapid.Map(rapid.SliceOfN(anyPair(depth-1), 0, 7), func(l []attribute.KeyValue) attribute.Value { return attribute.MapValue(l...) }),
		)
	}
	return rapid.OneOf(kinds...)
}

func anyPair(depth int) *rapid.Generator[attribute.KeyValue] {
	return rapid.Custom(func(t *rapid.T) attribute.KeyValue {
		return attribute.KeyValue{Key: attribute.Key(anyText().Draw(t, "key")), Value: anyValue(depth).Draw(t, "value")}
	})
}

func anySet() *rapid.Generator[attribute.Set] {
	// More than ten take another path in attribute.Set.
	return rapid.Map(rapid.SliceOfN(anyPair(2), 0, 12), func(l []attribute.KeyValue) attribute.Set { return attribute.NewSet(l...) })
}

func checkRoundTrip(t *rapid.T) {
	s := anySet().Draw(t, "set")
	field := encodeSet(s)
	t.Log(field)
	back, err := decodeSet(field)
	if err != nil {
		t.Fatal(err)
	}
	if !sameSet(s, back) {
		t.Fatal("another set came back")
	}
	if (field == "") != (s.Len() == 0) || field != "" && strings.Contains("#!@", field[:1]) {
		t.Fatal("a series has a field that is not its own")
	}
	if strings.ContainsFunc(field, func(r rune) bool { return r < ' ' || 0x7f <= r && r < 0xa0 }) {
		t.Fatal("a control character is not escaped")
	}
	if strings.ToValidUTF8(field, "") != field {
		t.Fatal("the field is not UTF-8")
	}
}

func TestSetsRoundTrip(t *testing.T) { rapid.Check(t, checkRoundTrip) }

func FuzzSetsRoundTrip(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkRoundTrip)) }

// Round trips of single sets would not show that two sets share a field which
// decodes to one of them; so compare pairs, drawn from little so that they are
// often alike, with one value in common.
func TestEncodingIsInjective(t *testing.T) {
	same, other := 0, 0
	few := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"", "1", "a", ",", `"`}), attribute.StringValue),
		rapid.Map(rapid.SampledFrom([]string{"", "1"}), func(s string) attribute.Value { return attribute.ByteSliceValue([]byte(s)) }),
		rapid.Map(rapid.Int64Range(0, 1), attribute.Int64Value),
		rapid.Map(rapid.SampledFrom([]float64{0, 1, math.Copysign(0, -1), math.NaN()}), attribute.Float64Value),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN()}), 0, 2), attribute.Float64SliceValue),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", ",", "a,a", `","`}), 0, 3), attribute.StringSliceValue),
		anyValue(1),
	)
	some := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) attribute.KeyValue {
		return attribute.KeyValue{Key: attribute.Key(rapid.SampledFrom([]string{"", "a", "a,", "#"}).Draw(t, "key")), Value: few.Draw(t, "value")}
	}), 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		a := attribute.NewSet(some.Draw(t, "a")...)
		b := a
		if rapid.Bool().Draw(t, "another") {
			b = attribute.NewSet(some.Draw(t, "b")...)
		}
		if (encodeSet(a) == encodeSet(b)) != sameSet(a, b) {
			t.Fatal("two sets share a field, or one has two")
		}
		if sameSet(a, b) {
			same++
		} else {
			other++
		}
	})
	assert.Positive(t, same, "no pair was alike: the test proves nothing")
	assert.Positive(t, other, "all pairs were alike: the test proves nothing")
}

// The order in which attributes are given does not matter, and of a key that is
// given twice the last value counts, as attribute.NewSet has it.
func TestEncodingIsThatOfTheSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(anyPair(1), 0, 8).Draw(t, "attributes")
		last := map[attribute.Key]attribute.KeyValue{}
		for _, kv := range list {
			last[kv.Key] = kv
		}
		var distinct []attribute.KeyValue
		for _, kv := range last { // in any order
			distinct = append(distinct, kv)
		}
		if encodeSet(attribute.NewSet(list...)) != encodeSet(attribute.NewSet(distinct...)) {
			t.Fatal("one set has two fields")
		}
	})
}

// Why series are told apart by encodeSet: attribute.Set has two notions of
// equality, and neither will do.
func TestWhatAttributeSetCannotTell(t *testing.T) {
	a := attribute.NewSet(attribute.StringSlice("k", []string{"ab", "c"}))
	b := attribute.NewSet(attribute.StringSlice("k", []string{"a", "bc"}))
	if a.Equivalent() == b.Equivalent() {
		t.Log("Distinct takes different sets for one")
	}
	assert.NotEqual(t, encodeSet(a), encodeSet(b))

	// As a map key, such a set is never found again.
	n := attribute.NewSet(attribute.Float64Slice("k", []float64{math.NaN()}))
	if !n.Equals(&n) {
		t.Log("a set does not equal itself")
	}
	assert.Equal(t, encodeSet(n), encodeSet(attribute.NewSet(attribute.Float64Slice("k", []float64{math.NaN()}))))
}

// OpenTelemetry adds types of values. A new one must be written and read here
// before it is used: this test fails when there is one.
func TestAllTypesOfValuesAreKnown(t *testing.T) {
	assert.Equal(t, "MAP", attribute.MAP.String())
	assert.True(t, strings.HasPrefix((attribute.MAP+1).String(), "Type("), "attribute has a new type: encode and decode it")
}

func FuzzDecodeSet(f *testing.F) {
	for _, text := range []string{
		``, `#`, `@abcdefgh.0`, `http.route="/x",http.status=200`, `a="b,c=\"d\"",ok=true,ratio=1.0`, `k=["1","2"]`, `k=bool[]`, `k=b"\xff"`,
		`k=(1,[2.0],{a=null,a=NaN},())`, `k=-Infinity`, `k=1e-7`, `"é"={"":1}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := decodeSet(text)
		if err != nil {
			assert.Zero(t, s.Len())
			return
		}
		assert.Equal(t, text, encodeSet(s))
	})
}
