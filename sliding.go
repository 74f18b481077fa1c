package convo

import "context"

// SlidingWindow is a [CompactionStrategy] that keeps a number of the newest entries, of the
// newest turns, or of both, and drops older ones. It is a [Trigger]. System entries do not
// count.
//
// It drops whole exchanges until at most KeepLast entries and at most KeepTurns turns are left,
// and the summary, which covers even older entries, unless an earlier link of a [Chain] has
// just made it. If the window begins inside a turn, the user messages of that turn stay at its
// head and count. If there is no room for them, the window begins with the next turn. The floor
// always stays: pinned exchanges, and the required part of the newest turn, such as a whole run
// of user messages that the model has not answered yet.
//
// Each edit changes the beginning of requests, so the provider has to fill its prompt cache
// again. If TriggerAt is twice KeepLast, that happens only once every KeepLast entries, and a
// conversation costs about a quarter as much as with the default TriggerAt. The same holds for
// KeepTurns.
type SlidingWindow struct {
	KeepLast  int // the number of entries to keep; less than 1 means 1, or with KeepTurns any number
	KeepTurns int // the number of turns to keep, the newest one included; less than 1 means any number

	// TriggerAt is the number of turns at which a compaction is due if KeepTurns is set, and
	// otherwise the number of entries. The minimum and default is one more than the number to
	// keep. If KeepLast and KeepTurns are both set, a compaction is also due as soon as there
	// are more than KeepLast entries.
	TriggerAt int
}

// Name returns "sliding-window".
func (w SlidingWindow) Name() string { return "sliding-window" }

// keep returns how many entries and how many turns to keep; 0 means any number.
func (w SlidingWindow) keep() (entries, turns int) {
	entries, turns = max(w.KeepLast, 0), max(w.KeepTurns, 0)
	if turns == 0 {
		entries = max(entries, 1)
	}
	return entries, turns
}

// Due reports whether there are at least TriggerAt turns or entries.
func (w SlidingWindow) Due(s Status) bool { return w.reached(s.Entries-s.System, s.Turns) }

func (w SlidingWindow) isReached(s *state) bool { return w.reached(len(s.list), s.turns) }

// reached is Due for n entries besides the system entries, in the given number of turns.
func (w SlidingWindow) reached(n, inTurns int) bool {
	entries, turns := w.keep()
	if turns > 0 {
		return inTurns > max(turns, w.TriggerAt-1) || entries > 0 && n > entries
	}
	return n > max(entries, w.TriggerAt-1)
}

// Compact returns an edit that drops the entries before the window. It returns
// [ErrNoGain] if there are none.
func (w SlidingWindow) Compact(_ context.Context, s *Snapshot, _ Goal) (Edit, error) {
	c, l := cut{s: s}, s.exchanges(nil)
	entries, turns := w.keep()
	place := 0
	if turns > 0 {
		place = l.At(newest(s.list, 0, turns))
	}
	if entries > 0 {
		place = l.Window(place, entries, len(s.list))
	}
	c.collect(l.Before(place, false))
	e := Edit{Drop: c.drop}
	if place > 0 && s.summary != nil && !s.summary.sum.Time.IsZero() {
		e.Summary = &Summary{}
	}
	return orNoGain(e, !e.isZero())
}

// Truncate is a [CompactionStrategy] that drops the oldest exchanges until the view is no
// larger than Goal.Target. It calls no model.
//
// It cuts between exchanges. If the cut falls inside a turn, the user messages of that
// turn stay, at the beginning of what is kept; if the next turn begins soon after the
// cut, the cut moves there. The summary is removed only if the request cannot be brought
// under the limit otherwise; then Report.SummaryDropped is set.
type Truncate struct{}

// Name returns "truncate".
func (Truncate) Name() string { return "truncate" }

// Compact returns an edit that drops the oldest exchanges. It returns
// [ErrNoGain] if s is small enough already, or if there is nothing to drop.
func (Truncate) Compact(_ context.Context, s *Snapshot, g Goal) (Edit, error) {
	target := g.target(s)
	if s.raw() <= target {
		return Edit{}, ErrNoGain
	}
	c := cutTo(s, g.room(s), 0, len(s.list))
	e := Edit{Drop: c.drop}
	if g.Limit > 0 && c.remaining > int64(g.Limit) && s.summary != nil {
		e.Summary = &Summary{}
	}
	return orNoGain(e, !e.isZero())
}
