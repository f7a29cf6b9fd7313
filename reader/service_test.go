package reader

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

func service(attrs ...attribute.KeyValue) sdkmetric.Option {
	return sdkmetric.WithResource(resource.NewSchemaless(attrs...))
}

func TestGroupIsTheService(t *testing.T) {
	name, namespace := attribute.Key("service.name"), attribute.Key("service.namespace")
	for want, tt := range map[string]struct {
		opts   []any
		warned bool
	}{
		"shop:":      {opts: []any{service(name.String("shop"))}},
		"eu/shop:":   {opts: []any{service(name.String("shop"), namespace.String("eu"))}},
		"eu%2Fshop:": {opts: []any{service(name.String("eu/shop"))}},
		"mine:":      {opts: []any{service(name.String("shop")), WithGroup("mine")}},
		"a%7Bb%7D:":  {opts: []any{WithGroup("a{b}")}},
		"unknown_service:": {
			opts: []any{service()}, warned: true,
		},
		"unknown_service%3Aapp:": {
			opts: []any{service(name.String("unknown_service:app"))}, warned: true,
		},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				var logged log
				a := b.replica(append(tt.opts, logged.option())...)
				a.counter("c").Add(t.Context(), 1)
				a.flush()
				assert.EqualValues(t, 1, b.truth(want+"{c}"), "%v", b.server.Keys())
				warned := logged.with("level=WARN", `msg="service has no name"`)
				assert.Equal(t, tt.warned, len(warned) == 1, "%v", warned)
			})
		})
	}
}

func TestTwoServicesOnOneRedisNeverMix(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		name := attribute.Key("service.name")
		shop, bank := b.replica(service(name.String("shop"))), b.replica(service(name.String("bank")))
		cs, cb := shop.counter("c"), bank.counter("c")
		for range 50 {
			cs.Add(t.Context(), 1)
			cb.Add(t.Context(), 10)
			sleep(second / 10)
		}
		assert.InDelta(t, 10, shop.reader.Total("c").Closed, 2)
		assert.InDelta(t, 100, bank.reader.Total("c").Closed, 20)
		assert.EqualValues(t, 1, shop.reader.Total("c").Participants)
	})
}

func TestInstrumentsAreChosenByName(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		a := b.replica(WithInstruments("http.*", "db.?"), WithInstruments("exact"))
		for _, name := range []string{"http.requests", "http", "db.1", "db.10", "exact", "exactly"} {
			a.counter(name).Add(t.Context(), 1)
		}
		a.flush()
		for name, want := range map[string]int64{"http.requests": 1, "http": 0, "db.1": 1, "db.10": 0, "exact": 1, "exactly": 0} {
			assert.Equal(t, want, b.truth("shop:{"+name+"}"), name)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for want, tt := range map[string]struct {
		rdb  redis.UniversalClient
		opts []Option
	}{
		"nil":                           {rdb: nil},
		"Ring":                          {rdb: ring},
		"interval":                      {rdb: rdb, opts: []Option{WithInterval(1)}}, // see B55
		"group is empty":                {rdb: rdb, opts: []Option{WithGroup("")}},
		"instrument pattern is empty":   {rdb: rdb, opts: []Option{WithInstruments("a", "")}},
		"carry is 11, want 0 to 10":     {rdb: rdb, opts: []Option{WithCarry(11)}},
		"max series is -1, want 0 or m": {rdb: rdb, opts: []Option{WithMaxSeries(-1)}},
	} {
		r, err := New(tt.rdb, tt.opts...)
		require.ErrorContains(t, err, want)
		assert.Nil(t, r)
	}
	r, err := New(rdb, nil, WithLogger(nil), WithMeterProvider(nil))
	require.NoError(t, err)
	require.NoError(t, r.Shutdown(t.Context()))
	require.Error(t, r.RegisterGauges(nil))
	require.ErrorIs(t, r.RegisterGauges(sdkmetric.NewMeterProvider()), sdkmetric.ErrReaderShutdown)
}
