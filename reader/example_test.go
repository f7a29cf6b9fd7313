package reader_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/reader"
)

// Drop the reader into an SDK setup: the service's counters stay as they are,
// and each replica knows what all of them counted.
func Example() {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr()})

	r, err := reader.New(rdb, reader.WithGroup("shop"))
	if err != nil {
		log.Fatal(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r)) // before your other readers
	defer provider.Shutdown(ctx)
	if err := r.RegisterGauges(provider); err != nil { // http.requests.group
		log.Fatal(err)
	}

	overloaded := make(chan counter.Total)
	stop := r.Watch("http.requests", 1000, 900, func(t counter.Total, over bool) { overloaded <- t })
	defer stop()

	requests, _ := provider.Meter("shop").Int64Counter("http.requests")
	requests.Add(ctx, 1024)

	fmt.Println("shedding load at", (<-overloaded).Count, "requests")
	// Output: shedding load at 1024 requests
}

func redisAddr() string {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	return server.Addr()
}
