// Package metadata holds what both components say about themselves; it follows the
// files metadata.yaml.
package metadata

import "go.opentelemetry.io/collector/component"

// Stability is that of both components.
const Stability = component.StabilityLevelAlpha

// Version is that of the gauges' scope.
const Version = "0.1.0"

// Type returns the type of both components.
func Type() component.Type { return component.MustNewType("comcount") }
