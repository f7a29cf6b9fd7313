package faults

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"testing"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// added is a line of MONITOR that tells of an addition to a total.
var added = regexp.MustCompile(`(?i)"incrby" "[^"]*\{([^}"]+)\}:(\d+)" "(-?\d+)"`)

// watch records what a server adds to totals, by MONITOR: it shows each command that
// ran, once, in order. Stop waits until all has been recorded that the server did
// before. The server must not be restarted in between.
func watch(t *testing.T, server *redistest.Server, histories map[string]*History) (stop func()) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<24)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %q", lines.Text())
	}
	const end = `"ECHO" "no more faults"`
	ended := regexp.MustCompile("(?i)" + end)
	done := make(chan error, 1)
	go func() {
		for lines.Scan() {
			if m := added.FindStringSubmatch(lines.Text()); m != nil && histories[m[1]] != nil {
				interval, _ := strconv.ParseInt(m[2], 10, 64)
				n, _ := strconv.ParseInt(m[3], 10, 64)
				histories[m[1]].Held(interval, n)
			}
			if ended.MatchString(lines.Text()) {
				done <- nil
				return
			}
		}
		done <- errors.Join(errors.New("MONITOR has ended"), lines.Err())
	}()
	return func() {
		t.Helper()
		if err := server.Client().Echo(t.Context(), "no more faults").Err(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
