package convo

import (
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
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
	return h.ifOpen(func() error {
		was := h.sys
		changed, err := h.setSystem(batch)
		if err != nil || !changed {
			return err
		}
		for _, e := range was {
			h.recorder.left(nil, departed{was: e})
		}
		return nil
	})
}

// setSystem replaces the system entries, unless the messages are the same. It reports whether
// it did.
func (v *view) setSystem(batch []pendingEntry) (changed bool, err error) {
	if slices.EqualFunc(v.sys, batch, func(e *entry, a pendingEntry) bool { return e.msg.sameAs(&a.msg) }) {
		return false, nil
	}
	if err := inRange(v.last+ID(len(batch)), v.turn); err != nil {
		return false, err
	}
	v.newVersion()
	now := time.Now().UnixNano()
	sys := make([]*entry, len(batch))
	for i, a := range batch {
		v.last++
		a.id, a.head, a.at = v.last, v.last, now
		sys[i] = a.entry
	}
	if v.known().cal != nil {
		v.measured -= v.sysShared(v.known().cal.at)
	}
	v.replace(sys, v.list, v.originals, v.turn)
	v.seenAgain()
	return true, nil
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
	eph, err := h.newEphemeral(msgs)
	if err != nil {
		return err
	}
	return h.ifOpen(func() error {
		if back, own := h.eph.split(); !own.sameAs(eph) {
			h.setEphemeral(joinEphemeral(back, eph))
		}
		return nil
	})
}

// setEphemeral replaces the ephemeral messages.
func (v *view) setEphemeral(eph *ephemeral) {
	v.newVersion()
	if v.known().cal != nil && v.known().cal.at.eph == v.eph {
		v.measured -= v.eph.tokens()
	}
	v.eph = eph
	v.seenAgain()
}

// bringBack asks Options.AfterCompaction for messages, and adds them to the view. r is the
// report of the edit that was applied. An error says why the messages are left aside.
func (h *History) bringBack(r *Report) (err error) {
	defer catch(&err, "Options.AfterCompaction")
	back, err := h.newEphemeral(h.opts.AfterCompaction(r.clone()))
	if err != nil {
		return err
	}
	return h.ifOpen(func() error {
		was, own := h.eph.split()
		switch {
		case back.sameAs(was):
			return nil
		case back != nil:
			next := h.withEphemeral(joinEphemeral(back, own))
			if need, most := next.scale().Upper(), min(h.meter.marks().high, h.meter.marks().limit); need > most {
				return &LimitError{Need: clampInt(need), Limit: clampInt(most), Compacted: true}
			}
		}
		h.setEphemeral(joinEphemeral(back, own))
		h.compactor.settled(h.version, false)
		r.MessagesAfter, r.TokensAfter, r.Fits = h.messages(), h.estimate().Upper, h.fits(h.meter.marks())
		if h.request != nil {
			r.PrefixKept, r.PrefixEnd, _ = h.keptPrefix()
		}
		return nil
	})
}

// Release ends the bond of all entries appended so far, for good: no Undo, Rollback or
// load restores it, and package wire sends none of their signed reasoning to any model. It is
// for a provider that has refused the signature of reasoning, which Do and Recover recognise.
// It returns how many entries were bound.
func (h *History) Release() (released int) {
	h.change(func() error {
		released = h.bonds()
		if !h.isClosed() && h.released < h.last {
			h.release(h.last)
		}
		return nil
	})
	return released
}

// SetMeta replaces the title of the conversation and the data that the application keeps
// with it, such as the id of its user; empty strings remove them. Both are saved,
// restored and copied to forks. They are neither sent nor counted. [Snapshot.Meta]
// returns them. Rollback, Rewind and Undo do not change them.
//
// For a title above 256 bytes or data above 64 KiB, SetMeta returns a [*ValueError] and
// changes neither. Invalid UTF-8 is first replaced by U+FFFD.
func (h *History) SetMeta(title, data string) error {
	next := meta{text.Valid(title), text.Valid(data)}
	if err := next.check(); err != nil {
		return err
	}
	return h.ifOpen(func() error {
		if next != h.meta {
			h.setMeta(next)
		}
		return nil
	})
}
