package feed

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"pgregory.net/rapid"
)

// same are two sets that attribute.Distinct takes for one.
func same(t *testing.T) (a, b attribute.Set) {
	a = attribute.NewSet(attribute.StringSlice("k", []string{"ab", "c"}))
	b = attribute.NewSet(attribute.StringSlice("k", []string{"a", "bc"}))
	require.Equal(t, a.Equivalent(), b.Equivalent(), "if they are told apart now, this test needs others")
	return a, b
}

func TestTableTellsSetsOfOneHashApart(t *testing.T) {
	a, b := same(t)
	var tab table[int]
	*tab.insert(a) = 1
	assert.Nil(t, tab.find(&b))
	*tab.insert(b) = 2
	assert.Equal(t, 1, *tab.find(&a))
	assert.Equal(t, 2, *tab.find(&b))
	assert.Equal(t, 2, tab.size)

	assert.Equal(t, 1, tab.retain(func(v *int) bool { return *v != 1 }))
	assert.Nil(t, tab.find(&a))
	assert.Equal(t, 2, *tab.find(&b))
	assert.Equal(t, 1, tab.retain(func(*int) bool { return false }))
	assert.Empty(t, tab.nodes)
	assert.Zero(t, tab.size)
}

func TestTableFindsSetsThatDoNotEqualThemselves(t *testing.T) {
	nan := math.NaN()
	for _, v := range []attribute.Value{
		attribute.Float64Value(nan),
		attribute.Float64SliceValue([]float64{1, nan}),
		attribute.SliceValue(attribute.Float64SliceValue([]float64{nan}), attribute.IntValue(1)),
		attribute.MapValue(attribute.Float64Slice("x", []float64{nan})),
	} {
		fresh := func() attribute.Set { return attribute.NewSet(attribute.KeyValue{Key: "k", Value: v}) }
		var tab table[int]
		*tab.insert(fresh()) = 1
		set := fresh()
		require.NotNil(t, tab.find(&set), "%v", v)
	}
}

func TestTableIsAMap(t *testing.T) {
	ab, a := same(t)
	sets := []attribute.Set{ab, a, attribute.NewSet(), attribute.NewSet(attribute.Float64Slice("n", []float64{math.NaN()}))}
	for i := range 4 {
		sets = append(sets, attribute.NewSet(attribute.Int("i", i)))
	}
	rapid.Check(t, func(t *rapid.T) {
		var tab table[int]
		model := map[int]int{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				i := rapid.IntRange(0, len(sets)-1).Draw(t, "set")
				v := tab.find(&sets[i])
				if _, ok := model[i]; ok != (v != nil) {
					t.Fatal("found or not")
				}
				if v == nil {
					v = tab.insert(sets[i])
				}
				*v = rapid.IntRange(0, 3).Draw(t, "value")
				model[i] = *v
			},
			"retain": func(t *rapid.T) {
				gone := rapid.IntRange(0, 3).Draw(t, "value")
				before := len(model)
				for i, v := range model {
					if v == gone {
						delete(model, i)
					}
				}
				if before-len(model) != tab.retain(func(v *int) bool { return *v != gone }) {
					t.Fatal("removed")
				}
			},
			"": func(t *rapid.T) {
				n := 0
				tab.each(func(set *attribute.Set, v *int) {
					n++
					if tab.find(set) != v {
						t.Fatal("each")
					}
				})
				if n != len(model) || n != tab.size {
					t.Fatal("size")
				}
				for i, v := range model {
					if got := tab.find(&sets[i]); got == nil || *got != v {
						t.Fatal("value")
					}
				}
			},
		})
	})
}

func BenchmarkTableFind(b *testing.B) {
	var tab table[int]
	sets := make([]attribute.Set, 10_000)
	for i := range sets {
		sets[i] = attribute.NewSet(attribute.String("http.route", fmt.Sprint("/items/", i)), attribute.Int("http.status", 200))
		tab.insert(sets[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		tab.find(&sets[i%len(sets)])
		i++
	}
}
