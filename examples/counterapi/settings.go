package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

// settings come from the environment.
type settings struct {
	addr     string // ADDR: where to listen
	redisURL string // REDIS_URL: empty for a Redis in this process
	options  []exact.Option
	lambda   bool // AWS Lambda runs this process
}

func readSettings(getenv func(string) string) (settings, error) {
	s := settings{
		addr:     getenv("ADDR"),
		redisURL: getenv("REDIS_URL"),
		lambda:   getenv("AWS_LAMBDA_RUNTIME_API") != "",
		options:  []exact.Option{exact.Prefix("counterapi:")},
	}
	if s.addr == "" {
		s.addr = "localhost:8080"
	}
	if text := getenv("MAX"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return s, fmt.Errorf("MAX must be a whole number, not %q", text)
		}
		s.options = append(s.options, exact.Max(n))
	}
	if text := getenv("TTL"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return s, fmt.Errorf("TTL must be a duration such as 15m, not %q", text)
		}
		s.options = append(s.options, exact.TTL(d))
	}
	if s.lambda && s.redisURL == "" {
		return s, errors.New("REDIS_URL is missing: a function's memory is no place for a count")
	}
	return s, nil
}

// open connects to Redis, and returns what closes all again.
func (s settings) open() (counters *exact.Counters, closeAll func(context.Context) error, err error) {
	var embedded *miniredis.Miniredis
	url := s.redisURL
	if url == "" {
		embedded = miniredis.NewMiniRedis()
		embedded.ClockTTL(true)
		if err := embedded.Start(); err != nil {
			return nil, nil, err
		}
		url = "redis://" + embedded.Addr()
	}
	stop := func() {
		if embedded != nil {
			embedded.Close()
		}
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		stop()
		return nil, nil, errors.New("REDIS_URL is no URL of a Redis") // the error would show its password
	}
	options.ContextTimeoutEnabled = true // a request's deadline is the command's
	client := redis.NewClient(options)
	if counters, err = exact.Open(client, "counters", s.options...); err != nil {
		stop()
		return nil, nil, errors.Join(err, client.Close())
	}
	return counters, func(ctx context.Context) error {
		defer stop()
		return errors.Join(counters.Close(ctx), client.Close())
	}, nil
}
