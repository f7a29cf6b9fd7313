package counter

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// scope names the instruments of a group's own telemetry.
const scope = "github.com/otelcomcount/otelcomcount/counter"

// reporter tells the logger and the meter what a group does. Whatever a log
// handler does, it breaks nothing here.
type reporter struct {
	logger *slog.Logger

	flushes  metric.Int64Counter
	duration metric.Float64Histogram
	dropped  metric.Int64Counter
	skipped  metric.Int64Counter
	series   metric.Int64UpDownCounter
	stale    metric.Int64Counter
	steps    metric.Int64Counter
}

func newReporter(cfg config) (*reporter, error) {
	m := cfg.provider.Meter(scope)
	r := &reporter{logger: cfg.logger}
	var errs [7]error
	r.flushes, errs[0] = m.Int64Counter("comcount.flushes", metric.WithUnit("{flush}"),
		metric.WithDescription("Parts of counters sent to the store, by outcome."))
	r.duration, errs[1] = m.Float64Histogram("comcount.flush.duration", metric.WithUnit("s"),
		metric.WithDescription("Round trip of a flush."),
		metric.WithExplicitBucketBoundaries(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5))
	r.dropped, errs[2] = m.Int64Counter("comcount.dropped", metric.WithUnit("1"),
		metric.WithDescription("Amounts given up, by reason."))
	r.skipped, errs[3] = m.Int64Counter("comcount.intervals.skipped", metric.WithUnit("{interval}"),
		metric.WithDescription("Ticks that could not send anything."))
	r.series, errs[4] = m.Int64UpDownCounter("comcount.series", metric.WithUnit("{series}"),
		metric.WithDescription("Counters that are flushed every interval."))
	r.stale, errs[5] = m.Int64Counter("comcount.totals.stale", metric.WithUnit("{total}"),
		metric.WithDescription("Totals that nothing refreshed for two intervals."))
	r.steps, errs[6] = m.Int64Counter("comcount.clock.steps", metric.WithUnit("{step}"),
		metric.WithDescription("Steps back of the store's clock that were seen."))
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("counter: own telemetry: %w", err)
		}
	}
	return r, nil
}

func (r *reporter) log(level slog.Level, msg string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	r.logger.LogAttrs(context.Background(), level, msg, attrs...)
}

func (r *reporter) debugs() (on bool) {
	defer func() { _ = recover() }()
	return r.logger.Enabled(context.Background(), slog.LevelDebug)
}

// attr is the attribute that every message has: the counter's name.
func (k seriesKey) attr() slog.Attr {
	return slog.String("name", strings.TrimSuffix(k.name, floatSuffix))
}

func (r *reporter) started(k seriesKey, interval time.Duration, store string) {
	r.log(slog.LevelInfo, "counter started", k.attr(), slog.Duration("interval", interval), slog.String("prefix", k.prefix), slog.String("store", store))
}

func (r *reporter) stopped(k seriesKey) { r.log(slog.LevelInfo, "counter stopped", k.attr()) }

func (r *reporter) failed(k seriesKey, err string, dropped int64) {
	r.log(slog.LevelError, "flush failed", k.attr(), slog.String("error", err), slog.Int64("dropped", dropped))
}

// recovered says that a counter is flushed again, after a failure that was logged.
func (r *reporter) recovered(k seriesKey) { r.log(slog.LevelInfo, "flush recovered", k.attr()) }

// loaded says that a server did not have the script. The name is that of one of the
// counters in the call.
func (r *reporter) loaded(name string) {
	r.log(slog.LevelDebug, "script loaded", seriesKey{name: name}.attr(), slog.String("sha", flushScript.SHA()))
}

// lost reports an amount that was given up. The cause is the failure that was logged
// last, of which the amount may be a victim.
func (r *reporter) lost(k seriesKey, why reason, dropped int64, cause string) {
	r.dropped.Add(context.Background(), dropped, metric.WithAttributes(attribute.String("reason", string(why))))
	if why == lostInvalid || why == lostOverflow {
		r.log(slog.LevelError, "amount dropped", k.attr(), slog.String("error", string(why)), slog.Int64("dropped", dropped))
		return
	}
	attrs := []slog.Attr{k.attr(), slog.String("error", string(why)), slog.Int64("dropped", dropped)}
	if cause != "" {
		attrs = append(attrs, slog.String("cause", cause))
	}
	r.log(slog.LevelError, "flush failed", attrs...)
}

func (r *reporter) completed(k seriesKey, interval, amount, count int64) {
	r.log(slog.LevelDebug, "flush completed", k.attr(), slog.Int64("interval", interval), slog.Int64("amount", amount), slog.Int64("count", count))
}

func (r *reporter) wentStale(k seriesKey, after time.Duration) {
	r.stale.Add(context.Background(), 1)
	r.log(slog.LevelWarn, "total went stale", k.attr(), slog.Duration("after", after))
}

func (r *reporter) stepped(k seriesKey, handling string) {
	r.steps.Add(context.Background(), 1, metric.WithAttributes(attribute.String("handling", handling)))
	if handling == "followed" {
		r.log(slog.LevelWarn, "server clock stepped back", k.attr())
	}
}

func (r *reporter) evicts(k seriesKey, policy string) {
	r.log(slog.LevelWarn, "server may evict live keys", k.attr(), slog.String("policy", policy), slog.String("want", "noeviction"))
}

func (r *reporter) exceeded(k seriesKey, limit int) {
	r.log(slog.LevelWarn, "too many series", k.attr(), slog.Int("limit", limit))
}

func (r *reporter) panicked(what string, v any) {
	r.log(slog.LevelError, "callback panicked", slog.String("name", what), slog.Any("panic", v))
}

// outcome counts what became of a share.
func (r *reporter) outcome(o Outcome) {
	r.flushes.Add(context.Background(), 1, metric.WithAttributes(attribute.String("outcome", o.String())))
}

func (r *reporter) roundTrip(d time.Duration) {
	r.duration.Record(context.Background(), d.Seconds())
}

// String names an outcome as the instrument comcount.flushes does.
func (o Outcome) String() string {
	names := [...]string{"unknown", "applied", "repeated", "refused", "used", "fenced", "late", "not applied", "lost"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}
