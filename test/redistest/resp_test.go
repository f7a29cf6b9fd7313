package redistest

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadCommand(t *testing.T) {
	const raw = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n"
	r := bufio.NewReader(strings.NewReader(raw + "*1\r\n$4\r\nPING\r\n"))
	args, got, err := readCommand(r)
	require.NoError(t, err)
	require.Equal(t, []string{"SET", "k", "a\r\nb"}, args)
	require.Equal(t, raw, string(got))
	args, _, err = readCommand(r)
	require.NoError(t, err)
	require.Equal(t, []string{"PING"}, args)
	_, _, err = readCommand(r)
	require.ErrorIs(t, err, io.EOF)
}

func TestReadReply(t *testing.T) {
	for _, raw := range []string{
		"+OK\r\n", "-ERR no\r\n", ":12\r\n", "_\r\n", ",3.5\r\n", "#t\r\n", "(123\r\n",
		"$-1\r\n", "$0\r\n\r\n", "$4\r\na\r\nb\r\n", "!5\r\nERR x\r\n", "=5\r\ntxt:a\r\n",
		"*-1\r\n", "*0\r\n", "*2\r\n:1\r\n*1\r\n$1\r\na\r\n", "~1\r\n:1\r\n",
		"%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n", "|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n",
	} {
		r := bufio.NewReader(strings.NewReader(raw + "+next\r\n"))
		got, push, err := readReply(r, nil)
		require.NoError(t, err, raw)
		require.Equal(t, raw, string(got))
		require.False(t, push)
		got, _, err = readReply(r, nil)
		require.NoError(t, err, raw)
		require.Equal(t, "+next\r\n", string(got))
	}

	_, push, err := readReply(bufio.NewReader(strings.NewReader(">2\r\n+message\r\n:1\r\n")), nil)
	require.NoError(t, err)
	require.True(t, push)
}

func TestReadRefusesWhatIsNotRESP(t *testing.T) {
	for raw, want := range map[string]error{
		"":                    io.EOF,
		"GET / HTTP/1.1\r\n":  errNotRESP,
		"*x\r\n":              errNotRESP,
		"*1\r\n+a\r\n":        errNotRESP,
		"\n":                  errNotRESP,
		"\r\n":                errNotRESP,
		"*1\r\n":              io.ErrUnexpectedEOF,
		"*1\r\n$4\r\nPI":      io.ErrUnexpectedEOF,
		"*1\r\n$99999999999 ": io.ErrUnexpectedEOF,
	} {
		_, _, err := readCommand(bufio.NewReader(strings.NewReader(raw)))
		require.ErrorIs(t, err, want, "command %q", raw)
	}
	for raw, want := range map[string]error{
		"":                          io.EOF,
		"garbage\r\n":               errNotRESP,
		"$9999999999999\r\n":        errNotRESP,
		"*2\r\n:1\r\n":              io.ErrUnexpectedEOF,
		"$5\r\nab":                  io.ErrUnexpectedEOF,
		"*1\r\n*1\r\n*1\r\n$3\r\nx": io.ErrUnexpectedEOF,
	} {
		_, _, err := readReply(bufio.NewReader(strings.NewReader(raw)), nil)
		require.ErrorIs(t, err, want, "reply %q", raw)
	}
}
