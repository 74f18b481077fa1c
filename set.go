package convo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// SetSystem replaces all system entries with the given system messages, which get new IDs;
// without messages it removes them. It may be called at any time, even while tool calls are
// open. It changes nothing if the messages equal the present ones, so it may be called before
// each request.
//
// A change of the system text loses a provider's cache of the conversation, and signed
// reasoning is no longer bound (see [Snapshot.Unbound]). So a rule that is added, a new date or
// another mode is better appended as a note, see [RolePolicy], unless the earlier text must not
// be sent any more.
//
// Messages are copied and checked as by [History.Append]. An invalid message, or another role,
// is a [*MessageError]; then nothing changes.
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

// SetEphemeral replaces the ephemeral messages that it has set before with the given ones;
// without messages it removes them. It changes nothing if the messages equal the present ones.
// They are for facts about the moment, such as recalled memories or the state of the
// environment. They are counted, but have no IDs and are neither saved nor restored. The model
// sees them where [Snapshot.Messages] says; those of Options.AfterCompaction come first.
//
// When a user message begins a new turn, they move after it. This and each change of them ends
// the bond of the signed reasoning that was made after them (see [Snapshot.Unbound]), and a
// provider's cache ends where they were. A note, see [RolePolicy], has neither price.
//
// They may have any role, in any order. A system message is sent at that position, like a note.
// An assistant message may hold tool calls if the messages right after it answer all of them.
// Messages are copied and checked as by [History.Append], but no result is cut. An invalid
// message is a [*MessageError], and calls and results that do not pair a [*PairError]; then
// nothing changes.
func (h *History) SetEphemeral(msgs ...Message) error {
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

// mostTools is how many tools a History takes. No provider takes as many.
const mostTools = 10_000

// maxToolsKey is the length of the longest key.
const maxToolsKey = 256

// SetTools sets the tools that the model may call; without tools it removes them. They are then
// part of the view: they are counted, saved and in each [Snapshot], and the formats of package
// wire write them into the request. Limits.Tools is for what the request carries besides.
// Rollback and Undo leave them.
//
// Tools precede all messages. When they change, a provider's cache misses the whole request,
// and no signed reasoning is bound any more (see [Snapshot.Unbound]). SetTools changes nothing
// if the tools equal the present ones, so it may be called before each request.
//
// More than 10,000 tools, a tool that has neither a name nor an Opaque, and an Opaque that
// Append would refuse are a [*ValueError]. What a provider accepts is checked when the request
// is written.
func (h *History) SetTools(tools ...Tool) error {
	if len(tools) > mostTools {
		return &ValueError{Name: "tools", Value: fmt.Sprintf("%s tools", grouped(len(tools))), Want: "at most 10,000"}
	}
	own := make([]Tool, len(tools))
	for i, t := range tools {
		t.Name, t.Description, t.Schema = text.Valid(t.Name), text.Valid(t.Description), text.Valid(t.Schema)
		t.Opaque.Format, t.Opaque.JSON = text.Valid(t.Opaque.Format), text.Valid(t.Opaque.JSON)
		if err := t.check(); err != nil {
			return errorf("tools[%d]: %w", i, err)
		}
		own[i] = t
	}
	return h.setTools(own, "")
}

// check returns an error if t can be no tool.
func (t *Tool) check() error {
	if t.Opaque == (Opaque{}) {
		if t.Name == "" {
			return &ValueError{Name: "Tool.Name", Value: "", Want: "a name, or an Opaque for a tool of the provider's"}
		}
		return nil
	}
	if _, reason := t.Opaque.check(false); reason != "" {
		return &ValueError{Name: "Tool.Opaque", Value: abbreviate(t.Opaque.JSON), Want: "a format and valid JSON; this is an " + reason}
	}
	return nil
}

// SetToolsKey is for a program that gives its tools to the SDK of a provider and not to
// SetTools. The key identifies them, such as by a hash of their definitions, so that
// signed reasoning is not sent after other tools than it was made with (see
// [Snapshot.Unbound]). It replaces what SetTools or SetToolsKey has set; an empty key
// removes it. A key longer than 256 bytes is a [*ValueError].
func (h *History) SetToolsKey(key string) error {
	if len(key) > maxToolsKey {
		return &ValueError{Name: "key", Value: fmt.Sprintf("%s bytes long", grouped(len(key))), Want: "at most 256 bytes, such as a hash"}
	}
	return h.setTools(nil, text.Valid(key))
}

func (h *History) setTools(tools []Tool, key string) error {
	if h.ident == nil {
		return ErrClosed
	}
	next, err := safely("Options.Tokenizer", func() *toolset { return h.ident.toolset(tools, key) })
	if err != nil {
		return err
	}
	return h.ifOpen(func() error {
		if !h.tools.sameAs(next) {
			h.view.setTools(next)
		}
		return nil
	})
}

// setTools replaces the tools, which may be nil.
func (v *view) setTools(t *toolset) {
	v.newVersion()
	v.tools = t
	v.sumMeasured(true)
	v.seenAgain()
}

// Tools returns the tools given to [History.SetTools], in their order.
func (s *Snapshot) Tools() []Tool {
	return slices.Clone(orNil(s.tools).tools)
}

// SetModel names the model that the next requests go to, and replaces the limits in the
// same step, so that no request is made for one model with the limits of another. Zero
// limits keep those in force. Limits that are wrong are reported as by
// [History.SetLimits]; the model then stays the same. The name is empty at first. With
// the name and the limits in force, SetModel changes nothing, so it may be called before
// each request. Another name or other limits end the bound that Recover set after a
// provider named a limit.
//
// What usage reports have shown is kept separately for each model: a new name starts from
// its [Prior], a known one from its own reports. SetModel removes nothing: the next
// Prepare or Do compacts if the new model needs it.
func (h *History) SetModel(name string, l Limits) error {
	name = text.Valid(name)
	limits, faults := l.withDefaults()
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	defer h.warnDue(true)
	return h.ifOpen(func() error {
		isOther := name != h.known().model
		if l != (Limits{}) && (isOther || limits != h.meter.marks().set) {
			h.setLimitsLocked(limits, l.Tools > 0)
		}
		if isOther {
			h.newVersion()
			h.meter.setModel(nil)
			h.setModel(name, h.opts.prior(name), h.known().learned)
		}
		return nil
	})
}

// SetLimits replaces the limits, and ends the bound that Recover has set after a provider
// named a limit. It removes nothing: the next Prepare compacts to the new limits. If
// limits are out of range or clash, nothing changes, and the error joins a [*ValueError]
// for each fault.
func (h *History) SetLimits(l Limits) error {
	limits, faults := l.withDefaults()
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	defer h.warnDue(true)
	return h.ifOpen(func() error {
		h.setLimitsLocked(limits, true)
		return nil
	})
}

// setLimitsLocked replaces the limits. The new ones have their defaults. If tools is true,
// Limits.Tools was set with them.
func (h *History) setLimitsLocked(limits Limits, tools bool) {
	h.meter.setModel(&limits)
	h.setLimits(limits, tools)
	h.compactor.limitsSet()
	h.keepOriginalsLocked()
}
