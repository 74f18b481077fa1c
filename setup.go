package convo

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A setup is what does not change after a History was made, but for maxResult.
type setup struct {
	opts            Options
	reads           bool         // whether Options.Strategy reads results that were cleared unread
	ident           *identity    // state.id, to be read without the lock
	interruptTokens int64        // tokens of interruptReason
	noteTokens      int64        // tokens of the tags of a note
	account         *account     // with Options.Budget; nil: without
	maxResult       atomic.Int64 // raw tokens of the text of a result; 0: no bound
}

// newEntries copies, checks and counts messages, and appends an entry for each
// to batch. It runs the caller's code, so no lock may be held.
func (s *setup) newEntries(batch []pendingEntry, msgs []Message) (_ []pendingEntry, err error) {
	defer catch(&err, "Options.Tokenizer")
	for i := range msgs {
		e, err := s.newEntry(&msgs[i])
		if err != nil {
			return nil, atIndex(err, i)
		}
		a := pendingEntry{entry: e}
		if e.msg.Role == RoleAssistant {
			e.calls = newCalls(&e.msg, s.ident.counter)
		}
		if s.opts.Pin != nil {
			if a.pin, err = safely("Options.Pin", func() bool { return s.opts.Pin(e.msg.clone()) }); err != nil {
				return nil, err
			}
		}
		batch = append(batch, a)
	}
	return batch, nil
}

// newEntry copies, checks and counts a message. It runs the caller's code, so no lock
// may be held.
func (s *setup) newEntry(m *Message) (*entry, error) {
	e := &entry{msg: *m}
	err := e.msg.checkShared(&e.inline)
	if err == nil && !s.opts.Roles.KeepEmpty && e.msg.isEmpty() {
		err = &MessageError{Role: m.Role, Part: -1, Reason: "empty message; RolePolicy.KeepEmpty allows it"}
	}
	if err != nil {
		return nil, err
	}
	s.ident.weigh(e)
	return e, nil
}

// newMessages is newEntries for messages of the conversation: it calls Options.Key and
// Options.Time.
func (s *setup) newMessages(batch []pendingEntry, msgs []Message) ([]pendingEntry, error) {
	batch, err := s.newEntries(batch, msgs)
	if err != nil {
		return nil, err
	}
	for i := range batch {
		if err := s.identify(batch[i].entry); err != nil {
			return nil, atIndex(err, i)
		}
	}
	return batch, nil
}

// identify sets the key of the message of e, if it has none, and the time of e.
func (s *setup) identify(e *entry) (err error) {
	if s.opts.Key != nil && e.msg.Key == "" {
		if err := s.name(&e.msg); err != nil {
			return err
		}
	}
	if s.opts.Time == nil {
		return nil
	}
	defer catch(&err, "Options.Time")
	t := s.opts.Time(e.msg.clone())
	at, ok := nanoseconds(t)
	if !ok {
		return &MessageError{Role: e.msg.Role, Part: -1, Reason: fmt.Sprintf("Options.Time returned %v; want a year from 1678 to 2261, or the zero time", t)}
	}
	if at != noTime {
		e.at = at
	}
	return nil
}

// name gives m the key that Options.Key returns.
func (s *setup) name(m *Message) (err error) {
	defer catch(&err, "Options.Key")
	m.Key = s.opts.Key(m.clone())
	return m.checkKey()
}

// isLong reports whether a holds results that may be longer than Options.MaxResult.
func (s *setup) isLong(a pendingEntry) bool {
	bound := s.maxResult.Load()
	return bound > 0 && a.msg.Role == RoleTool && a.tokens > bound
}

// joinsFirst reports whether a batch must have its IDs and pairs before cutResults, which may
// call Options.Spill or name entries in markers.
func (s *setup) joinsFirst(batch []pendingEntry) bool {
	return (s.opts.Spill != nil || s.ident.tool != "") && slices.ContainsFunc(batch, s.isLong)
}

// cutResults cuts the results of a batch that are longer than Options.MaxResult. It runs
// the caller's code, so no lock may be held.
func (s *setup) cutResults(batch []pendingEntry) (err error) {
	defer catch(&err, "Options.Tokenizer")
	for i := range batch {
		a := &batch[i]
		if !s.isLong(*a) {
			continue
		}
		if a.original, err = s.cut(a.entry, s.maxResult.Load()); err != nil {
			return atIndex(err, i)
		}
	}
	return nil
}

