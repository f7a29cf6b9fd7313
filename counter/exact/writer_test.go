package exact_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

// inBubble runs a test on virtual time, with a server whose clock it is. The test
// is a millisecond off the writers' ticks, so that what it sees is settled.
func inBubble(t *testing.T, test func(t *testing.T, w *wire)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		w := newWire()
		t.Cleanup(w.Close)
		test(t, w)
	})
}

const flush = time.Second

// after lets n intervals pass.
func after(n int) {
	time.Sleep(time.Duration(n)*flush + time.Millisecond)
	synctest.Wait()
}

func (w *wire) requireCount(t testing.TB, key string, want int64) {
	t.Helper()
	got, err := w.Get("seats:{" + key + "}")
	if want == 0 {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(want, 10), got)
}

func add(t testing.TB, c *exact.Counters, key string, n int64) int64 {
	t.Helper()
	count, err := c.Add(t.Context(), key, n)
	require.NoError(t, err)
	return count
}

func TestFlushEveryWritesEveryInterval(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(flush))
		require.Equal(t, int64(1), add(t, c, "k", 1))
		require.Equal(t, int64(3), add(t, c, "k", 2))
		require.Zero(t, w.sent(), "an add sends nothing")
		after(1)
		w.requireCount(t, "k", 3)

		// From then on the count of all is known. The other one flushes after this one.
		time.Sleep(flush / 10)
		other := open(t, w.client(t), exact.FlushEvery(flush))
		require.Equal(t, int64(10), add(t, other, "k", 10))
		after(1)
		require.Equal(t, int64(14), add(t, other, "k", 1))
		require.Equal(t, int64(4), add(t, c, "k", 1), "the best known count")
		after(1)
		w.requireCount(t, "k", 15)
		require.Equal(t, int64(15), add(t, c, "k", 1), "as its last batch has left it")
		sent := w.sent()
		after(1)
		require.Equal(t, sent+1, w.sent(), "only what has changed is written")
		after(10)
		require.Equal(t, sent+1, w.sent())
	})
}

func TestBatchIsRepeatedUntilItLandsAndLandsOnce(t *testing.T) {
	for name, faults := range map[string][]fault{
		"lost replies":    {loseReply, loseReply, loseReply},
		"lost requests":   {loseRequest, loseRequest},
		"black holes":     {blackHole, blackHole},
		"one of each":     {loseReply, loseRequest, blackHole, loseReply},
		"lost, then late": {loseRequest, loseReply},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *wire) {
				c := open(t, w.client(t), exact.FlushEvery(flush))
				add(t, c, "known", 1)
				after(1) // the script is cached
				w.inject(faults...)
				add(t, c, "k", 5)
				after(1)
				add(t, c, "k", 7) // leaves when the 5 is known to have landed
				after(1 + 5*len(faults))
				w.requireCount(t, "k", 12)
				require.Equal(t, int64(13), add(t, c, "k", 1))
				require.NoError(t, c.Close(t.Context()))
				w.requireCount(t, "k", 13)
			})
		})
	}
}

func TestOutageLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		logs := &records{}
		c := open(t, w.client(t), exact.FlushEvery(flush), exact.Logger(slog.New(logs)))
		add(t, c, "k", 1)
		after(1)
		w.inject(loseReply)
		add(t, c, "k", 2)
		after(1)
		w.setDown(true)
		for range 100 {
			add(t, c, "k", 1)
			time.Sleep(time.Minute)
		}
		w.setDown(false)
		after(30)
		w.requireCount(t, "k", 103)
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, 1, logs.count("flush failed"), "an outage is reported once")
	})
}

func TestBatchThatIsNeverSentIsKeptForDays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		w.setDown(true)
		c := open(t, w.client(t), exact.FlushEvery(time.Hour))
		add(t, c, "k", 5)
		time.Sleep(72 * time.Hour)
		w.setDown(false)
		time.Sleep(2 * time.Hour)
		w.requireCount(t, "k", 5)
	})
}

