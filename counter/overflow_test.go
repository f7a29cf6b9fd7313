package counter

import (
	"log/slog"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
)

// DESIGN 2, data layout: "An Add that would pass int64 is undone and reported."
func TestAnAddThatWouldPassInt64IsUndoneAndReported(t *testing.T) {
	one, two := attribute.Int("k", 1), attribute.Int("k", 2)
	type adds []struct {
		to     []attribute.KeyValue
		amount int64
	}
	for name, tc := range map[string]struct {
		before   adds
		to       []attribute.KeyValue
		amount   int64
		reported int64
	}{
		"a grand total's own":          {adds{{nil, math.MaxInt64 - 4}}, nil, 5, 5},
		"below zero":                   {adds{{nil, math.MinInt64 + 4}}, nil, -5, -5},
		"with its parts":               {adds{{[]attribute.KeyValue{one}, math.MaxInt64 - 4}}, nil, 5, 5},
		"a part's":                     {adds{{[]attribute.KeyValue{one}, math.MaxInt64 - 4}}, []attribute.KeyValue{one}, 5, 5},
		"a part's, by another":         {adds{{[]attribute.KeyValue{one}, math.MaxInt64 - 4}}, []attribute.KeyValue{two}, 5, 5},
		"a part's, by its grand total": {adds{{nil, math.MaxInt64 - 4}}, []attribute.KeyValue{one}, 5, 5},
		"a part's alone": {
			adds{{[]attribute.KeyValue{one}, math.MaxInt64 - 4}, {[]attribute.KeyValue{two}, math.MinInt64 + 10}},
			[]attribute.KeyValue{one},
			5, 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := newLossLog()
			inBubble(t, func(t *testing.T, m *memStore, g *Group) {
				want := map[*Counter]int64{}
				for _, add := range tc.before {
					c := mustCounter(t, g, "c", add.to...)
					c.Add(add.amount)
				}
				c, grand := mustCounter(t, g, "c", tc.to...), mustCounter(t, g, "c")
				for _, c := range []*Counter{c, grand} {
					want[c] = c.Total().Buffer
				}
				assert.Equal(t, want[c], c.Add(tc.amount))
				for c, buffer := range want {
					assert.Equal(t, buffer, c.Total().Buffer)
				}
				sleep(2 * second)
				assert.Equal(t, map[reason]int64{lostOverflow: tc.reported}, log.losses["c"])
				assert.Equal(t, want[grand], m.sum("c"))
			}, WithLogger(slog.New(log)))
		})
	}
}
