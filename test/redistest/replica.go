package redistest

import (
	"fmt"
	"strconv"
	"strings"
)

// Replica starts a replica of the server and waits until it has all data.
func (s *Server) Replica(args ...string) *Server {
	s.tb.Helper()
	// By default a primary waits five seconds for more replicas.
	if err := s.Client().ConfigSet(s.tb.Context(), "repl-diskless-sync-delay", "0").Err(); err != nil {
		s.tb.Fatal(err)
	}
	args = append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(s.port)}, args...)
	r := Start(s.tb, args...)
	r.awaitInfo("replication", "master_link_status:up\r\n")
	return r
}

// awaitInfo waits until a section of the server's INFO holds a text.
func (s *Server) awaitInfo(section, text string) {
	s.tb.Helper()
	client := s.Client()
	Eventually(s.tb, startTimeout, func() error {
		info, err := client.Info(s.tb.Context(), section).Result()
		if err == nil && !strings.Contains(info, text) {
			err = fmt.Errorf("server %s: no %q in INFO:\n%s", s.Addr, text, info)
		}
		return err
	})
}
