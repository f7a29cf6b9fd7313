package otel

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// receiver takes OTLP metrics over HTTP and keeps the last batch.
type receiver struct {
	url string

	mu   sync.Mutex
	last map[string]pmetric.Metric
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	batch := pmetricotlp.NewExportRequest()
	if err == nil {
		err = batch.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	metrics := map[string]pmetric.Metric{}
	for _, rm := range batch.Metrics().ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				metrics[m.Name()] = m
			}
		}
	}
	r.mu.Lock()
	r.last = metrics
	r.mu.Unlock()
	reply, _ := pmetricotlp.NewExportResponse().MarshalProto()
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(reply)
}

// exporter is the SDK's OTLP exporter to this receiver.
func (r *receiver) exporter(t *testing.T) sdkmetric.Exporter {
	t.Helper()
	e, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(r.url+"/v1/metrics"))
	require.NoError(t, err)
	return e
}

// metric returns a metric of the last batch.
func (r *receiver) metric(name string) (pmetric.Metric, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.last[name]
	return m, ok
}

// points returns the points of a sum or gauge of the last batch.
func (r *receiver) points(name string) []pmetric.NumberDataPoint {
	m, ok := r.metric(name)
	if !ok {
		return nil
	}
	slice := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		slice = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		slice = m.Sum().DataPoints()
	}
	var points []pmetric.NumberDataPoint
	for _, p := range slice.All() {
		points = append(points, p)
	}
	return points
}

func attribute(p pmetric.NumberDataPoint, key string) string {
	v, ok := p.Attributes().Get(key)
	if !ok {
		v = pcommon.NewValueEmpty()
	}
	return v.AsString()
}
