package convo

import (
	"crypto/rand"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"
)

// A Snapshot is a picture of a view at one moment. It never changes and is
// safe for concurrent use. The zero Snapshot is empty.
//
// A snapshot belongs to the one [History] that made it, and is what its
// Apply, SplicePrefix, Rollback and RecordUsage take. What With, JSON or
// NewSnapshot gave belongs to none.
type Snapshot struct {
	owner *History
	state
}

// state is the view with all that belongs to it. A History changes its own; a
// snapshot has a copy whose slices are clipped.
type state struct {
	id              *identity
	sys, list       []*entry // system entries, the others
	sysRaw, listRaw int64    // their tokens
	pins            []ID     // heads of pinned exchanges, ascending
	pinRaw          int64    // tokens of pinned exchanges
	slot            *slot    // the summary; nil: none
	eph             *ephemeral
	version         uint64
	last            ID         // the last one ever given
	turn            int        // the newest one, or the newest that a reduction took from
	turns           int        // how many are in list
	touched         int        // the newest turn that a reduction took anything of
	appended        int64      // raw tokens since the last applied edit
	measured        int64      // raw tokens that are also in the view last reported on
	knowledge       *knowledge // nil: nothing
}

// An identity is what marks everything of one conversation and how it is
// counted.
type identity struct {
	*counter
	key string // makes wrappers and tags unforgeable
}

// newIdentity keeps the key of another identity.
func newIdentity(c *counter, from *identity) *identity {
	if from != nil {
		return &identity{counter: c, key: from.key}
	}
	return &identity{counter: c, key: newKey()}
}

const keyLen = 8

// typicalKey is counted in place of the key, so that histories of the same
// content weigh the same.
const typicalKey = "qmzvkrtx"

// newKey returns a short random key.
func newKey() string {
	var key [keyLen]byte
	rand.Read(key[:])
	for i := range key {
		key[i] = 'a' + key[i]%26
	}
	return string(key[:])
}

// ephemeral is the set of ephemeral messages. It never changes.
type ephemeral struct {
	msgs []Message
	raw  int64
}

func (e *ephemeral) tokens() int64 {
	if e == nil {
		return 0
	}
	return e.raw
}

func (s *state) len() int { return len(s.sys) + len(s.list) }

// raw is the sum over all that is in the view.
func (s *state) raw() int64 {
	return s.sysRaw + s.listRaw + s.slot.tokens() + s.eph.tokens()
}

// clipped returns s with slices that no append can write beyond.
func (s *state) clipped() state {
	c := *s
	c.sys, c.list, c.pins = slices.Clip(s.sys), slices.Clip(s.list), slices.Clip(s.pins)
	return c
}

// at returns the i-th entry; i must be in range.
func (s *state) at(i int) *entry {
	if i < len(s.sys) {
		return s.sys[i]
	}
	return s.list[i-len(s.sys)]
}

// find returns the entry with the ID, nil when it is not in the view.
func (s *state) find(id ID) *entry {
	if i, ok := index(s.list, id); ok {
		return s.list[i]
	}
	if i, ok := index(s.sys, id); ok {
		return s.sys[i]
	}
	return nil
}

// NewSnapshot makes a snapshot of messages from elsewhere, for [Restore]: the
// way to import a conversation. IDs are 1, 2, 3 and so on. Nothing is checked
// yet; Restore says what is wrong, or mends it.
func NewSnapshot(msgs []Message) *Snapshot {
	s := &Snapshot{state: state{id: newIdentity(newCounter(nil, Overheads{}), nil)}}
	now := time.Now().UnixNano()
	prev := RoleNone
	for i, m := range msgs {
		e := &entry{msg: m.clone(), id: ID(i + 1), at: now}
		e.tokens = s.id.message(&e.msg)
		e.calls = newCalls(&e.msg, s.id.counter)
		if m.Role == RoleUser && prev != RoleUser {
			s.turn++
			s.turns++
		}
		prev = m.Role
		e.turn = s.turn
		s.list = append(s.list, e)
	}
	s.last = ID(len(msgs))
	s.setHeads()
	s.hoistSystem()
	return s
}

