package exact

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A write that fails after another one has been done takes that one back. No server
// that we know makes the second write fail alone, so here Redis' pcall is replaced.
func TestScriptsTakeBackWhatIsHalfDone(t *testing.T) {
	const failing = "local redis = {call = redis.call, error_reply = redis.error_reply, " +
		"pcall = function() return {err = 'NOPERM not this one'} end}\n"
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	run := func(source string, keys []string, args ...any) {
		t.Helper()
		require.ErrorContains(t, client.Eval(t.Context(), failing+source, keys, args...).Err(), "NOPERM")
	}
	require.NoError(t, m.Set("n:{k}", "5"))

	run(addLua, []string{"n:{k}", "n:{k}:id:x"}, "1", "100", "0", "", "86400000", "0")
	m.CheckGet(t, "n:{k}", "5")
	m.CheckGet(t, "n:{k}:id:x", "") // as good as none, for a millisecond
	require.Equal(t, time.Millisecond, m.TTL("n:{k}:id:x"))
	c, err := Open(client, "n")
	require.NoError(t, err)
	count, err := c.Add(t.Context(), "k", 1, ID("x"))
	require.NoError(t, err)
	require.Equal(t, int64(6), count, "a repeat in that millisecond counts")

	require.NoError(t, m.Set("n:{k}:w:old", "3"))
	run(countLua+batchLua, []string{"n:{k}", "n:{k}:w:old"}, "1", "100", "0", "4", "86400000")
	m.CheckGet(t, "n:{k}:w:old", "3")
	run(countLua+batchLua, []string{"n:{k}", "n:{k}:w:new"}, "1", "100", "0", "4", "86400000")
	m.CheckGet(t, "n:{k}:w:new", "0")
	run(countLua+deleteLua, []string{"n:{k}", "n:{k}:w:old"}, "9", "86400000")
	m.CheckGet(t, "n:{k}:w:old", "3")
	m.CheckGet(t, "n:{k}", "6")
}
