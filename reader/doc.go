// Package reader counts the monotonic instruments of an OpenTelemetry SDK for
// the whole group of processes.
//
// A [Reader] is one more reader of a MeterProvider. It collects what the
// application's counters counted, adds it up with that of the other processes in
// Redis once an interval, and knows the group's totals: by call ([Reader.Total],
// [Reader.Watch]) and as gauges ([Reader.RegisterGauges]).
//
//	r, err := reader.New(rdb)
//	...
//	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(r), sdkmetric.WithReader(yours))
//	err = r.RegisterGauges(provider)
//
// Register it before other readers: MeterProvider.Shutdown shuts readers down in
// their order, and a slow one may use up the context.
//
// # What counts
//
// Counters and observable counters, of whole and of floating-point numbers. An
// observable counter counts what it rises by from its first observation on; a
// missed observation loses nothing, and a value that falls is a reset: what it
// has reached since counts. Floats are kept in units of [counter.Resolution],
// their remainder is carried. A histogram that a view turns into a sum counts
// too. Up-down counters, histograms and gauges do not, nor does anything of
// instrumentation scopes under this module's path: the reader's own gauges and
// telemetry never come back as input.
//
// All instruments that end under one name and kind of number count as one,
// whichever meter they are from. Negative amounts, NaN and Inf are dropped and
// reported. The SDK's overflow set counts for the grand total only.
//
// A collection calls the callbacks of the provider's observable counters. There
// is one before each flush, and more, at most every tenth of an interval (and
// 100 ms), only while there is a Watch or Total was called within the last
// interval.
//
// # What is kept
//
// Attribute sets that were not used for ten intervals leave memory, and their
// gauges with them. Above WithMaxSeries amounts go to the grand total only.
//
// # Reader or exporter
//
// A second reader costs every Add of an instrument a second time. Where one
// PeriodicReader does already, package exporter comes behind it at no cost per
// Add; but its interval is at least the period of that reader, by default a
// minute. Use the reader for totals within seconds.
package reader
