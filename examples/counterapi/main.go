// Counterapi is an exact counter as a small HTTP service, and the same handler
// behind AWS Lambda.
//
//	go run ./examples/counterapi
//	curl -X POST localhost:8080/counters/seats
//
// It counts in a small Redis inside itself, which forgets everything at the end,
// unless REDIS_URL names one. See README.md for its settings and openapi.yaml for
// what it answers.
//
// Read handler.go first: it is all that the service does. server.go serves it over
// HTTP, lambda.go behind API Gateway.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(logger); err != nil {
		fmt.Fprintln(os.Stderr, "counterapi:", err)
		os.Exit(1)
	}
}

func run(logger *slog.Logger) error {
	settings, err := readSettings(os.Getenv)
	if err != nil {
		return err
	}
	counters, closeAll, err := settings.open()
	if err != nil {
		return err
	}
	handler := newHandler(counters, logger)
	if settings.lambda {
		// Lambda ends a process by SIGTERM only where it may handle it.
		lambda.StartWithOptions(behindGateway(handler), lambda.WithEnableSIGTERM(func() { _ = closeAll(context.Background()) }))
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = serve(ctx, settings.addr, handler, logger)
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, closeAll(closing))
}
