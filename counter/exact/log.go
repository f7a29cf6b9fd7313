package exact

import (
	"context"
	"log/slog"
)

// logger logs nothing if there is no slog.Logger, and a handler that panics breaks
// nothing.
type logger struct {
	to   *slog.Logger
	name slog.Attr // of the counter: in all messages
}

func newLogger(to *slog.Logger, name string) logger {
	return logger{to: to, name: slog.String("name", name)}
}

func (l logger) log(level slog.Level, message string, attrs ...slog.Attr) {
	if l.to == nil {
		return
	}
	defer func() { _ = recover() }()
	l.to.LogAttrs(context.Background(), level, message, append([]slog.Attr{l.name}, attrs...)...)
}
