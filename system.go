package convo

import (
	"reflect"
	"slices"
	"time"
)

// SetSystem replaces all system entries by the given system messages, which get
// new IDs; without messages it removes them. It may be called at any time, even
// while tool calls are open. With the messages that are in place already, it changes
// nothing, so it may be called before each request.
//
// Messages are copied and checked as by [History.Append]. SetSystem returns a
// [*MessageError] for one that is wrong or has another role; then nothing
// changes.
func (h *History) SetSystem(msgs ...Message) error {
	batch, err := h.newEntriesOf(RoleSystem, msgs, "SetSystem takes system messages only; see Append")
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	if slices.EqualFunc(h.sys, batch, func(e *entry, a pendingEntry) bool { return reflect.DeepEqual(e.msg, a.msg) }) {
		return nil
	}
	if err := inRange(h.last+ID(len(batch)), h.turn); err != nil {
		return err
	}
	h.newVersionLocked()
	now := time.Now().UnixNano()
	sys := make([]*entry, len(batch))
	for i, a := range batch {
		h.last++
		a.id, a.head, a.at = h.last, h.last, now
		sys[i] = a.entry
	}
	if h.known().cal != nil {
		h.measured -= h.sysShared(h.known().cal.at)
	}
	for _, e := range h.sys {
		h.leftLocked(departed{was: e}, false)
	}
	h.replace(sys, h.list, h.originals, h.listRaw, h.turns, h.turn)
	h.updateChargeLocked()
	return nil
}

// SetEphemeral replaces all ephemeral messages by the given ones; without messages it
// removes them. They are for facts about the moment, such as recalled memories or the
// state of the environment. The model sees them right before the user messages of the
// newest turn. They are counted, but have no IDs and are neither saved nor restored.
//
// They may have any role, in any order. A system message is sent at that place, as a
// note is; see [RolePolicy]. An assistant message may hold tool calls if the messages
// right after it answer all of them.
//
// Messages are copied and checked as by [History.Append], but no result is cut.
// SetEphemeral returns a [*MessageError] for a message that is wrong, and a
// [*PairError] for calls and results that do not pair; then nothing changes.
func (h *History) SetEphemeral(msgs ...Message) error {
	if h.ident == nil {
		return ErrClosed
	}
	batch, err := h.newEntries(nil, msgs)
	if err != nil {
		return err
	}
	eph, err := h.newEphemeral(batch)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	h.newVersionLocked()
	if h.known().cal != nil && h.known().cal.at.eph == h.eph {
		h.measured -= h.eph.tokens()
	}
	h.eph = eph
	h.updateChargeLocked()
	return nil
}

// newEphemeral returns a set of ephemeral messages, nil for an empty batch. Their calls
// and results must pair among themselves.
func (h *History) newEphemeral(batch []pendingEntry) (*ephemeral, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	alone := &History{ident: h.ident, noteTokens: h.noteTokens, opts: Options{Roles: Relaxed()}}
	alone.opts.Roles.Interrupt = false
	alone.mu.Lock()
	defer alone.mu.Unlock()
	j, err := alone.joinLocked(batch)
	if err != nil {
		return nil, err
	}
	if j.open.openCalls() > 0 {
		k := j.open.firstOpen()
		return nil, &PairError{Err: ErrOpenCalls, CallID: k.id, Name: k.name, Index: len(batch)}
	}
	eph := new(ephemeral)
	for _, a := range batch {
		if a.msg.Role == RoleSystem {
			a.setNote(true, h.noteTokens)
		}
		eph.msgs = append(eph.msgs, a.msg)
		eph.raw += a.tokens
	}
	return eph, nil
}

// newEntriesOf is newEntries for messages that must all be of one role. reason is
// the error's text for another role.
func (h *History) newEntriesOf(role Role, msgs []Message, reason string) ([]pendingEntry, error) {
	if h.ident == nil {
		return nil, ErrClosed
	}
	for i, m := range msgs {
		if m.Role != role {
			return nil, &MessageError{Index: i, Role: m.Role, Part: -1, Reason: reason}
		}
	}
	return h.newEntries(nil, msgs)
}
