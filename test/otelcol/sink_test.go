package otelcol

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// sink receives by OTLP over HTTP what collectors pass on.
type sink struct {
	url string

	mu     sync.Mutex
	totals map[string]map[int64][]int64 // by gauge and interval: each total that came
	passed int64                        // the sum of the delta points that came through
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{totals: map[string]map[int64][]int64{}}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *sink) serve(w http.ResponseWriter, r *http.Request) {
	req := pmetricotlp.NewExportRequest()
	unzipped, err := gzip.NewReader(r.Body)
	if err == nil {
		var body []byte
		if body, err = io.ReadAll(unzipped); err == nil {
			err = req.UnmarshalProto(body)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.take(req.Metrics())
	reply, _ := pmetricotlp.NewExportResponse().MarshalProto()
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(reply)
}

func (s *sink) take(md pmetric.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						s.total(m.Name(), p)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						if m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta {
							s.passed += p.IntValue()
						}
					}
				}
			}
		}
	}
}

// total notes a gauge, by the end of its interval in milliseconds.
func (s *sink) total(name string, p pmetric.NumberDataPoint) {
	if s.totals[name] == nil {
		s.totals[name] = map[int64][]int64{}
	}
	end := p.Timestamp().AsTime().UnixMilli()
	s.totals[name][end] = append(s.totals[name][end], p.IntValue())
}

// of returns the totals of a gauge that came so far.
func (s *sink) of(name string) map[int64][]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[int64][]int64{}
	for end, values := range s.totals[name] {
		out[end] = append([]int64(nil), values...)
	}
	return out
}
