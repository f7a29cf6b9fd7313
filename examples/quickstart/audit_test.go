package main

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAuditReadsEachIntervalOnce(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	at := func(interval int) { server.SetTime(time.Unix(int64(interval), 500_000_000)) }

	at(100)
	a, err := newAudit(t.Context(), client, "p:{c}:", time.Second)
	require.NoError(t, err)
	require.NoError(t, server.Set("p:{c}:100", "4"))
	require.NoError(t, a.read(-1))
	assert.Zero(t, a.sum(), "interval 100 is not closed")

	at(101)
	require.NoError(t, a.read(-1))
	require.NoError(t, a.read(-1))
	assert.EqualValues(t, 4, a.sum())

	require.NoError(t, server.Set("p:{c}:101", "2"))
	require.NoError(t, server.Set("p:{c}:102", "-1")) // ahead
	require.NoError(t, a.read(1))
	assert.EqualValues(t, 5, a.sum())
	assert.Zero(t, a.missed)

	at(110)
	require.NoError(t, a.read(-1))
	assert.EqualValues(t, 5, a.missed, "keys of 103 to 107 may have come and gone, those of 108 and 109 would be there")
}
