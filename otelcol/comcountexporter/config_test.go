package comcountexporter

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfigStruct(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
}

func TestDefaultsUnmarshalToThemselves(t *testing.T) {
	cfg := createDefaultConfig()
	require.NoError(t, confmap.New().Unmarshal(&cfg))
	assert.Equal(t, createDefaultConfig(), cfg)
}

func load(t *testing.T, file string) error {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", file))
	require.NoError(t, err)
	cfg := createDefaultConfig()
	if err := conf.Unmarshal(&cfg); err != nil {
		return err
	}
	return confmap.Validate(cfg)
}

func TestUnmarshal(t *testing.T) {
	for _, file := range []string{"least.yaml", "all.yaml", "off.yaml"} {
		err := load(t, file)
		require.NoError(t, err, file)
	}
	for file, want := range map[string]string{
		"typo.yaml":       "invalid keys: intervall",
		"typo_redis.yaml": "invalid keys: endpont",
		"emit.yaml":       "invalid keys: emit",
		"no_redis.yaml":   "redis: no server",
	} {
		err := load(t, file)
		require.ErrorContains(t, err, want, file)
	}
}

// "Config validation must refuse a persistent queue."
func TestB40QueuesAndRetriesAreRefused(t *testing.T) {
	err := load(t, "queue.yaml")
	require.ErrorContains(t, err, "sending_queue is not supported: a batch that is sent again")
	err = load(t, "retry.yaml")
	require.ErrorContains(t, err, "retry_on_failure is not supported: a batch that is sent again")
}
