package counter

import (
	"bytes"
	"math"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// The canonical form of an attribute set names a series in the hash
// prefix{name}:N:by. It is on the wire: participants of other versions and
// languages write the same, byte for byte.
//
//	set    = "" | pair *("," pair)         in the order of the keys' bytes, each key once
//	pair   = key "=" value
//	key    = plain | quoted                plain wherever it can be
//	plain  = (letter | "_") *(letter | digit | "_" | ".")     ASCII
//	value  = "true" | "false" | int | float | quoted
//	       | "[" value *("," value) "]"    an array: values of one of these types
//	       | "bool[]" | "int[]" | "float[]" | "string[]"      empty ones
//	       | "b" quoted                    bytes
//	       | "(" [value *("," value)] ")"  a list of values of any type
//	       | "{" [pair *("," pair)] "}"    a map: like a set, but a key may come again
//	       | "null"                        the empty value
//	int    = decimal, no sign but "-", no leading zeros
//	float  = as ECMAScript writes a Number, with ".0" after it if it has neither "." nor "e";
//	         "-0.0", "NaN", "Infinity", "-Infinity"
//	quoted = `"` bytes `"`, where `"` is \", `\` is \\, and of the control characters (C0, DEL, C1)
//	         and what is not UTF-8 each byte is \n, \r, \t or \xhh, in lower case
//
// So a field is empty or begins with a letter, '_' or '"', and never meets the
// reserved fields, which begin with '#', '!' and '@'.
//
// A NaN is a NaN: which one, by its bits, depends on the processor, and the
// instances of a service may run on different ones.

// encodeSet returns the canonical form of set. Two sets have the same one only
// if they hold the same keys with values of the same types and contents.
//
// Use it, or appendSet, and not attribute.Set or its Distinct, to tell series
// apart. A set with a NaN in an array does not equal itself, and Distinct is a
// hash that ["ab","c"] and ["a","bc"] share.
func encodeSet(set attribute.Set) string {
	return string(appendSet(make([]byte, 0, 128), set))
}

// appendSet appends what encodeSet returns. With a buffer that is used again,
// series[string(b)] finds a series without an allocation.
func appendSet(b []byte, set attribute.Set) []byte {
	for i := range set.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		kv, _ := set.Get(i)
		b = appendPair(b, kv)
	}
	return b
}

func appendPair(b []byte, kv attribute.KeyValue) []byte {
	if key := string(kv.Key); plainLen(key) == len(key) && key != "" {
		b = append(b, key...)
	} else {
		b = appendQuoted(b, key)
	}
	b = append(b, '=')
	return appendValue(b, kv.Value)
}

// plainLen returns how many bytes at the start of s are a plain key.
func plainLen(s string) int {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		case i > 0 && ('0' <= c && c <= '9' || c == '.'):
		default:
			return i
		}
	}
	return len(s)
}

func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return strconv.AppendBool(b, v.AsBool())
	case attribute.INT64:
		return appendInt(b, v.AsInt64())
	case attribute.FLOAT64:
		return appendFloat(b, v.AsFloat64())
	case attribute.STRING:
		return appendQuoted(b, v.AsString())
	case attribute.BOOLSLICE:
		return appendArray(b, "bool", v.AsBoolSlice(), strconv.AppendBool)
	case attribute.INT64SLICE:
		return appendArray(b, "int", v.AsInt64Slice(), appendInt)
	case attribute.FLOAT64SLICE:
		return appendArray(b, "float", v.AsFloat64Slice(), appendFloat)
	case attribute.STRINGSLICE:
		return appendArray(b, "string", v.AsStringSlice(), appendQuoted)
	case attribute.BYTESLICE:
		return appendQuoted(append(b, 'b'), string(v.AsByteSlice()))
	case attribute.SLICE:
		b = append(b, '(')
		b = appendJoined(b, v.AsSlice(), appendValue)
		return append(b, ')')
	case attribute.MAP:
		b = append(b, '{')
		b = appendJoined(b, v.AsMap(), appendPair)
		return append(b, '}')
	case attribute.EMPTY:
		return append(b, "null"...)
	default:
		// A type that OpenTelemetry has added since. Its text keeps most of its
		// values apart; decodeSet refuses it.
		b = append(b, '?')
		b = strconv.AppendInt(b, int64(v.Type()), 10)
		return appendQuoted(b, v.String())
	}
}

// appendArray appends an array whose elements show its type; an empty one has
// none to show, so the type is named.
func appendArray[T any](b []byte, elem string, values []T, appendElem func([]byte, T) []byte) []byte {
	if len(values) == 0 {
		b = append(b, elem...)
	}
	b = append(b, '[')
	b = appendJoined(b, values, appendElem)
	return append(b, ']')
}

func appendJoined[T any](b []byte, values []T, appendElem func([]byte, T) []byte) []byte {
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendElem(b, v)
	}
	return b
}

func appendInt(b []byte, n int64) []byte {
	return strconv.AppendInt(b, n, 10)
}

// appendFloat appends the shortest digits that give f again, in a form that no
// integer has.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	start := len(b)
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		b = strconv.AppendFloat(b, f, 'e', -1, 64)
		// Go writes at least two digits of an exponent, ECMAScript no leading zero.
		if n := len(b); b[n-2] == '0' && b[n-3] == '-' {
			b = append(b[:n-2], b[n-1])
		}
		return b
	}
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// appendQuoted appends s in quotes. It is not strconv.AppendQuote, which also
// escapes what is not printable by the Unicode tables of the running Go version:
// two versions would name one series differently.
func appendQuoted(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	done := 0 // what is before it has been appended
	for i := 0; i < len(s); {
		size, escape := firstRune(s[i:])
		if !escape && s[i] != '"' && s[i] != '\\' {
			i += size
			continue
		}
		b = append(b, s[done:i]...)
		for _, c := range []byte(s[i : i+size]) {
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(b, '\\', 'x', digits[c>>4], digits[c&15])
			}
		}
		i += size
		done = i
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}
