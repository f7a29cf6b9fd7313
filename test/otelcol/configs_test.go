package otelcol

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

// Every configuration that is for this collector is valid.
func TestShippedConfigurationsAreValid(t *testing.T) {
	path := binary(t)
	files, err := filepath.Glob(config(t, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasPrefix(string(text), "# NOT FOR") {
			continue
		}
		out, err := exec.Command(path, "validate", "--config", file).CombinedOutput()
		assert.NoError(t, err, "%s: %s", filepath.Base(file), out)
	}
}

// "A gateway of N replicas with fleet totals to Prometheus (`emit: all`)."
func TestPrometheusShowsTheFleetsTotals(t *testing.T) {
	f := startFleet(t, "gateway-prometheus.yaml")
	sample := regexp.MustCompile(`(?m)^http_requests_group\{([^}]*)\} (\S+)`)
	instances := map[string]bool{}
	seen := map[int64]bool{}
	for until := time.Now().Add(8 * interval); time.Now().Before(until); time.Sleep(interval / 5) {
		for _, c := range f.collectors {
			match := sample.FindStringSubmatch(get(t, "http://"+c.prometheus+"/metrics"))
			if match == nil {
				continue
			}
			assert.Contains(t, match[1], `job="shop"`)
			id := regexp.MustCompile(`otelcol_instance_id="([^"]+)"`).FindStringSubmatch(match[1])
			require.NotNil(t, id)
			instances[id[1]] = true
			total, err := strconv.ParseFloat(match[2], 64)
			require.NoError(t, err)
			seen[int64(total)] = true
		}
	}
	f.stop()
	f.settle(t, f.accepted())
	assert.Len(t, instances, 3, "each replica shows the totals")
	totals, _ := f.record.snapshot()
	held := map[int64]bool{}
	for _, total := range totals {
		held[total] = true
	}
	require.NotEmpty(t, seen)
	for total := range seen {
		assert.True(t, held[total], "%d is no total of the fleet: %v", total, totals)
	}
}

// The exporter, behind a cumulative-to-delta and a batch processor.
func TestExporterFeedsRedis(t *testing.T) {
	binary(t)
	server := redistest.Start(t)
	r := record(t, server, service+":{"+metric+"}", interval)
	c := start(t, "feed-redis.yaml", []string{"REDIS=" + server.Addr, "INTERVAL=" + interval.String()})
	s := newSender(overHTTP(c.http), false, "one", 20*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 5*interval)
	defer cancel()
	s.run(ctx)
	require.Equal(t, s.offered, s.accepted)
	redistest.Eventually(t, patience, func() error {
		if sum := r.sum(); sum != s.accepted {
			return fmt.Errorf("Redis holds %d of %d", sum, s.accepted)
		}
		return nil
	})
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return "" // not up yet
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}
