package identity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"pgregory.net/rapid"
)

func mapOf(t require.TestingT, raw map[string]any) pcommon.Map {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(raw))
	return m
}

func TestKeysTellMapsApart(t *testing.T) {
	h := NewHasher(NewSeeds())
	seen := map[Key]int{}
	for i, raw := range []map[string]any{
		nil,
		{"z": "1"},
		{"a": "1"},
		{"a": int64(1)},
		{"a": 1.0},
		{"a": true},
		{"a": false},
		{"a": nil},
		{"a": ""},
		{"a": []byte("1")},
		{"a": []any{"1"}},
		{"a": []any{int64(1)}},
		{"a": []any{}},
		{"a": map[string]any{}},
		{"a": []any{"ab", "c"}},
		{"a": []any{"a", "bc"}},
		{"a": []any{[]any{"a"}, "b"}},
		{"a": []any{[]any{"a", "b"}}},
		{"a": map[string]any{"b": "c"}},
		{"a": map[string]any{"b": "c", "d": "e"}},
		{"a": "1", "b": "2"},
		{"a": "2", "b": "1"},
		{"ab": "12"},
		{"a": "1b", "c": ""},
		{"b": "1"},
	} {
		k := h.Map(mapOf(t, raw))
		other, ok := seen[k]
		assert.False(t, ok, "%d is like %d: %v", i, other, raw)
		seen[k] = i
	}
}

func TestKeysDoNotDependOnOrder(t *testing.T) {
	a, b := pcommon.NewMap(), pcommon.NewMap()
	a.PutStr("x", "1")
	a.PutInt("y", 2)
	nested := a.PutEmptyMap("z")
	nested.PutStr("p", "1")
	nested.PutStr("q", "2")
	nested = b.PutEmptyMap("z")
	nested.PutStr("q", "2")
	nested.PutStr("p", "1")
	b.PutInt("y", 2)
	b.PutStr("x", "1")
	h := NewHasher(NewSeeds())
	assert.Equal(t, h.Map(a), h.Map(b))
	assert.NotEqual(t, h.Map(a), NewHasher(NewSeeds()).Map(a), "seeds are new")
}

func TestScopeAndMetricKeys(t *testing.T) {
	h := NewHasher(NewSeeds())
	scope := func(name, version string, attrs map[string]any) Key {
		s := pcommon.NewInstrumentationScope()
		s.SetName(name)
		s.SetVersion(version)
		mapOf(t, attrs).CopyTo(s.Attributes())
		return h.Scope(Key{1, 2}, s)
	}
	keys := map[Key]bool{}
	for _, k := range []Key{
		scope("a", "b", nil), scope("ab", "", nil), scope("", "ab", nil), scope("a", "b", map[string]any{"k": "v"}),
		h.Metric(Key{1, 2}, "a", "b"), h.Metric(Key{1, 2}, "ab", ""), h.Metric(Key{2, 1}, "a", "b"),
	} {
		assert.False(t, keys[k])
		keys[k] = true
	}
	assert.Equal(t, scope("a", "b", nil), scope("a", "b", nil))
}

// "A slice whose elements are all of one type becomes an array of that type, as
// SDKs have it."
func TestValuesAreThoseOfSDKs(t *testing.T) {
	for _, tt := range []struct {
		raw  any
		want attribute.Value
	}{
		{"s", attribute.StringValue("s")},
		{int64(1), attribute.Int64Value(1)},
		{1.0, attribute.Float64Value(1)},
		{true, attribute.BoolValue(true)},
		{[]byte("b"), attribute.ByteSliceValue([]byte("b"))},
		{nil, attribute.Value{}},
		{[]any{"1", "2"}, attribute.StringSliceValue([]string{"1", "2"})},
		{[]any{int64(1), int64(2)}, attribute.Int64SliceValue([]int64{1, 2})},
		{[]any{1.0}, attribute.Float64SliceValue([]float64{1})},
		{[]any{true, false}, attribute.BoolSliceValue([]bool{true, false})},
		{[]any{"1", int64(2)}, attribute.SliceValue(attribute.StringValue("1"), attribute.Int64Value(2))},
		{[]any{int64(2), "1"}, attribute.SliceValue(attribute.Int64Value(2), attribute.StringValue("1"))},
		{[]any{}, attribute.SliceValue()}, // its type is lost
		{[]any{[]any{"1"}}, attribute.SliceValue(attribute.StringSliceValue([]string{"1"}))},
		{[]any{nil}, attribute.SliceValue(attribute.Value{})},
		{map[string]any{"k": []any{"1"}}, attribute.MapValue(attribute.StringSlice("k", []string{"1"}))},
	} {
		v := pcommon.NewValueEmpty()
		require.NoError(t, v.FromRaw(tt.raw))
		assert.Equal(t, tt.want, Value(v), "%v", tt.raw)
	}
}

// Back and forth, an attribute is what it was.
func TestPutReversesValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := pcommon.NewValueEmpty()
		require.NoError(t, v.FromRaw(drawValue(t, 3)))
		back := pcommon.NewValueEmpty()
		Put(Value(v), back)
		require.True(t, v.Equal(back), "%v is %v", v.AsRaw(), back.AsRaw())
	})
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.String().Draw(t, "string")
	case 1:
		return rapid.Int64().Draw(t, "int")
	case 2:
		return rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "double")
	case 3:
		return rapid.Bool().Draw(t, "bool")
	case 4:
		return rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "bytes")
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	default:
		m := map[string]any{}
		for _, k := range []string{"a", "b"}[:rapid.IntRange(0, 2).Draw(t, "keys")] {
			m[k] = drawValue(t, depth-1)
		}
		return m
	}
}

func TestNothingIsKeptOfWhatWasConverted(t *testing.T) {
	m := mapOf(t, map[string]any{"list": []any{"a"}, "bytes": []byte("b")})
	list, _ := m.Get("list")
	raw, _ := m.Get("bytes")
	gotList, gotBytes := Value(list), Value(raw)
	list.Slice().At(0).SetStr("x")
	raw.Bytes().SetAt(0, 'x')
	assert.Equal(t, []string{"a"}, gotList.AsStringSlice())
	assert.Equal(t, []byte("b"), gotBytes.AsByteSlice())
}
