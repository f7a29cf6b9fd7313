package reader

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
)

func TestObservableCountsWhatItRisesBy(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		o, f := a.observable("bytes"), a.floatObservable("seconds")
		k := attribute.String("disk", "a")
		observe := func(v int64) {
			o.set(v, k)
			f.set(float64(v)+0.25, k)
			a.flush()
		}
		check := func(want int64) {
			t.Helper()
			assert.Equal(t, want, b.truth("shop:{bytes}"))
			assert.Equal(t, want, b.part("shop:{bytes}", `disk="a"`))
			assert.Equal(t, want*1e6, b.truth("shop:{seconds:f}"))
		}
		observe(1000)
		check(0) // the first observation is the baseline
		observe(1010)
		check(10)
		observe(1010)
		check(10)

		o.clear()
		f.clear()
		a.flush() // one observation is missed
		observe(1013)
		check(13)
	})
}

func TestObservableThatFallsWasReset(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		o := a.observable("bytes")
		for _, v := range []int64{100, 105, 3, 8} {
			o.set(v)
			a.flush()
		}
		assert.EqualValues(t, 5+3+5, b.truth("shop:{bytes}"))
	})
}

func TestFailingCallbackLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		o, c := a.observable("bytes"), a.counter("c")
		boom := errors.New("boom")
		o.set(10)
		a.flush()
		o.clear()
		o.fail(boom)
		c.Add(t.Context(), 3)
		require.ErrorIs(t, a.reader.ForceFlush(t.Context()), boom)
		assert.EqualValues(t, 3, b.truth("shop:{c}"), "what was collected with the error counts")
		o.fail(nil)
		o.set(12)
		a.flush()
		assert.EqualValues(t, 2, b.truth("shop:{bytes}"))

		o.fail(boom)
		c.Add(t.Context(), 4)
		require.ErrorIs(t, a.reader.Shutdown(t.Context()), boom)
		assert.EqualValues(t, 7, b.truth("shop:{c}"))
	})
}

// An observable counter is observed all the time, even while it does not rise.
// Its series rests like any that counts nothing, but its baseline stays.
func TestRestingObservableKeepsItsBaseline(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		o := a.observable("bytes")
		k := attribute.String("disk", "a")
		o.set(10, k)
		sleep(3 * second)
		assert.True(t, a.reader.Total("bytes").Known, "it takes part from its first observation on")
		sleep(30 * second)
		assert.Equal(t, counter.Total{Open: -1}, a.reader.Total("bytes", k))
		o.set(17, k)
		a.flush()
		assert.EqualValues(t, 7, b.truth("shop:{bytes}"))
	})
}

// A series that was not observed for ten intervals is forgotten. When it comes
// back its value is a baseline again.
func TestForgottenObservableStartsAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica()
		o := a.observable("bytes")
		k := attribute.String("disk", "a")
		o.set(10, k)
		sleep(3 * second)
		o.clear()
		sleep(30 * second)
		o.set(1000, k)
		a.flush()
		assert.Zero(t, b.truth("shop:{bytes}"))
		o.set(1001, k)
		a.flush()
		assert.EqualValues(t, 1, b.truth("shop:{bytes}"))
	})
}
