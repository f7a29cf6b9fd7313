// Package otelcol holds the components of otelcomcount for the OpenTelemetry
// Collector: the processor comcountprocessor and the exporter comcountexporter,
// both of type comcount. Their code is in internal/engine; the two packages only
// wire it.
package otelcol
