package config

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
)

// Redis says how to reach the server, in one of three ways: a single server
// (endpoint), a cluster (endpoints), or a master found by sentinels (master_name
// and sentinels).
type Redis struct {
	// Endpoint is the host:port of a single server.
	Endpoint string `mapstructure:"endpoint"`

	// Endpoints are the host:port of some nodes of a cluster.
	Endpoints []string `mapstructure:"endpoints"`

	// MasterName is what the sentinels call the master.
	MasterName string `mapstructure:"master_name"`

	// Sentinels are the host:port of the sentinels.
	Sentinels []string `mapstructure:"sentinels"`

	// Username and Password are for the servers.
	Username string              `mapstructure:"username"`
	Password configopaque.String `mapstructure:"password"`

	// SentinelUsername and SentinelPassword are for the sentinels.
	SentinelUsername string              `mapstructure:"sentinel_username"`
	SentinelPassword configopaque.String `mapstructure:"sentinel_password"`

	// DB is the database's number; a cluster has only 0, the default.
	DB int `mapstructure:"db"`

	// Timeouts of the connections, by default 5 s, 3 s and 3 s. No pipeline waits for
	// them.
	DialTimeout  time.Duration `mapstructure:"dial_timeout"`
	ReadTimeout  time.Duration `mapstructure:"read_timeout"`
	WriteTimeout time.Duration `mapstructure:"write_timeout"`

	// TLS is used where the section is there.
	TLS configoptional.Optional[configtls.ClientConfig] `mapstructure:"tls"`
}

func defaultTLS() configoptional.Optional[configtls.ClientConfig] {
	return configoptional.Default(configtls.NewDefaultClientConfig())
}

// Validate implements the Collector's validation. It repeats no address: one that
// is a URL may hold a password.
func (r *Redis) Validate() error {
	var errs []error
	ways := 0
	for _, used := range []bool{r.Endpoint != "", len(r.Endpoints) > 0, r.MasterName != "" || len(r.Sentinels) > 0} {
		if used {
			ways++
		}
	}
	switch {
	case ways == 0:
		errs = append(errs, errors.New("no server: set endpoint (host:port), endpoints (of a cluster), or master_name and sentinels"))
	case ways > 1:
		errs = append(errs, errors.New("endpoint, endpoints, and master_name with sentinels exclude each other"))
	case (r.MasterName == "") != (len(r.Sentinels) == 0):
		errs = append(errs, errors.New("master_name and sentinels need each other"))
	}
	if r.Endpoint != "" {
		errs = append(errs, validateAddress("endpoint", r.Endpoint))
	}
	for i, a := range r.Endpoints {
		errs = append(errs, validateAddress(fmt.Sprintf("endpoints[%d]", i), a))
	}
	for i, a := range r.Sentinels {
		errs = append(errs, validateAddress(fmt.Sprintf("sentinels[%d]", i), a))
	}
	if r.DB < 0 {
		errs = append(errs, fmt.Errorf("db is %d, want 0 or more", r.DB))
	}
	if r.DB != 0 && len(r.Endpoints) > 0 {
		errs = append(errs, fmt.Errorf("db is %d, but a cluster has only 0", r.DB))
	}
	return errors.Join(append(errs,
		validateTimeout("dial_timeout", r.DialTimeout),
		validateTimeout("read_timeout", r.ReadTimeout),
		validateTimeout("write_timeout", r.WriteTimeout))...)
}

func validateTimeout(key string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s is %v, want more than 0", key, d)
	}
	return nil
}

func validateAddress(key, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.ContainsAny(address, "/@ ") {
		return fmt.Errorf("%s is not host:port; user name, password, database and TLS have keys of their own", key)
	}
	return nil
}

// Client returns a client of the server. It reads the files of the TLS section, and
// does not dial.
func (r *Redis) Client(ctx context.Context) (redis.UniversalClient, error) {
	var tlsConfig *tls.Config
	if section := r.TLS.Get(); section != nil {
		var err error
		if tlsConfig, err = section.LoadTLSConfig(ctx); err != nil {
			return nil, fmt.Errorf("redis::tls: %w", err)
		}
	}
	o := redis.UniversalOptions{
		Addrs: []string{r.Endpoint}, DB: r.DB,
		Username: r.Username, Password: string(r.Password),
		DialTimeout: r.DialTimeout, ReadTimeout: r.ReadTimeout, WriteTimeout: r.WriteTimeout,
		ContextTimeoutEnabled: true,
		TLSConfig:             tlsConfig,
	}
	switch {
	case len(r.Endpoints) > 0:
		o.Addrs, o.IsClusterMode = r.Endpoints, true
	case r.MasterName != "":
		o.Addrs, o.MasterName = r.Sentinels, r.MasterName
		o.SentinelUsername, o.SentinelPassword = r.SentinelUsername, string(r.SentinelPassword)
	}
	return redis.NewUniversalClient(&o), nil
}
