package convo

// A Trigger is an optional interface of a [CompactionStrategy]. It can start a compaction
// before the request is too large, for example by the number of entries or turns, or by
// time. [When] adds one to any strategy.
//
// When a compaction started by a Trigger is declined, the strategy is not called again
// until something has changed: a message was appended, an edit made, usage recorded,
// something pinned or set. Only the first of these declines is logged and passed to
// OnCompaction, and the next one only after an edit or a change of limits.
type Trigger interface {
	// Due reports whether to compact. Every check that finds the request small enough calls it
	// on the goroutine of the caller, without holding a lock. Calls may be concurrent. Due must
	// be quick and must not block. It may read the messages with [History.Snapshot], and must
	// not start a compaction: see [Options].
	Due(Status) bool
}

// A counting Trigger depends on the numbers of entries, turns and media alone. So a check
// asks it with the lock held, and makes no Status.
type counting interface{ isReached(s *state) bool }

// Triggers are those of a strategy.
type triggers struct {
	asked    Trigger    // nil: there is none, or all are in counting
	counting []counting // if all are of this kind
	byMedia  bool       // there is none, or the number of media is all that they look at
}

// isReached reports whether a counting Trigger is due.
func (t *triggers) isReached(s *state) bool {
	for _, c := range t.counting {
		if c.isReached(s) {
			return true
		}
	}
	return false
}

// isDue calls t.Due and turns a panic into an error. A nil t is never due.
func isDue(t Trigger, s Status) (due bool, err error) {
	if t == nil {
		return false, nil
	}
	defer catch(&err, "Trigger")
	return t.Due(s), nil
}
