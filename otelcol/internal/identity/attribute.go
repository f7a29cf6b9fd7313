package identity

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
)

// Value converts an attribute's value. The result keeps no reference to v.
//
// A slice whose elements are all booleans, integers, fractions or strings becomes
// an array of that type, as SDKs have it: both then name one series. An empty slice
// has lost its type on the way and becomes the empty list, which is none of the
// SDKs' empty arrays.
func Value(v pcommon.Value) attribute.Value {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return attribute.StringValue(strings.Clone(v.Str()))
	case pcommon.ValueTypeInt:
		return attribute.Int64Value(v.Int())
	case pcommon.ValueTypeDouble:
		return attribute.Float64Value(v.Double())
	case pcommon.ValueTypeBool:
		return attribute.BoolValue(v.Bool())
	case pcommon.ValueTypeBytes:
		return attribute.ByteSliceValue(v.Bytes().AsRaw())
	case pcommon.ValueTypeMap:
		pairs := make([]attribute.KeyValue, 0, v.Map().Len())
		for k, v := range v.Map().All() {
			pairs = append(pairs, attribute.KeyValue{Key: attribute.Key(strings.Clone(k)), Value: Value(v)})
		}
		return attribute.MapValue(pairs...)
	case pcommon.ValueTypeSlice:
		return slice(v.Slice())
	default:
		return attribute.Value{}
	}
}

func slice(s pcommon.Slice) attribute.Value {
	kind := pcommon.ValueTypeEmpty
	for i := range s.Len() {
		if i > 0 && s.At(i).Type() != kind {
			kind = pcommon.ValueTypeEmpty
			break
		}
		kind = s.At(i).Type()
	}
	switch kind {
	case pcommon.ValueTypeStr:
		return attribute.StringSliceValue(elements(s, func(v pcommon.Value) string { return strings.Clone(v.Str()) }))
	case pcommon.ValueTypeInt:
		return attribute.Int64SliceValue(elements(s, pcommon.Value.Int))
	case pcommon.ValueTypeDouble:
		return attribute.Float64SliceValue(elements(s, pcommon.Value.Double))
	case pcommon.ValueTypeBool:
		return attribute.BoolSliceValue(elements(s, pcommon.Value.Bool))
	default:
		return attribute.SliceValue(elements(s, Value)...)
	}
}

func elements[T any](s pcommon.Slice, as func(pcommon.Value) T) []T {
	out := make([]T, s.Len())
	for i := range out {
		out[i] = as(s.At(i))
	}
	return out
}

// Put converts an attribute's value back.
func Put(v attribute.Value, to pcommon.Value) {
	switch v.Type() {
	case attribute.STRING:
		to.SetStr(v.AsString())
	case attribute.INT64:
		to.SetInt(v.AsInt64())
	case attribute.FLOAT64:
		to.SetDouble(v.AsFloat64())
	case attribute.BOOL:
		to.SetBool(v.AsBool())
	case attribute.BYTESLICE:
		to.SetEmptyBytes().FromRaw(v.AsByteSlice())
	case attribute.STRINGSLICE:
		putAll(to, v.AsStringSlice(), pcommon.Value.SetStr)
	case attribute.INT64SLICE:
		putAll(to, v.AsInt64Slice(), pcommon.Value.SetInt)
	case attribute.FLOAT64SLICE:
		putAll(to, v.AsFloat64Slice(), pcommon.Value.SetDouble)
	case attribute.BOOLSLICE:
		putAll(to, v.AsBoolSlice(), pcommon.Value.SetBool)
	case attribute.SLICE:
		putAll(to, v.AsSlice(), func(to pcommon.Value, v attribute.Value) { Put(v, to) })
	case attribute.MAP:
		m := to.SetEmptyMap()
		for _, kv := range v.AsMap() {
			Put(kv.Value, m.PutEmpty(string(kv.Key)))
		}
	case attribute.EMPTY:
	default: // a type that OpenTelemetry has added since
		to.SetStr(v.String())
	}
}

func putAll[T any](to pcommon.Value, values []T, set func(pcommon.Value, T)) {
	s := to.SetEmptySlice()
	s.EnsureCapacity(len(values))
	for _, v := range values {
		set(s.AppendEmpty(), v)
	}
}
