package exact

import (
	"context"
	"log/slog"
)

// logger logs nothing if there is no slog.Logger, and a handler that panics breaks
// nothing.
type logger struct{ to *slog.Logger }

func newLogger(to *slog.Logger, name string) logger {
	if to == nil {
		return logger{}
	}
	return logger{to: to.With(slog.String("name", name))}
}

func (l logger) log(level slog.Level, message string, attrs ...slog.Attr) {
	if l.to == nil {
		return
	}
	defer func() { _ = recover() }()
	l.to.LogAttrs(context.Background(), level, message, attrs...)
}
