package convo

import (
	"fmt"
	"slices"
)

// Pin pins the exchanges of the given entries. Edits do not drop, clear or rewrite pinned
// entries. Any entry of an exchange may be given. Results that are appended to the
// exchange later are also pinned. System entries need no pin and are ignored. If an ID is
// not in the view, Pin pins nothing, and its error matches [ErrNotFound].
func (h *History) Pin(ids ...ID) error {
	return h.changePins(ids, func(heads []ID) { h.addPinsLocked(heads...) })
}

// Unpin removes the pins of the exchanges of the given entries. Exchanges that are not
// pinned are ignored. If an ID is not in the view, nothing changes, and the error matches
// [ErrNotFound].
func (h *History) Unpin(ids ...ID) error {
	return h.changePins(ids, func(heads []ID) {
		h.newVersion()
		slices.Sort(heads)
		for _, head := range slices.Compact(heads) {
			if h.isPinned(head) {
				raw, measured := h.exchangeRaw(head)
				h.pinRaw, h.pinMeasured = h.pinRaw-raw, h.pinMeasured-measured
			}
		}
		h.pins = withoutPin(h.pins, heads...)
	})
}

// PinLast pins the newest exchange. Its error matches [ErrNotFound] if there are only
// system entries, or none.
func (h *History) PinLast() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	if len(h.list) == 0 {
		return fmt.Errorf("%w: there is no exchange to pin; append a message other than a system message first", ErrNotFound)
	}
	h.addPinsLocked(h.list[len(h.list)-1].head)
	return nil
}

// Pinned returns the IDs of all entries in pinned exchanges, ascending.
func (h *History) Pinned() []ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pinned()
}

// changePins calls change with the heads of the exchanges of the given entries, if
// there are any. The error matches ErrNotFound if an ID is not in the view.
func (h *History) changePins(ids []ID, change func(heads []ID)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	heads := make([]ID, 0, len(ids))
	for _, id := range ids {
		e := h.find(id)
		if e == nil {
			return notInView(id)
		}
		if !e.isSystem() {
			heads = append(heads, e.head)
		}
	}
	if len(heads) == 0 {
		return nil
	}
	change(heads)
	return nil
}

// addPinsLocked pins exchanges. If the current version comes from the last compaction,
// the new version counts as compacted, since a pin leaves nothing more to compact.
func (h *History) addPinsLocked(heads ...ID) {
	compacted := h.compactor.compacted == h.version
	h.newVersion()
	h.pin(heads...)
	if compacted {
		h.compactor.compacted = h.version
	}
}
