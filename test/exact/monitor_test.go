package exact

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// B06: every key that a script touches is declared. B16: no key's life is set apart
// from its write.
func TestB16CommandsOnTheWire(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	lines := monitorKeys(t, server, "b16:", func() {
		c := open(t, client, "b16", exact.TTL(time.Minute), exact.Max(5))
		for range 7 {
			_, _ = c.Add(t.Context(), "k", 1, exact.ID("x"))
			_, _ = c.Add(t.Context(), "k", 1)
			_, _, _ = c.AddUpTo(t.Context(), "k", 2)
		}
		_, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		_, err = c.Delete(t.Context(), "k")
		require.NoError(t, err)
		f := open(t, client, "b16", exact.TTL(time.Minute), exact.FlushEvery(time.Hour))
		mustAdd(t, f, "k", 1)
		require.NoError(t, f.Close(t.Context()))
	})
	var declared string
	inScripts := 0
	for _, line := range lines {
		from, command, ok := strings.Cut(line, "] ")
		require.True(t, ok, line)
		require.NotContains(t, strings.ToLower(command), `"expire`)
		require.NotContains(t, strings.ToLower(command), `"pexpire`)
		if !strings.HasSuffix(from, " lua") {
			declared = command
			continue
		}
		inScripts++
		key := strings.Split(command, `"`)[3]
		require.Contains(t, declared, `"`+key+`"`, line)
	}
	require.Greater(t, inScripts, 40)
}

// monitorKeys returns what MONITOR shows of what do does with keys of this prefix.
func monitorKeys(t *testing.T, server *redistest.Server, prefix string, do func()) (about []string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "MONITOR\r\n")
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<24)
	require.True(t, lines.Scan())
	require.Equal(t, "+OK", lines.Text())

	do()
	const end = "this was all"
	require.NoError(t, server.Client().Echo(t.Context(), end).Err())
	for lines.Scan() {
		switch {
		case strings.Contains(lines.Text(), end):
			return about
		case strings.Contains(lines.Text(), prefix):
			about = append(about, lines.Text())
		}
	}
	require.NoError(t, lines.Err())
	return about
}