// setHeads finds the exchanges of a list that nobody has checked: a tool
// message belongs to the assistant message with calls before it.
func (s *state) setHeads() {
	head := ID(0)
	for _, e := range s.list {
		switch {
		case e.msg.Role == RoleTool && head != 0:
			e.head = head
			continue
		case e.msg.Role == RoleAssistant && hasCalls(&e.msg):
			head = e.id
		default:
			head = 0
		}
		e.head = e.id
	}
}

func hasCalls(m *Message) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { _, ok := p.(ToolCall); return ok })
}

// hoistSystem moves the system entries in front of list to where they belong,
// and sums up.
func (s *state) hoistSystem() {
	n := 0
	for n < len(s.list) && s.list[n].msg.Role == RoleSystem {
		s.list[n].turn = 0
		n++
	}
	s.sys, s.list = slices.Clip(s.list[:n]), s.list[n:]
	s.sysRaw, s.listRaw = rawOf(s.sys), rawOf(s.list)
}

// Len returns how many entries there are, system entries included; the
// summary and the ephemeral messages are none.
func (s *Snapshot) Len() int { return s.len() }

// At returns the i-th entry, counted from 0, and whether there is one.
func (s *Snapshot) At(i int) (Entry, bool) {
	if i < 0 || i >= s.len() {
		return Entry{}, false
	}
	return s.at(i).export(s.pins), true
}

// All iterates over the entries, system entries first.
func (s *Snapshot) All() iter.Seq2[int, Entry] {
	return func(yield func(int, Entry) bool) {
		for i := range s.len() {
			if !yield(i, s.at(i).export(s.pins)) {
				return
			}
		}
	}
}

// Find returns the entry with the ID, and whether it is in the view.
func (s *Snapshot) Find(id ID) (Entry, bool) {
	e := s.find(id)
	if e == nil {
		return Entry{}, false
	}
	return e.export(s.pins), true
}

// Messages returns what the model is to see: the system messages, the summary
// as a user message, and the others with the ephemeral messages among them.
// Messages with an Author carry tags that name the speaker.
func (s *Snapshot) Messages() []Message {
	users, _ := turnUsers(s.list)
	if users == len(s.list) || s.list[users].msg.Role != RoleUser {
		users = 0 // the newest turn has no user messages
	}
	v := viewer{key: s.key(), out: make([]Message, 0, s.messages()), parts: make([]Part, 0, s.shownParts())}
	for _, e := range s.sys {
		v.show(&e.msg)
	}
	if s.slot != nil {
		v.out = append(v.out, summaryMessage(v.key, s.slot))
	}
	for i := 0; i <= len(s.list); i++ {
		if i == users && s.eph != nil {
			for j := range s.eph.msgs {
				v.show(&s.eph.msgs[j])
			}
		}
		if i < len(s.list) {
			v.show(&s.list[i].msg)
		}
	}
	return v.out
}

// A viewer collects messages as the model sees them. All their parts share one
// piece of memory.
type viewer struct {
	key   string
	out   []Message
	parts []Part
}

func (v *viewer) show(m *Message) {
	from := len(v.parts)
	if m.isTagged() {
		open, end := authorTags(v.key, m.Author)
		v.parts = append(append(append(v.parts, Text(open)), m.Parts...), Text(end))
	} else {
		v.parts = append(v.parts, m.Parts...)
	}
	to := len(v.parts)
	shown := *m
	shown.Parts = v.parts[from:to:to]
	for i, p := range shown.Parts {
		if r, ok := p.(ToolResult); ok && len(r.Parts) > 0 {
			r.Parts = slices.Clone(r.Parts)
			shown.Parts[i] = r
		}
	}
	v.out = append(v.out, shown)
}

// shownParts is how many parts show needs room for.
func (s *state) shownParts() int {
	n := 0
	count := func(m *Message) {
		n += len(m.Parts)
		if m.isTagged() {
			n += 2
		}
	}
	for _, e := range s.sys {
		count(&e.msg)
	}
	for _, e := range s.list {
		count(&e.msg)
	}
	if s.eph != nil {
		for i := range s.eph.msgs {
			count(&s.eph.msgs[i])
		}
	}
	return n
}

// messages is how many messages the model sees.
func (s *state) messages() int {
	n := s.len()
	if s.slot != nil {
		n++
	}
	if s.eph != nil {
		n += len(s.eph.msgs)
	}
	return n
}

func (s *state) key() string {
	if s.id == nil {
		return ""
	}
	return s.id.key
}

