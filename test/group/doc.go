// Package group tests counter's groups against real Redis servers: through a
// network that fails, in a cluster, beside participants of the JavaScript
// library's protocol, and on servers that refuse.
package group
