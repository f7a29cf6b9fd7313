package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/reader"
)

const (
	instrument = "http.requests"       // the counter that the service has anyway
	gaugeName  = "http.requests.group" // the gauge that it gets
)

// metrics is what a service sets up.
type metrics struct {
	provider *sdkmetric.MeterProvider
	group    *reader.Reader          // knows the group's numbers
	export   *sdkmetric.ManualReader // in place of your Prometheus or OTLP
}

// newMetrics adds otelcomcount to a service: it is one more reader of the metrics
// that the service has anyway. The service's name comes from the environment, as
// OpenTelemetry has it: OTEL_SERVICE_NAME, and service.namespace in
// OTEL_RESOURCE_ATTRIBUTES. All processes of that name are a group.
func newMetrics(rdb redis.UniversalClient, interval time.Duration) (*metrics, error) {
	logs := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	group, err := reader.New(rdb, reader.WithInterval(interval), reader.WithLogger(logs))
	if err != nil {
		return nil, err
	}
	export := sdkmetric.NewManualReader()
	// The group's reader stands first, so that at shutdown no slow exporter uses up its time.
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(group), sdkmetric.WithReader(export))
	return &metrics{provider, group, export}, group.RegisterGauges(provider)
}

// countRequests is a middleware that counts what the service has answered.
func countRequests(requests metric.Int64Counter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := &response{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(response, r)
		requests.Add(r.Context(), 1, metric.WithAttributes(
			attribute.String("http.route", r.Pattern),
			attribute.Int("http.response.status_code", response.status)))
	})
}

// response remembers the status that was written through it.
type response struct {
	http.ResponseWriter
	status int
}

func (r *response) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// runReplica is one process of the service, from its start to its end.
func runReplica(args []string) error {
	// Ctrl-C reaches every process of a terminal. Here the parent says when to
	// end; a real service ends on a signal of its own.
	signal.Ignore(os.Interrupt)

	flags := flag.NewFlagSet(replicaArg, flag.ContinueOnError)
	interval := flags.Duration("interval", time.Second, "how often to meet the others")
	mistake := flags.Bool("mistake", false, "count twice")
	if err := flags.Parse(args); err != nil {
		return err
	}

	options, err := redis.ParseURL(os.Getenv(redisURL))
	if err != nil {
		return err
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	metrics, err := newMetrics(rdb, *interval)
	if err != nil {
		return err
	}
	requests, err := metrics.provider.Meter("shop").Int64Counter(instrument,
		metric.WithUnit("{request}"), metric.WithDescription("Requests answered, by route and status."))
	if err != nil {
		return err
	}

	service := countRequests(requests, shop())
	if *mistake {
		service = countRequests(requests, service) // easily done where middleware is put together in two places
	}
	mux := http.NewServeMux()
	mux.Handle("/", service)
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(metrics.status(r.Context()))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Println(listener.Addr()) // the parent waits for this line

	// Standard input ends when the parent says so, and also when it dies.
	_, _ = io.Copy(io.Discard, os.Stdin)

	// The parting flush is part of the provider's shutdown: it does not wait for the
	// next interval, and it has a time of its own, whatever the server's took.
	err = errors.Join(within(2*time.Second, server.Shutdown), within(5*time.Second, metrics.provider.Shutdown))
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

// within gives a shutdown some time.
func within(limit time.Duration, shutdown func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return shutdown(ctx)
}

// shop is the service: it sells ten items, and nothing more.
func shop() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/items", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "0 1 2 3 4 5 6 7 8 9")
	})
	mux.HandleFunc("/items/{item}", func(w http.ResponseWriter, r *http.Request) {
		if len(r.PathValue("item")) != 1 {
			http.Error(w, "no such item", http.StatusNotFound)
			return
		}
		fmt.Fprintln(w, "in stock")
	})
	return mux
}
