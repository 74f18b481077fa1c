//go:build !unix

package measure

import "time"

// CPU is the time since the start: this system does not tell processor time.
func CPU() time.Duration { return time.Since(start) }

var start = time.Now()
