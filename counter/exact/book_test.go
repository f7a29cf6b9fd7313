package exact

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDirtyKeysAreBounded(t *testing.T) {
	b, now := newBook(math.MaxInt64), time.Now()
	add := func(key string) error {
		_, _, _, err := b.add(whole, key, 1, now)
		return err
	}
	for i := range maxDirty {
		require.NoError(t, add(strconv.Itoa(i)))
	}
	require.ErrorIs(t, add("one more"), ErrFull)
	require.NotContains(t, b.keys, "one more", "it counts nothing")
	require.NoError(t, add("5"), "a key that waits anyway")

	// What is under way counts too, until it has landed.
	batch := b.depart()
	require.Len(t, batch, maxDirty)
	require.ErrorIs(t, add("one more"), ErrFull)
	b.landed(batch[0], 1, 0, now)
	require.NoError(t, add("one more"))
	require.ErrorIs(t, add("two more"), ErrFull)
}

func TestKnownKeysAreBounded(t *testing.T) {
	b, now := newBook(math.MaxInt64), time.Now()
	for i := range maxKnown + 50_000 {
		_, _, _, err := b.add(whole, strconv.Itoa(i), 1, now)
		require.NoError(t, err)
		if i%1000 == 999 {
			for _, key := range b.depart() {
				b.landed(key, 1, 0, now)
			}
		}
	}
	require.Len(t, b.keys, maxKnown)
	require.Zero(t, b.dirty)
	require.Empty(t, b.queue)
}

func TestElapsedIsByTheClockThatHasRunFurther(t *testing.T) {
	now := time.Now()
	require.Equal(t, time.Hour, elapsed(now, now.Add(time.Hour)))
	// A machine that slept: the monotonic clock stood still.
	require.Equal(t, 23*time.Hour, elapsed(now.Round(0), now.Round(0).Add(23*time.Hour)))
	// A clock that was set back does not make a batch young again.
	require.GreaterOrEqual(t, elapsed(now, now.Add(time.Hour)), time.Hour)
}

func TestCountsSaturate(t *testing.T) {
	require.Equal(t, int64(math.MaxInt64), saturate(math.MaxInt64, 1, math.MaxInt64))
	require.Equal(t, int64(6), saturate(1, 2, 3))

	b, now := newBook(math.MaxInt64), time.Now()
	_, count, _, err := b.add(whole, "k", math.MaxInt64, now)
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), count)
	_, _, _, err = b.add(whole, "k", 1, now)
	require.ErrorIs(t, err, ErrMax)
	b.landed(b.depart()[0], math.MaxInt64, 0, now)
	added, _, _, err := b.add(upTo, "k", 1, now)
	require.NoError(t, err)
	require.Zero(t, added)
}

// The answer to an earlier question must not hide what has happened since.
func TestAnswerWhileABatchIsUnderWayTellsNothing(t *testing.T) {
	b, now := newBook(10), time.Now()
	_, _, _, err := b.add(whole, "k", 10, now)
	require.NoError(t, err)
	_, _, _, err = b.add(whole, "k", 1, now)
	require.ErrorIs(t, err, ErrMax)
	tally := b.asked()[0]
	b.depart()
	b.told(tally, 0, 0, now)
	require.Equal(t, int64(10), tally.count(now))
	b.landed(tally, 10, 0, now)
	b.told(tally, 3, 0, now)
	require.Equal(t, int64(3), tally.count(now))
}
