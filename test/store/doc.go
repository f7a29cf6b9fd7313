// Package store tests the Redis store of package counter and its script against
// real servers, and where a test sets the clock against miniredis.
package store