// "One unconfirmed for longer than that less a margin is dropped and reported."
func TestBatchUnconfirmedFor23HoursIsDroppedAndReported(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		logs := &records{}
		c := open(t, w.client(t), exact.FlushEvery(time.Minute), exact.Logger(slog.New(logs)))
		add(t, c, "other", 1)
		time.Sleep(time.Minute + time.Second)
		w.inject(loseReply)
		add(t, c, "k", 5)
		time.Sleep(time.Minute)
		w.setDown(true)
		add(t, c, "k", 1) // never sent: kept
		time.Sleep(23*time.Hour - 2*time.Minute)
		require.Equal(t, int64(7), add(t, c, "k", 1))
		time.Sleep(2 * time.Hour)
		w.setDown(false)
		time.Sleep(2 * time.Minute)
		w.requireCount(t, "k", 7) // the 5 had landed, and was not repeated

		last := logs.last("flush failed")
		require.Equal(t, int64(5), last["dropped"])
		require.Contains(t, last["error"], "may have been")
		require.Equal(t, "seats", last["name"])
		err := c.Close(t.Context())
		require.ErrorIs(t, err, exact.ErrUnknown)
		require.ErrorContains(t, err, "5 was dropped")
	})
}

func TestCloseWritesTheRest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(time.Hour))
		for i := range 1234 {
			add(t, c, strconv.Itoa(i), int64(i+1))
		}
		w.inject(loseReply, loseRequest)
		require.NoError(t, c.Close(t.Context()))
		for i := range 1234 {
			w.requireCount(t, strconv.Itoa(i), int64(i+1))
		}
		sent := w.sent()
		time.Sleep(5 * time.Hour)
		require.Equal(t, sent, w.sent(), "nothing is sent after Close")
	})
}

func TestCloseEndsWithItsContextAndSaysHowMuchIsLost(t *testing.T) {
	for name, break_ := range map[string]func(w *wire){
		"down":       func(w *wire) { w.setDown(true) },
		"black hole": func(w *wire) { w.inject(blackHole, blackHole, blackHole) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *wire) {
				var logged records
				c := open(t, w.client(t), exact.FlushEvery(flush), exact.Logger(slog.New(&logged)))
				add(t, c, "first", 1)
				after(1)
				break_(w)
				add(t, c, "a", 3)
				add(t, c, "b", 4)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				start := time.Now()
				err := c.Close(ctx)
				require.LessOrEqual(t, time.Since(start), 2*time.Second)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "7 in 2 keys was not written")
				_, err = c.Add(t.Context(), "a", 1)
				require.ErrorIs(t, err, exact.ErrClosed)
				time.Sleep(time.Minute) // the call in the air ends, and with it the writer
				require.EqualValues(t, 7, logged.last("flush failed")["dropped"], "a loss that is not in the log")
			})
		})
	}
}

func TestMaxIsKeptOnTheBestKnownCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		a := open(t, w.client(t), exact.FlushEvery(flush), exact.Max(10), exact.TTL(time.Minute))
		time.Sleep(flush / 10) // b flushes after a
		b := open(t, w.client(t), exact.FlushEvery(flush), exact.Max(10), exact.TTL(time.Minute))
		add(t, a, "k", 8)
		_, err := a.Add(t.Context(), "k", 3)
		requireMax(t, err, exact.MaxError{Count: 8, Max: 10})
		add(t, b, "k", 9) // b does not know yet
		after(1)
		w.requireCount(t, "k", 17)
		add(t, b, "fresh", 1)
		after(1)
		count, err := b.Add(t.Context(), "k", 1)
		require.Equal(t, int64(17), count)
		require.ErrorIs(t, err, exact.ErrMax)
		maxErr, _ := errors.AsType[*exact.MaxError](err)
		require.InDelta(t, 59*time.Second, maxErr.Reset, float64(2*time.Second))

		// AddUpTo likewise.
		added, count, err := a.AddUpTo(t.Context(), "fresh", 100)
		require.NoError(t, err)
		require.Equal(t, int64(10), added)
		require.Equal(t, int64(10), count)
		added, _, err = a.AddUpTo(t.Context(), "fresh", 1)
		require.NoError(t, err)
		require.Zero(t, added)

		// The window's end is known without asking.
		time.Sleep(time.Minute)
		require.Equal(t, int64(1), add(t, b, "k", 1))
	})
}

func TestRefusedAddAsksAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(flush), exact.Max(3))
		add(t, c, "k", 3)
		after(1)
		direct := open(t, w.client(t), exact.Max(3))
		_, err := direct.Delete(t.Context(), "k")
		require.NoError(t, err)
		_, err = c.Add(t.Context(), "k", 1)
		require.ErrorIs(t, err, exact.ErrMax, "it does not know yet")
		after(1)
		require.Equal(t, int64(1), add(t, c, "k", 1))
	})
}

