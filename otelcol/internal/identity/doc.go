// Package identity tells what a data point belongs to: it makes keys of attribute
// maps, and converts attributes to those of a counter's series and back.
package identity
