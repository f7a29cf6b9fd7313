package config

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/confmap"
)

func valid(change func(*Config)) *Config {
	c := Default()
	c.Redis.Endpoint = "localhost:6379"
	change(&c)
	return &c
}

func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string // "": valid
	}{
		"default with a server": {func(*Config) {}, ""},
		"all": {func(c *Config) {
			c.Interval, c.Group, c.Carry, c.MaxSeries, c.MaxStreams, c.MaxStaleness = 10*time.Millisecond, "g", 0, 0, 0, 0
			c.Attributes, c.ResourceAttributes = []string{"a", "b"}, []string{"c"}
			c.Metrics = Metrics{Include: []string{"*"}, Exclude: []string{"x?"}}
			c.InitialValue = Keep
		}, ""},
		"cluster":             {func(c *Config) { c.Redis.Endpoint, c.Redis.Endpoints = "", []string{"a:1", "b:2"} }, ""},
		"sentinels":           {func(c *Config) { c.Redis.Endpoint, c.Redis.MasterName, c.Redis.Sentinels = "", "m", []string{"a:1"} }, ""},
		"no server":           {func(c *Config) { c.Redis.Endpoint = "" }, "redis: no server"},
		"two servers":         {func(c *Config) { c.Redis.Endpoints = []string{"a:1"} }, "redis: endpoint, endpoints, and master_name with sentinels exclude each other"},
		"master alone":        {func(c *Config) { c.Redis.Endpoint, c.Redis.MasterName = "", "m" }, "master_name and sentinels need each other"},
		"sentinels alone":     {func(c *Config) { c.Redis.Endpoint, c.Redis.Sentinels = "", []string{"a:1"} }, "master_name and sentinels need each other"},
		"no port":             {func(c *Config) { c.Redis.Endpoint = "localhost" }, "redis: endpoint is not host:port"},
		"bad node":            {func(c *Config) { c.Redis.Endpoint, c.Redis.Endpoints = "", []string{"a:1", "b"} }, "endpoints[1] is not host:port"},
		"bad sentinel":        {func(c *Config) { c.Redis.Endpoint, c.Redis.MasterName, c.Redis.Sentinels = "", "m", []string{":1"} }, "sentinels[0] is not host:port"},
		"negative db":         {func(c *Config) { c.Redis.DB = -1 }, "db is -1"},
		"db of a cluster":     {func(c *Config) { c.Redis.Endpoint, c.Redis.Endpoints, c.Redis.DB = "", []string{"a:1"}, 1 }, "a cluster has only 0"},
		"no timeout":          {func(c *Config) { c.Redis.ReadTimeout = 0 }, "read_timeout is 0s"},
		"interval 0":          {func(c *Config) { c.Interval = 0 }, "interval: "},
		"interval 1.5 ms":     {func(c *Config) { c.Interval = 11500 * time.Microsecond }, "interval: "},
		"interval 25 h":       {func(c *Config) { c.Interval = 25 * time.Hour }, "interval: "},
		"carry 11":            {func(c *Config) { c.Carry = 11 }, "carry: "},
		"max_series -1":       {func(c *Config) { c.MaxSeries = -1 }, "max_series: "},
		"max_streams -1":      {func(c *Config) { c.MaxStreams = -1 }, "max_streams is -1"},
		"max_staleness -1s":   {func(c *Config) { c.MaxStaleness = -time.Second }, "max_staleness is -1s"},
		"unknown policy":      {func(c *Config) { c.InitialValue = "maybe" }, `initial_value is "maybe"`},
		"empty pattern":       {func(c *Config) { c.Metrics.Exclude = []string{"a", ""} }, "metrics: a pattern is empty"},
		"empty attribute":     {func(c *Config) { c.Attributes = []string{""} }, "key is empty"},
		"attribute twice":     {func(c *Config) { c.Attributes = []string{"a", "a"} }, `"a" comes twice`},
		"attribute of both":   {func(c *Config) { c.Attributes, c.ResourceAttributes = []string{"a"}, []string{"a"} }, `"a" comes twice`},
		"certificate, no key": {func(c *Config) { c.Redis.TLS.GetOrInsertDefault().CertFile = "c" }, "redis::tls: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := confmap.Validate(valid(tt.change))
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
			}
		})
	}
}

