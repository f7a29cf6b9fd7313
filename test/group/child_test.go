package group

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
)

// childEnv tells this test binary to be a participant, and where.
const childEnv = "COMCOUNT_CHILD"

// child is a participant in a process of its own, which can be stopped and killed.
// It counts 1 each millisecond in the counter "n", a part of it in a series.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func startChild(t *testing.T, addr, prefix string, interval time.Duration) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %v", childEnv, addr, prefix, interval))
	cmd.Stderr = io.Discard
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
	t.Cleanup(c.kill)
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "counting\n", line)
	return c
}

func (c *child) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(sig))
}

// kill ends the child as kill -9 does. Killing it again does nothing.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// leave has the child flush and end, and returns what it had added and lost, and how
// much of that may have been counted.
func (c *child) leave(t *testing.T) (added, lost, unsure int64) {
	t.Helper()
	require.NoError(t, c.stdin.Close())
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscanf(line, "%d %d %d\n", &added, &lost, &unsure)
	require.NoError(t, err, "%q", line)
	require.NoError(t, c.cmd.Wait())
	return added, lost, unsure
}

// beChild is the child's side. It ends when its standard input does.
func beChild() error {
	where := strings.Fields(os.Getenv(childEnv))
	interval, err := time.ParseDuration(where[2])
	if err != nil {
		return err
	}
	rdb, losses := redis.NewClient(&redis.Options{Addr: where[0]}), newLosses()
	defer rdb.Close()
	g, err := counter.NewGroup(rdb, interval, counter.WithPrefix(where[1]), counter.WithLogger(slog.New(losses)))
	if err != nil {
		return err
	}
	whole, err := g.Counter("n")
	if err != nil {
		return err
	}
	part, err := g.Counter("n", attribute.Bool("part", true))
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	fmt.Println("counting")
	var added int64
	for {
		select {
		case <-gone:
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err := g.Flush(ctx)
			g.Close()
			fmt.Println(added, losses.sum(), losses.because("may have been counted"))
			return err
		default:
		}
		whole.Add(1)
		part.Add(1)
		added += 2
		time.Sleep(time.Millisecond)
	}
}
