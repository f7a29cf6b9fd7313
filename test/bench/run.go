package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// Group is rows that share what they need, such as a server.
type Group struct {
	Name string
	Rows func(t *testing.T) []Row // what it starts, it stops in t's Cleanup
}

const format = "%-40s %14s %14s %8s  %-9s %s\n"

// Header prints the line above the rows.
func Header(out io.Writer) {
	line(out, "name", "ours", "baseline", "ratio", "goal", "")
}

// Run measures the rows and prints a line for each as it is done. It returns the
// names of those that fall short of their goals.
func Run(t *testing.T, out io.Writer, rounds int, rows []Row) (short []string) {
	t.Helper()
	for _, row := range rows {
		if verdict := row.run(t, out, rounds); verdict == "short" {
			short = append(short, row.Name)
		}
	}
	return short
}

func (row Row) run(t *testing.T, out io.Writer, rounds int) (verdict string) {
	t.Helper()
	var ours, baseline, ratios []float64
	if row.Slow {
		rounds = 1 // of a minute or more
	}
	for range rounds {
		x := row.Ours(t)
		ours = append(ours, x)
		if row.Baseline != nil {
			y := row.Baseline(t)
			baseline = append(baseline, y)
			ratios = append(ratios, x/y)
		}
	}
	if row.Baseline == nil {
		verdict = row.Goal.verdict(median(ours))
		line(out, row.Name, row.figure(ours), "-", "-", row.Goal.String(), verdict)
		return verdict
	}
	ratio := median(ratios)
	verdict = row.Goal.verdict(ratio)
	line(out, row.Name, row.figure(ours), row.figure(baseline), fmt.Sprintf("%.3g", ratio), row.Goal.String(), verdict)
	return verdict
}

func (row Row) figure(xs []float64) string {
	return strings.TrimSpace(number(median(xs)) + " " + row.Unit)
}

// number has three digits that count, and no exponent.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// median returns the middle of xs, or the mean of the two in the middle.
func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	n := len(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}

func line(out io.Writer, name, ours, baseline, ratio, goal, verdict string) {
	text := fmt.Sprintf(format, name, ours, baseline, ratio, goal, verdict)
	_, _ = fmt.Fprintln(out, strings.TrimRight(text, " \n"))
}
