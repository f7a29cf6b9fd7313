package reader_test

import (
	"context"
	"fmt"
	"time"

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
	server := miniredis.NewMiniRedis() // in place of your Redis
	_ = server.Start()
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()

	r, err := reader.New(rdb, reader.WithGroup("shop"), reader.WithInterval(5*time.Second))
	if err != nil {
		panic(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r)) // before your other readers, for it is shut down first
	defer func() { _ = provider.Shutdown(ctx) }()
	if err := r.RegisterGauges(provider); err != nil { // http.requests.group, http.requests.group.series
		panic(err)
	}

	overload := make(chan counter.Total, 1)
	stop := r.Watch("http.requests", 1000, 900, func(t counter.Total, over bool) { // requests in an interval
		if over {
			overload <- t
		}
	})
	defer stop()

	requests, _ := provider.Meter("shop").Int64Counter("http.requests")
	requests.Add(ctx, 1024)

	fmt.Println("shedding load at", (<-overload).Count, "requests")
	// Output: shedding load at 1024 requests
}
