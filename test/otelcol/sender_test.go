package otelcol

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	service = "shop"
	metric  = "http.requests"
)

// sender is a process that sends one stream to one collector.
type sender struct {
	send       func(ctx context.Context, md pmetric.Metrics) error
	cumulative bool
	instance   string
	start      time.Time
	pause      time.Duration

	mu       sync.Mutex
	offered  int64 // of what may have been taken
	accepted int64 // of what was confirmed
	history  []acceptance
	value    int64 // of a cumulative stream
}

// acceptance is an amount that a collector confirmed.
type acceptance struct {
	at time.Time
	n  int64
}

func newSender(send func(context.Context, pmetric.Metrics) error, cumulative bool, instance string, pause time.Duration) *sender {
	return &sender{send: send, cumulative: cumulative, instance: instance, start: time.Now(), pause: pause}
}

// run sends until ctx ends or the collector has gone.
func (s *sender) run(ctx context.Context) {
	if s.cumulative { // its baseline
		if err := s.send(context.Background(), s.request(0)); err != nil {
			return
		}
	}
	for ctx.Err() == nil {
		n := rand.Int64N(5)
		s.mu.Lock()
		s.offered += n
		s.value += n
		value := n
		if s.cumulative {
			value = s.value
		}
		s.mu.Unlock()
		// Not ctx: the end of a test must not cut a request.
		if err := s.send(context.Background(), s.request(value)); err != nil {
			return
		}
		s.mu.Lock()
		s.accepted += n
		s.history = append(s.history, acceptance{time.Now(), n})
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(s.pause):
		}
	}
}

// since is how much was confirmed after a time, or not at all.
func (s *sender) since(at time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.offered - s.accepted
	for _, a := range s.history {
		if a.at.After(at) {
			sum += a.n
		}
	}
	return sum
}

func (s *sender) request(value int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", service)
	rm.Resource().Attributes().PutStr("service.instance.id", s.instance)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(metric)
	m.SetUnit("{request}")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	if s.cumulative {
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	p := sum.DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(s.start))
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	p.SetIntValue(value)
	p.Attributes().PutStr("http.route", "/"+s.instance)
	return md
}

// overGRPC sends by OTLP over gRPC.
func overGRPC(t *testing.T, addr string) func(context.Context, pmetric.Metrics) error {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := pmetricotlp.NewGRPCClient(conn)
	return func(ctx context.Context, md pmetric.Metrics) error {
		_, err := client.Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
		return err
	}
}

// overHTTP sends by OTLP over HTTP.
func overHTTP(addr string) func(context.Context, pmetric.Metrics) error {
	return func(ctx context.Context, md pmetric.Metrics) error {
		body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/metrics", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", resp.Status)
		}
		return nil
	}
}
