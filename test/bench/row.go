package bench

import (
	"fmt"
	"testing"
)

// Row is one comparison.
type Row struct {
	Name     string
	Unit     string // of both figures, such as "ns"
	Ours     Measure
	Baseline Measure // nil: there is none, and the goal is for our figure itself
	Goal     Goal    // for the ratio of ours to the baseline; the zero Goal is none
	Slow     bool    // takes more than seconds: not run in the ordinary tests
}

// Measure takes a figure. It is called once a round.
type Measure func(t *testing.T) float64

// Goal is what a ratio, or a figure, should be.
type Goal struct {
	sign  string
	limit float64
}

// AtMost is the goal of being no more than limit.
func AtMost(limit float64) Goal { return Goal{"<=", limit} }

// AtLeast is the goal of being no less than limit.
func AtLeast(limit float64) Goal { return Goal{">=", limit} }

func (g Goal) String() string {
	if g.sign == "" {
		return ""
	}
	return fmt.Sprintf("%s %.4g", g.sign, g.limit)
}

// verdict is ok or short, or nothing if there is no goal.
func (g Goal) verdict(x float64) string {
	switch {
	case g.sign == "":
		return ""
	case g.sign == "<=" && x <= g.limit, g.sign == ">=" && x >= g.limit:
		return "ok"
	default: // NaN too
		return "short"
	}
}

// NsPerOp measures how long an operation of a benchmark takes.
func NsPerOp(f func(b *testing.B)) Measure {
	return func(t *testing.T) float64 {
		t.Helper()
		r := benchmark(t, f)
		return float64(r.T.Nanoseconds()) / float64(r.N)
	}
}

// OpsPerSecond measures how many operations of a benchmark are done in a second.
func OpsPerSecond(f func(b *testing.B)) Measure {
	return func(t *testing.T) float64 {
		t.Helper()
		r := benchmark(t, f)
		return float64(r.N) / r.T.Seconds()
	}
}

// AllocsPer measures how many allocations an operation of a benchmark makes, divided
// by n: the number of parts that one operation has, such as series in a flush.
func AllocsPer(n int, f func(b *testing.B)) Measure {
	return func(t *testing.T) float64 {
		t.Helper()
		r := benchmark(t, f)
		return float64(r.MemAllocs) / float64(r.N) / float64(n)
	}
}

// Metric measures what a benchmark reports by b.ReportMetric with the given unit.
func Metric(unit string, f func(b *testing.B)) Measure {
	return func(t *testing.T) float64 {
		t.Helper()
		x, ok := benchmark(t, f).Extra[unit]
		if !ok {
			t.Fatalf("the benchmark reports no %q", unit)
		}
		return x
	}
}

func benchmark(t *testing.T, f func(b *testing.B)) testing.BenchmarkResult {
	t.Helper()
	r := testing.Benchmark(f)
	if r.N == 0 {
		t.Fatal("the benchmark has failed")
	}
	return r
}
