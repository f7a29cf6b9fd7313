package identity

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Key names what data belongs to: 128 bits of keyed hashes, drawn anew for each
// [Hasher], so that nobody can choose data that collides. Two of a billion things
// share a key with a probability of about 1e-21.
type Key [2]uint64

// Seeds are shared by the hashers whose keys are compared.
type Seeds [2]maphash.Seed

// NewSeeds draws new ones.
func NewSeeds() Seeds { return Seeds{maphash.MakeSeed(), maphash.MakeSeed()} }

// Hasher makes keys. It is not safe for concurrent use.
type Hasher struct {
	seeds Seeds
	buf   []byte
}

// NewHasher returns a hasher.
func NewHasher(seeds Seeds) *Hasher {
	return &Hasher{seeds: seeds, buf: make([]byte, 0, 256)}
}

// Map returns the key of an attribute map. The order of its attributes, and of those
// in nested maps, does not matter.
func (h *Hasher) Map(m pcommon.Map) Key {
	var sum Key
	for k, v := range m.All() {
		pair := h.Pair(k, v)
		sum[0] += pair[0]
		sum[1] += pair[1]
	}
	return sum
}

// Pair returns the key of one attribute.
func (h *Hasher) Pair(k string, v pcommon.Value) Key {
	from := len(h.buf)
	h.text(k)
	h.value(v)
	return h.cut(from)
}

// Scope returns the key of a scope of a resource.
func (h *Hasher) Scope(resource Key, s pcommon.InstrumentationScope) Key {
	attributes := h.Map(s.Attributes())
	from := len(h.buf)
	h.key(resource)
	h.key(attributes)
	h.text(s.Name())
	h.text(s.Version())
	return h.cut(from)
}

// Metric returns the key of a metric of a scope.
func (h *Hasher) Metric(scope Key, name, unit string) Key {
	from := len(h.buf)
	h.key(scope)
	h.text(name)
	h.text(unit)
	return h.cut(from)
}

// Join returns a key for the two together.
func (k Key) Join(o Key) Key { return Key{k[0] ^ o[0], k[1] ^ o[1]} }

// Plus returns a key for a set of which both are elements.
func (k Key) Plus(o Key) Key { return Key{k[0] + o[0], k[1] + o[1]} }

// cut hashes what was appended to the buffer from there, and takes it off again.
func (h *Hasher) cut(from int) Key {
	b := h.buf[from:]
	k := Key{maphash.Bytes(h.seeds[0], b), maphash.Bytes(h.seeds[1], b)}
	h.buf = h.buf[:from]
	return k
}

func (h *Hasher) key(k Key) {
	h.buf = binary.LittleEndian.AppendUint64(h.buf, k[0])
	h.buf = binary.LittleEndian.AppendUint64(h.buf, k[1])
}

func (h *Hasher) number(n uint64) { h.buf = binary.LittleEndian.AppendUint64(h.buf, n) }

// text appends a text with its length before it, so that what follows cannot be
// taken for a part of it.
func (h *Hasher) text(s string) {
	h.buf = binary.AppendUvarint(h.buf, uint64(len(s)))
	h.buf = append(h.buf, s...)
}

func (h *Hasher) value(v pcommon.Value) {
	h.buf = append(h.buf, byte(v.Type()))
	switch v.Type() {
	case pcommon.ValueTypeStr:
		h.text(v.Str())
	case pcommon.ValueTypeInt:
		h.number(uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		h.number(math.Float64bits(v.Double()))
	case pcommon.ValueTypeBool:
		if v.Bool() {
			h.buf = append(h.buf, 1)
		} else {
			h.buf = append(h.buf, 0)
		}
	case pcommon.ValueTypeBytes:
		h.text(string(v.Bytes().AsRaw()))
	case pcommon.ValueTypeMap:
		h.key(h.Map(v.Map()))
	case pcommon.ValueTypeSlice:
		s := v.Slice()
		h.number(uint64(s.Len()))
		for i := range s.Len() {
			h.value(s.At(i))
		}
	case pcommon.ValueTypeEmpty:
	}
}