// "Passwords never in logs or errors."
func TestPasswordsStayInside(t *testing.T) {
	c := valid(func(c *Config) {
		c.Redis.Password, c.Redis.SentinelPassword = "hunter2", "hunter2"
		c.Redis.Endpoint = "redis://user:hunter2@host:6379/0"
	})
	err := confmap.Validate(c)
	require.ErrorContains(t, err, "keys of their own")
	assert.NotContains(t, err.Error(), "hunter2")
	c.Redis.Endpoint = ""
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(verb, *c), "hunter2", verb)
	}
}

func TestClient(t *testing.T) {
	client := func(change func(*Config)) redis.UniversalClient {
		c, err := valid(change).Redis.Client(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	simple := client(func(c *Config) {
		c.Redis.Username, c.Redis.Password, c.Redis.DB = "u", "p", 3
		c.Redis.ReadTimeout = time.Second
	}).(*redis.Client).Options()
	assert.Equal(t, "localhost:6379", simple.Addr)
	assert.Equal(t, "u", simple.Username)
	assert.Equal(t, "p", simple.Password)
	assert.Equal(t, 3, simple.DB)
	assert.Equal(t, time.Second, simple.ReadTimeout)
	assert.Nil(t, simple.TLSConfig)

	cluster := client(func(c *Config) {
		c.Redis.Endpoint, c.Redis.Endpoints, c.Redis.Password = "", []string{"127.0.0.1:1"}, "p"
	}).(*redis.ClusterClient).Options()
	assert.Equal(t, []string{"127.0.0.1:1"}, cluster.Addrs)
	assert.Equal(t, "p", cluster.Password)

	failover := client(func(c *Config) {
		c.Redis.Endpoint, c.Redis.MasterName, c.Redis.Sentinels, c.Redis.Password = "", "m", []string{"127.0.0.1:1"}, "p"
	}).(*redis.Client).Options()
	assert.Equal(t, "FailoverClient", failover.Addr)
	assert.Equal(t, "p", failover.Password)

	secure := client(func(c *Config) { c.Redis.TLS.GetOrInsertDefault().ServerName = "n" }).(*redis.Client).Options()
	require.NotNil(t, secure.TLSConfig)
	assert.Equal(t, "n", secure.TLSConfig.ServerName)

	_, err := valid(func(c *Config) {
		c.Redis.TLS.GetOrInsertDefault().Config = configtls.Config{CAFile: "testdata/no-such-file"}
	}).Redis.Client(t.Context())
	require.ErrorContains(t, err, "redis::tls")
}

func TestSelects(t *testing.T) {
	for _, tt := range []struct {
		include, exclude []string
		name             string
		want             bool
	}{
		{nil, nil, "any", true},
		{nil, nil, "", true},
		{[]string{"http.*"}, nil, "http.requests", true},
		{[]string{"http.*"}, nil, "http.a/b", true},
		{[]string{"http.*"}, nil, "https", false},
		{[]string{"http.*"}, nil, "HTTP.requests", false},
		{[]string{"a", "b"}, nil, "b", true},
		{[]string{"*"}, []string{"b*"}, "bc", false},
		{[]string{"*s"}, nil, "requests", true},
		{[]string{"*s"}, nil, "request", false},
		{[]string{"a*b*c"}, nil, "a-b-b-c", true},
		{[]string{"a*b*c"}, nil, "a-c-b", false},
		{[]string{"a?c"}, nil, "aéc", true},
		{[]string{"a?c"}, nil, "ac", false},
		{[]string{"?"}, nil, "", false},
		{[]string{"a.b"}, nil, "a-b", false},
		{[]string{"**"}, nil, "", true},
		{[]string{"*é"}, nil, "café", true},
	} {
		got := Metrics{Include: tt.include, Exclude: tt.exclude}.Selects(tt.name)
		assert.Equal(t, tt.want, got, "%q %q %q", tt.include, tt.exclude, tt.name)
	}
}