// counter counts as the History of s does.
func (s *state) counter() *counter {
	if s.id == nil {
		return newCounter(nil, Overheads{})
	}
	return s.id.counter
}

// frameTokens is what a summary weighs beside its text.
func (s *state) frameTokens() int64 {
	if s.id == nil {
		return newIdentity(s.counter(), nil).summaryTokens("")
	}
	return s.id.summaryTokens("")
}

// authorTags stand around what an author says. No text can forge them: the
// key is not known to who writes it.
func authorTags(key, author string) (open, end string) {
	return fmt.Sprintf("<from key=%q name=%q>", key, author), fmt.Sprintf("</from key=%q>", key)
}

// Tokens returns the raw tokens of the view: all entries, the summary and the
// ephemeral messages, as the tokenizer counts, without the overhead.
func (s *Snapshot) Tokens() int { return clampInt(s.raw()) }

// Version grows with every change of the History.
func (s *Snapshot) Version() uint64 { return s.version }

// Pinned returns the IDs of all entries of pinned exchanges, ascending.
func (s *Snapshot) Pinned() []ID { return s.pinned() }

func (s *state) pinned() []ID {
	var ids []ID
	for _, head := range s.pins {
		i, ok := index(s.list, head)
		for ok && i < len(s.list) && s.list[i].head == head {
			ids = append(ids, s.list[i].id)
			i++
		}
	}
	return ids
}

// String says what s is, in a few words.
func (s *Snapshot) String() string {
	return fmt.Sprintf("Snapshot(version %d, %d entries, %d tokens)", s.version, s.len(), s.raw())
}

// LogValue is what slog prints.
func (s *Snapshot) LogValue() slog.Value { return slog.StringValue(s.String()) }

// An Exchange is the atom of every reduction: an assistant message with tool
// calls together with the results that answer them, or any other message
// alone.
type Exchange struct {
	First, Last ID
	Tokens      int  // raw
	Floor       bool // no reduction may take it
	Open        bool // a call has no result yet
	Turn        int

	entries []*entry
}

// IDs returns the IDs of all entries of x, for [Edit].Drop.
func (x Exchange) IDs() []ID {
	ids := make([]ID, len(x.entries))
	for i, e := range x.entries {
		ids[i] = e.id
	}
	return ids
}

// Exchanges iterates over the exchanges, system entries first.
func (s *Snapshot) Exchanges() iter.Seq[Exchange] {
	return func(yield func(Exchange) bool) {
		for _, e := range s.sys {
			x := Exchange{First: e.id, Last: e.id, Tokens: clampInt(e.tokens), Floor: true, entries: []*entry{e}}
			if !yield(x) {
				return
			}
		}
		floor := s.floor()
		for from := 0; from < len(s.list); {
			_, to := exchangeAt(s.list, from)
			group := s.list[from:to:to]
			x := Exchange{
				First:   group[0].id,
				Last:    group[len(group)-1].id,
				Tokens:  clampInt(rawOf(group)),
				Floor:   floor.has(from),
				Turn:    group[0].turn,
				entries: group,
			}
			if to == len(s.list) {
				x.Open = callsOf(s.list).openCalls() > 0
			}
			if !yield(x) {
				return
			}
			from = to
		}
	}
}

// A floor tells which entries of a list no reduction may take.
type floor struct {
	s                  *state
	usersFrom, usersTo int // user messages of the newest turn
	newest             int // start of the newest exchange
	nextPin            int // pins below the entry last asked about
}

func (s *state) floor() *floor {
	f := &floor{s: s}
	f.usersFrom, f.usersTo = turnUsers(s.list)
	if len(s.list) > 0 {
		f.newest, _ = exchangeAt(s.list, len(s.list)-1)
	}
	return f
}

// has reports whether the i-th entry of the list is floor. It is asked in
// ascending order.
func (f *floor) has(i int) bool {
	return i >= f.newest || f.usersFrom <= i && i < f.usersTo || f.pinned(i)
}

func (f *floor) pinned(i int) bool {
	head := f.s.list[i].head
	for f.nextPin < len(f.s.pins) && f.s.pins[f.nextPin] < head {
		f.nextPin++
	}
	return f.nextPin < len(f.s.pins) && f.s.pins[f.nextPin] == head
}
