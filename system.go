package convo

import "time"

// SetSystem replaces the system entries as a set, at any time, also while
// calls are open. The new ones get new IDs. With no messages it removes them.
func (h *History) SetSystem(msgs ...Message) error {
	batch, err := h.admitAll(msgs, RoleSystem, "SetSystem takes system messages")
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return ErrClosed
	}
	h.change()
	now := time.Now().UnixNano()
	sys := make([]*entry, len(batch))
	for i, a := range batch {
		h.last++
		a.id, a.head, a.at = h.last, h.last, now
		sys[i] = a.entry
	}
	if h.known().cal != nil {
		h.measured -= rawShared(h.sys, h.known().cal.at.sys)
	}
	h.sys, h.sysRaw = sys, rawOf(sys)
	h.settle()
	return nil
}

// SetEphemeral replaces the ephemeral messages as a set: user messages of the
// runtime, such as recalled facts or the state of the environment, that the
// model sees right before the user messages of the newest turn. They have no
// IDs, are counted, and are in no JSON and no fork. With no messages it
// removes them.
func (h *History) SetEphemeral(msgs ...Message) error {
	batch, err := h.admitAll(msgs, RoleUser, "SetEphemeral takes user messages")
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return ErrClosed
	}
	var eph *ephemeral
	if len(batch) > 0 {
		eph = new(ephemeral)
		for _, a := range batch {
			eph.msgs = append(eph.msgs, a.msg)
			eph.raw += a.tokens
		}
	}
	h.change()
	if h.known().cal != nil && h.known().cal.at.eph == h.eph {
		h.measured -= h.eph.tokens()
	}
	h.eph = eph
	h.settle()
	return nil
}

// admitAll admits messages that must all be of one role.
func (h *History) admitAll(msgs []Message, role Role, reason string) ([]arrival, error) {
	if h.ident == nil {
		return nil, ErrClosed
	}
	for i, m := range msgs {
		if m.Role != role {
			return nil, &MessageError{Index: i, Role: m.Role, Part: -1, Reason: reason}
		}
	}
	return h.admit(nil, msgs)
}
