package counter

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

var benchSets = []struct {
	name string
	set  attribute.Set
}{
	{"1", attribute.NewSet(attribute.String("http.route", "/cart/{id}"))},
	{"5", attribute.NewSet(attribute.String("http.route", "/cart/{id}"), attribute.Int("http.status", 200), attribute.Bool("ok", true),
		attribute.String("http.request.method", "POST"), attribute.Float64("ratio", 0.25))},
	{"arrays", attribute.NewSet(attribute.StringSlice("tags", []string{"a", "b"}), attribute.IntSlice("n", []int{1, 2, 3, 4}))},
}

func BenchmarkEncodeSet(b *testing.B) {
	for _, c := range benchSets {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				encodeSet(c.set)
			}
		})
	}
}

func BenchmarkAppendSet(b *testing.B) {
	for _, c := range benchSets {
		b.Run(c.name, func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = appendSet(buf[:0], c.set)
			}
		})
	}
}

func BenchmarkDecodeSet(b *testing.B) {
	for _, c := range benchSets {
		b.Run(c.name, func(b *testing.B) {
			field := encodeSet(c.set)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeSet(field); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendTotalKey(b *testing.B) {
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendTotalKey(buf[:0], "shop/cart:", "http.requests", 345678901)
	}
}
