// Package otelcol tests the collector that `make otelcol` builds: processes of it on
// one real Redis, with senders on one side and a receiver of what they pass on on the
// other.
//
// The tests need bin/otelcol-comcount, or the collector that the environment variable
// OTELCOL names. Without either they are skipped.
package otelcol
