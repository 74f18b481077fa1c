package convo

import "context"

// SlidingWindow is a [CompactionStrategy] that keeps a number of the newest
// entries and drops the older ones. It is a [Trigger]. System entries do not
// count.
//
// It keeps the newest exchanges that together hold at least Keep entries, the
// floor, and the user messages of the turn in which the window begins.
//
// After each edit the requests begin differently, so the provider has to fill its
// prompt cache again. If TriggerAt is twice Keep, that happens only once every
// Keep entries, and a conversation costs about a quarter of what it costs with
// the default TriggerAt.
type SlidingWindow struct {
	// Keep is the number of entries to keep. Less than 1 means 1.
	Keep int

	// TriggerAt is the number of entries at which a compaction is due. Keep or
	// less means Keep + 1.
	TriggerAt int
}

// Name returns "sliding-window".
func (w SlidingWindow) Name() string { return "sliding-window" }

// Due reports whether there are at least TriggerAt entries.
func (w SlidingWindow) Due(s Status) bool {
	keep := max(w.Keep, 1)
	return s.Entries-s.System > max(keep, w.TriggerAt-1)
}

// Compact returns an edit that drops the entries before the window. It returns
// [ErrNoGain] if there are none to drop.
func (w SlidingWindow) Compact(_ context.Context, s *Snapshot, _ Goal) (Edit, error) {
	place := max(len(s.list)-max(w.Keep, 1), 0)
	if place < len(s.list) {
		place, _ = exchangeAt(s.list, place)
	}
	c := cut{s: s}
	c.collect(place, false)
	if len(c.drop) == 0 {
		return Edit{}, ErrNoGain
	}
	return Edit{Drop: c.drop}, nil
}
