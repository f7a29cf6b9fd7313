package feed

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
)

// table is a map by attribute set. The sets' hashes are its keys; sets that
// share one are told apart by what they hold.
type table[V any] struct {
	nodes map[attribute.Distinct]*node[V]
	size  int
}

type node[V any] struct {
	set   attribute.Set
	value V
	next  *node[V] // of the same hash
}

func (t *table[V]) find(set *attribute.Set) *V {
	for n := t.nodes[set.Equivalent()]; n != nil; n = n.next {
		if equal(&n.set, set) {
			return &n.value
		}
	}
	return nil
}

// insert adds a set that is not in the table, with a zero value.
func (t *table[V]) insert(set attribute.Set) *V {
	if t.nodes == nil {
		t.nodes = map[attribute.Distinct]*node[V]{}
	}
	key := set.Equivalent()
	n := &node[V]{set: set, next: t.nodes[key]}
	t.nodes[key] = n
	t.size++
	return &n.value
}

// retain removes the values that keep is false for.
func (t *table[V]) retain(keep func(*V) bool) (removed int) {
	for key, first := range t.nodes {
		kept := first
		for p := &kept; *p != nil; {
			if keep(&(*p).value) {
				p = &(*p).next
				continue
			}
			*p = (*p).next
			removed++
		}
		switch {
		case kept == nil:
			delete(t.nodes, key)
		case kept != first:
			t.nodes[key] = kept
		}
	}
	t.size -= removed
	return removed
}

// each calls fn for all values.
func (t *table[V]) each(fn func(*attribute.Set, *V)) {
	for _, n := range t.nodes {
		for ; n != nil; n = n.next {
			fn(&n.set, &n.value)
		}
	}
}

// equal reports whether two sets with one hash hold the same. Set.Equals nearly
// does, but a set with a NaN in an array does not equal itself.
func equal(a, b *attribute.Set) bool {
	return a.Equals(b) || slices.EqualFunc(a.ToSlice(), b.ToSlice(), equalPair)
}

func equalPair(a, b attribute.KeyValue) bool {
	return a.Key == b.Key && equalValue(a.Value, b.Value)
}

func equalValue(a, b attribute.Value) bool {
	if a == b {
		return true
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Type() {
	case attribute.FLOAT64:
		return equalFloat(a.AsFloat64(), b.AsFloat64())
	case attribute.FLOAT64SLICE:
		return slices.EqualFunc(a.AsFloat64Slice(), b.AsFloat64Slice(), equalFloat)
	case attribute.SLICE:
		return slices.EqualFunc(a.AsSlice(), b.AsSlice(), equalValue)
	case attribute.MAP:
		return slices.EqualFunc(a.AsMap(), b.AsMap(), equalPair)
	default:
		return false
	}
}

func equalFloat(a, b float64) bool { return a == b || a != a && b != b }
