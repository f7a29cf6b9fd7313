package counter

import (
	"log/slog"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustFloat(t require.TestingT, g *Group, name string) *FloatCounter {
	f, err := g.FloatCounter(name)
	require.NoError(t, err)
	return f
}

// offline returns a counter without a tick: what is counted stays in its buffer.
func offline(t require.TestingT) *FloatCounter {
	g, err := NewGroup(nil, second, WithStore(newMemStore()))
	require.NoError(t, err)
	f := mustFloat(t, g, "f")
	g.Close()
	return f
}

func units(f *FloatCounter) int64 { return f.Units().Total().Buffer }

// Section 3: "Float counters: fixed point (resolution 1e-6 [...])". What is meant as
// a decimal fraction is counted as one.
func TestDecimalFractionsAreExact(t *testing.T) {
	f := offline(t)
	f.Add(0.1)
	f.Add(0.2)
	assert.EqualValues(t, 300_000, units(f))

	for _, x := range []float64{1, 1000, 1e6, 1e9, 1e12, 9e12, 123_456_789.123456} {
		f := offline(t)
		f.Add(x)
		assert.Equal(t, int64(math.Round(x*1e6)), units(f), "%f", x)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := offline(t)
		var want int64
		for _, k := range rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 5_000_000), rapid.Int64Range(0, 1e13)), 1, 20).Draw(t, "units") {
			f.Add(float64(k) / 1e6)
			f.Add(0)
			want += k
			require.Equal(t, want, units(f))
		}
	})
}

// "The remainder is carried to the next flush."
func TestWhatIsBelowAUnitIsCarried(t *testing.T) {
	f := offline(t)
	for range 9 {
		f.Add(1e-7)
		assert.Zero(t, units(f))
	}
	f.Add(1e-7)
	assert.EqualValues(t, 1, units(f))
	f.Add(2.5e-6)
	assert.EqualValues(t, 3, units(f))
	f.Add(2.5e-6)
	assert.EqualValues(t, 6, units(f))
}

// Never overstated, never falling, never more than a unit behind.
func TestFloatsOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := offline(t)
		var sum, last float64
		for _, x := range rapid.SliceOfN(rapid.Float64Range(0, 1e5), 1, 50).Draw(t, "amounts") {
			f.Add(x)
			sum += x * 1e6
			got := float64(units(f))
			require.GreaterOrEqual(t, got, last, "it falls")
			last = got
			const noise = 1e-3 // of this test's own sum, in units
			require.LessOrEqual(t, got, sum+noise)
			require.Greater(t, got, sum-1-noise)
		}
	})
}

// "NaN, Inf and negative amounts of a monotonic counter are dropped and reported."
func TestWhatIsNoAmountIsDroppedAndReported(t *testing.T) {
	log := newLossLog()
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		f := mustFloat(t, g, "f")
		f.Add(2.5)
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -math.SmallestNonzeroFloat64, math.Copysign(math.NaN(), -1)} {
			f.Add(x)
		}
		f.Add(math.Copysign(0, -1)) // zero is zero
		sleep(2 * second)
		assert.Equal(t, int64(2_500_000), m.sum("f:f"))
		assert.Equal(t, map[reason]int64{lostInvalid: 6}, log.losses["f"])
		f.Add(3)
		sleep(2 * second)
		assert.Equal(t, int64(5_500_000), m.sum("f:f"))
	}, WithLogger(slog.New(log)))
}

func TestFloatsThatNoInt64HoldsAreReported(t *testing.T) {
	const largest = 9223372036854.773 // the largest float64 whose units an int64 holds
	log := newLossLog()
	inBubble(t, func(t *testing.T, m *memStore, g *Group) {
		f := mustFloat(t, g, "f")
		for _, x := range []float64{math.MaxFloat64, math.Nextafter(largest, math.Inf(1))} {
			f.Add(x)
			assert.Zero(t, units(f), "%f", x)
		}
		f.Add(largest)
		assert.Positive(t, units(f))
		before := units(f)
		f.Add(largest) // the two together are too much
		assert.Equal(t, before, units(f))
		sleep(2 * second)
		assert.Equal(t, before, m.sum("f:f"))
		assert.Positive(t, log.losses["f"][lostOverflow])
	}, WithLogger(slog.New(log)))
}

func TestFloatAddConcurrentSafe(t *testing.T) {
	f := offline(t)
	const each, routines = 5000, 4
	var wg sync.WaitGroup
	for range routines {
		wg.Go(func() {
			for range each {
				f.Add(0.25e-6)
				f.Add(0.1)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, routines*each*100_000+routines*each/4, units(f))
}
