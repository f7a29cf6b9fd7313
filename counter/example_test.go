package counter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/counter"
)

// Count in the hottest loop, act on the group's number, and leave nothing behind.
func Example() {
	ctx := context.Background()
	server := miniredis.NewMiniRedis() // in place of your Redis
	_ = server.Start()
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()

	requests, err := counter.New(rdb, "requests", time.Second)
	if err != nil {
		panic(err)
	}
	overload := make(chan counter.Total, 1)
	stop := requests.Watch(1000, 900, func(t counter.Total, over bool) {
		if over {
			overload <- t
		}
	})
	defer stop()

	for range 1200 {
		requests.Add(1) // a few nanoseconds
	}
	fmt.Println("over 1000:", (<-overload).Count >= 1000)

	if err := requests.Shutdown(ctx); err != nil { // sends what is left
		fmt.Println("lost:", err)
	}
	// Output: over 1000: true
}

// Counters of a group share one round trip an interval. What is added with
// attributes goes to its part and to the name's grand total.
func ExampleGroup() {
	ctx := context.Background()
	server := miniredis.NewMiniRedis() // in place of your Redis
	_ = server.Start()
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()

	group, err := counter.NewGroup(rdb, time.Second, counter.WithPrefix(counter.GroupName("shop", "cart")))
	if err != nil {
		panic(err)
	}
	cards, _ := group.Counter("payments", attribute.String("by", "card"))
	cash, _ := group.Counter("payments", attribute.String("by", "cash"))
	payments, _ := group.Counter("payments")
	weight, _ := group.FloatCounter("weight.kg")

	cards.Add(3)
	cash.Add(4)
	weight.Add(0.25)
	fmt.Println("counted here, not yet sent:", payments.Total().Buffer)

	if err := group.Flush(ctx); err != nil { // by itself once a second
		fmt.Println(err)
	}
	fmt.Println("after the flush:", payments.Total().Buffer)
	_ = group.Shutdown(ctx)
	// Output:
	// counted here, not yet sent: 7
	// after the flush: 0
}
