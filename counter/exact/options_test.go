package exact_test

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/counter/exact"
)

func TestOpenRefusesMistakes(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	pipeliner, err := client.AutoPipeline()
	require.NoError(t, err)
	defer pipeliner.Close()

	for name, test := range map[string]struct {
		rdb  redis.UniversalClient
		name string
		opts []exact.Option
		want string
	}{
		"nil client":         {nil, "n", nil, "the client is nil"},
		"typed nil client":   {(*redis.Client)(nil), "n", nil, "the client is nil"},
		"typed nil cluster":  {(*redis.ClusterClient)(nil), "n", nil, "the client is nil"},
		"ring":               {ring, "n", nil, "moves keys to another server"},
		"auto pipeliner":     {pipeliner, "n", nil, "AutoPipeliner"},
		"empty name":         {client, "", nil, "the name is empty"},
		"brace in name":      {client, "a{b", nil, "holds a brace"},
		"brace in prefix":    {client, "n", opts(exact.Prefix("p}")), "holds a brace"},
		"TTL 0":              {client, "n", opts(exact.TTL(0)), "a TTL of 0s"},
		"TTL negative":       {client, "n", opts(exact.TTL(-time.Second)), "a TTL of -1s"},
		"TTL 1ns":            {client, "n", opts(exact.TTL(1)), "a TTL of 1ns"},
		"TTL 500us":          {client, "n", opts(exact.TTL(500 * time.Microsecond)), "a TTL of 500µs"},
		"TTL 292 years":      {client, "n", opts(exact.TTL(math.MaxInt64)), "between 1ms and 100 years"},
		"max 0":              {client, "n", opts(exact.Max(0)), "a maximum of 0"},
		"max negative":       {client, "n", opts(exact.Max(-1)), "a maximum of -1"},
		"flush 0":            {client, "n", opts(exact.FlushEvery(0)), "a flush every 0s"},
		"flush every day":    {client, "n", opts(exact.FlushEvery(24 * time.Hour)), "between 1ms and 1h"},
		"0 replicas":         {client, "n", opts(exact.WaitReplicas(0, time.Second)), "waiting for 0 replicas"},
		"wait for ever":      {client, "n", opts(exact.WaitReplicas(1, 0)), "waiting 0s"},
		"wait and flush":     {client, "n", opts(exact.WaitReplicas(1, time.Second), exact.FlushEvery(time.Second)), "cannot wait"},
		"nil option":         {client, "n", opts(nil), "nil option"},
		"replicas elsewhere": {wrapped{client}, "n", opts(exact.WaitReplicas(1, time.Second)), "not exact_test.wrapped"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := exact.Open(test.rdb, test.name, test.opts...)
			require.ErrorContains(t, err, test.want)
			require.Nil(t, c)
		})
	}
}

func TestOpenTakesTheBounds(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for _, opts := range [][]exact.Option{
		{exact.TTL(time.Millisecond), exact.Max(1), exact.FlushEvery(time.Millisecond), exact.Logger(nil)},
		{exact.TTL(100 * 365 * 24 * time.Hour), exact.Max(math.MaxInt64), exact.FlushEvery(time.Hour), exact.Logger(slog.New(slog.DiscardHandler))},
		{exact.WaitReplicas(1, time.Millisecond), exact.Prefix("any prefix:")},
		{exact.TTL(0), exact.TTL(time.Second)}, // the last one counts
	} {
		c, err := exact.Open(client, "n", opts...)
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
	}
}

func opts(o ...exact.Option) []exact.Option { return o }

// wrapped is a client of a type that the package does not know.
type wrapped struct{ *redis.Client }
