package exact_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// records keeps what is logged.
type records struct {
	mu  sync.Mutex
	all []map[string]any
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithGroup(string) slog.Handler            { return r }

func (r *records) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	fields := map[string]any{"msg": record.Message}
	record.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value.Any()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fields)
	return nil
}

func (r *records) count(message string) int {
	n := 0
	for _, f := range r.all {
		if f["msg"] == message {
			n++
		}
	}
	return n
}

func (r *records) last(message string) map[string]any {
	for _, f := range slices.Backward(r.all) {
		if f["msg"] == message {
			return f
		}
	}
	return nil
}

// panicking is a handler that breaks.
type panicking struct{}

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) WithGroup(string) slog.Handler             { return panicking{} }
func (panicking) WithAttrs([]slog.Attr) slog.Handler        { panic("a broken handler") }
func (panicking) Handle(context.Context, slog.Record) error { panic("a broken handler") }
