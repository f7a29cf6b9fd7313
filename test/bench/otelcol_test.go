package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/cumulativetodeltaprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/deltatocumulativeprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcomcount/otelcomcount/otelcol/comcountprocessor"
	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// Of one request: this many processes, metrics of each, and points of each metric.
const (
	processes     = 10
	metrics       = 5
	streams       = 20
	requestPoints = processes * metrics * streams
)

// otelcolRows: a point through our processor, beside the contrib processors that
// keep state for the same data. Allocations and time, per point.
func otelcolRows(t *testing.T) []Row {
	server := redistest.Start(t)
	ours := func(attributes ...string) func() (processor.Factory, component.Config) {
		return func() (processor.Factory, component.Config) {
			cfg := comcountprocessor.NewFactory().CreateDefaultConfig().(*comcountprocessor.Config)
			cfg.Counting.Redis.Endpoint = server.Addr
			cfg.Counting.Interval = time.Second
			cfg.Counting.Attributes = attributes
			return comcountprocessor.NewFactory(), cfg
		}
	}
	theirs := func(f processor.Factory) func() (processor.Factory, component.Config) {
		return func() (processor.Factory, component.Config) { return f, f.CreateDefaultConfig() }
	}
	var rows []Row
	for _, side := range []struct {
		name        string
		temporality pmetric.AggregationTemporality
		baseline    processor.Factory
	}{
		{"cumulative", pmetric.AggregationTemporalityCumulative, cumulativetodeltaprocessor.NewFactory()},
		{"delta", pmetric.AggregationTemporalityDelta, deltatocumulativeprocessor.NewFactory()},
	} {
		grand := consume(side.temporality, ours())
		series := consume(side.temporality, ours("http.route"))
		baseline := consume(side.temporality, theirs(side.baseline))
		name := fmt.Sprintf("collector, a %s point", side.name)
		rows = append(rows,
			Row{Name: name, Unit: "ns", Ours: perPoint(NsPerOp(grand)), Baseline: perPoint(NsPerOp(baseline)), Goal: AtMost(0.5)},
			Row{Name: name + ", allocs", Ours: AllocsPer(requestPoints, grand), Baseline: AllocsPer(requestPoints, baseline), Goal: AtMost(0.5)},
			Row{Name: name + ", series", Unit: "ns", Ours: perPoint(NsPerOp(series)), Baseline: perPoint(NsPerOp(baseline)), Goal: AtMost(0.5)},
		)
	}
	return rows
}

func perPoint(m Measure) Measure {
	return func(t *testing.T) float64 { return m(t) / requestPoints }
}

// consume measures ConsumeMetrics on requests whose values and times go on. Making
// the request is not measured.
func consume(temporality pmetric.AggregationTemporality, component func() (processor.Factory, component.Config)) func(b *testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		f, cfg := component()
		ctx := context.Background()
		p, err := f.CreateMetrics(ctx, processortest.NewNopSettings(f.Type()), cfg, consumertest.NewNop())
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Start(ctx, componenttest.NewNopHost()); err != nil {
			b.Fatal(err)
		}
		defer func() {
			if err := p.Shutdown(ctx); err != nil {
				b.Error(err)
			}
		}()
		now := time.Now()
		template := request(temporality, now)
		tick := 0
		for b.Loop() {
			b.StopTimer()
			tick++
			advance(template, temporality, now, tick)
			md := pmetric.NewMetrics() // theirs changes it
			template.CopyTo(md)
			b.StartTimer()
			if err := p.ConsumeMetrics(ctx, md); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func request(temporality pmetric.AggregationTemporality, now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range processes {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr("service.namespace", "shop")
		attrs.PutStr("service.name", "checkout")
		attrs.PutStr("service.instance.id", fmt.Sprintf("627cc493-f310-47de-96bd-71410b7dec%02d", i))
		attrs.PutStr("host.name", fmt.Sprintf("node-%d", i))
		attrs.PutInt("process.pid", int64(1000+i))
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName("example.com/http")
		sm.Scope().SetVersion("1.2.3")
		for j := range metrics {
			m := sm.Metrics().AppendEmpty()
			m.SetName(fmt.Sprintf("http.server.requests.%d", j))
			m.SetUnit("{request}")
			sum := m.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(temporality)
			for k := range streams {
				p := sum.DataPoints().AppendEmpty()
				p.SetStartTimestamp(pcommon.NewTimestampFromTime(now))
				p.SetTimestamp(pcommon.NewTimestampFromTime(now))
				p.Attributes().PutStr("http.route", fmt.Sprintf("/api/v1/items/%d", k))
				p.Attributes().PutStr("http.request.method", "GET")
				p.Attributes().PutInt("http.response.status_code", 200)
			}
		}
	}
	return md
}

// advance gives each point the value and times of the next request.
func advance(md pmetric.Metrics, temporality pmetric.AggregationTemporality, start time.Time, tick int) {
	at := pcommon.NewTimestampFromTime(start.Add(time.Duration(tick) * time.Second))
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, p := range m.Sum().DataPoints().All() {
				if temporality == pmetric.AggregationTemporalityDelta {
					p.SetStartTimestamp(p.Timestamp())
					p.SetIntValue(1)
				} else {
					p.SetIntValue(int64(tick))
				}
				p.SetTimestamp(at)
			}
		}
	}
}
