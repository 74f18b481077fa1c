package convo

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// SummaryTagged returns a function for Options.IsSummary that finds the summaries of
// another system: system messages whose Author is one of the tags, and user and assistant
// messages whose text begins with one. Without tags, these are used:
//
//	[auto-summary]                   // ds-api, as the name of a system message
//	[Summary of prior conversation]  // ailoop, as the beginning of a user message
//
// Use it only for conversations of a system that writes these tags: what a user begins
// with one also becomes part of the summary.
func SummaryTagged(tags ...string) func(Message) bool {
	tags = slices.Clone(tags)
	if len(tags) == 0 {
		tags = []string{"[auto-summary]", "[Summary of prior conversation]"}
	}
	return func(m Message) bool {
		return slices.ContainsFunc(tags, func(tag string) bool {
			if m.Role == RoleSystem {
				return tag != "" && m.Author == tag
			}
			return tag != "" && strings.HasPrefix(m.Text(), tag)
		})
	}
}

// isSummary calls Options.IsSummary.
func (l *loader) isSummary(e *entry) (is bool, err error) {
	if l.opts.IsSummary == nil || e.msg.Role == RoleTool || hasCalls(&e.msg) {
		return false, nil
	}
	defer catch(&err, "Options.IsSummary")
	return l.opts.IsSummary(e.msg.clone()), nil
}

// place makes those messages of the snapshot a summary, if NewSnapshot made it, which
// Options.IsSummary names. With Options.Repair, it puts notes between a call and its
// results after these, results without a call into user messages, and results in user
// messages right after calls into tool messages. IDs stay, even those of messages that move
// after others, to which entry gives new ones; l.from becomes another snapshot, and l.placed
// says where its entries come from.
func (l *loader) place() error {
	s := l.from
	if !s.imported || l.opts.IsSummary == nil && l.opts.Repair == nil {
		return nil
	}
	own := &Snapshot{state: s.state}
	var sys, list []placedEntry
	var texts []string
	var gone []ID
	var held []placedEntry // notes between a call and its result, to be put after it
	hasCall := false       // the newest message of list other than results has calls
	repairs := l.opts.Repair != nil
	for i := range s.len() {
		e := placedEntry{*s.at(i), placement{index: i}}
		isSummary, err := l.isSummary(&e.entry)
		if err != nil {
			return err
		}
		role, isBetween := e.msg.Role, hasCall && own.hasResultBehind(i)
		if results, rest, k := splitResults(e.msg.Parts); len(results) > 0 && role == RoleUser && !isSummary && hasCall && repairs {
			answer := e
			answer.msg.Role, answer.msg.Author, answer.msg.Parts = RoleTool, "", results
			answer.err, answer.mended = &MessageError{Index: i, Role: RoleUser, Part: k, Reason: "a tool result belongs in a tool message"}, "results put into a tool message"
			list = append(list, answer)
			if len(rest) == 0 {
				continue
			}
			e.msg.Parts = rest
		}
		switch {
		case isSummary:
			if t := strings.TrimSpace(text.Valid(e.msg.Text())); t != "" {
				texts = append(texts, t)
			}
			gone = append(gone, e.id)
			continue
		case i < len(s.sys):
			sys = append(sys, e)
			continue
		case e.note && isBetween && repairs:
			e.moved, e.err, e.mended = true, &RoleError{Attempted: RoleSystem, Previous: RoleAssistant, Index: i}, "put after the results"
			held = append(held, e)
			continue
		case role == RoleTool && !hasCall && isUnnamed(&e.msg) && repairs:
			e.moved, e.err, e.mended = true, &PairError{Err: ErrNoOpenCall, Name: e.msg.ToolResults()[0].Name, Index: i}, "kept as a user message"
			e.msg = noteOfResults(e.msg)
		}
		if e.msg.Role != RoleTool {
			hasCall = hasCalls(&e.msg)
		}
		list = append(list, e)
		if len(held) > 0 && !own.hasResultBehind(i) {
			list, held = append(list, held...), nil
			hasCall = false
		}
	}
	l.replace(own, sys, list)
	if len(texts) > 0 {
		l.summarise(strings.Join(texts, "\n\n"), gone)
	}
	return nil
}

