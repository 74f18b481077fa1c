package convo

import "slices"

// Pin keeps the exchanges of the given entries in the view, word for word,
// through any number of reductions: all of them, or none when an ID is not in
// the view ([ErrNotFound]). Any entry stands for its exchange, results yet to
// come included. System entries need no pin. A pin costs as much as there are
// pins, one on the newest exchange costs nothing.
func (h *History) Pin(ids ...ID) error {
	return h.setPins(ids, func(heads []ID) { h.changePins(heads...) })
}

// Unpin takes the pins of the given entries' exchanges away, all or none. An
// exchange that is not pinned stays so.
func (h *History) Unpin(ids ...ID) error {
	return h.setPins(ids, func(heads []ID) {
		h.change()
		slices.Sort(heads)
		for _, head := range slices.Compact(heads) {
			if h.isPinned(head) {
				h.pinRaw -= h.exchangeRaw(head)
			}
		}
		h.pins = withoutPin(h.pins, heads...)
	})
}

// PinLast pins the newest exchange. It returns [ErrNotFound] when there is
// none.
func (h *History) PinLast() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return ErrClosed
	}
	if len(h.list) == 0 {
		return ErrNotFound
	}
	h.changePins(h.list[len(h.list)-1].head)
	return nil
}

// Pinned returns the IDs of all entries of pinned exchanges, ascending.
func (h *History) Pinned() []ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pinned()
}

func (h *History) setPins(ids []ID, set func(heads []ID)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return ErrClosed
	}
	heads := make([]ID, 0, len(ids))
	for _, id := range ids {
		e := h.find(id)
		if e == nil {
			return &IDError{ID: id}
		}
		if e.msg.Role != RoleSystem {
			heads = append(heads, e.head)
		}
	}
	if len(heads) == 0 {
		return nil
	}
	set(heads)
	return nil
}

// changePins adds pins. They give a compaction nothing to do that it had not
// before.
func (h *History) changePins(heads ...ID) {
	settled := h.compacted == h.version
	h.change()
	h.pin(heads...)
	if settled {
		h.compacted = h.version
	}
}

// pin adds pins.
func (s *state) pin(heads ...ID) {
	if len(heads) > 1 {
		slices.Sort(heads)
		heads = slices.Compact(heads)
	}
	for _, head := range heads {
		if !s.isPinned(head) {
			s.pinRaw += s.exchangeRaw(head)
		}
	}
	if len(heads) != 1 || !s.isPinned(heads[0]) {
		s.pins = withPin(s.pins, heads...)
	}
}

func (s *state) isPinned(head ID) bool {
	if n := len(s.pins); n > 0 && s.pins[n-1] < head {
		return false // as most appended entries
	}
	_, pinned := slices.BinarySearch(s.pins, head)
	return pinned
}

// exchangeRaw returns the tokens of the exchange that begins with an entry.
func (s *state) exchangeRaw(head ID) (raw int64) {
	i, ok := index(s.list, head)
	for ok && i < len(s.list) && s.list[i].head == head {
		raw += s.list[i].tokens
		i++
	}
	return raw
}

// sumPins counts the tokens of pinned exchanges afresh.
func (s *state) sumPins() {
	s.pinRaw = 0
	for _, head := range s.pins {
		s.pinRaw += s.exchangeRaw(head)
	}
}

// withPin returns pins with heads. It may write behind the end of pins, where
// no snapshot looks, and never into it.
func withPin(pins []ID, heads ...ID) []ID {
	if len(heads) == 1 && (len(pins) == 0 || pins[len(pins)-1] < heads[0]) {
		return append(pins, heads[0])
	}
	all := slices.Concat(pins, heads)
	slices.Sort(all)
	return slices.Compact(all)
}

// withoutPin returns pins without heads, in a slice of its own.
func withoutPin(pins []ID, heads ...ID) []ID {
	slices.Sort(heads)
	return slices.DeleteFunc(slices.Clone(pins), func(p ID) bool {
		_, gone := slices.BinarySearch(heads, p)
		return gone
	})
}
