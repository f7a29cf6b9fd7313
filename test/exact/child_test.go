package exact

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

// orders tell a child process what to do. They come in this variable.
const ordersVariable = "EXACT_TEST_CHILD"

type orders struct {
	Addr  string // of the server
	Own   string // the key that only this child counts
	Flush time.Duration
	TTL   time.Duration
}

// A child adds 1 to its own key and 1 to "shared", again and again, until SIGTERM
// or worse. Before each pair it writes "try N" to its output, after it "did N", and
// "safe N" for the amount that a flush has confirmed: all cumulative.
func child(text string) int {
	logging.Disable()
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: o.Addr, ReadTimeout: 300 * time.Millisecond})
	report := &confirmed{}
	opts := []exact.Option{exact.FlushEvery(o.Flush), exact.Logger(slog.New(report))}
	if o.TTL > 0 {
		opts = append(opts, exact.TTL(o.TTL))
	}
	c, err := exact.Open(client, "proc", opts...)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	for i := 1; ctx.Err() == nil; i++ {
		report.print("try", i)
		for _, key := range []string{o.Own, "shared"} {
			if _, err := c.Add(context.Background(), key, 1); err != nil {
				fmt.Println("error", err)
				return 1
			}
		}
		report.print("did", i)
		time.Sleep(time.Millisecond)
	}
	closing, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Close(closing); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// confirmed is a log handler that reports flushes. What is written to a pipe
// survives the writer.
type confirmed struct {
	mu    sync.Mutex
	total int64
}

func (c *confirmed) print(word string, n any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Println(word, n)
}

func (c *confirmed) Enabled(context.Context, slog.Level) bool { return true }
func (c *confirmed) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *confirmed) WithGroup(string) slog.Handler            { return c }

func (c *confirmed) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "flush completed" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "amount" {
			c.total += a.Value.Int64() // only the writer's goroutine comes here
			c.print("safe", c.total)
		}
		return true
	})
	return nil
}

// process is a child as its parent knows it.
type process struct {
	own              string
	cmd              *exec.Cmd
	killed           bool
	tried, did, safe int64
	errs             []string
	read             chan struct{} // closed once its output has ended
}

func startProcess(t *testing.T, o orders) *process {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	p := &process{own: o.Own, cmd: exec.Command(os.Args[0]), read: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), ordersVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			var n int64
			_, _ = fmt.Sscan(rest, &n) // an error's text is kept as it is
			switch word {
			case "try":
				p.tried = n
			case "did":
				p.did = n
			case "safe":
				p.safe = n
			default:
				p.errs = append(p.errs, lines.Text())
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.read
		_ = p.cmd.Wait()
	})
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
	<-p.read
}

// finish lets the process write the rest, and waits for it.
func (p *process) finish(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	<-p.read
	require.Empty(t, p.errs)
	require.NoError(t, p.cmd.Wait())
}
