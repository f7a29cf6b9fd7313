package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds how long a server may take to answer. A server answers
// within a tenth of a second on a quiet machine; CI machines are not quiet.
const startTimeout = 30 * time.Second

// Server is a redis-server process of the test's own.
type Server struct {
	Addr string // host:port
	Dir  string // working directory: its log, and its data if it keeps any

	tb      testing.TB
	binary  string
	command func(s *Server) []string // redis-server's arguments, once the port is known
	port    int

	cmd    *exec.Cmd
	guard  *exec.Cmd     // kills the server should the test's process die
	exited chan struct{} // closed once the process is gone; nil if never started
}

// Start runs a redis-server on a free port of 127.0.0.1 and waits until it
// answers. It keeps nothing on disk unless args say so. Args are redis-server's
// own, such as "--appendonly", "yes". The server is killed in Cleanup; the end of
// its log is shown if the test has failed.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return launch(tb, func(s *Server) []string { return append(s.defaults(), args...) })
}

func (s *Server) defaults() []string {
	return []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.Dir,
		"--save", "", "--appendonly", "no",
	}
}

func launch(tb testing.TB, command func(s *Server) []string) *Server {
	tb.Helper()
	s := &Server{tb: tb, binary: binary(tb), command: command, Dir: tb.TempDir()}
	tb.Cleanup(s.cleanup)

	// A port that was free may be taken by the time the server binds it. Then the
	// process ends at once, and the next port is tried.
	var err error
	for range 10 {
		s.port = freePort(tb)
		s.Addr = net127(s.port)
		if err = s.start(); err == nil {
			return s
		}
		if !strings.Contains(s.Log(), "Address already in use") {
			break
		}
	}
	tb.Fatalf("redis-server does not start: %v\n%s", err, s.logTail())
	return nil
}

// URL returns the server's address as redis.ParseURL takes it.
func (s *Server) URL() string {
	return "redis://" + s.Addr + "/0"
}

// Client returns a client with go-redis' default options, changed by opts. It is
// closed in Cleanup.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	return newClient(s.tb, s.Addr, opts...)
}

// Stop asks the server to end, as an operator does, and waits until it has.
// Stopping a server that does not run does nothing.
func (s *Server) Stop() {
	s.tb.Helper()
	s.end(syscall.SIGTERM)
}

// Kill ends the server at once, as kill -9 does, and waits until it is gone.
// Killing a server that does not run does nothing.
func (s *Server) Kill() {
	s.tb.Helper()
	s.end(syscall.SIGKILL)
}

// Restart kills the server if it runs, starts it again on the same port and
// directory, and waits until it answers. What it remembers depends on the args
// that it was started with.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		s.tb.Fatalf("redis-server %s does not start again: %v\n%s", s.Addr, err, s.logTail())
	}
}

// Pause stops the server's process: it holds its connections, and answers
// nothing until Resume.
func (s *Server) Pause() {
	s.tb.Helper()
	s.signal(syscall.SIGSTOP)
}

// Resume lets a paused server run on.
func (s *Server) Resume() {
	s.tb.Helper()
	s.signal(syscall.SIGCONT)
}

// Running reports whether the server's process is there, paused or not.
func (s *Server) Running() bool {
	if s.exited == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Log returns what the server has logged so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return ""
	}
	return string(text)
}

func (s *Server) logFile() string {
	return filepath.Join(s.Dir, "redis.log")
}

func (s *Server) logTail() string {
	lines := strings.Split(strings.TrimSpace(s.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// start runs the process and waits until it answers.
func (s *Server) start() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command(s.binary, s.command(s)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	s.cmd, s.exited = cmd, exited
	if s.guard, err = guard(cmd.Process.Pid); err != nil {
		return err
	}
	if err := s.await(); err != nil {
		s.Kill()
		return err
	}
	return nil
}

// await polls the server until it answers, has loaded its data, and is the process
// that was started here: another one may have taken the port.
func (s *Server) await() error {
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer client.Close()
	var err error
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		select {
		case <-s.exited:
			return errors.New("the process has ended")
		case <-time.After(10 * time.Millisecond):
		}
		if err = isProcess(client, s.cmd.Process.Pid); err == nil {
			return nil
		}
	}
	return fmt.Errorf("no answer within %v: %w", startTimeout, err)
}

func isProcess(client *redis.Client, pid int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	info, err := client.Info(ctx, "server").Result()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "NOAUTH"):
		return nil // it was told to ask for a password; it is up
	case err != nil:
		return err
	case !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)):
		return errors.New("another server answers on this port")
	}
	// A server that still loads its data answers INFO, but not this.
	return client.Ping(ctx).Err()
}

// end sends sig and waits until the process is gone; a paused one is woken, since
// it would not see any other signal than SIGKILL.
func (s *Server) end(sig syscall.Signal) {
	s.tb.Helper()
	if s.guard != nil {
		_ = s.guard.Process.Kill() // first: afterwards the pid may be another process's
		_ = s.guard.Wait()
		s.guard = nil
	}
	if !s.Running() {
		return
	}
	s.signal(sig)
	s.signal(syscall.SIGCONT)
	select {
	case <-s.exited:
	case <-time.After(startTimeout):
		_ = s.cmd.Process.Kill()
		<-s.exited
		s.tb.Errorf("redis-server %s did not end within %v", s.Addr, startTimeout)
	}
}

func (s *Server) signal(sig syscall.Signal) {
	s.tb.Helper()
	if !s.Running() {
		return
	}
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.tb.Errorf("redis-server %s: %v: %v", s.Addr, sig, err)
	}
}

func (s *Server) cleanup() {
	s.Kill()
	if s.tb.Failed() {
		s.tb.Logf("log of redis-server %s:\n%s", s.Addr, s.logTail())
	}
}

// guard starts a process that kills pid once this process is gone, however it
// ended: Cleanup does not run after a panic or a test timeout.
func guard(pid int) (*exec.Cmd, error) {
	cmd := exec.Command("/bin/sh", "-c", `read -r _; kill -9 "$0"`, strconv.Itoa(pid))
	// The pipe's other end is ours alone; the kernel closes it with this process.
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	return cmd, cmd.Start()
}

// binary finds redis-server.
func binary(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		Missing(tb, "redis-server is not installed; ./test/run.sh installs it")
	}
	return path
}

// Missing skips a test that needs something this machine does not have. Where CI
// is set it fails the test instead: there, everything must be tested.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("%s (CI is set: tests must not be skipped)", what)
	}
	tb.Skip(what)
}
