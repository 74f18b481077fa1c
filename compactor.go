package convo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/backoff"
)

// A compactor knows when a compaction is due, which one runs, and what came of the last ones.
type compactor struct {
	triggers triggers      // of Options.Strategy
	ttl      time.Duration // Options.CacheTTL

	compacted uint64     // the version that the last compaction made; noVersion: none
	ready     *readyEdit // see Options.CacheTTL; nil: none
	declined  uint64     // 1 more than the newest version for which a triggered compaction was declined; 0: none was
	told      uint64     // 1 more than the version at the last such decline; 0: none since the limits were set
	breaker   breaker    // for summarizers
	warned    bool       // it was reported that nothing is compacted until a provider refuses a request
}

// newCompactor returns a compactor for a strategy with these triggers.
func newCompactor(t triggers, ttl time.Duration) compactor {
	return compactor{triggers: t, ttl: ttl, compacted: noVersion}
}

// A moment is what a compactor is told about a conversation as it is now.
type moment struct {
	*past
	at    *state
	upper int64 // upper bound of the next request
	marks *marks
}

// isEdited reports whether an edit has changed the view.
func (m *moment) isEdited() bool {
	return m.editedAt != 0 || m.at.touched > 0 || m.at.summary != nil
}

// fits reports whether the next request is within the limit.
func (m *moment) fits() bool { return m.upper <= m.marks.limit }

// since returns the upper bound of what was appended since so many tokens were.
func (m *moment) since(ever int64) int64 { return m.at.scale().Part(m.appendedEver - ever) }

// isHeld reports whether compactions must not start on their own, because an edit was
// undone and fewer than MinFree tokens were appended since. It matters only while the
// request fits.
func (m *moment) isHeld() bool { return m.heldSince != 0 && m.since(m.heldAt) < m.minFree() }

// minFree returns the least that a compaction should free if it was not asked for.
func (m *moment) minFree() int64 { return max(m.marks.minFree, 1) }

// A verdict says whether a compaction is due.
type verdict struct {
	due      bool
	reason   Reason
	target   int64         // upper bound of the request, in tokens; 0: the strategy decides
	pause    time.Duration // see Report.Pause
	ask      Trigger       // due if this is, to be asked without the lock; nil: none
	alone    bool          // none was asked for
	noWindow bool          // it has to be reported that none will ever be due
}

// due reports whether a compaction is due. The reason is ReasonManual, with the focus, if the
// caller has requested it, and ReasonTool for the model. For the others it is
// ReasonSoft, if the soft mark alone makes one due, or ReasonHigh. It sets v.
func (c *compactor) due(now *moment, asked Reason, focus string, v *verdict) {
	v.reason, v.target = asked, min(now.marks.low, now.upper/2)
	switch asked {
	case ReasonManual:
		again := focus != "" && focus != now.lastFocus
		v.due = now.at.appended != 0 || !now.isEdited() || now.heldSince != 0 || again || !now.fits()
	case ReasonTool:
		if now.upper > now.marks.high {
			v.reason = ReasonHigh
		}
		v.due = !now.isEdited() || now.at.scale().Part(now.at.appended) >= now.minFree() || !now.fits()
	default:
		v.reason, v.alone = 0, true
		c.dueAlone(now, asked == ReasonSoft, v)
		v.noWindow = !v.due && now.marks.high == noMark && !c.warned && c.triggers.byMedia
		c.warned = c.warned || v.noWindow
	}
}

