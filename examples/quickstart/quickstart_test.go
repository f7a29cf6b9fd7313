package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// runAsMain makes this test binary the program itself, for itself and for the
// replicas that it starts.
const runAsMain = "QUICKSTART_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a quickstart that runs, in a process group of its own.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	out output
}

// start runs a quickstart. What is given as env comes after the environment.
func start(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &program{t: t, cmd: exec.Command(self, args...)}
	p.cmd.Env = append(append(os.Environ(), runAsMain+"=1", redisURL+"="), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("output:\n%s", p.out.String())
		}
	})
	return p
}

// wait returns the exit code.
func (p *program) wait() int {
	p.t.Helper()
	err := p.cmd.Wait()
	if ended := (*exec.ExitError)(nil); !errors.As(err, &ended) {
		require.NoError(p.t, err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// awaitAgreed waits until three replicas have agreed on an interval.
func (p *program) awaitAgreed() {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return agreed.MatchString(p.out.String()) },
		20*time.Second, 10*time.Millisecond)
}

// output is what a process has written so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

var (
	// agreed is the line of an interval in which three replicas took part.
	agreed  = regexp.MustCompile(`(?m)^interval \d+: own \d+ \d+ \d+, group (\d+) (\d+) (\d+), gauge (\S+) \S+ \S+, participants 3 3 3, age`)
	missing = regexp.MustCompile(`PASS: no more than was served; (\d+) requests are missing`)
	dropped = regexp.MustCompile(`level=ERROR msg="flush failed" .*dropped=(\d+)`)
)

// assertShown checks what a run of three replicas has printed.
func assertShown(t *testing.T, out string) {
	t.Helper()
	assertCounted(t, out)
	lines := agreed.FindAllStringSubmatch(out, -1)
	assert.NotEmpty(t, lines)
	exported := false
	for _, line := range lines {
		assert.Equal(t, line[1], line[2], "not all know the same: %s", line[0])
		assert.Equal(t, line[1], line[3], "not all know the same: %s", line[0])
		exported = exported || line[4] == line[1]
	}
	assert.True(t, exported, "no gauge has shown the group's number")
	assert.NotContains(t, out, "\x1b", "escape sequences where there is no terminal")
}

// assertCounted checks that every request was counted once. On a machine that
// stood still for a while, some may be missing that a replica has reported.
func assertCounted(t *testing.T, out string) {
	t.Helper()
	if strings.Contains(out, "PASS: the group counted what was served, no more and no less.\n") {
		return
	}
	if strings.Contains(out, "could not be read in time") && strings.Contains(out, "PASS: no more than was served") {
		t.Skip("the machine stood still for longer than a total lives in Redis: no verdict on what is missing")
	}
	lost := missing.FindStringSubmatch(out)
	require.NotNil(t, lost, "no verdict, or one that fails")
	reported := 0
	for _, line := range dropped.FindAllStringSubmatch(out, -1) {
		reported += atoi(t, line[1])
	}
	assert.LessOrEqual(t, atoi(t, lost[1]), reported, "requests are missing that no replica has reported")
}

func atoi(t *testing.T, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	require.NoError(t, err)
	return n
}

func TestEmbeddedRedis(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "-seconds", "5")
	assert.Zero(t, p.wait())
	assert.Contains(t, p.out.String(), "embedded")
	assertShown(t, p.out.String())
}

func TestOwnRedis(t *testing.T) {
	t.Parallel()
	p := start(t, []string{redisURL + "=" + redistest.URL(t)}, "-seconds", "5")
	assert.Zero(t, p.wait())
	assert.NotContains(t, p.out.String(), "embedded")
	assertShown(t, p.out.String())
}

func TestCtrlC(t *testing.T) {
	t.Parallel()
	server, env := ownServer(t)
	p := start(t, env, "-seconds", "300")
	p.awaitAgreed()
	require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT)) // to all processes, as a terminal does
	assert.Zero(t, p.wait())
	assertShown(t, p.out.String())
	awaitNobody(t, server)
}

func TestKilledProgramLeavesNoReplica(t *testing.T) {
	t.Parallel()
	server, env := ownServer(t)
	p := start(t, env, "-seconds", "300")
	p.awaitAgreed()
	require.Greater(t, server.CurrentConnectionCount(), 3, "each replica should have a connection, and the program too")
	require.NoError(t, p.cmd.Process.Kill())
	assert.Equal(t, -1, p.wait(), "it was not the signal that ended it")
	awaitNobody(t, server)
}

// ownServer is a Redis that sees who is connected, for a program that is started with env.
func ownServer(t *testing.T) (server *miniredis.Miniredis, env []string) {
	t.Helper()
	server = miniredis.RunT(t)
	server.ClockTTL(true)
	return server, []string{redisURL + "=redis://" + server.Addr()}
}

// awaitNobody waits until no process holds a connection: a replica does for as
// long as it lives.
func awaitNobody(t *testing.T, server *miniredis.Miniredis) {
	t.Helper()
	require.Eventually(t, func() bool { return server.CurrentConnectionCount() == 0 },
		20*time.Second, 10*time.Millisecond, "a process is left")
}

func TestMistakeIsFound(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "-seconds", "3", "-mistake")
	assert.Equal(t, 1, p.wait())
	assert.Regexp(t, `FAIL: the group counted \d+ more than was served\.`, p.out.String())
}

func TestOneReplicaAndALongInterval(t *testing.T) {
	t.Parallel()
	// No interval closes: the parting flush carries all.
	p := start(t, nil, "-seconds", "1", "-interval", "1m", "-replicas", "1")
	assert.Zero(t, p.wait())
	assertCounted(t, p.out.String())
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  []string
		args []string
		code int
		says string
	}{
		"seconds":        {args: []string{"-seconds", "0"}, code: 2, says: "-seconds must be at least 1"},
		"replicas":       {args: []string{"-replicas", "13"}, code: 2, says: "-replicas must be 1 to 12"},
		"interval":       {args: []string{"-interval", "1.5ms"}, code: 2, says: "-interval must be at least 10ms"},
		"argument":       {args: []string{"fast"}, code: 2, says: "takes flags only"},
		"help":           {args: []string{"-h"}, code: 0, says: "-mistake"},
		"no Redis there": {env: []string{redisURL + "=redis://127.0.0.1:1"}, code: 1, says: "ask the Redis at 127.0.0.1:1"},
		"no Redis URL":   {env: []string{redisURL + "=http://127.0.0.1"}, code: 1, says: "read REDIS_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, test.env, test.args...)
			assert.Equal(t, test.code, p.wait())
			assert.Contains(t, p.out.String(), test.says)
		})
	}
}
