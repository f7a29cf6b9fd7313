package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap/exp/zapslog"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/identity"
	"github.com/otelcomcount/otelcomcount/otelcol/internal/stream"
)

// maxShutdown bounds a Shutdown whose context has no end. It is enough for a
// parting flush with a timeout in between.
const maxShutdown = 10 * time.Second

// Settings are what an engine needs to know.
type Settings struct {
	Config    config.Config
	Emit      Emit
	Scope     string // of the gauges and the engine's own metrics
	Version   string
	Telemetry component.TelemetrySettings

	// Store takes the place of Redis, in tests.
	Store counter.Store
}

// Engine counts what passes through all instances of one component.
type Engine struct {
	config   config.Config
	settings Settings
	warnings warnings
	seeds    identity.Seeds
	batches  sync.Pool // of *Batch

	// Since Start:
	rdb       redis.UniversalClient // nil with a Store
	group     *counter.Group
	telemetry *telemetry
	targets   *targets
	streams   *stream.Table
	emission  context.Context // ends when no emission may go on
	abort     context.CancelFunc
	stopSweep context.CancelFunc
	sweeping  sync.WaitGroup
	instance  string // of this collector

	committing sync.RWMutex // held for reading while a batch is added
	closed     bool

	mu      sync.Mutex // of what follows
	members []*Member
	started bool
}

// New returns an engine that has not started. It does nothing but remember.
func New(s Settings) *Engine {
	e := &Engine{config: s.Config, settings: s, seeds: identity.NewSeeds()}
	e.warnings.init(s.Telemetry.Logger)
	e.batches.New = func() any { return &Batch{engine: e, hasher: identity.NewHasher(e.seeds)} }
	return e
}

// start makes the group. It does not dial.
func (e *Engine) start(ctx context.Context) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return nil
	}
	store := e.settings.Store
	if store == nil {
		if e.rdb, err = e.config.Redis.Client(ctx); err != nil {
			return err
		}
		if store, err = counter.NewStore(e.rdb); err != nil {
			return errors.Join(err, e.rdb.Close())
		}
	}
	e.streams = stream.NewTable(stream.Settings{
		Limit: e.config.MaxStreams, Staleness: e.config.MaxStaleness, Initial: initialOf(e.config.InitialValue),
	}, time.Now())
	if e.telemetry, err = newTelemetry(e.settings.Telemetry, e.settings.Scope, e.streams.Len); err != nil {
		return errors.Join(err, e.closeClient())
	}
	// Errors of a flush are no place for a stack trace.
	logs := zapslog.NewHandler(e.settings.Telemetry.Logger.Core(), zapslog.AddStacktraceAt(slog.LevelError+1))
	opts := []counter.Option{
		counter.WithStore(store), counter.WithCarry(e.config.Carry), counter.WithMaxSeries(e.config.MaxSeries),
		counter.WithLogger(slog.New(logs)), counter.WithMeterProvider(e.settings.Telemetry.MeterProvider),
	}
	if e.settings.Emit != EmitOne {
		opts = append(opts, counter.WithoutFirst()) // else one who does not report might be the first
	}
	if e.group, err = counter.NewGroup(nil, e.config.Interval, opts...); err != nil {
		return errors.Join(err, e.telemetry.close(), e.closeClient())
	}
	e.targets = newTargets(e)
	e.instance = instanceOf(e.settings.Telemetry.Resource)
	e.emission, e.abort = context.WithCancel(context.Background())
	sweeping, stop := context.WithCancel(context.Background())
	e.stopSweep = stop
	e.sweeping.Go(func() { e.sweep(sweeping) })
	e.started = true
	return nil
}

// instanceOf returns the id of the collector whose resource this is.
func instanceOf(collector pcommon.Resource) string {
	if id, ok := collector.Attributes().Get(serviceInstance); ok && id.AsString() != "" {
		return id.AsString()
	}
	return rand.Text()
}

func initialOf(v config.InitialValue) stream.Initial {
	switch v {
	case config.Auto:
		return stream.Auto
	case config.Keep:
		return stream.Keep
	default:
		return stream.Drop
	}
}

// sweep lets go of what is idle or stale, now and then.
func (e *Engine) sweep(ctx context.Context) {
	period := max(e.config.Interval, time.Second)
	if s := e.config.MaxStaleness; s > 0 {
		period = min(period, max(s/4, time.Second))
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			e.targets.sweep(now.Add(-idle * max(e.config.Interval, time.Second)))
			e.streams.Sweep(now)
		}
	}
}

// stop flushes, passes on what the last answers brought, and ends all. No member
// is left.
func (e *Engine) stop(ctx context.Context) error {
	e.committing.Lock()
	e.closed = true
	e.committing.Unlock()
	e.mu.Lock()
	started := e.started
	e.mu.Unlock()
	if !started {
		return nil
	}
	err := errors.Join(e.group.Shutdown(ctx), e.group.Drain(ctx))
	e.abort()
	e.stopSweep()
	e.sweeping.Wait()
	err = errors.Join(err, e.telemetry.close(), e.closeClient())
	if err != nil {
		return fmt.Errorf("comcount: %w", err)
	}
	return nil
}

func (e *Engine) closeClient() error {
	if e.rdb == nil {
		return nil
	}
	return e.rdb.Close()
}
