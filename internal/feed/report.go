package feed

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// reasons why an amount is dropped before it comes to a counter.
const (
	reasonNegative    = "negative amount"
	reasonTemporality = "sum is neither delta nor cumulative"
	reasonHomeless    = "too many cumulative series"
	reasonOverflow    = "overflow of an observable counter"
	reasonName        = "no name for a counter"
)

// report tells the logger and the meter what a feed could not count. Whatever a
// log handler does, it breaks nothing here.
type report struct {
	logger  *slog.Logger
	dropped metric.Int64Counter
}

func newReport(cfg Config) (*report, error) {
	dropped, err := cfg.MeterProvider.Meter(cfg.Scope()).Int64Counter("comcount.input.dropped", metric.WithUnit("{amount}"),
		metric.WithDescription("Amounts of instruments that could not be counted, by reason."))
	if err != nil {
		return nil, fmt.Errorf("%s: own telemetry: %w", cfg.Name, err)
	}
	return &report{logger: cfg.Logger, dropped: dropped}, nil
}

func (r *report) log(level slog.Level, msg string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	r.logger.LogAttrs(context.Background(), level, msg, attrs...)
}

// lost reports an amount that was not counted.
func (r *report) lost(name, reason string, amount any) {
	r.dropped.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", reason)))
	r.log(slog.LevelError, "amount dropped", slog.String("name", name), slog.String("error", reason), slog.Any("dropped", amount))
}

// refused reports an instrument of which nothing is counted.
func (r *report) refused(name, reason string) {
	r.log(slog.LevelWarn, "instrument not counted", slog.String("name", name), slog.String("error", reason))
}

// nameless reports a service that did not say its name.
func (r *report) nameless(prefix string) {
	r.log(slog.LevelWarn, "service has no name", slog.String("prefix", prefix), slog.String("want", "service.name in the resource, or WithGroup"))
}

// foreign reports a batch of another service.
func (r *report) foreign(prefix, other string) {
	r.log(slog.LevelWarn, "batch of another service not counted", slog.String("prefix", prefix), slog.String("other", other))
}

// Warn tells the logger something that whoever collects has found.
func (f *Feed) Warn(msg string, attrs ...slog.Attr) { f.report.log(slog.LevelWarn, msg, attrs...) }
