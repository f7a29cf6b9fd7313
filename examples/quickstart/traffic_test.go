package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRatesAreUnevenAndBounded(t *testing.T) {
	t.Parallel()
	for replicas := 1; replicas <= 12; replicas++ {
		for at := time.Duration(0); at < time.Minute; at += time.Second {
			var sum float64
			for i := range replicas {
				r := rate(i, replicas, at)
				assert.Positive(t, r)
				sum += r
			}
			assert.LessOrEqual(t, sum, 1.5*requestsPerSecond)
		}
	}
	assert.Greater(t, rate(2, 3, 0), 2*rate(0, 3, 0))
}
