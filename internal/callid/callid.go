// Package callid makes IDs for tool calls that came without one.
package callid

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
)

// New returns a random ID.
func New() string { return "call_" + rand.Text()[:16] }

// Of returns the ID of a call of the message with a key: the same each time.
func Of(key string, call int) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "call %d of %s", call, key))
	return "call_" + base32.StdEncoding.EncodeToString(hash[:])[:16]
}
