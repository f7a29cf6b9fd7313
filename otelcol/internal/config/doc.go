// Package config is the configuration that the processor and the exporter share.
package config
