package convo

import (
	"errors"
	"fmt"
	"math"
)

// A breaker keeps automatic compactions from calling code that has failed until
// MinFree/2 new tokens have been appended. This number doubles with each
// further failure in a row, up to High - Low. Compactions that the caller
// requested are not affected.
type breaker struct {
	failures int   // in a row
	appended int64 // tokens ever appended at the last failure
	excused  bool  // one failure caused by a rollback was forgiven
	cause    error // the last failure
}

// A breakerError is ErrBreaker with the last failure.
type breakerError struct{ cause error }

func (e *breakerError) Error() string {
	return fmt.Sprintf("convo: summarizer is backing off after failures, the last of which was: %s; History.Compact calls it anyway", withoutPrefix(e.cause))
}

func (e *breakerError) Is(target error) bool { return target == ErrBreaker }

func (e *breakerError) Unwrap() error { return e.cause }

// errEarlier is the cause of the failures of a breaker that was stored.
var errEarlier = errors.New("convo: a failure before the History was opened")

// trip counts a failure.
func (b *breaker) trip(now *moment, cause error) {
	b.cause = cause
	b.failures = min(b.failures+1, math.MaxInt32)
	b.appended = now.appendedEver
}

// isOpen reports whether calls are stopped.
func (b *breaker) isOpen(now *moment) bool {
	if b.failures == 0 {
		return false
	}
	set := &now.marks.set
	wait := max(int64(set.MinFree)/2, 1)
	most := max(int64(set.High-set.Low), wait)
	for range min(b.failures-1, 62) {
		wait = min(wait*2, most)
	}
	return now.since(b.appended) < wait
}

// saved returns the part of b that a record holds.
func (b *breaker) saved() breaker {
	return breaker{failures: b.failures, appended: b.appended, excused: b.excused}
}
