package otelcol

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"go.opentelemetry.io/otel/attribute"

	"github.com/otelcomcount/otelcomcount/reader"
	"github.com/otelcomcount/otelcomcount/test/jsclient"
)

// "In-process participants (reader), collectors and a JavaScript-protocol
// participant on one counter agree."
func TestParticipantsOfAllKindsAgree(t *testing.T) {
	f := startFleet(t, "gateway-otlp.yaml")
	rdb := f.redis.Client()
	js := jsclient.Start(t, rdb, service+":", metric, interval)

	r, err := reader.New(rdb, reader.WithInterval(interval))
	require.NoError(t, err)
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r),
		sdkmetric.WithResource(resource.NewSchemaless(attribute.String("service.name", service))))
	requests, err := provider.Meter("test").Int64Counter(metric)
	require.NoError(t, err)

	var inProcess int64
	known := map[int64]int64{} // to the reader
	for until := time.Now().Add(12 * interval); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		requests.Add(context.Background(), 2)
		inProcess += 2
		js.Add(1)
		if total := r.Total(metric); total.Known {
			known[total.Interval] = total.Closed
		}
	}
	f.stop()
	require.NoError(t, provider.Shutdown(context.Background()))
	time.Sleep(2 * interval)
	js.Stop()
	require.NoError(t, js.Err())

	want := f.accepted() + inProcess + js.Landed()
	f.settle(t, want)
	f.check(t, false, want)
	assert.Equal(t, want, f.record.sum())
	totals, _ := f.record.snapshot()
	agreed := 0
	for n, closed := range js.Closed() {
		assert.Equal(t, totals[n], closed, "interval %d, as the JavaScript participant knows it", n)
	}
	for n, closed := range known {
		assert.Equal(t, totals[n], closed, "interval %d, as the reader knows it", n)
		_, js := js.Closed()[n]
		if _, out := f.sink.of(metric + ".group")[(n+1)*interval.Milliseconds()]; js && out {
			agreed++
		}
	}
	assert.GreaterOrEqual(t, agreed, 5, "intervals that all three know")
}
