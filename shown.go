package convo

import (
	"iter"
	"slices"
)

// Same returns how many entries s and prev begin with that are the very same, and
// before which [Snapshot.Messages] shows the same in both. It is 0 if prev is nil or
// of another conversation, or if another summary is in place. Entries that ephemeral
// messages stand before do not count if prev has not the same ones in that place.
//
// With [Snapshot.MessagesFrom], a format can keep what it has written for prev, and
// write only what is new. Same compares no texts and allocates nothing.
func (s *Snapshot) Same(prev *Snapshot) int {
	if s == nil || prev == nil || s.key() != prev.key() || s.summary != prev.summary {
		return 0
	}
	n := samePart(s.sys, prev.sys)
	if n < len(s.sys) || n < len(prev.sys) {
		return n
	}
	same := samePart(s.list, prev.list)
	a, b := s.ephemeralPlace(), prev.ephemeralPlace()
	if s.eph != prev.eph || s.eph != nil && a != b {
		if s.eph != nil {
			same = min(same, a)
		}
		if prev.eph != nil {
			same = min(same, b)
		}
	}
	return n + same
}

// ephemeralPlace returns the index in list of the entry that ephemeral messages stand
// before, which may be the length of list.
func (s *state) ephemeralPlace() int {
	users, _ := turnUsers(s.list)
	if users == len(s.list) || s.list[users].msg.Role != RoleUser {
		return 0 // the newest turn begins with no user message
	}
	return users
}

// MessagesFrom returns an iterator over the end of what [Snapshot.Messages] returns:
// the messages from the entry with index from on, and the summary or the ephemeral
// messages if they stand right before it or later. Beside each message is the index of
// its entry; beside the summary and the ephemeral messages, that of the entry after
// them.
//
// A format that names authors in a field passes named, which reports whether it does so
// for a role and an author: their messages come without tags. named must report the same
// each time. If it is nil, the messages are those of Messages.
func (s *Snapshot) MessagesFrom(from int, named func(role Role, author string) bool) iter.Seq2[int, Message] {
	return func(yield func(int, Message) bool) {
		place, heads := s.ephemeralPlace(), len(s.sys)
		v := viewer{key: s.key(), named: named, room: partRoom{next: s.shownParts(max(from, 0))}}
		for i := max(from, 0); i < heads; i++ {
			if !yield(i, v.show(&s.sys[i].msg)) {
				return
			}
		}
		if from <= heads && s.summary != nil && !yield(heads, summaryMessage(v.key, s.summary)) {
			return
		}
		for i := max(from-heads, 0); i <= len(s.list); i++ {
			if i == place && s.eph != nil {
				for j := range s.eph.msgs {
					if !yield(heads+i, v.show(&s.eph.msgs[j])) {
						return
					}
				}
			}
			if i < len(s.list) && !yield(heads+i, v.show(&s.list[i].msg)) {
				return
			}
		}
	}
}

// Mask returns a text as [Snapshot.Messages] would show it in a part of its own, so that
// it cannot forge the tags of speakers and of the summary. Messages masks texts, and
// leaves opaque parts, arguments and names as they are: a format that writes any of
// these as a text of the conversation masks it before, and puts a visible character that
// is no letter at both ends, such as a bracket.
func (s *Snapshot) Mask(text string) string {
	if s == nil || s.key() == "" {
		return text
	}
	return maskKey(s.key(), text)
}

// AsUser returns a system message, as [Snapshot.Messages] shows it, as a user message
// between tags that name it a message of the system, for a format that takes system
// messages in front only. As with the tags of a summary, no other text can forge these.
// A message of another role is returned as it is.
func (s *Snapshot) AsUser(m Message) Message {
	if m.Role != RoleSystem {
		return m
	}
	open, end := noteTags(s.key())
	m.Role = RoleUser
	m.Parts = slices.Concat([]Part{Text(open)}, m.Parts, []Part{Text(end)})
	return m
}

// A viewer makes the messages that the model sees.
type viewer struct {
	key    string
	named  func(Role, string) bool // whose messages come without tags; nil: nobody's
	room   partRoom
	tagged []Part // memory for the parts of one message
}

// show returns m as the model sees it.
func (v *viewer) show(m *Message) Message {
	shown := *m
	if m.Role != RoleSystem {
		shown.Parts, _ = maskParts(v.key, m.Parts)
	}
	if m.isTagged() && (v.named == nil || !v.named(m.Role, m.Author)) {
		open, end := authorTags(v.key, quotedName(v.key, m.Author))
		v.tagged = append(append(append(v.tagged[:0], Text(open)), shown.Parts...), Text(end))
		shown.Parts = v.tagged
	}
	return v.room.clone(shown)
}

// shownParts returns an upper bound for the number of parts that are shown from an
// entry on, including those of results.
func (s *state) shownParts(from int) int {
	n := 0
	count := func(m *Message) {
		n += len(m.Parts)
		for _, p := range m.Parts {
			if r, ok := p.(ToolResult); ok {
				n += len(r.Parts)
			}
		}
		if m.isTagged() {
			n += 2
		}
	}
	for i := from; i < s.len(); i++ {
		count(&s.at(i).msg)
	}
	if s.eph != nil {
		for i := range s.eph.msgs {
			count(&s.eph.msgs[i])
		}
	}
	return n
}
