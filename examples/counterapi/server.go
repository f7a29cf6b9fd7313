package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// drainFor is how long requests under way may take once the service shall stop.
const drainFor = 10 * time.Second

// serve answers HTTP until ctx ends, and then lets the requests under way finish.
func serve(ctx context.Context, addr string, handler http.Handler, logger *slog.Logger) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * timeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
	}
	logger.InfoContext(ctx, "listening", slog.String("addr", listener.Addr().String()))
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	err = server.Shutdown(draining)
	logger.InfoContext(ctx, "stopped")
	return err
}
