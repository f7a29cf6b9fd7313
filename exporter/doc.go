// Package exporter counts what a PeriodicReader exports for the whole group of
// processes.
//
// An [Exporter] stands behind a PeriodicReader of the OpenTelemetry SDK. It adds
// the monotonic sums of every batch to those of the other processes in Redis,
// and knows the group's totals by call ([Exporter.Total], [Exporter.Watch]). With
// [WithNext] it passes every batch on to the exporter that was there before, with
// the group's totals added to it as gauges:
//
//	e, err := exporter.New(rdb, exporter.WithNext(otlp))
//	...
//	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e)))
//
// # Exporter or reader
//
// The exporter costs nothing per Add, where a second reader (package reader)
// costs every Add of an instrument a second time. But totals are as slow as the
// period of the PeriodicReader, by default a minute; the reader brings them
// within seconds.
//
// # What counts
//
// What package reader says of it holds here. Alone, the exporter asks for deltas
// of counters and for the sums of observable ones. With [WithNext] the batches
// are as the next exporter wants them, and the exporter takes the differences of
// cumulative sums itself: a counter's sum counts from its start, an observable
// one's from its first value.
//
// Two things are the PeriodicReader's to set. Above its cardinality limit (by
// default 2000 attribute sets for each instrument, see
// [sdkmetric.WithCardinalityLimit]) amounts count for the grand totals only; of
// observable counters they do not count at all, which is reported. And where the
// next exporter wants deltas of observable counters, the first value of one that
// is not observed in the first collection after it was made counts whole.
package exporter
