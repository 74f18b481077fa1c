package convo

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/runs"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// isSummary calls Options.IsSummary.
func (l *loader) isSummary(e *entry) (is bool, err error) {
	if l.opts.IsSummary == nil || e.msg.Role == RoleTool || hasCalls(&e.msg) {
		return false, nil
	}
	defer catch(&err, "Options.IsSummary")
	return l.opts.IsSummary(e.msg.clone()), nil
}

// place makes the next entry of a snapshot that NewSnapshot made a part of the summary, if
// Options.IsSummary names it. With Options.Repair, it puts results without a call into a user
// message, and adds results in a user message right after calls as a tool message. It reports
// whether an entry is left to be added now.
func (l *loader) place() (isLeft bool, err error) {
	if !l.from.imported {
		return true, nil
	}
	i, e, repairs := l.at.index, *l.at.old, l.opts.Repair != nil
	l.at.old = &e
	isSummary, err := l.isSummary(&e)
	results := e.msg.ToolResults()
	switch {
	case err != nil:
		return false, err
	case isSummary:
		if t := strings.TrimSpace(text.Valid(e.msg.Text())); t != "" {
			l.texts = append(l.texts, t)
		}
		l.gone = append(l.gone, e.id)
		return false, nil
	case len(results) == 0 || !repairs:
	case e.msg.Role == RoleTool && l.calls == nil && !slices.ContainsFunc(results, func(r ToolResult) bool { return r.CallID != "" }):
		l.at.moved, l.at.mended = true, "kept as a user message"
		l.at.err = &PairError{Err: ErrNoOpenCall, Name: results[0].Name, Index: i}
		e.msg = noteOfResults(e.msg)
	case e.msg.Role == RoleUser && l.calls != nil:
		answer, k := e, slices.IndexFunc(e.msg.Parts, isA[ToolResult])
		answer.msg.Role, answer.msg.Author = RoleTool, ""
		answer.msg.Parts = slices.DeleteFunc(slices.Clone(e.msg.Parts), func(p Part) bool { return !isA[ToolResult](p) })
		l.at = placement{index: i, old: &answer, mended: "results put into a tool message"}
		l.at.err = &MessageError{Index: i, Role: RoleUser, Part: k, Reason: "a tool result belongs in a tool message"}
		err := l.entry()
		e.msg.Parts = slices.DeleteFunc(slices.Clone(e.msg.Parts), isA[ToolResult])
		l.at = placement{index: i, old: &e}
		return len(e.msg.Parts) > 0, err
	}
	return true, nil
}

// hasResultBehind reports whether the next entry after the i-th, except system
// messages, is a tool message.
func (s *state) hasResultBehind(i int) bool {
	for i++; i < s.len() && s.at(i).msg.Role == RoleSystem; {
		i++
	}
	return i < s.len() && s.at(i).msg.Role == RoleTool
}

// summarise makes the summary of the messages that are part of it, if there are any.
func (l *loader) summarise() {
	if len(l.texts) == 0 {
		return
	}
	all := strings.Join(l.texts, "\n\n")
	if hint := l.ident.summaryHint(); hint != "" {
		all = strings.ReplaceAll(all, hint, "")
	}
	sum := Summary{Covers: ranges.Of[Range](l.gone), Time: time.Now()}
	sum.Text, sum.Names = splitNames(all)
	l.to.summary = l.ident.place(sum)
}

// noteOfResults returns a user message with the results of m, a line each if there are
// several. In its tags stands the author of m, or if it has none, the tool.
func noteOfResults(m Message) Message {
	results := m.ToolResults()
	author := "tool"
	if len(results) == 1 {
		author += " " + results[0].Name
	}
	var parts []Part
	for _, r := range results {
		label := ""
		if len(results) > 1 {
			label = r.Name
		}
		if r.IsError {
			label = strings.TrimSpace(label + " error")
		}
		if label != "" {
			label += ":"
			if len(r.Parts) > 0 {
				if t, ok := r.Parts[0].(Text); ok {
					label, r.Parts = label+" "+string(t), r.Parts[1:]
				}
			}
			parts = append(parts, Text(label))
		}
		parts = append(parts, r.Parts...)
	}
	author = strings.TrimSpace(cmp.Or(m.Author, author))
	return Message{Role: RoleUser, Author: author, Parts: parts, Meta: m.Meta}
}

// NewSnapshot returns a snapshot of copies of msgs, with the IDs 1, 2, 3 and so on, to
// import a conversation with [Restore]. NewSnapshot checks nothing; Restore returns an
// error for a message that a History does not accept, or repairs it. Tokens are counted
// by the Tokenizer and the Overheads of the first options that are not nil; of the rest
// of them only AsSent counts. Without options, or if one of these functions panics, the
// defaults are used.
func NewSnapshot(msgs []Message, opts ...*Options) *Snapshot {
	if o := cmp.Or(opts...); o != nil {
		if s, err := newSnapshot(msgs, newCounter(o.Tokenizer, o.Overheads)); err == nil {
			if o.AsSent {
				s.bindAll()
			}
			return s
		}
	}
	s, _ := newSnapshot(msgs, newCounter(nil, Overheads{}))
	return s
}

// newSnapshot returns a snapshot of copies of msgs. The error is a panic of the
// counter.
func newSnapshot(msgs []Message, c *counter) (_ *Snapshot, err error) {
	defer catch(&err, "Options.Tokenizer")
	s := &Snapshot{imported: true, state: state{id: newIdentity(c, nil, "")}}
	now := time.Now().UnixNano()
	list := make([]*entry, 0, len(msgs))
	var turns runs.Turns
	for i, m := range msgs {
		e := &entry{msg: m.clone(), id: ID(i + 1), at: now, turn: turns.Next(false, 0, string(m.Role))}
		e.tokens = s.id.message(&e.msg)
		e.calls = newCalls(&e.msg, s.id.counter)
		list = append(list, e)
	}
	s.last = ID(len(msgs))
	setHeads(list)
	turn := newestTurn(list)
	sys, list := splitSystem(list, s.id.noteTokens())
	s.replace(sys, list, nil, turn)
	return s, nil
}
