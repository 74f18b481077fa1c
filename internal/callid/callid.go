// Package callid makes IDs for tool calls that came without one.
package callid

import "crypto/rand"

// New returns a random ID.
func New() string { return "call_" + rand.Text()[:16] }
