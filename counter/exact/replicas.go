package exact

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

// conns finds a connection to the primary of a key.
type conns interface {
	// conn returns a connection to the primary of key, or to the server that
	// redirect names.
	conn(ctx context.Context, key string, to redirect) (*redis.Conn, error)

	// outdated is told of every error, for it may be that another server has the key.
	outdated(ctx context.Context)
}

// redirect is where a server of a cluster has sent us: nowhere, if addr is empty.
type redirect struct {
	addr string
	ask  bool
}

func connsOf(rdb redis.UniversalClient) (conns, error) {
	switch rdb := rdb.(type) {
	case *redis.Client:
		return single{rdb}, nil
	case *redis.ClusterClient:
		return cluster{rdb}, nil
	}
	return nil, fmt.Errorf("exact: WaitReplicas needs a *redis.Client or *redis.ClusterClient, not %T", rdb)
}

type single struct{ *redis.Client }

func (s single) conn(context.Context, string, redirect) (*redis.Conn, error) {
	return s.Conn(), nil
}

func (single) outdated(context.Context) {}

type cluster struct{ *redis.ClusterClient }

func (c cluster) conn(ctx context.Context, key string, to redirect) (*redis.Conn, error) {
	if to.addr != "" { // else, and where the client does not know the server yet, by its map
		if conn := c.at(ctx, to.addr); conn != nil {
			return conn, nil
		}
	}
	master, err := c.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return master.Conn(), nil
}

func (c cluster) outdated(ctx context.Context) { c.ReloadState(ctx) }

// at returns a connection to the primary with this address, nil if the client does
// not know it.
func (c cluster) at(ctx context.Context, addr string) *redis.Conn {
	found := make(chan *redis.Client, 1)
	_ = c.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		if master.Options().Addr == addr {
			select {
			case found <- master:
			default:
			}
		}
		return nil
	})
	select {
	case master := <-found:
		return master.Conn()
	default:
		return nil
	}
}

// addReplicated adds and waits for the replicas. WAIT is about the writes of its
// own connection, so both are sent on one, one after the other: in one pipeline
// they would share a timeout, and inside MULTI a WAIT does not wait.
func (c *Counters) addReplicated(ctx context.Context, kind kind, key string, n int64, opt AddOption) (added, count int64, err error) {
	keys, args := c.addKeys(key, opt), c.addArgs(kind, n, opt)
	var to redirect
	for attempt := 1; ; attempt++ {
		conn, err := c.conns.conn(ctx, keys[0], to)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %w", ErrNotExecuted, err)
		}
		cmd := runOn(ctx, conn, to, keys, args)
		if cmd.Err() != nil {
			c.conns.outdated(ctx)
		}
		again := attempt < attempts
		if again {
			to, again = redirected(cmd)
			again = again || passing(cmd) && pause(ctx, backoff(attempt))
		}
		if !again {
			added, count, err = c.addResult(kind, n, cmd)
			if err == nil && added > 0 {
				err = c.waitReplicas(ctx, conn)
			}
			_ = conn.Close() // gives the connection back
			return added, count, err
		}
		_ = conn.Close()
	}
}

// runOn runs the add on one connection. ASKING is good for one command, so there
// the source goes along at once.
func runOn(ctx context.Context, conn *redis.Conn, to redirect, keys []string, args []any) *script.Cmd {
	if !to.ask {
		return addScript.Run(ctx, conn, keys, args...)
	}
	_ = conn.Do(ctx, "asking").Err() // if it fails, so does what follows
	cmd := addScript.Eval(ctx, keys, args...)
	_ = conn.Process(ctx, cmd) // the error is the command's too
	return cmd
}

// redirected returns where a server of a cluster has sent the command, and whether
// it has.
func redirected(cmd *script.Cmd) (redirect, bool) {
	if !cmd.NotExecuted() {
		return redirect{}, false
	}
	// "MOVED 3999 127.0.0.1:6381"
	words := strings.Fields(cmd.Err().Error())
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return redirect{}, false
	}
	return redirect{addr: words[2], ask: words[0] == "ASK"}, true
}

// waitReplicas waits until the replicas have what this connection wrote.
func (c *Counters) waitReplicas(ctx context.Context, conn *redis.Conn) error {
	want := c.config.replicas
	timeout := want.timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	// 0 would be for ever.
	if timeout <= 0 {
		return fmt.Errorf("%w: %w", ErrNotReplicated, context.DeadlineExceeded)
	}
	timeout = time.Duration(ceilMillis(timeout)) * time.Millisecond
	got, err := conn.Wait(ctx, want.n, timeout).Result()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotReplicated, err)
	case got < int64(want.n):
		return fmt.Errorf("%w: %d of %d replicas confirmed it within %v", ErrNotReplicated, got, want.n, timeout)
	}
	return nil
}
