// Package comcountprocessor is a processor for the OpenTelemetry Collector that
// counts the metrics passing through all replicas of a collector as one, on Redis,
// and passes the group's totals on as gauges.
//
// README.md says what it does and how it is configured, metadata.yaml and
// documentation.md what it says about itself.
package comcountprocessor
