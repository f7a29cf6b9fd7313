package counter_test

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcomcount/otelcomcount/counter"
)

// The names and signatures that users build on. A change that breaks them does
// not compile here.
var (
	_ func(redis.UniversalClient, string, time.Duration, ...counter.Option) (*counter.Counter, error) = counter.New
	_ func(redis.UniversalClient, time.Duration, ...counter.Option) (*counter.Group, error)           = counter.NewGroup
	_ func(string, string) string                                                                     = counter.GroupName

	_ func(string) counter.Option               = counter.WithPrefix
	_ func(*slog.Logger) counter.Option         = counter.WithLogger
	_ func(metric.MeterProvider) counter.Option = counter.WithMeterProvider
	_ func(counter.Store) counter.Option        = counter.WithStore
	_ func(int) counter.Option                  = counter.WithCarry
	_ func() counter.Option                     = counter.WithOpenInterval
	_ func(int) counter.Option                  = counter.WithMaxSeries

	_ interface {
		Counter(name string, attrs ...attribute.KeyValue) (*counter.Counter, error)
		FloatCounter(name string, attrs ...attribute.KeyValue) (*counter.FloatCounter, error)
		WithPrefix(prefix string) (*counter.Group, error)
		OnTick(fn func([]counter.Reading)) (stop func())
		RegisterInstruments(mp metric.MeterProvider) error
		Flush(ctx context.Context) error
		Shutdown(ctx context.Context) error
		Close()
	} = (*counter.Group)(nil)

	_ interface {
		Add(n int64) int64
		Count() int64
		Total() counter.Total
		Watch(high, low int64, fn func(t counter.Total, over bool)) (stop func())
		Flush(ctx context.Context) error
		Shutdown(ctx context.Context) error
		Close()
	} = (*counter.Counter)(nil)

	_ interface {
		Add(x float64)
		Total() counter.Total
	} = (*counter.FloatCounter)(nil)

	_ = counter.Total{
		Count: 0, Closed: 0, Known: false, Open: -1, Buffer: 0, Own: 0, Participants: 0, First: false, Interval: 0, At: time.Time{},
	}
	_ = counter.Reading{Name: "", Attributes: attribute.Set{}, Float: false, Total: counter.Total{}}
)

const _ float64 = counter.Resolution
