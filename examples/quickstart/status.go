package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// status is what a replica says about itself. The numbers are those of the last
// closed interval, and hold only if Known.
type status struct {
	Known        bool
	Interval     int64 // its number, the same for all replicas
	Own          int64 // this replica's part
	Group        int64 // what the group counted
	Participants int64 // how many replicas took part
	Age          time.Duration
	Gauge        *int64 // the group's number, as it is exported
}

func (m *metrics) status(ctx context.Context) status {
	total := m.group.Total(instrument) // a local call: nothing is sent, nothing waits
	return status{
		Known:        total.Known,
		Interval:     total.Interval,
		Own:          total.Own,
		Group:        total.Closed,
		Participants: total.Participants,
		Age:          time.Since(total.At),
		Gauge:        m.exported(ctx, gaugeName),
	}
}

// exported returns the value of a gauge, or nil if it has none yet.
func (m *metrics) exported(ctx context.Context, name string) *int64 {
	var all metricdata.ResourceMetrics
	if err := m.export.Collect(ctx, &all); err != nil {
		return nil
	}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			if gauge, ok := one.Data.(metricdata.Gauge[int64]); ok && one.Name == name && len(gauge.DataPoints) == 1 {
				return &gauge.DataPoints[0].Value
			}
		}
	}
	return nil
}

func (s status) own() string          { return num(s.Own) }
func (s status) group() string        { return num(s.Group) }
func (s status) participants() string { return num(s.Participants) }
func (s status) age() string          { return s.Age.Round(10 * time.Millisecond).String() }

func (s status) gauge() string {
	if s.Gauge == nil {
		return "-"
	}
	return num(*s.Gauge)
}
