// Package otel tests reader and exporter as users have them: in a MeterProvider
// with OTLP over HTTP, Prometheus and stdout exporters, on a real Redis.
package otel
