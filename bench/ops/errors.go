package ops

import (
	"errors"
	"fmt"
)

// errOver is returned by a cell that reduces where it should find nothing to
// do.
var errOver = errors.New("ops: over the limit")

// errIdle is returned by a cell that should reduce and does not.
var errIdle = errors.New("ops: nothing was reduced")

// wrongSize says that a cell left another number of messages than it should.
func wrongSize(n int) error { return fmt.Errorf("ops: %d messages are left", n) }
