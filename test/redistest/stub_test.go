package redistest_test

import (
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/otelcomcount/otelcomcount/test/redistest"
)

func TestStubAnswersAsTold(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
			s := redistest.NewStub(t, func(args []string) string {
				switch args[0] {
				case "evalsha":
					return redistest.ArrayReply(redistest.BulkReply("a"), redistest.IntReply(-3))
				case "eval":
					return redistest.ErrorReply("NOSCRIPT none")
				case "get":
					return "garbage\r\n"
				case "incr":
					return redistest.Hangup
				case "decr":
					return redistest.Silence
				}
				return redistest.Pass
			})
			c := s.Client(func(o *redis.Options) {
				o.Protocol, o.MaxRetries, o.ReadTimeout = protocol, -1, 100*time.Millisecond
			})
			require.NoError(t, c.Ping(t.Context()).Err())
			require.Equal(t, []any{"a", int64(-3)}, c.EvalSha(t.Context(), "0", nil).Val())
			require.True(t, redis.HasErrorPrefix(c.Eval(t.Context(), "", nil).Err(), "NOSCRIPT"))
			require.ErrorContains(t, c.Get(t.Context(), "k").Err(), "garbage")
			require.ErrorIs(t, c.Incr(t.Context(), "k").Err(), io.EOF)
			require.ErrorContains(t, c.Decr(t.Context(), "k").Err(), "timeout")
			require.ErrorContains(t, c.Set(t.Context(), "k", 1, 0).Err(), "unknown command")
			require.Equal(t, 1, s.Seen("EVALSHA"))
			require.NotZero(t, s.Accepted())
		})
	}
}
