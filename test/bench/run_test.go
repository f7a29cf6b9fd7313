package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// figures returns a measure that gives one figure after the other.
func figures(log *[]string, name string, xs ...float64) Measure {
	return func(*testing.T) float64 {
		*log = append(*log, name)
		x := xs[0]
		xs = xs[1:]
		return x
	}
}

func TestRunTakesMediansOfSidesMeasuredInTurn(t *testing.T) {
	var log []string
	var out strings.Builder
	short := Run(t, &out, 3, []Row{{
		Name: "add", Unit: "ns", Goal: AtMost(2.5),
		// One round is disturbed; the ratios are 2, 1 and 2.
		Ours: figures(&log, "a", 6, 90, 8), Baseline: figures(&log, "b", 3, 90, 4),
	}})
	require.Empty(t, short)
	require.Equal(t, "a b a b a b", strings.Join(log, " "))
	require.Equal(t, []string{"add", "8.00", "ns", "4.00", "ns", "2", "<=", "2.5", "ok"}, strings.Fields(out.String()))
}

func TestRunNamesWhatFallsShort(t *testing.T) {
	var log []string
	var out strings.Builder
	one := func(x float64) Measure { return figures(&log, "", x) }
	short := Run(t, &out, 1, []Row{
		{Name: "a", Ours: one(3), Baseline: one(1), Goal: AtMost(2.5)},
		{Name: "b", Ours: one(3), Baseline: one(1), Goal: AtLeast(2.5)},
		{Name: "c", Ours: one(3), Goal: AtMost(2)},
		{Name: "d", Ours: one(3), Goal: AtMost(3)},
		{Name: "e", Ours: one(3), Baseline: one(1)},
		{Name: "f", Ours: one(0), Baseline: one(0), Goal: AtMost(1)},
	})
	require.Equal(t, []string{"a", "c", "f"}, short)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 6)
	require.Equal(t, []string{"e", "3.00", "1.00", "3"}, strings.Fields(lines[4]))
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 3, 2}), 0)
	require.Equal(t, "short", AtMost(1).verdict(math.NaN()))
}

func TestMeasures(t *testing.T) {
	var sink []byte
	f := func(b *testing.B) {
		for b.Loop() {
			for range 4 {
				sink = make([]byte, 64)
			}
		}
		b.ReportMetric(7, "lost")
	}
	require.Positive(t, NsPerOp(f)(t))
	require.Positive(t, OpsPerSecond(f)(t))
	require.InDelta(t, 2, AllocsPer(2, f)(t), 0.5)
	require.InDelta(t, 7, Metric("lost", f)(t), 0)
	require.NotEmpty(t, sink)
}