func TestBatchThatDoesNotFitIsDroppedAndReported(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		logs := &records{}
		c := open(t, w.client(t), exact.FlushEvery(flush), exact.Logger(slog.New(logs)))
		require.NoError(t, w.Set("seats:{k}", strconv.FormatInt(math.MaxInt64-2, 10)))
		add(t, c, "k", 5)
		add(t, c, "other", 1)
		after(1)
		w.requireCount(t, "k", math.MaxInt64-2)
		w.requireCount(t, "other", 1)
		require.Equal(t, int64(5), logs.last("flush failed")["dropped"])
		_, err := c.Add(t.Context(), "k", 5)
		require.ErrorIs(t, err, exact.ErrLimit, "now it is known")
		add(t, c, "k", 2)
		err = c.Close(t.Context())
		require.ErrorIs(t, err, exact.ErrLimit)
		w.requireCount(t, "k", math.MaxInt64)
	})
}

func TestWindowStartsWhenTheFirstBatchLands(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(10*time.Second), exact.TTL(time.Minute))
		add(t, c, "k", 1)
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		require.Equal(t, time.Minute, w.TTL("seats:{k}").Round(time.Second))
		add(t, c, "k", 1)
		time.Sleep(30 * time.Second)
		require.Equal(t, 30*time.Second, w.TTL("seats:{k}").Round(time.Second), "it does not slide")
		time.Sleep(31 * time.Second)
		require.Equal(t, int64(1), add(t, c, "k", 1))
	})
}

func TestGetIncludesWhatIsNotWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(flush))
		get := func() int64 {
			count, err := c.Get(t.Context(), "k")
			require.NoError(t, err)
			return count
		}
		require.Zero(t, get())
		add(t, c, "k", 2)
		require.Equal(t, int64(2), get())
		after(1)
		require.Equal(t, int64(2), get())
		require.NoError(t, w.Set("seats:{k}", "10")) // others
		require.Equal(t, int64(10), get())
		w.inject(loseReply) // the batch lands, and nobody tells
		add(t, c, "k", 5)
		after(1)
		add(t, c, "k", 1)
		require.Equal(t, int64(16), get())
		w.inject(loseRequest)
		after(1)
		require.Equal(t, int64(16), get())
		after(5)
		require.Equal(t, int64(16), get())
		w.requireCount(t, "k", 16)
	})
}

func TestDeleteTakesWhatIsNotWritten(t *testing.T) {
	for name, test := range map[string]struct {
		faults []fault
		exists bool
	}{
		"nothing under way": {nil, true},
		"landed, not known": {[]fault{loseReply, 0, 0}, true},
		"not landed":        {[]fault{loseRequest}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *wire) {
				c := open(t, w.client(t), exact.FlushEvery(flush))
				add(t, c, "other", 1)
				after(1)
				w.inject(test.faults...)
				add(t, c, "k", 5)
				if len(test.faults) > 0 {
					after(1)
				}
				add(t, c, "k", 2)
				existed, err := c.Delete(t.Context(), "k")
				require.NoError(t, err)
				require.True(t, existed)
				require.Equal(t, int64(1), add(t, c, "k", 1))
				after(2)
				w.requireCount(t, "k", 1)
				require.NoError(t, c.Close(t.Context()))
				w.requireCount(t, "k", 1)
			})
		})
	}
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(flush))
		existed, err := c.Delete(t.Context(), "nothing")
		require.NoError(t, err)
		require.False(t, existed)
	})
}

func TestDeleteObeysItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(flush))
		add(t, c, "k", 5)
		w.inject(blackHole)
		after(1) // the writer hangs in a flush
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := c.Delete(ctx, "k")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, exact.ErrUnknown, "it was not sent")
	})
}

func TestFlushEveryRefusesWhatItCannotDo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		client := w.client(t)
		c := open(t, client, exact.FlushEvery(flush))
		_, err := c.Add(t.Context(), "k", 1, exact.ID("a"))
		require.ErrorContains(t, err, "FlushEvery")
		_, err = c.AddTx(t.Context(), client.TxPipeline(), "k", 1).Val()
		require.ErrorContains(t, err, "FlushEvery")
		_, err = c.Get(t.Context(), "k")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Add(ctx, "k", 1)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestHandlerThatPanicsBreaksNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *wire) {
		c := open(t, w.client(t), exact.FlushEvery(flush), exact.Logger(slog.New(panicking{})))
		add(t, c, "k", 1)
		after(1)
		w.requireCount(t, "k", 1)
		require.NoError(t, c.Close(t.Context()))
	})
}
