package comcountprocessor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcomcount/otelcomcount/otelcol/internal/config"
)

func TestConfigStruct(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
}

func TestDefaultsUnmarshalToThemselves(t *testing.T) {
	cfg := createDefaultConfig()
	require.NoError(t, confmap.New().Unmarshal(&cfg))
	assert.Equal(t, createDefaultConfig(), cfg)
}

func TestUnmarshal(t *testing.T) {
	for file, tt := range map[string]struct {
		want          func(*Config)
		unmarshalErr  string
		validationErr string
	}{
		"least.yaml": {want: func(c *Config) { c.Counting.Redis.Endpoint = "localhost:6379" }},
		"all.yaml": {want: func(c *Config) {
			c.Emit = EmitAll
			n := &c.Counting
			n.Redis.Endpoints = []string{"redis-0:6379", "redis-1:6379"}
			n.Redis.Username, n.Redis.Password = "collector", "secret"
			n.Redis.DialTimeout, n.Redis.ReadTimeout, n.Redis.WriteTimeout = time.Second, 2*time.Second, 2500*time.Millisecond
			n.Redis.TLS.GetOrInsertDefault().CAFile = "/etc/ssl/redis.pem"
			n.Interval, n.Group = 10*time.Second, "fleet"
			n.Metrics = config.Metrics{Include: []string{"http.*", "rpc.*"}, Exclude: []string{"*.debug"}}
			n.Attributes, n.ResourceAttributes = []string{"http.route"}, []string{"deployment.environment"}
			n.Carry, n.MaxSeries, n.MaxStreams, n.MaxStaleness = 3, 500, 1000, 10*time.Minute
			n.InitialValue = config.Auto
		}},
		"tls.yaml": {want: func(c *Config) {
			c.Counting.Redis.Endpoint = "localhost:6379"
			c.Counting.Redis.TLS.GetOrInsertDefault()
		}},
		"typo.yaml":       {unmarshalErr: "invalid keys: intervall"},
		"typo_redis.yaml": {unmarshalErr: "invalid keys: endpont"},
		"queue.yaml":      {unmarshalErr: "invalid keys: sending_queue"},
		"emit.yaml":       {validationErr: `emit is "two"`},
		"no_redis.yaml":   {validationErr: "redis: no server"},
	} {
		t.Run(file, func(t *testing.T) {
			conf, err := confmaptest.LoadConf(filepath.Join("testdata", file))
			require.NoError(t, err)
			cfg := createDefaultConfig()
			err = conf.Unmarshal(&cfg)
			if tt.unmarshalErr != "" {
				require.ErrorContains(t, err, tt.unmarshalErr)
				return
			}
			require.NoError(t, err)
			err = confmap.Validate(cfg)
			if tt.validationErr != "" {
				require.ErrorContains(t, err, tt.validationErr)
				return
			}
			require.NoError(t, err)
			want := createDefaultConfig().(*Config)
			tt.want(want)
			assert.Equal(t, want, cfg)
		})
	}
}
