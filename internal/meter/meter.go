// Package meter counts work, so that tests can check how much of it is done.
package meter

import "sync/atomic"

// Encoded is how many bytes of messages the formats of package wire have written: their
// texts, arguments, data and blocks. Messages that an Encoder does not write again do not
// count.
var Encoded atomic.Int64
