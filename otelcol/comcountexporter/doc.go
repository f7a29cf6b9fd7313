// Package comcountexporter is an exporter for the OpenTelemetry Collector that
// counts the metrics reaching all replicas of a collector as one, on Redis.
//
// README.md says what it does and how it is configured, metadata.yaml and
// documentation.md what it says about itself.
package comcountexporter
