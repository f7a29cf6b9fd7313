package main

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFrameFitsATerminal(t *testing.T) {
	t.Parallel()
	r := newReadings(12)
	gauge := int64(999_999)
	for i := range r.latest {
		r.record(i, status{
			Known: true, Interval: 99_999, Own: gauge, Group: gauge, Participants: 12,
			Age: 999 * time.Millisecond, Gauge: &gauge,
		})
	}
	frame := append((&table{first: 1}).frame(r), "the footer")
	assert.Len(t, frame, 12+frameLines)
	assert.Less(t, len(frame), 24)
	for _, line := range frame[:13] {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), columns, line)
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	r, gauge := newReadings(3), int64(12)
	board := &table{first: 7}
	assert.Contains(t, board.frame(r), "no interval is closed yet")

	r.record(0, status{Known: true, Interval: 8, Own: 2, Group: 12, Participants: 3, Age: 120 * time.Millisecond, Gauge: &gauge})
	r.record(1, status{Known: true, Interval: 8, Own: 4, Group: 12, Participants: 3, Age: 340 * time.Millisecond, Gauge: &gauge})
	assert.Zero(t, r.complete)
	assert.Equal(t, `replica interval    own                     group  gauge  participants     age
1              2      2 ███                    12     12             3   120ms
2              2      4 ██████                 12     12             3   340ms
3              -      -                         -      -             -       -

no interval is closed yet`, strings.Join(board.frame(r), "\n"))

	r.record(2, status{Known: true, Interval: 8, Own: 6, Group: 12, Participants: 3})
	assert.EqualValues(t, 8, r.complete)
	assert.Contains(t, board.frame(r), "interval 2: 2 + 4 + 6 = 12, and each of them knows it")

	for i, group := range []int64{5, 6, 6} {
		r.record(i, status{Known: true, Interval: 9, Own: 2, Group: group})
	}
	assert.Contains(t, board.frame(r), "interval 3: 2 + 2 + 2 = 6, and they know of 5, 6, 6")
}

func TestRedrawStaysInPlace(t *testing.T) {
	t.Parallel()
	out, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer out.Close()
	board := &table{out: out, live: true}
	board.redraw([]string{"one", strings.Repeat("█", columns+1)})
	board.redraw([]string{"1", "2"})
	_, err = board.Write([]byte("log\n"))
	require.NoError(t, err)
	board.redraw([]string{"I"})

	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Equal(t, "one\x1b[K\n"+strings.Repeat("█", columns)+"\x1b[K\n"+"\r\x1b[2A"+"1\x1b[K\n2\x1b[K\n"+
		"\r\x1b[2A\x1b[J"+"log\n"+"I\x1b[K\n", string(text))
}
