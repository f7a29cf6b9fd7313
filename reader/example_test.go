package reader_test

import (
	"context"
	"fmt"

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

	r, err := reader.New(rdb, reader.WithGroup("shop"))
	if err != nil {
		panic(err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r)) // before your other readers
	defer func() { _ = provider.Shutdown(ctx) }()
	_ = r.RegisterGauges(provider) // http.requests.group, http.requests.group.series

	overload := make(chan counter.Total, 1)
	stop := r.Watch("http.requests", 1000, 900, func(t counter.Total, over bool) {
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
