package counter

import "errors"

// ErrClosed is returned by Flush after Close or Shutdown, and where a group is
// asked for a counter that was closed.
var ErrClosed = errors.New("counter: closed")
