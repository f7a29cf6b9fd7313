package counter

import (
	"math"
	"sync/atomic"
)

// Resolution is what one unit of a float counter's totals is worth.
const Resolution = 1e-6

// perUnit is 1 / Resolution, exactly.
const perUnit = 1e6

// FloatCounter counts amounts that are not whole. They are kept in units of
// [Resolution]; what is left over below that is carried to the next Add, so that
// it is not lost.
//
// All methods may be called from any number of goroutines.
type FloatCounter struct {
	units     *Counter
	remainder atomic.Uint64 // float64 bits, of a unit
}

// What a decimal fraction loses or gains in binary is not taken for a remainder:
// 0.29 is meant to be 290,000 units, also where the product is a little off. It is
// off by up to two parts in 2^53, and by as much again with each remainder.
const (
	noise      = 1e-12 // of a unit
	noiseParts = 4e-16 // of the sum
)

// Add counts x, which must be finite and not negative; else it is dropped and
// reported, as is an amount that would pass int64 units. It never waits and
// never fails.
func (c *FloatCounter) Add(x float64) {
	switch {
	case math.IsNaN(x) || x < 0 || math.IsInf(x, 0):
		c.units.reject(&c.units.invalid, 1)
	case x >= math.MaxInt64*Resolution:
		c.units.reject(&c.units.overflowed, math.MaxInt64)
	default:
		c.units.Add(c.whole(x * perUnit))
	}
}

// whole takes the whole units out of x and what was left over before.
func (c *FloatCounter) whole(x float64) int64 {
	for {
		old := c.remainder.Load()
		sum := x + math.Float64frombits(old)
		whole, rest := math.Round(sum), 0.0
		if math.Abs(sum-whole) > noise+noiseParts*sum {
			whole = math.Floor(sum)
			rest = sum - whole
		}
		if c.remainder.CompareAndSwap(old, math.Float64bits(rest)) {
			return int64(whole)
		}
	}
}

// Total returns what is known of the group's number, in units of [Resolution].
func (c *FloatCounter) Total() Total { return c.units.Total() }

// Units returns the counter that keeps the units, for Watch, Flush, Shutdown and
// Close.
func (c *FloatCounter) Units() *Counter { return c.units }

func (c *Counter) asFloat() *FloatCounter { return &c.float }
