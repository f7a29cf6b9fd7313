package counter

import (
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// maxDepth bounds how deep lists and maps may be nested in what decodeSet
// reads, because what it reads may come from anyone who can write to Redis, and
// a goroutine whose stack is full takes the process with it.
const maxDepth = 1000

// decodeSet returns the set whose canonical form is s. Anything else is an
// error, also a text that would be understood but is not canonical, so that no
// two fields of a hash stand for one set.
func decodeSet(s string) (attribute.Set, error) {
	if s == "" {
		return attribute.NewSet(), nil
	}
	d := setDecoder{text: s}
	pairs, err := readJoined(&d, (*setDecoder).pair, 0)
	if err != nil {
		return attribute.NewSet(), err
	}
	set := attribute.NewSet(pairs...)
	// This one check catches wrong order, keys that come twice, and every other
	// spelling of a key, a number or a string.
	if canonical := encodeSet(set); canonical != s {
		return attribute.NewSet(), fmt.Errorf("counter: attribute set %s is not in canonical form, which is %s",
			clip(s), clip(canonical))
	}
	return set, nil
}

// setDecoder reads a canonical attribute set from left to right.
type setDecoder struct {
	text  string
	pos   int
	depth int // of the lists and maps around pos
}

// wrong is the error for what is at pos.
func (d *setDecoder) wrong(want string) error {
	return fmt.Errorf("counter: attribute set %s: at byte %d: want %s", clip(d.text), d.pos, want)
}

// next returns the byte at pos, or 0 at the end. A 0 in the text itself is
// never valid outside quotes, and in quotes it is escaped.
func (d *setDecoder) next() byte {
	if d.pos < len(d.text) {
		return d.text[d.pos]
	}
	return 0
}

// accept moves past token if it is at pos.
func (d *setDecoder) accept(token string) bool {
	if !strings.HasPrefix(d.text[d.pos:], token) {
		return false
	}
	d.pos += len(token)
	return true
}

// readJoined reads elements with commas between them up to the byte end, which it
// moves past; an end of 0 is the end of the text.
func readJoined[T any](d *setDecoder, elem func(*setDecoder) (T, error), end byte) ([]T, error) {
	var list []T
	for {
		v, err := elem(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch {
		case d.accept(","):
		case end == 0 && d.pos == len(d.text):
			return list, nil
		case end != 0 && d.next() == end:
			d.pos++
			return list, nil
		case end == 0:
			return nil, d.wrong("',' or the end")
		default:
			return nil, d.wrong("',' or '" + string(end) + "'")
		}
	}
}

func (d *setDecoder) pair() (attribute.KeyValue, error) {
	var key string
	if d.next() == '"' {
		var err error
		if key, err = d.quoted(); err != nil {
			return attribute.KeyValue{}, err
		}
	} else {
		n := plainLen(d.text[d.pos:])
		if n == 0 {
			return attribute.KeyValue{}, d.wrong("a key")
		}
		key = d.text[d.pos : d.pos+n]
		d.pos += n
	}
	if !d.accept("=") {
		return attribute.KeyValue{}, d.wrong("'='")
	}
	v, err := d.value()
	return attribute.KeyValue{Key: attribute.Key(key), Value: v}, err
}

func (d *setDecoder) value() (attribute.Value, error) {
	if d.depth++; d.depth > maxDepth {
		return attribute.Value{}, d.wrong("less deeply nested values")
	}
	defer func() { d.depth-- }()

	switch {
	case d.next() == '"':
		s, err := d.quoted()
		return attribute.StringValue(s), err
	case d.accept("true"):
		return attribute.BoolValue(true), nil
	case d.accept("false"):
		return attribute.BoolValue(false), nil
	case d.accept("null"):
		return attribute.Value{}, nil
	case d.accept("bool[]"):
		return attribute.BoolSliceValue(nil), nil
	case d.accept("int[]"):
		return attribute.Int64SliceValue(nil), nil
	case d.accept("float[]"):
		return attribute.Float64SliceValue(nil), nil
	case d.accept("string[]"):
		return attribute.StringSliceValue(nil), nil
	case d.accept("["):
		return d.array()
	case d.accept("()"):
		return attribute.SliceValue(), nil
	case d.accept("("):
		list, err := readJoined(d, (*setDecoder).value, ')')
		return attribute.SliceValue(list...), err
	case d.accept("{}"):
		return attribute.MapValue(), nil
	case d.accept("{"):
		list, err := readJoined(d, (*setDecoder).pair, '}')
		return attribute.MapValue(list...), err
	case d.accept("b"):
		s, err := d.quoted()
		return attribute.ByteSliceValue([]byte(s)), err
	default:
		return d.number()
	}
}

// array reads the rest of an array that is not empty; its first element says
// what type it is of.
func (d *setDecoder) array() (attribute.Value, error) {
	start := d.pos
	list, err := readJoined(d, (*setDecoder).value, ']')
	if err != nil {
		return attribute.Value{}, err
	}
	for _, v := range list {
		if v.Type() != list[0].Type() {
			d.pos = start
			return attribute.Value{}, d.wrong("elements of one type")
		}
	}
	switch list[0].Type() {
	case attribute.BOOL:
		return attribute.BoolSliceValue(convertAll(list, attribute.Value.AsBool)), nil
	case attribute.INT64:
		return attribute.Int64SliceValue(convertAll(list, attribute.Value.AsInt64)), nil
	case attribute.FLOAT64:
		return attribute.Float64SliceValue(convertAll(list, attribute.Value.AsFloat64)), nil
	case attribute.STRING:
		return attribute.StringSliceValue(convertAll(list, attribute.Value.AsString)), nil
	default:
		d.pos = start
		return attribute.Value{}, d.wrong("booleans, numbers or strings as elements")
	}
}

func convertAll[T any](list []attribute.Value, as func(attribute.Value) T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = as(v)
	}
	return out
}

func (d *setDecoder) number() (attribute.Value, error) {
	rest := d.text[d.pos:]
	if end := strings.IndexAny(rest, ",)]}"); end >= 0 {
		rest = rest[:end]
	}
	if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
		d.pos += len(rest)
		return attribute.Int64Value(n), nil
	}
	if f, err := strconv.ParseFloat(rest, 64); err == nil {
		d.pos += len(rest)
		return attribute.Float64Value(f), nil
	}
	return attribute.Value{}, d.wrong("a value")
}

