package engine

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// quiet is how long a warning is not repeated. The metrics count what it is about.
const quiet = 10 * time.Minute

// seldom logs one kind of warning, now and then.
type seldom struct {
	logger *zap.Logger
	next   atomic.Int64 // Unix nanoseconds
}

func (s *seldom) warn(msg string, limit int) {
	if s.due() {
		s.logger.Warn(msg, zap.Int("limit", limit))
	}
}

func (s *seldom) warnError(msg string, err error) {
	if s.due() {
		s.logger.Warn(msg, zap.Error(err))
	}
}

func (s *seldom) due() bool {
	now := time.Now()
	next := s.next.Load()
	return now.UnixNano() >= next && s.next.CompareAndSwap(next, now.Add(quiet).UnixNano())
}

// warnings are all kinds of them.
type warnings struct {
	services, metrics, name, series, streams, writers, parts, emission seldom
}

func (w *warnings) init(logger *zap.Logger) {
	for _, s := range []*seldom{&w.services, &w.metrics, &w.name, &w.series, &w.streams, &w.writers, &w.parts, &w.emission} {
		s.logger = logger
	}
}
