package convo

import "cmp"

// learn takes over what a provider's error says of the request that was made from
// at, a snapshot of h, if the size that it states agrees with ours: the size of
// the prompt as a usage report, and a limit as a bound on the marks. It returns
// the limit that was named, or 0 if there is no bound.
func (h *History) learn(at *Snapshot, cause error) (named int) {
	f := figuresOf(cause) // this runs the caller's code
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ownsLocked(at) != nil || at.known().model != h.known().model {
		return 0
	}
	ours := h.scaleLocked().Weigh(at.raw())
	theirs := int64(f.request())
	if theirs < ours/2 || theirs/2 > ours {
		return 0 // the request of another, or counted in another unit
	}
	if f.prompt > 0 && at.version >= h.known().learned.version(at.known().model) {
		h.applyUsageLocked(at, int64(f.prompt))
		ours = h.scaleLocked().Weigh(at.raw())
	}
	room := f.limit - f.output
	if f.output == 0 && h.limits.Window > f.limit {
		room -= int(int64(h.limits.Reserve) * int64(f.limit) / int64(h.limits.Window)) // the answer needs its share
	}
	switch {
	case f.limit == 0, f.limit >= f.refused(), room <= 0:
		return 0
	case int64(f.limit) < cmp.Or(h.limits.most(), ours)/2: // that of a small model which a gateway fell back to
		return 0
	case int64(room) >= h.marks.limit:
		return 0
	}
	h.newVersionLocked()
	h.named = room
	h.updateMarksLocked()
	return f.limit
}