// A placedEntry is an entry with its placement.
type placedEntry struct {
	entry
	placement
}

// replace makes own, with these entries, the snapshot that is loaded.
func (l *loader) replace(own *Snapshot, sys, list []placedEntry) {
	all := slices.Concat(sys, list)
	entries := make([]*entry, len(all))
	for i := range all {
		entries[i] = &all[i].entry
		l.placed = append(l.placed, all[i].placement)
	}
	setHeads(entries[len(sys):])
	own.load(entries[:len(sys):len(sys)], entries[len(sys):], nil, setTurns(entries[len(sys):]))
	l.from = own
}

// splitResults returns the results among parts and the other parts, and the index of the
// first result.
func splitResults(parts []Part) (results, rest []Part, first int) {
	for i, p := range parts {
		if _, ok := p.(ToolResult); !ok {
			rest = append(rest, p)
			continue
		}
		if len(results) == 0 {
			first = i
		}
		results = append(results, p)
	}
	return results, rest, first
}

// hasResultBehind reports whether the next entry after the i-th, except system
// messages, is a tool message.
func (s *state) hasResultBehind(i int) bool {
	for i++; i < s.len() && s.at(i).msg.Role == RoleSystem; {
		i++
	}
	return i < s.len() && s.at(i).msg.Role == RoleTool
}

// summarise adds a text to the summary, which stands for the entries with these IDs.
func (l *loader) summarise(text string, ids []ID) {
	var sum Summary
	if hint := l.ident.summaryHint(); hint != "" {
		text = strings.ReplaceAll(text, hint, "")
	}
	text, names := splitNames(text)
	if l.to.summary != nil {
		sum = l.to.summary.sum
		text = sum.Text + "\n\n" + text
		names = strings.TrimSpace(sum.Names + " " + names)
	}
	sum.Names, sum.Native, sum.before = names, Native{}, nil // the provider has not read the text
	sum.Text, sum.Covers, sum.Time = text, slices.Concat(sum.Covers, rangesOf(ids)), time.Now()
	sum.Covers = l.from.covering(sum.Covers)
	l.to.summary = l.ident.placed(sum)
}

// noteOf returns a user message with the parts, in tags that name the author of m, or
// if it has none, the given one.
func noteOf(m Message, author string, parts []Part) Message {
	if m.Author != "" {
		author = m.Author
	}
	return Message{Role: RoleUser, Author: strings.TrimSpace(author), Parts: parts, Meta: m.Meta}
}

// noteOfResults returns a user message with the results of m, a line each if there are
// several.
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
	return noteOf(m, author, parts)
}

// isUnnamed reports whether m holds results, and none of them names its call.
func isUnnamed(m *Message) bool {
	return len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, func(p Part) bool {
		r, ok := p.(ToolResult)
		return !ok || r.CallID != ""
	})
}

// NewSnapshot returns a snapshot of copies of msgs, with the IDs 1, 2, 3 and so on, to
// import a conversation with [Restore]. NewSnapshot checks nothing; Restore returns an
// error for a message that a History does not accept, or repairs it. Tokens are counted
// by the Tokenizer and the Overheads of the first options that are not nil; of the rest
// of them only AsSent counts. Without options, or if one of these functions panics, the
// defaults are used.
func NewSnapshot(msgs []Message, opts ...*Options) *Snapshot {
	for _, o := range opts {
		if o != nil {
			if s, err := newSnapshot(msgs, newCounter(o.Tokenizer, o.Overheads)); err == nil {
				if o.AsSent {
					s.bindAll()
				}
				return s
			}
			break
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
	for i, m := range msgs {
		e := &entry{msg: m.clone(), id: ID(i + 1), at: now}
		e.tokens = s.id.message(&e.msg)
		e.calls = newCalls(&e.msg, s.id.counter)
		list = append(list, e)
	}
	s.last = ID(len(msgs))
	setHeads(list)
	turn := setTurns(list)
	sys, list := splitSystem(list, s.id.noteTokens())
	s.load(sys, list, nil, turn)
	return s, nil
}
