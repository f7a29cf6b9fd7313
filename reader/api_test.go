package reader_test

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/reader"
)

// The names and signatures that users build on. A change that breaks them does
// not compile here.
var (
	_ func(redis.UniversalClient, ...reader.Option) (*reader.Reader, error) = reader.New

	_ func(time.Duration) reader.Option        = reader.WithInterval
	_ func(string) reader.Option               = reader.WithGroup
	_ func(...string) reader.Option            = reader.WithInstruments
	_ func(*slog.Logger) reader.Option         = reader.WithLogger
	_ func(metric.MeterProvider) reader.Option = reader.WithMeterProvider
	_ func(int) reader.Option                  = reader.WithCarry
	_ func(int) reader.Option                  = reader.WithMaxSeries

	_ sdkmetric.Reader = (*reader.Reader)(nil)
	_ interface {
		RegisterGauges(mp metric.MeterProvider) error
		Total(instrument string, attrs ...attribute.KeyValue) counter.Total
		Watch(instrument string, high, low int64, fn func(counter.Total, bool)) (stop func())
		ForceFlush(ctx context.Context) error
		Shutdown(ctx context.Context) error
	} = (*reader.Reader)(nil)
)
