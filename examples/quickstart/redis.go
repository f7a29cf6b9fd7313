package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// redisServer is where the replicas meet: the user's own, or one inside this process.
type redisServer struct {
	url      string
	where    string // for people; without the URL's password
	client   *redis.Client
	embedded *miniredis.Miniredis // nil if the server is the user's
}

func startRedis(ctx context.Context) (*redisServer, error) {
	s := &redisServer{url: os.Getenv(redisURL)}
	if s.url == "" {
		s.embedded = miniredis.NewMiniRedis()
		if err := s.embedded.StartAddr("127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("start the embedded Redis: %w", err)
		}
		s.embedded.ClockTTL(true) // keys expire as time passes, as in a real one
		s.url = "redis://" + s.embedded.Addr()
	}
	options, err := redis.ParseURL(s.url)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", redisURL, err)
	}
	s.client = redis.NewClient(options)
	s.where = options.Addr
	if s.embedded != nil {
		s.where += " (embedded)"
	}

	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Second, fmt.Errorf("no answer within 5 s"))
	defer cancel()
	if err := s.client.Ping(ctx).Err(); err != nil {
		s.close()
		return nil, fmt.Errorf("ask the Redis at %s: %w", s.where, cmp.Or(context.Cause(ctx), err))
	}
	return s, nil
}

func (s *redisServer) close() {
	_ = s.client.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
}
