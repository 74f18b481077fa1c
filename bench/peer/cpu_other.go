//go:build !unix

package peer

import "time"

// CPU returns the time since the start of the process, because this system does
// not report processor time.
func CPU() time.Duration { return time.Since(start) }

var start = time.Now()