// cut cuts the results of e whose content has more than bound tokens, and
// returns the original of e, or nil if there are none.
func (s *setup) cut(e *entry, bound int64) (*original, error) {
	var o *original
	for i, p := range e.msg.Parts {
		r := p.(ToolResult)
		if s.ident.content(r.Parts) <= bound {
			continue
		}
		if s.ident.leastCut(&r, "") > bound {
			continue // the marker alone is longer
		}
		ref, err := s.spill(context.Background(), r)
		if err != nil {
			return nil, err
		}
		short, ok := s.ident.cutResult(r, bound, s.ident.cutPlace(&r, ref, e.id, bound))
		if !ok {
			return nil, &MessageError{Role: RoleTool, Part: i, Reason: fmt.Sprintf("Spill returned a reference of %s bytes, too long for MaxResult of %s tokens; return a shorter one", grouped(len(ref)), grouped(clampInt(bound)))}
		}
		if o == nil {
			o = newOriginal(e)
			o.msg.Parts = slices.Clone(e.msg.Parts)
		}
		if s.opts.Spill != nil {
			o.setRef(i, ref)
		}
		e.msg.Parts[i] = short
	}
	if o != nil {
		o.read = o.msg
		e.tokens = s.ident.message(&e.msg)
		e.setMissing(o)
	}
	return o, nil
}

// spill calls Options.Spill with the original of a result.
func (s *setup) spill(ctx context.Context, r ToolResult) (ref string, err error) {
	if s.opts.Spill == nil {
		return "", nil
	}
	defer catch(&err, "Options.Spill")
	r.Parts = slices.Clone(r.Parts)
	ref, err = s.opts.Spill(ctx, r)
	if err != nil {
		return "", errorf("spill result of call %q: %w", r.CallID, err)
	}
	return text.Valid(ref), nil
}

// newEphemeral returns a set of ephemeral messages, or nil without messages. Their calls and
// results must pair among themselves. It runs the caller's code, so no lock may be held.
func (s *setup) newEphemeral(msgs []Message) (*ephemeral, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	batch, err := s.newEntries(nil, msgs)
	if err != nil {
		return nil, err
	}
	free := &setup{ident: s.ident, noteTokens: s.noteTokens, opts: Options{Roles: Relaxed()}}
	free.opts.Roles.Interrupt = false
	j, err := new(view).join(free, batch, false)
	if err != nil {
		return nil, err
	}
	if j.open.openCalls() > 0 {
		err := j.open.openError()
		err.Index = len(batch)
		return nil, err
	}
	eph := new(ephemeral)
	for _, a := range batch {
		if a.msg.Role == RoleSystem {
			a.setNote(true, s.noteTokens)
		}
		eph.add(a.msg, a.tokens)
	}
	return eph, nil
}

// answerOpen marks the open calls of c as answered. It returns an error result for each,
// with IDs that follow last, and the indices of the calls. turn is the turn of the calls,
// reason the text of the results and tokens its count.
func (s *setup) answerOpen(c *calls, last ID, turn int, reason string, tokens int64) (results []*entry, answered []int) {
	if c.openCalls() == 0 {
		return nil, nil
	}
	now := time.Now().UnixNano()
	for i := range c.list {
		k := &c.list[i]
		if k.answered {
			continue
		}
		e := &entry{
			id:     last + ID(len(results)+1),
			head:   c.head,
			at:     now,
			turn:   turn,
			tools:  true,
			tokens: int64(s.ident.over.Message+s.ident.over.Result) + k.idTokens + k.nameTokens + tokens,
		}
		e.inline[0] = ToolResult{CallID: k.id, Name: k.name, Parts: []Part{Text(reason)}, IsError: true}
		e.msg = Message{Role: RoleTool, Parts: e.inline[:]}
		results, answered = append(results, e), append(answered, i)
	}
	for _, i := range answered {
		c.answer(i)
	}
	return results, answered
}

// newEntriesOf is newEntries for messages that must all have one role. reason is the text
// of the error for another role.
func (s *setup) newEntriesOf(role Role, msgs []Message, reason string) ([]pendingEntry, error) {
	if s.ident == nil {
		return nil, ErrClosed
	}
	for i, m := range msgs {
		if m.Role != role {
			return nil, &MessageError{Index: i, Role: m.Role, Part: -1, Reason: reason}
		}
	}
	return s.newEntries(nil, msgs)
}

// newQueued copies, checks and counts messages for the queue. It runs caller-supplied
// code, so no lock may be held.
func (s *setup) newQueued(msgs []Message) ([]*queued, error) {
	batch, err := s.newEntriesOf(RoleUser, msgs, "Queue takes user messages only; see Append")
	if err != nil {
		return nil, err
	}
	list := make([]*queued, len(batch))
	for i, a := range batch {
		if s.opts.Key != nil && a.msg.Key == "" {
			if err := s.name(&a.msg); err != nil {
				return nil, atIndex(err, i)
			}
		}
		list[i] = &queued{msg: a.msg, tokens: a.tokens, pin: a.pin}
	}
	return list, nil
}
