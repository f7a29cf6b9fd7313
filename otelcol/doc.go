package otelcol
