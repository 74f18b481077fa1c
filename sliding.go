package convo

import "context"

// SlidingWindow is a [CompactionStrategy] that keeps a number of the newest
// entries, of the newest turns, or both, and drops the older ones. It is a
// [Trigger]. System entries do not count.
//
// It keeps the newest exchanges that together hold at least Keep entries and Turns
// turns, the floor, and the user messages of the turn in which the window begins.
//
// After each edit the requests begin differently, so the provider has to fill its
// prompt cache again. If TriggerAt is twice Keep, that happens only once every
// Keep entries, and a conversation costs about a quarter of what it costs with
// the default TriggerAt. The same holds for Turns.
type SlidingWindow struct {
	// Keep is the number of entries to keep. Less than 1 means 1, or if Turns is
	// set, no number of entries.
	Keep int

	// Turns is the number of turns to keep, the newest one included. Less than 1
	// means no number of turns.
	Turns int

	// TriggerAt is the number of turns at which a compaction is due if Turns is
	// set, and otherwise the number of entries. One more than what is kept is the
	// least, and the default. If Keep and Turns are both set, a compaction is due
	// only if there are more than Keep entries as well.
	TriggerAt int
}

// Name returns "sliding-window".
func (w SlidingWindow) Name() string { return "sliding-window" }

// keep returns how many entries and how many turns to keep; 0 means no number.
func (w SlidingWindow) keep() (entries, turns int) {
	turns = max(w.Turns, 0)
	if entries = max(w.Keep, 0); turns == 0 {
		entries = max(entries, 1)
	}
	return entries, turns
}

// Due reports whether there are at least TriggerAt turns or entries.
func (w SlidingWindow) Due(s Status) bool {
	entries, turns := w.keep()
	n := s.Entries - s.System
	if turns > 0 {
		return n > entries && s.Turns > max(turns, w.TriggerAt-1)
	}
	return n > max(entries, w.TriggerAt-1)
}

// Compact returns an edit that drops the entries before the window. It returns
// [ErrNoGain] if there are none to drop.
func (w SlidingWindow) Compact(_ context.Context, s *Snapshot, _ Goal) (Edit, error) {
	entries, turns := w.keep()
	c := cut{s: s}
	c.collect(newest(s.list, entries, turns), false)
	if len(c.drop) == 0 {
		return Edit{}, ErrNoGain
	}
	return Edit{Drop: c.drop}, nil
}
