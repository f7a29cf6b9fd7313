package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name of the primary that a [Sentinel] watches.
const MasterName = "main"

// Sentinel is a primary and a replica, watched by sentinels.
type Sentinel struct {
	Primary, Replica *Server // as they were started; a failover changes their roles
	Sentinels        []*Server

	tb testing.TB
}

// StartSentinel starts a primary with a replica, and that many sentinels, and waits
// until each knows of all. Args are for both servers.
func StartSentinel(tb testing.TB, sentinels int, args ...string) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb, Primary: Start(tb, args...)}
	s.Replica = s.Primary.Replica(args...)
	for range sentinels {
		s.Sentinels = append(s.Sentinels, launch(tb, func(server *Server) []string {
			return s.command(server, sentinels/2+1)
		}))
	}
	for _, sentinel := range s.Sentinels {
		sentinel.awaitInfo("sentinel", fmt.Sprintf(
			"status=ok,address=%s,slaves=1,sentinels=%d\r\n", s.Primary.Addr, sentinels))
	}
	return s
}

// command writes the configuration file that a sentinel needs, since it keeps its
// state there.
func (s *Sentinel) command(server *Server, quorum int) []string {
	s.tb.Helper()
	// Down after 3 s: a loaded machine must not look like a dead server.
	text := fmt.Sprintf(`bind 127.0.0.1
port %d
dir %q
sentinel monitor %[3]s 127.0.0.1 %d %d
sentinel down-after-milliseconds %[3]s 3000
sentinel failover-timeout %[3]s 10000
`, server.port, server.Dir, MasterName, s.Primary.port, quorum)
	file := filepath.Join(server.Dir, "sentinel.conf")
	if _, err := os.Stat(file); err == nil {
		return []string{file, "--sentinel"} // a restart: keep what it has learned
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.tb.Fatal(err)
	}
	return []string{file, "--sentinel"}
}

// Addrs returns the sentinels' addresses.
func (s *Sentinel) Addrs() []string {
	var addrs []string
	for _, sentinel := range s.Sentinels {
		addrs = append(addrs, sentinel.Addr)
	}
	return addrs
}

// Client returns a client that asks the sentinels for the primary, with go-redis'
// default options, changed by opts. It is closed in Cleanup.
func (s *Sentinel) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	opt := &redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: s.Addrs()}
	for _, set := range opts {
		set(opt)
	}
	client := redis.NewFailoverClient(opt)
	s.tb.Cleanup(func() { _ = client.Close() })
	return client
}

// PrimaryNow returns the server that the first sentinel holds for the primary.
func (s *Sentinel) PrimaryNow() *Server {
	s.tb.Helper()
	addr, err := s.primaryAddr()
	if err != nil {
		s.tb.Fatal(err)
	}
	for _, server := range []*Server{s.Primary, s.Replica} {
		if server.Addr == addr {
			return server
		}
	}
	s.tb.Fatalf("the sentinel knows another primary: %s", addr)
	return nil
}

func (s *Sentinel) primaryAddr() (string, error) {
	client := redis.NewSentinelClient(&redis.Options{Addr: s.Sentinels[0].Addr})
	defer client.Close()
	hostPort, err := client.GetMasterAddrByName(s.tb.Context(), MasterName).Result()
	return strings.Join(hostPort, ":"), err
}

// Failover makes the replica the primary, and waits until it is one and all
// sentinels say so. The old primary becomes a replica, if it runs. Writes that the
// replica did not have are lost, as in any failover; [Server.Kill] or
// [Server.Pause] the primary first to have some.
func (s *Sentinel) Failover() {
	s.tb.Helper()
	old := s.PrimaryNow()
	next := s.Primary
	if old == s.Primary {
		next = s.Replica
	}
	client := redis.NewSentinelClient(&redis.Options{Addr: s.Sentinels[0].Addr})
	defer client.Close()
	Eventually(s.tb, startTimeout, func() error {
		err := client.Failover(s.tb.Context(), MasterName).Err()
		if err != nil && strings.HasPrefix(err.Error(), "INPROG") {
			return nil // the sentinels have begun one by themselves
		}
		return err
	})
	s.AwaitPrimary(next)
}

// AwaitPrimary waits until a server is the primary, and all sentinels say so.
func (s *Sentinel) AwaitPrimary(next *Server) {
	s.tb.Helper()
	next.awaitInfo("replication", "role:master\r\n")
	for _, sentinel := range s.Sentinels {
		sentinel.awaitInfo("sentinel", "address="+next.Addr+",")
	}
}
