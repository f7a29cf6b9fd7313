package redistest_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func equal[T comparable](want, got T) error {
	if want != got {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// talk sends commands in one write over a connection of its own and returns what
// comes back until the other side closes it.
func talk(t *testing.T, addr string, commands ...string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	var text strings.Builder
	for _, command := range commands {
		args := strings.Fields(command)
		fmt.Fprintf(&text, "*%d\r\n", len(args))
		for _, arg := range args {
			fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(arg), arg)
		}
	}
	_, err = io.WriteString(conn, text.String())
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	replies, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(replies)
}