// quoted reads a string in quotes.
func (d *setDecoder) quoted() (string, error) {
	if !d.accept(`"`) {
		return "", d.wrong(`'"'`)
	}
	var b []byte
	for {
		n := strings.IndexAny(d.text[d.pos:], `"\`)
		if n < 0 {
			d.pos = len(d.text)
			return "", d.wrong(`'"'`)
		}
		b = append(b, d.text[d.pos:d.pos+n]...)
		d.pos += n
		if d.accept(`"`) {
			return string(b), nil
		}
		c, err := d.escape()
		if err != nil {
			return "", err
		}
		b = append(b, c)
	}
}

// escape reads a backslash and what belongs to it.
func (d *setDecoder) escape() (byte, error) {
	switch {
	case d.accept(`\"`):
		return '"', nil
	case d.accept(`\\`):
		return '\\', nil
	case d.accept(`\n`):
		return '\n', nil
	case d.accept(`\r`):
		return '\r', nil
	case d.accept(`\t`):
		return '\t', nil
	}
	if rest := d.text[d.pos:]; len(rest) >= 4 && rest[1] == 'x' {
		if c, err := strconv.ParseUint(rest[2:4], 16, 8); err == nil {
			d.pos += 4
			return byte(c), nil
		}
	}
	return 0, d.wrong(`one of \" \\ \n \r \t \xhh`)
}
