package otelcol

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// patience is for a process on a loaded machine.
const patience = time.Minute

// binary returns the collector, or skips the test.
func binary(t *testing.T) string {
	t.Helper()
	path, required := os.LookupEnv("OTELCOL")
	if !required {
		path = "../../bin/otelcol-comcount"
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	switch {
	case err != nil && required:
		t.Fatalf("OTELCOL names no collector: %v", err)
	case err != nil:
		t.Skipf("no collector: run `make otelcol`: %v", err)
	}
	return path
}

// config returns the path of a configuration that the project ships.
func config(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../otelcol/configs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// collector is a process.
type collector struct {
	grpc, http, prometheus, health string // host:port

	t    *testing.T
	cmd  *exec.Cmd
	logs lockedBuffer
	done chan struct{}
}

// start starts a collector and waits until it is healthy. Args go on its command
// line, env into its environment.
func start(t *testing.T, file string, env []string, args ...string) *collector {
	t.Helper()
	addrs := freeAddrs(t, 4)
	c := &collector{grpc: addrs[0], http: addrs[1], prometheus: addrs[2], health: addrs[3], t: t, done: make(chan struct{})}
	args = append([]string{"--config", config(t, file), "--config", "yaml:service::telemetry::metrics::level: none"}, args...)
	c.cmd = exec.Command(binary(t), args...)
	c.cmd.Env = append(os.Environ(), append(env, "OTLP_GRPC="+c.grpc, "OTLP_HTTP="+c.http, "PROMETHEUS="+c.prometheus, "HEALTH="+c.health)...)
	c.cmd.Stdout, c.cmd.Stderr = &c.logs, &c.logs
	// Should the test's process die, the collector must not outlive it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		c.signal(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("collector %s:\n%s", c.http, c.logs.tail())
		}
	})
	redistest.Eventually(t, patience, func() error {
		select {
		case <-c.done:
			t.Fatalf("the collector has ended:\n%s", c.logs.tail())
		default:
		}
		resp, err := http.Get("http://" + c.health)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("health: %s", resp.Status)
		}
		return nil
	})
	return c
}

// signal sends the process a signal and waits until it is gone.
func (c *collector) signal(s syscall.Signal) {
	c.t.Helper()
	_ = c.cmd.Process.Signal(s) // it may have ended
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatalf("the collector does not end:\n%s", c.logs.tail())
	}
}

func freeAddrs(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// lockedBuffer keeps what a process writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := strings.Split(b.b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
