package store

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// scriptRun is a script call as MONITOR shows it.
type scriptRun struct {
	keys     []string
	commands [][]string // what the script did
}

// monitor returns the script calls that the server ran during do, and the
// commands outside of scripts.
func monitor(t *testing.T, server *redistest.Server, do func()) (runs []scriptRun, others [][]string) {
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
		from, text, ok := strings.Cut(lines.Text(), "] \"")
		require.True(t, ok, lines.Text())
		args := strings.Split(strings.TrimSuffix(text, "\""), "\" \"")
		switch name := strings.ToLower(args[0]); {
		case strings.HasSuffix(from, " lua"):
			run := &runs[len(runs)-1]
			run.commands = append(run.commands, args)
		case name == "evalsha" || name == "eval":
			n, err := strconv.Atoi(args[2])
			require.NoError(t, err)
			runs = append(runs, scriptRun{keys: args[3 : 3+n]})
		case name == "echo" && args[1] == end:
			return runs, others
		default:
			others = append(others, args)
		}
	}
	require.NoError(t, lines.Err())
	return nil, nil
}

// What a script touches is declared (B06), it looks at the clock once (B27), and
// no key's life is set apart from its write (B16).
func TestMonitor(t *testing.T) {
	f, server := onServer(t)
	question := []counter.Question{{Interval: f.n - 1, Seq: 1}, {Interval: f.n - 2, Seq: 1}}
	f.one(f.add(1, 0)) // the script is known
	require.NoError(t, f.rdb.Del(t.Context(), f.totalKey(f.n), f.hashKey(f.n)).Err())
	runs, others := monitor(t, server, func() {
		_, err := f.store.Probe(t.Context(), "", f.prefix, f.name)
		require.NoError(t, err)
		var shares []counter.Share
		for i, mode := range []counter.Mode{counter.ModeAdd, counter.ModeAhead, counter.ModeRead} {
			for back := range int64(5) {
				share := f.add(int64(i)*5+back+1, 7)
				share.Name = fmt.Sprint("n", i, back)
				share.Interval, share.Mode, share.AskFirst = f.n+2-back, mode, true
				share.Series, share.Amounts, share.Questions = []string{"a=1"}, []int64{7}, question
				shares = append(shares, share)
			}
		}
		f.flush(shares...)
		f.flush(shares...) // some are repeated
		require.NoError(t, f.rdb.HSet(t.Context(), f.hashKey(f.n), "a=1", "x").Err())
		failing := f.add(100, 7)
		failing.Series, failing.Amounts = []string{"a=1"}, []int64{7}
		f.flush(failing)
	})
	require.Len(t, runs, 4, "calls")
	for i, run := range runs {
		clocks := 0
		for j, command := range run.commands {
			if command[0] == "TIME" {
				clocks++
				assert.Zero(t, j, "the clock comes first")
				continue
			}
			assert.Contains(t, run.keys, command[1], "run %d: %v", i, command)
			if command[0] == "INCRBY" && j > 0 && command[2][0] != '-' && i > 0 {
				assert.Equal(t, []string{"PEXPIRE", command[1]}, run.commands[j+1][:2], "run %d: %v", i, command)
			}
		}
		assert.Equal(t, 1, clocks)
	}
	for _, command := range others {
		assert.NotContains(t, strings.ToLower(command[0]), "expire")
	}
	f.wantAllMortal()
}
