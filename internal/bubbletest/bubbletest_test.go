package bubbletest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/internal/bubbletest"
)

func TestRun(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		start := time.Now()
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, time.Since(start), "time stands still but for what is waited for")
	})
}
