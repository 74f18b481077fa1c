package convo

import "context"

// SlidingWindow is a [CompactionStrategy] that keeps at most a number of the newest
// entries, of the newest turns, or of both, and drops the older ones. It is a
// [Trigger]. System entries do not count.
//
// It drops whole exchanges until no more than Keep entries and no more than Turns turns
// are left, and with them the summary, which stands for even older entries. If the
// window begins inside a turn, the user messages of that turn stay at its head, and
// count; if there is no room for them, it begins with the next turn. Only the floor
// stays in any case: pinned exchanges, and what the newest turn needs, such as all of a
// run of user messages that the model has not answered yet.
//
// A summary that an earlier link of a [Chain] has just made stays.
//
// After each edit the requests begin differently, so the provider has to fill its
// prompt cache again. If TriggerAt is twice Keep, that happens only once every
// Keep entries, and a conversation costs about a quarter of what it costs with
// the default TriggerAt. The same holds for Turns.
type SlidingWindow struct {
	// Keep is the number of entries to keep. Less than 1 means 1, or if Turns is
	// set, any number of entries.
	Keep int

	// Turns is the number of turns to keep, the newest one included. Less than 1
	// means any number of turns.
	Turns int

	// TriggerAt is the number of turns at which a compaction is due if Turns is
	// set, and otherwise the number of entries. One more than what is kept is the
	// least, and the default. If Keep and Turns are both set, a compaction is also
	// due as soon as there are more than Keep entries.
	TriggerAt int
}

// Name returns "sliding-window".
func (w SlidingWindow) Name() string { return "sliding-window" }

// keep returns how many entries and how many turns to keep; 0 means any number.
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
		return s.Turns > max(turns, w.TriggerAt-1) || entries > 0 && n > entries
	}
	return n > max(entries, w.TriggerAt-1)
}

// Compact returns an edit that drops what is older than the window. It returns
// [ErrNoGain] if there is nothing to drop.
func (w SlidingWindow) Compact(_ context.Context, s *Snapshot, _ Goal) (Edit, error) {
	place := w.place(&s.state)
	c := cut{s: s}
	c.collect(place, false)
	e := Edit{Drop: c.drop}
	if place > 0 && s.summary != nil && !s.summary.sum.Time.IsZero() {
		e.Summary = &Summary{}
	}
	if e.isZero() {
		return Edit{}, ErrNoGain
	}
	return e, nil
}

// place returns where the window begins in the list.
func (w SlidingWindow) place(s *state) int {
	entries, turns := w.keep()
	least := 0
	if turns > 0 {
		least = newest(s.list, 0, turns)
	}
	if entries == 0 || len(s.list)-least <= entries {
		return least
	}
	heads := 0 // user messages at the head of the turn so far
	for walk := walk(s); ; {
		turn, place := walk.turn, walk.at
		a, ok := walk.next()
		if !ok {
			return place
		}
		if a.turn != turn {
			heads = 0
		}
		if place >= least && len(s.list)-place+heads <= entries {
			return place
		}
		if a.user {
			heads++
		}
	}
}
