package exact_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

// The examples run on a Redis in this process. Use your own client in its place.
func exampleClient() (client *redis.Client, done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client = redis.NewClient(&redis.Options{Addr: server.Addr()})
	return client, func() { _ = client.Close(); server.Close() }
}

// Five sign-in attempts per address in fifteen minutes.
func Example() {
	rdb, done := exampleClient()
	defer done()
	ctx := context.Background()

	attempts, err := exact.Open(rdb, "login-attempts", exact.TTL(15*time.Minute), exact.Max(5))
	if err != nil {
		panic(err)
	}
	for range 6 {
		n, err := attempts.Add(ctx, "203.0.113.7", 1)
		if full, ok := errors.AsType[*exact.MaxError](err); ok {
			fmt.Printf("refused at %d, again in %v\n", full.Count, full.Reset.Round(time.Minute))
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Println("attempt", n)
	}
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// attempt 4
	// attempt 5
	// refused at 5, again in 15m0s
}

// With an ID an add may be repeated until there is an answer, and counts once.
func ExampleID() {
	rdb, done := exampleClient()
	defer done()
	ctx := context.Background()

	seats, err := exact.Open(rdb, "seats", exact.Max(300))
	if err != nil {
		panic(err)
	}
	var sold int64
	for range 3 { // as after ErrUnknown
		if sold, err = seats.Add(ctx, "matinee", 2, exact.ID("order-4711")); err != nil {
			panic(err)
		}
	}
	fmt.Println(sold, "sold")
	_, err = seats.Add(ctx, "matinee", 3, exact.ID("order-4711"))
	fmt.Println(errors.Is(err, exact.ErrIDReused), err)
	// Output:
	// 2 sold
	// true exact: the id was used for another add
}

// AddUpTo takes what is left.
func ExampleCounters_AddUpTo() {
	rdb, done := exampleClient()
	defer done()
	ctx := context.Background()

	credits, err := exact.Open(rdb, "credits", exact.Max(100))
	if err != nil {
		panic(err)
	}
	for range 3 {
		added, count, err := credits.AddUpTo(ctx, "acme", 40)
		fmt.Println(added, count, err)
	}
	// Output:
	// 40 40 <nil>
	// 40 80 <nil>
	// 20 100 <nil>
}

// Page views may lose their last second to a crash, and cost no round trip.
func ExampleFlushEvery() {
	rdb, done := exampleClient()
	defer done()
	ctx := context.Background()

	views, err := exact.Open(rdb, "page-views", exact.FlushEvery(time.Second))
	if err != nil {
		panic(err)
	}
	for range 1000 {
		if _, err := views.Add(ctx, "/notes", 1); err != nil {
			panic(err)
		}
	}
	fmt.Println(views.Close(ctx)) // writes what is not written yet
	fmt.Println(rdb.Get(ctx, "page-views:{/notes}").Val())
	// Output:
	// <nil>
	// 1000
}

// An add can be part of the caller's transaction.
func ExampleCounters_AddTx() {
	rdb, done := exampleClient()
	defer done()
	ctx := context.Background()

	orders, err := exact.Open(rdb, "orders")
	if err != nil {
		panic(err)
	}
	tx := rdb.TxPipeline()
	tx.RPush(ctx, "orders-of:{alice}", "order-4711") // in a cluster: the same hash tag
	added := orders.AddTx(ctx, tx, "alice", 1)
	if _, err := tx.Exec(ctx); err != nil {
		panic(err)
	}
	fmt.Println(added.Val())
	// Output: 1 <nil>
}
