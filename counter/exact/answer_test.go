package exact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestB49AnswersOfAnyForm(t *testing.T) {
	for _, reply := range []any{
		nil, int64(5), 3.5, true,
		[]any{"added", "1"},
		[]any{},
		map[any]any{"a": 1},
		[]byte("added 1 2"),
		"added 1 2 3 4", "added 1 9223372036854775808", "added 1.5 2", "added 1  2", "added x",
	} {
		_, err := parseAnswer(reply)
		require.Error(t, err, "%T %v", reply, reply)
	}
	for _, reply := range []string{"", "added", "added 1", "full 1 2 3", "OK"} {
		a, err := parseAnswer(reply)
		require.NoError(t, err)
		require.False(t, a.is("added", 2) || a.is("full", 2), reply)
	}
	a, err := parseAnswer("full 9223372036854775807 -1")
	require.NoError(t, err)
	require.True(t, a.is("full", 2))
	require.Equal(t, [3]int64{9223372036854775807, -1}, a.numbers)
	require.Zero(t, left(a.numbers[1]))
}
