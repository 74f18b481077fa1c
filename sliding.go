package convo

import "context"

// SlidingWindow is a [CompactionStrategy] that keeps the newest entries, by
// count. It is a [Trigger]. Entries that are not system entries count.
//
// It keeps the newest exchanges that together hold at least Keep entries, the
// floor, and the user messages of the turn that the window begins in.
//
// Each edit moves the beginning of the requests, and the provider's prompt cache
// with it. With a TriggerAt of twice Keep that happens every Keep entries, and a
// conversation costs about a quarter of what it does with the default.
type SlidingWindow struct {
	Keep      int // less than 1: 1
	TriggerAt int // due at so many entries; Keep or less: Keep + 1
}

// Name returns "sliding-window".
func (w SlidingWindow) Name() string { return "sliding-window" }

// Due reports whether there are TriggerAt entries.
func (w SlidingWindow) Due(s Status) bool {
	keep := max(w.Keep, 1)
	return s.Entries-s.System > max(keep, w.TriggerAt-1)
}

// Compact plans what to drop.
func (w SlidingWindow) Compact(_ context.Context, s *Snapshot, _ Goal) (Edit, error) {
	place := max(len(s.list)-max(w.Keep, 1), 0)
	if place < len(s.list) {
		place, _ = exchangeAt(s.list, place)
	}
	c := cut{s: s}
	c.take(place, false)
	if len(c.drop) == 0 {
		return Edit{}, ErrNoGain
	}
	return Edit{Drop: c.drop}, nil
}
