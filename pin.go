package convo

import "fmt"

// Pin pins the exchanges of the given entries. Edits do not drop, clear or rewrite pinned
// entries. Any entry of an exchange may be given. Results that are appended to the
// exchange later are also pinned. System entries need no pin and are ignored: they stay
// until SetSystem replaces them. If an ID is not in the view, Pin pins nothing, and its
// error matches [ErrNotFound].
func (h *History) Pin(ids ...ID) error {
	return h.addPins(func() ([]ID, error) { return h.headsOf(ids) })
}

// PinLast pins the newest exchange. Its error matches [ErrNotFound] if there are only
// system entries, or none.
func (h *History) PinLast() error { return h.addPins(h.newestHead) }

// addPins pins the exchanges with the heads that heads returns. If the current version comes
// from the last compaction, the new version counts as compacted, since a pin leaves nothing
// more to compact.
func (h *History) addPins(heads func() ([]ID, error)) error {
	return h.ifOpen(func() error {
		list, err := heads()
		if err == nil && len(list) > 0 {
			h.newVersion()
			h.pin(list...)
			h.compactor.settled(h.version, false)
		}
		return err
	})
}

// Unpin removes the pins of the exchanges of the given entries. Exchanges that are not
// pinned are ignored. If an ID is not in the view, nothing changes, and the error matches
// [ErrNotFound].
func (h *History) Unpin(ids ...ID) error {
	return h.ifOpen(func() error {
		heads, err := h.headsOf(ids)
		if err == nil && len(heads) > 0 {
			h.newVersion()
			h.unpin(heads)
		}
		return err
	})
}

// headsOf returns the heads of the exchanges of entries, without system entries. The error
// matches ErrNotFound if an ID is not in the view.
func (s *state) headsOf(ids []ID) ([]ID, error) {
	heads := make([]ID, 0, len(ids))
	for _, id := range ids {
		e := s.find(id)
		if e == nil {
			return nil, notInView(id)
		}
		if !e.isSystem() {
			heads = append(heads, e.head)
		}
	}
	return heads, nil
}

// newestHead returns the head of the newest exchange.
func (s *state) newestHead() ([]ID, error) {
	if len(s.list) == 0 {
		return nil, fmt.Errorf("%w: there is no exchange to pin; append a message other than a system message first", ErrNotFound)
	}
	return []ID{s.list[len(s.list)-1].head}, nil
}

// unpin removes the pins of the exchanges with these heads. It sorts heads.
func (s *state) unpin(heads []ID) { s.pins = withoutPin(s.pins, s.countPins(heads, -1)...) }
