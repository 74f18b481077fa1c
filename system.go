package convo

import (
	"slices"
	"time"
)

// SetSystem replaces all system entries with the given system messages, which get new
// IDs; without messages it removes them. It may be called at any time, even while tool
// calls are open. It changes nothing if the messages equal the present ones, so it may be
// called before each request.
//
// A change of the system text changes the beginning of each request: a provider's cache
// of the conversation is lost, and signed reasoning is no longer bound (see
// [Snapshot.Bound]). So a rule that is added, a new date or another mode is better
// appended as a note, see [RolePolicy], unless the earlier text must not be sent any
// more.
//
// Messages are copied and checked as by [History.Append]. For an invalid message, or
// another role, SetSystem returns a [*MessageError] and changes nothing.
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
	if slices.EqualFunc(h.sys, batch, func(e *entry, a pendingEntry) bool { return e.msg.sameAs(&a.msg) }) {
		return nil
	}
	if err := inRange(h.last+ID(len(batch)), h.turn); err != nil {
		return err
	}
	h.newVersion()
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
		h.recorder.left(nil, departed{was: e})
	}
	h.replace(sys, h.list, h.originals, h.turn)
	h.seenAgainLocked()
	h.updateChargeLocked()
	return nil
}

// SetEphemeral replaces the ephemeral messages that it has set before with the given
// ones; without messages it removes them. It changes nothing if the messages equal the
// present ones. They are for facts about the moment, such as recalled memories or the
// state of the environment. They are counted, but have no IDs and are neither saved nor
// restored. The model sees them where [Snapshot.Messages] says; those of
// Options.AfterCompaction come first.
//
// When a user message begins a new turn, they move after it. This and each change of them
// ends the bond of the signed reasoning that was made after them (see [Snapshot.Bound]),
// and a provider's cache ends where they were. A note, see [RolePolicy], has neither
// price.
//
// They may have any role, in any order. A system message is sent at that position, like a
// note. An assistant message may hold tool calls if the messages right after it answer
// all of them. Messages are copied and checked as by [History.Append], but no result is
// cut. SetEphemeral returns a [*MessageError] for an invalid message, and a [*PairError]
// for calls and results that do not pair; then nothing changes.
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
	back, own := h.eph.split()
	if own.sameAs(eph) {
		return nil
	}
	h.setEphemeralLocked(joinEphemeral(back, eph))
	return nil
}

func (h *History) setEphemeralLocked(eph *ephemeral) {
	h.newVersion()
	if h.known().cal != nil && h.known().cal.at.eph == h.eph {
		h.measured -= h.eph.tokens()
	}
	h.eph = eph
	h.seenAgainLocked()
	h.updateChargeLocked()
}

// withEphemeral returns the next version of s, with other ephemeral messages.
func (s *state) withEphemeral(eph *ephemeral) state {
	next := s.clipped()
	next.eph = eph
	next.version++
	next.sumMeasured(true)
	return next
}

// bringBack asks Options.AfterCompaction for messages, and adds them to the view. r is the
// report of the edit that was applied. If they are left aside, its Cause says why.
func (h *History) bringBack(r *Report) {
	if h.opts.AfterCompaction == nil {
		return
	}
	if err := h.takeBack(r); err != nil && err != ErrClosed {
		r.Cause = &leftAsideError{err: err, cause: r.Cause}
	}
}

func (h *History) takeBack(r *Report) (err error) {
	defer catch(&err, "Options.AfterCompaction")
	batch, err := h.newEntries(nil, h.opts.AfterCompaction(r.clone()))
	if err != nil {
		return err
	}
	back, err := h.newEphemeral(batch)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	was, own := h.eph.split()
	switch {
	case back.sameAs(was):
		return nil
	case back != nil:
		next := h.state.withEphemeral(joinEphemeral(back, own))
		if need, most := h.scaleOfLocked(&next).Upper(), min(h.meter.marks.high, h.meter.marks.limit); need > most {
			return &LimitError{Need: clampInt(need), Limit: clampInt(most), Compacted: true}
		}
	}
	h.setEphemeralLocked(joinEphemeral(back, own))
	h.compactor.settled(h.version, false)
	r.MessagesAfter, r.TokensAfter, r.Fits = h.messages(), h.estimateLocked().Upper, h.fitsLocked()
	if h.request != nil {
		r.PrefixKept, r.PrefixEnd, _ = h.prefixLocked()
	}
	return nil
}

// newEphemeral returns a set of ephemeral messages, or nil for an empty batch. Their
// calls and results must pair among themselves.
func (h *History) newEphemeral(batch []pendingEntry) (*ephemeral, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	alone := &History{setup: setup{ident: h.ident, noteTokens: h.noteTokens, opts: Options{Roles: Relaxed()}}}
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
		eph.add(a.msg, a.tokens)
	}
	return eph, nil
}

// newEntriesOf is newEntries for messages that must all have one role. reason is the text
// of the error for another role.
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
