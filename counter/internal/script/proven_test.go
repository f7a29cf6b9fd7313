package script_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/otelcomcount/otelcomcount/counter/internal/script"
)

// answer is an error that a server answered.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestProven(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	tests := []struct {
		err  error
		want bool
	}{
		// Nothing was written.
		{dial, true},
		{fmt.Errorf("redis: connection pool: %w", dial), true},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, dial), true},
		{redis.ErrPoolTimeout, true},
		{redis.ErrPoolExhausted, true},
		{redis.ErrClosed, true},
		{fmt.Errorf("hook: %w", redis.ErrClosed), true},

		// The server's own refusals.
		{redis.ErrNoScript, true},
		{answer("ERR NOSCRIPT No matching script. Please use EVAL."), true},
		{answer("MOVED 3999 127.0.0.1:6381"), true},
		{answer("ASK 3999 127.0.0.1:6381"), true},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		{redis.ErrCrossSlot, true},
		{answer("CLUSTERDOWN Hash slot not served"), true},
		{answer("LOADING Redis is loading the dataset in memory"), true},
		{answer("READONLY You can't write against a read only replica."), true},
		{answer("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), true},
		{answer("OOM command not allowed when used memory > 'maxmemory'."), true},
		{answer("OOM command not allowed when used memory > 'maxmemory'. script: f1, on @user_script:1."), true},
		{answer("NOPERM this user has no permissions to run the 'evalsha' command"), true},
		{answer("NOAUTH Authentication required."), true},
		{answer("WRONGPASS invalid username-password pair or user is disabled."), true},
		{answer("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."), true},
		{answer("NOREPLICAS Not enough good replicas to write."), true},
		{answer("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), true},
		{answer("ERR max number of clients reached"), true},
		{fmt.Errorf("hook: %w", answer("LOADING Redis is loading the dataset in memory")), true},

		// The same, wrapped by the script engine.
		{answer("ERR The user executing the script can't run this command or subcommand script: f1, on @user_script:1."), true},
		{answer("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: f1"), true},
		{answer("ERR ACL failure in script: User app has no permissions to run the 'incrby' command"), true},
		{answer("ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica."), true},
		{answer("ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'."), true},
		{answer("ERR Error running script (call to f_1): @user_script:1: The user executing the script can't run this command or subcommand"), true},

		{answer("@user_script: 1: -MISCONF Redis is configured to save RDB snapshots"), true},
		{answer("The user executing the script can't run this command or subcommand"), true},

		// Anything else may have been executed.
		{nil, false},
		{io.EOF, false},
		{io.ErrUnexpectedEOF, false},
		{context.Canceled, false},
		{context.DeadlineExceeded, false},
		{os.ErrDeadlineExceeded, false},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, false},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, false},
		{net.ErrClosed, false},
		{redis.Nil, false},
		{redis.TxFailedErr, false},
		{errors.New("LOADING is not what a server said"), false},
		{answer(""), false},
		{answer("ERR"), false},
		{answer("ERR internal error"), false},
		{answer("ERR Error running script (call to f_1): @user_script:1: attempt to index a nil value"), false},
		{answer("ERR Error running script (call to f_1): @user_script:1: -ERR value is not an integer or out of range"), false},
		{answer("ERR Error running script: READONLY"), false},
		{answer("BUSYKEY Target key name already exists."), false},
		{answer("BUSYGROUP Consumer Group name already exists"), false},
		{answer("UNKILLABLE Sorry the script already executed write commands against the dataset."), false},
		{answer("WRONGTYPE Operation against a key holding the wrong kind of value"), false},
		{answer("loading"), false},
		{answer("LOADINGX y"), false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.err), func(t *testing.T) {
			assert.Equal(t, tt.want, script.Proven(tt.err))
		})
	}
}
