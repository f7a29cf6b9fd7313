package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/otelcomcount/otelcomcount/counter"
)

const (
	replicaArg = "replica"   // the first argument of a process that is a replica
	redisURL   = "REDIS_URL" // the environment variable, of the user's and of the replicas'
)

// service is the resource that the replicas share, and so their group.
type service struct{ namespace, name string }

// newService makes up a namespace, so that two quickstarts on one Redis are two groups.
func newService() service {
	return service{namespace: "quickstart-" + strings.ToLower(rand.Text()[:4]), name: "shop"}
}

// key is what the keys of an instrument begin with in Redis; the interval's number follows.
func (s service) key(instrument string) string {
	return counter.GroupName(s.namespace, s.name) + "{" + instrument + "}:"
}

// fleet is the replicas of the service, as processes of this same program.
type fleet []*replica

type replica struct {
	number int // from 1
	url    string
	client *http.Client // keeps its connections
	cmd    *exec.Cmd
	stdin  io.Closer     // closing it asks the process to end
	ended  chan struct{} // closed once the process is gone
	err    error         // how it ended
}

// startFleet returns once all replicas take requests. What they log goes to logs.
func startFleet(ctx context.Context, cfg config, redis string, s service, logs io.Writer) (fleet, error) {
	var f fleet
	for number := 1; number <= cfg.replicas; number++ {
		args := []string{replicaArg, "-interval", cfg.interval.String()}
		if cfg.mistake && number == 1 {
			args = append(args, "-mistake")
		}
		r := &replica{number: number, ended: make(chan struct{})}
		if err := r.start(ctx, logs, args,
			redisURL+"="+redis,
			"OTEL_SERVICE_NAME="+s.name,
			"OTEL_RESOURCE_ATTRIBUTES=service.namespace="+s.namespace,
		); err != nil {
			f.kill()
			return nil, fmt.Errorf("start replica %d: %w", number, err)
		}
		f = append(f, r)
	}
	return f, nil
}

func (r *replica) start(ctx context.Context, logs io.Writer, args []string, env ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r.cmd = exec.Command(self, args...) //nolint:gosec // it is this program
	r.cmd.Env = append(os.Environ(), env...)
	r.cmd.Stderr = logs
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = r.cmd.Process.Kill() })()

	// It says where it listens, and then nothing more.
	address, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		r.err = r.cmd.Wait()
		close(r.ended)
	}()
	if err != nil {
		r.kill()
		return errors.Join(errors.New("it ended before it was ready"), r.err)
	}
	r.url = "http://" + strings.TrimSpace(address)
	r.client = &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	return nil
}

// get asks the replica for a path, and drops the answer's body unless into is given.
func (r *replica) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if into != nil {
		return json.NewDecoder(response.Body).Decode(into)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// stop asks all replicas to end, and waits until they have sent what they have.
func (f fleet) stop() error {
	for _, r := range f {
		// A spare connection that never carried a request would keep the replica's
		// server waiting for one.
		r.client.CloseIdleConnections()
		_ = r.stdin.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, r := range f {
		select {
		case <-r.ended:
			if r.err != nil {
				errs = append(errs, fmt.Errorf("replica %d: %w", r.number, r.err))
			}
		case <-ctx.Done():
			r.kill()
			errs = append(errs, fmt.Errorf("replica %d did not end in time, and was killed", r.number))
		}
	}
	return errors.Join(errs...)
}

// kill ends whatever still runs.
func (f fleet) kill() {
	for _, r := range f {
		r.kill()
	}
}

func (r *replica) kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
}
