package otel

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	otelattribute "go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcomcount/otelcomcount/counter"
	"github.com/otelcomcount/otelcomcount/exporter"
	"github.com/otelcomcount/otelcomcount/reader"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// patience is long: a loaded machine may be slow.
const patience = 30 * time.Second

// traffic counts 20 requests and 5 s of work in each interval, as two replicas
// of a service would each.
func traffic(t *testing.T, interval time.Duration, mp *sdkmetric.MeterProvider) {
	t.Helper()
	m := mp.Meter("app")
	requests, err := m.Int64Counter("http.requests", metric.WithUnit("{request}"), metric.WithDescription("Requests served."))
	require.NoError(t, err)
	work, err := m.Float64Counter("work", metric.WithUnit("s"))
	require.NoError(t, err)
	_, err = m.Int64UpDownCounter("active")
	require.NoError(t, err)
	route := metric.WithAttributes(otelattribute.String("route", "/x"))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(interval / 10)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				requests.Add(ctx, 1, route)
				requests.Add(ctx, 1)
				work.Add(ctx, 0.5)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func TestReaderBesideOTLP(t *testing.T) {
	interval, group := redistest.Interval(t), rand.Text()
	out := newReceiver(t)
	var readers []*reader.Reader
	rdb := redistest.Client(t)
	for i := range 2 {
		r, err := reader.New(rdb, reader.WithGroup(group), reader.WithInterval(interval))
		require.NoError(t, err)
		opts := []sdkmetric.Option{sdkmetric.WithReader(r)}
		if i == 0 {
			opts = append(opts, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(out.exporter(t), sdkmetric.WithInterval(interval/3))))
		}
		mp := sdkmetric.NewMeterProvider(opts...)
		t.Cleanup(func() { _ = mp.Shutdown(context.Background()) })
		require.NoError(t, r.RegisterGauges(mp))
		if i == 0 {
			require.NoError(t, mp.ForceFlush(t.Context()))
			assert.Empty(t, out.points("http.requests.group"), "no gauge while the total is unknown")
		}
		traffic(t, interval, mp)
		readers = append(readers, r)
	}
	checkOTLP(t, out, func() counter.Total { return readers[0].Total("http.requests") })
}

func TestExporterAroundOTLP(t *testing.T) {
	interval, group := redistest.Interval(t), rand.Text()
	out := newReceiver(t)
	var exporters []*exporter.Exporter
	rdb := redistest.Client(t)
	for i := range 2 {
		opts := []exporter.Option{exporter.WithGroup(group), exporter.WithInterval(interval)}
		if i == 0 {
			opts = append(opts, exporter.WithNext(out.exporter(t)))
		}
		e, err := exporter.New(rdb, opts...)
		require.NoError(t, err)
		mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e, sdkmetric.WithInterval(interval/3))))
		t.Cleanup(func() { _ = mp.Shutdown(context.Background()) })
		traffic(t, interval, mp)
		exporters = append(exporters, e)
	}
	checkOTLP(t, out, func() counter.Total { return exporters[0].Total("http.requests") })
}

// checkOTLP finds counters and gauges at the receiver.
func checkOTLP(t *testing.T, out *receiver, total func() counter.Total) {
	t.Helper()
	within := func(v, low, high float64) bool { return low <= v && v <= high }
	require.Eventually(t, func() bool {
		group, work := out.points("http.requests.group"), out.points("work.group")
		return total().Participants == 2 &&
			len(group) == 1 && within(float64(group[0].IntValue()), 25, 55) &&
			len(work) == 1 && within(work[0].DoubleValue(), 6, 14)
	}, patience, 20*time.Millisecond, "the group's numbers, about 40 requests and 10 s of work an interval")
	group, _ := out.metric("http.requests.group")
	assert.Equal(t, "{request}", group.Unit())
	assert.Equal(t, pmetric.MetricTypeGauge, group.Type())
	assert.Zero(t, out.points("http.requests.group")[0].Attributes().Len())
	work, _ := out.metric("work.group")
	assert.Equal(t, "s", work.Unit())
	require.Eventually(t, func() bool {
		parts := out.points("http.requests.group.series")
		return len(parts) == 1 && attribute(parts[0], "route") == "/x" && within(float64(parts[0].IntValue()), 10, 30)
	}, patience, 20*time.Millisecond)
	own, ok := out.metric("http.requests")
	require.True(t, ok)
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, own.Sum().AggregationTemporality(), "as OTLP wants it")
	assert.Len(t, out.points("http.requests"), 2)
	_, ok = out.metric("active.group")
	assert.False(t, ok)
}

func TestReaderBesidePrometheus(t *testing.T) {
	interval := redistest.Interval(t)
	r, err := reader.New(redistest.Client(t), reader.WithGroup(rand.Text()), reader.WithInterval(interval))
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	prom, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	require.NoError(t, err)
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r), sdkmetric.WithReader(prom))
	t.Cleanup(func() { _ = mp.Shutdown(context.Background()) })
	require.NoError(t, r.RegisterGauges(mp))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	traffic(t, interval, mp)

	var page string
	require.Eventually(t, func() bool {
		page = get(t, server.URL)
		return line(page, "http_requests_group{") != "" && line(page, "http_requests_group_series{") != "" && line(page, "work_group_seconds{") != ""
	}, patience, 20*time.Millisecond, "%s", page)
	assert.Contains(t, line(page, "http_requests_group_series{"), `route="/x"`)
	assert.Contains(t, page, "# TYPE http_requests_group gauge")
	assert.Contains(t, page, "# TYPE http_requests_total counter")
	assert.NotContains(t, page, "active_group")
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", body)
	return string(body)
}

// line returns the first line that begins so.
func line(page, prefix string) string {
	for l := range strings.Lines(page) {
		if strings.HasPrefix(l, prefix) {
			return l
		}
	}
	return ""
}

func TestExporterAroundStdout(t *testing.T) {
	interval := redistest.Interval(t)
	var out lockedBuffer
	next, err := stdoutmetric.New(stdoutmetric.WithWriter(&out))
	require.NoError(t, err)
	e, err := exporter.New(redistest.Client(t), exporter.WithGroup(rand.Text()), exporter.WithInterval(interval), exporter.WithNext(next))
	require.NoError(t, err)
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e, sdkmetric.WithInterval(interval/3))))
	t.Cleanup(func() { _ = mp.Shutdown(context.Background()) })
	traffic(t, interval, mp)
	require.Eventually(t, func() bool {
		return strings.Contains(out.String(), `"Name":"http.requests.group","Description":"What the whole group counted in the last closed interval.","Unit":"{request}"`)
	}, patience, 20*time.Millisecond)
	var batch map[string]any
	require.NoError(t, json.NewDecoder(strings.NewReader(out.String())).Decode(&batch))
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
