package exact

import (
	"errors"
	"fmt"
	"time"
)

// What an add can end with, besides the errors of the client and of ctx. Test with
// [errors.Is]. Each but ErrUnknown and ErrNotReplicated says that this call counted
// nothing.
var (
	// ErrMax: the add would pass the maximum. The error is a [*MaxError].
	ErrMax = errors.New("exact: the maximum is reached")

	// ErrLimit: the count would pass 2^63-1.
	ErrLimit = errors.New("exact: the count would pass 2^63-1")

	// ErrIDReused: the id was used for another add: another amount, or AddUpTo in
	// place of Add. Ids belong to a key; the same id with another key is another id.
	ErrIDReused = errors.New("exact: the id was used for another add")

	// ErrUnknown: no answer came, or none that tells whether the add was counted.
	// Where that matters, add with an [ID] and, on this error, repeat the add with
	// the same id: it is counted once. The cause is wrapped.
	ErrUnknown = errors.New("exact: no answer; it may have been done; an add is safely repeated with the ID that it had, without one it may count twice")

	// ErrNotReplicated: the add is applied and returned, but fewer replicas than
	// [WaitReplicas] asks for have confirmed it in time. A repeat with the same
	// [ID] waits again and adds nothing.
	ErrNotReplicated = errors.New("exact: applied, not replicated")

	// ErrNotExecuted: it is proven that the add was not executed, so that it may be
	// repeated: the server refused it, or it was never sent. Of one in a transaction
	// also: Exec was not called yet, or the transaction was discarded or refused. The
	// cause, such as [redis.TxFailedErr], is wrapped.
	ErrNotExecuted = errors.New("exact: not executed")

	// ErrFull: with [FlushEvery], too many keys wait to be written, as after a long
	// outage of Redis.
	ErrFull = errors.New("exact: too many keys wait to be written")

	// ErrClosed: [Counters.Close] was called.
	ErrClosed = errors.New("exact: closed")
)

// MaxError says why an add was refused at the maximum. Nothing was changed.
type MaxError struct {
	Count int64         // the count now
	Max   int64         // as set by [Max]
	Reset time.Duration // until the window ends; 0 if there is none: no TTL, or nothing counted yet
}

// Error describes the refusal.
func (e *MaxError) Error() string {
	if e.Reset > 0 {
		return fmt.Sprintf("%v: the count is %d of %d, for another %v", ErrMax, e.Count, e.Max, e.Reset)
	}
	return fmt.Sprintf("%v: the count is %d of %d", ErrMax, e.Count, e.Max)
}

// Is makes errors.Is(err, ErrMax) true.
func (e *MaxError) Is(target error) bool { return target == ErrMax }
