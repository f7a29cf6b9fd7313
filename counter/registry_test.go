package counter

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
)

// Promise 2: "Memory is bounded whatever Redis does." Above the limit amounts go
// to the name's total only, which is reported once.
func TestAboveMaxSeriesAmountsGoToTheGrandTotalOnly(t *testing.T) {
	log := newLossLog()
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		for i := range 5 {
			mustCounter(t, g, "c", attribute.Int("i", i)).Add(int64(i + 1))
		}
		sleep(3 * second)
		assert.Equal(t, int64(15), m.sum("c"), "nothing is lost of the grand total")
		series := map[string]bool{}
		for _, s := range m.sent() {
			for _, name := range s.Series {
				series[name] = true
			}
		}
		assert.Len(t, series, 3)
		assert.Equal(t, 1, log.msgs["too many series"])
		beyond := mustCounter(t, g, "c", attribute.Int("i", 4))
		assert.Zero(t, beyond.Count(), "no bound of its own")
		assert.False(t, beyond.Total().Known)
		assert.Zero(t, mustCounter(t, g, "c").Total().Buffer)
	}, WithMaxSeries(3), WithLogger(slog.New(log)))
}