// dueAlone reports whether a compaction is due that was not asked for. With soft, the soft
// mark alone makes one due.
func (c *compactor) dueAlone(now *moment, soft bool, v *verdict) {
	m, s := now.marks, now.at
	v.target = m.low
	switch {
	case now.fits() && (c.compacted == s.version || now.isHeld()):
	case now.upper > m.high:
		v.reason, v.due = ReasonHigh, true
	case now.upper > m.soft && soft && !c.isReady(now),
		now.upper > m.soft && (soft || c.pause(now) > 0 || c.isReady(now)) && !now.mustWait(c.ttl):
		v.reason, v.due, v.pause = ReasonSoft, true, c.pause(now)
	case soft && now.upper > m.soft:
	case c.declined == s.version+1:
	case c.triggers.isReached(s):
		v.reason, v.target, v.due = ReasonTrigger, 0, true
	case c.triggers.asked != nil:
		v.reason, v.target, v.ask = ReasonTrigger, 0, c.triggers.asked
	}
}

// restraints returns what keeps back a compaction that was not asked for: the version of
// the Undo that holds it up, or 0, and why no model may be called, or nil.
func (c *compactor) restraints(now *moment) (undone uint64, noModel error) {
	if now.fits() && now.isHeld() {
		undone = now.heldSince
	}
	if now.isOpen(&c.breaker) {
		noModel = &breakerError{c.breaker.Cause}
	}
	return undone, noModel
}

// A readyEdit is the edit of a compaction in the background that waits until it costs
// nothing; see Options.CacheTTL and CompactInBackground.
type readyEdit struct {
	edit     Edit
	at       *Snapshot // that the edit was made for
	minFree  int       // Goal.MinFree
	noSpill  bool      // Options.Spill must not be called
	strategy string
	work     Effort
}

// isReady reports whether an edit waits that can still be applied.
func (c *compactor) isReady(now *moment) bool {
	if c.ready == nil || now.rewritten > c.ready.at.version {
		return false
	}
	n := len(c.ready.edit.Drop)
	return n == 0 || now.at.find(c.ready.edit.Drop[n-1]) != nil
}

// swapReady lets an edit wait, or none if it is nil, and returns the edit that has waited.
func (c *compactor) swapReady(next *readyEdit) (waited *readyEdit) {
	waited, c.ready = c.ready, next
	return waited
}

// settled tells c that the newest version of the view leaves nothing to compact: a
// compaction made it, or something that makes none due, if that was so before.
func (c *compactor) settled(version uint64, byCompaction bool) {
	if byCompaction || c.compacted == version-1 {
		c.compacted = version
	}
}

// limitsSet tells c that limits were set. The next decline is reported again.
func (c *compactor) limitsSet() { c.told = 0 }

// pause returns the time since the newest answer, if the provider's cache is empty after it,
// and 0 otherwise.
func (c *compactor) pause(now *moment) time.Duration {
	return now.pause(cmp.Or(c.ttl, now.cacheTTL))
}

// An ending is how an attempt has ended.
type ending struct {
	declined bool   // a compaction that a Trigger has started
	at       uint64 // version of the view that the strategy saw
	call     callEnding
	cause    error // why a model was called in vain
}

// A callEnding is what came of the calls of a model for an attempt.
type callEnding uint8

const (
	notCalled callEnding = iota
	calledWell
	calledInVain
	calledInTime // in vain, since the view had changed when it returned
)

// ended updates the breaker after an attempt. It counts each attempt that called a model in
// vain: a call failed or did not return in time, or its summary was not used. It reports
// whether a decline was reported before, and since then nothing was edited and no limits were
// set.
func (c *compactor) ended(now *moment, e *ending) (told bool) {
	if e.declined {
		told = c.told > now.rewritten
		c.declined, c.told = e.at+1, now.at.version+1
	}
	switch {
	case e.call == calledWell:
		c.breaker = breaker{}
	case e.call == calledInTime && now.at.lastEdit() <= e.at && !c.breaker.Excused:
		// A rollback took back what the summary stands for. That is not the
		// summarizer's fault. An edit that makes it stale, or a second rollback in a
		// row, might be the summarizer's own.
		c.breaker.Excused = true
	case e.call != notCalled:
		c.breaker.Trip(now.appendedEver, e.cause)
	}
	return told
}

