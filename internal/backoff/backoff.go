// Package backoff keeps code from being called for a while after it has failed.
package backoff

import "math"

// A Breaker counts failures in a row, and stops calls until enough was appended since the last
// one. Its zero value has no failures. Sizes are in tokens.
type Breaker struct {
	Failures int   // in a row
	Appended int64 // ever, at the last failure
	Excused  bool  // one failure that the code was not to blame for was forgiven
	Cause    error // the last failure
}

// Trip counts a failure. appended is what was ever appended.
func (b *Breaker) Trip(appended int64, cause error) {
	b.Failures = min(b.Failures+1, math.MaxInt32)
	b.Appended, b.Cause = appended, cause
}

// IsOpen reports whether calls are stopped when that much was appended since the last failure.
// After the first failure in a row, they are stopped until first was appended, but at least 1.
// This doubles with each further failure, up to most.
func (b *Breaker) IsOpen(since, first, most int64) bool {
	if b.Failures == 0 {
		return false
	}
	wait := max(first, 1)
	most = max(most, wait)
	for range min(b.Failures-1, 62) {
		wait = min(wait*2, most)
	}
	return since < wait
}

// Saved returns b without its cause, for a record.
func (b Breaker) Saved() Breaker {
	b.Cause = nil
	return b
}
