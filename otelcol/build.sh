#!/usr/bin/env bash
# Builds bin/otelcol-comcount, a collector with the components of this folder. A
# first build compiles the whole Collector and takes minutes. It needs Go and the
# module proxy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The workspace would take the collector's module for one of its own.
export GOWORK=off
# A clone in a container may belong to someone else.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

builder=go.opentelemetry.io/collector/cmd/builder@v0.165.0
mkdir -p bin
go run "$builder" --config otelcol/builder-config.yaml
# Next to the folder that it was generated in.
mv bin/collector/otelcol-comcount bin/otelcol-comcount
bin/otelcol-comcount --version