// saved returns what a record holds of the breaker.
func (c *compactor) saved() breaker { return c.breaker.Saved() }

// adopt takes over the breaker is of a record, if was is what the last record held and
// it has not changed since. It has more tokens ever appended than c knew.
func (c *compactor) adopt(was, is breaker, more int64) {
	if c.breaker.Saved() != was {
		c.breaker.Appended = max(c.breaker.Appended+more, 0)
		return
	}
	c.breaker = is
	if is.Failures > 0 {
		c.breaker.Cause = errEarlier
	}
}

// mustWait reports whether an edit for ReasonSoft would cost something that it costs no
// longer after a while. ttl is Options.CacheTTL.
func (m *moment) mustWait(ttl time.Duration) bool {
	return ttl > 0 && m.pause(ttl) == 0 || m.at.isInSealedRound()
}

// isInSealedRound reports whether a round of tool calls is under way and one of its
// newest answers has signed reasoning. The model goes on from it, and an edit of what
// stands before it ends its bond.
func (s *state) isInSealedRound() bool {
	const newest = 64 // entries, so that this takes constant time
	for i, e := range slices.Backward(s.list[max(len(s.list)-newest, 0):]) {
		switch {
		case e.msg.Role == RoleUser, i == len(s.list)-1 && e.msg.Role == RoleAssistant && e.calls == nil:
			return false
		case e.made() != 0 && e.id > s.released && e.msg.isSigned():
			return true
		}
	}
	return false
}

// pause returns the time since the newest answer, if it is longer than ttl, so that the
// provider's cache no longer holds the request, and 0 otherwise. With a ttl of 0 it never is.
func (m *moment) pause(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		return 0
	}
	at := m.lastAnswer()
	if age := time.Since(at); !at.IsZero() && age > ttl {
		return age
	}
	return 0
}

// lastAnswer returns when the newest answer came: when it or its usage was recorded or, if
// several were appended since, when the newest one was. The recorded answer may be
// appended as late as with the next request.
func (m *moment) lastAnswer() time.Time {
	const most = 64 // entries, so that this takes constant time
	var newest, before time.Time
	for _, e := range slices.Backward(m.at.list[max(len(m.at.list)-most, 0):]) {
		switch {
		case e.msg.Role != RoleAssistant:
		case newest.IsZero():
			newest = e.time()
		case before.IsZero() && !e.time().Equal(newest):
			before = e.time()
		}
	}
	if m.answeredAt.IsZero() || before.After(m.answeredAt) {
		return newest
	}
	return m.answeredAt
}

// A breaker keeps automatic compactions from calling code that has failed until
// MinFree/2 new tokens have been appended. This number doubles with each
// further failure in a row, up to High - Low. Compactions that the caller
// requested are not affected.
type breaker = backoff.Breaker

// isOpen reports whether a breaker stops calls.
func (m *moment) isOpen(b *breaker) bool {
	set := &m.marks.set
	return b.Failures > 0 && b.IsOpen(m.since(b.Appended), int64(set.MinFree)/2, int64(set.High-set.Low))
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

// A counting Trigger depends on the numbers of entries, turns and media alone. So a check asks it
// with the lock held, and makes no Status.
type counting interface{ isReached(s *state) bool }

// Triggers are those of a strategy.
type triggers struct {
	asked    Trigger    // nil: there is none, or all are in counting
	counting []counting // if all are of this kind
	byMedia  bool       // there is none, or the number of media is all that they look at
}

// isReached reports whether a counting Trigger is due.
func (t *triggers) isReached(s *state) bool {
	return slices.ContainsFunc(t.counting, func(c counting) bool { return c.isReached(s) })
}

// isDue calls t.Due and turns a panic into an error. A nil t is never due.
func isDue(t Trigger, s Status) (due bool, err error) {
	if t == nil {
		return false, nil
	}
	return safely("Trigger", func() bool { return t.Due(s) })
}
