package counter

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines are what a logger wrote, at this level and above, without times.
func lines(level slog.Level) (*slog.Logger, func() []string) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return log, func() []string { return strings.Split(strings.TrimSpace(text.String()), "\n") }
}

// An outage is told at its beginning, with each loss, and at its end.
func TestAnOutageInTheLog(t *testing.T) {
	log, written := lines(slog.LevelInfo)
	onStore(t, func(t *testing.T, m *memStore) {
		g := m.join(t, "alice---", 0, WithLogger(log), WithCarry(1))
		c := mustCounter(t, g, "jobs")
		c.Add(1)
		sleep(3 * second)
		m.setFault(func(*Flush) memFault { return memFault{err: errors.New("NOPERM")} })
		m.setDown(errors.New("NOPERM"))
		c.Add(7)
		sleep(6 * second)
		m.setFault(nil)
		m.setDown(nil)
		sleep(3 * second)
		require.NoError(t, g.Shutdown(t.Context()))
	})
	assert.Equal(t, []string{
		`level=INFO msg="counter started" name=jobs interval=1s prefix="" store=*counter.memStore`,
		`level=ERROR msg="flush failed" name=jobs error=NOPERM dropped=0`,
		`level=WARN msg="total went stale" name=jobs after=2s`,
		`level=ERROR msg="flush failed" name=jobs error="not applied in time" dropped=7 cause=NOPERM`,
		`level=INFO msg="flush recovered" name=jobs`,
		`level=INFO msg="counter stopped" name=jobs`,
	}, written())
}

// "A healthy counter never rises above Info", and says no more than that it began and
// ended. A script that a server does not have is no failure.
func TestAHealthyCounterInTheLog(t *testing.T) {
	log, written := lines(slog.LevelDebug)
	onNetwork(t, func(t *testing.T, n *network) {
		g := n.join(t, "alice---", 0, WithLogger(log))
		mustCounter(t, g, "jobs").Add(3)
		sleep(2 * second)
		require.NoError(t, g.Shutdown(t.Context()))
	})
	got := written()
	require.Greater(t, len(got), 3)
	assert.Equal(t, `level=INFO msg="counter started" name=jobs interval=1s prefix="" store=redis`, got[0])
	assert.Equal(t, `level=DEBUG msg="script loaded" name=jobs sha=`+flushScript.SHA(), got[1])
	for _, line := range got[2 : len(got)-1] {
		assert.Contains(t, line, `level=DEBUG msg="flush completed" name=jobs interval=`)
	}
	assert.Equal(t, `level=INFO msg="counter stopped" name=jobs`, got[len(got)-1])
}
