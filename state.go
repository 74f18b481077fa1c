package convo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/kept"
	"github.com/seed-c1b73e60/convo/internal/models"
)

// A state is the view of a conversation and its figures. A History changes its own state;
// a snapshot has a copy with clipped slices.
type state struct {
	id              *identity
	sys, list       []*entry         // the system entries, and all others
	sysFold, fold   fingerprint.List // of the contents of sys and of list
	sysRaw, listRaw int64            // raw tokens of sys and of list
	pins            []ID             // heads of the pinned exchanges, ascending
	pinRaw          int64            // raw tokens of the pinned exchanges
	summary         *placedSummary   // nil if there is none
	tools           *toolset         // nil if there are none
	eph             *ephemeral       // nil if there are no ephemeral messages
	version         uint64           // grows with every change
	last            ID               // the last ID that was used
	turn            int              // the newest turn in list, or touched if that is newer
	turns           int              // number of turns in list
	media           int              // number of media in list
	wide, huge      int              // number of entries in list with these marks
	measured        int64            // raw tokens of the view that the last usage report measured
	pinMeasured     int64            // the part of measured that is in pinned exchanges
	edits           []editMark       // marks of applied edits; shared with snapshots and never written to
	originals       []*original      // of entries in list, ascending
	counted         []ID             // of entries whose missing content a report has counted as unread, ascending; see countLost; shared with snapshots and never written to
	originalRaw     int64            // raw tokens of originals
	keep            keeping          // how many originals to keep
	knowledge       *knowledge       // of models; nil if nothing is known
	request         *request         // the newest answered request; nil: none
	asked           *request         // what the next answer is for, if it was prepared since the last one
	meta            meta             // set by SetMeta; not part of the view
	takenBack       []Range          // IDs of entries that were taken back; see isTakenBack; shared with snapshots and never written to
	left            []leftRow        // rows that edits dropped and no rollback took back, ascending; see leave; shared with snapshots and never written to
	queue           []*queued        // user messages waiting to be appended; not part of the view; shared with snapshots
	figures
}

// Figures are numbers of a state that are saved, restored and reloaded as they are. Each has
// its row in savedFields.
type figures struct {
	touched  int   // the newest turn from which an edit dropped or cleared an entry
	appended int64 // raw tokens appended since the last applied edit
	released ID    // no entry up to this one is bound; see Snapshot.Unbound
}

// A queued message waits to be appended. It never changes, and is identified by its
// address.
type queued struct {
	msg    Message
	tokens int64 // raw
	pin    bool  // whether to pin it
}

// The largest ID and turn are far from overflow, and within the integers that every JSON
// reader reads exactly.
const (
	maxID   = 1 << 53
	maxTurn = 1 << 30
)

// inRange returns an error if the ID or the turn is too large.
func inRange(id ID, turn int) error {
	switch {
	case id > maxID:
		return &ValueError{Name: "ID", Value: int64(id), Want: fmt.Sprintf("at most %d; begin another conversation", int64(maxID))}
	case turn > maxTurn:
		return &ValueError{Name: "turn", Value: turn, Want: fmt.Sprintf("at most %s; begin another conversation", grouped(maxTurn))}
	}
	return nil
}

// An entry is a message in a History. It never changes once it is added, so snapshots
// share it.
type entry struct {
	msg     Message
	id      ID
	head    ID    // the ID of the first entry of its exchange
	tokens  int64 // raw
	at      int64 // when it was appended, in Unix nanoseconds; or noTime
	turn    int
	calls   *calls          // the tool calls of the message, none marked answered; begin copies them; nil if there are none
	rare    *rare           // see own; nil: the zero rare
	content fingerprint.Sum // see setContent
	inline  [1]Part         // memory for msg.Parts if it has only one part

	idle  int32      // raw tokens of its reasoning, counted in tokens only if tools is set
	tools bool       // whether it, or an entry before it in its turn, called a tool; see setTools
	note  bool       // a system message after others; see setNote
	final bool       // a summarizer reads msg, not the original: it was rewritten, or a result was forgotten or cleared with a text
	marks entryMarks // for an answer
}

// A rare is what most entries have not, so that they stay small. It is never changed, since
// copies of an entry share it.
type rare struct {
	edit    *edited         // nil unless an edit made the entry
	missing int64           // raw tokens that were cut or cleared out of msg
	made    fingerprint.Sum // of the view that its request was made of; 0: it is not bound
	during  uint64          // the version that the newest edit in that view had made; 0: none, or the entry was loaded
}

// own returns what is rare about e.
func (e *entry) own() rare { return orNil(e.rare) }

// setOwn sets what is rare about e, which is not in a view yet.
func (e *entry) setOwn(r rare) {
	e.rare = nil
	if r != (rare{}) {
		own := r // so that the zero rare is not allocated
		e.rare = &own
	}
}

func (e *entry) missing() int64        { return e.own().missing }
func (e *entry) made() fingerprint.Sum { return e.own().made }

// setReads says that a summarizer reads something else than before of e, which an edit is
// about to put in place of another entry.
func (e *entry) setReads() {
	edit := e.own().edit
	e.final, edit.reads = true, edit
}

// setMade sets the fingerprint of the view that the request of e was made of.
func (e *entry) setMade(view fingerprint.Sum) { e.bindTo(view, 0) }

// bindTo binds e to a view, whose newest edit had made the version during.
func (e *entry) bindTo(view fingerprint.Sum, during uint64) {
	r := e.own()
	r.made, r.during = view, during
	e.setOwn(r)
}

// entryMarks say what is special about an entry. They share a byte, because the size of an
// entry matters.
type entryMarks uint8

const (
	paused entryMarks = 1 << iota // its provider paused it, and goes on with it when it gets it back
	bare                          // only its reasoning was taken out, and no signed reasoning stood before it: what was made after it stays bound
	wide                          // it has an image with a side of more than 2,000 pixels; see mediaLimit
	huge                          // it has an image with a side of more than 4,096 pixels
)

// set adds m if on is true, and otherwise takes it away.
func (s *entryMarks) set(m entryMarks, on bool) {
	*s &^= m
	if on {
		*s |= m
	}
}

func (s entryMarks) has(m entryMarks) bool { return s&m != 0 }

// setTools sets e.tools and adjusts e.tokens.
func (e *entry) setTools(tools bool) { e.setCounted(&e.tools, tools, int64(e.idle)) }

// setCounted sets a field of e, with which e has so many more tokens.
func (e *entry) setCounted(field *bool, on bool, tokens int64) {
	switch {
	case on && !*field:
		e.tokens += tokens
	case !on && *field:
		e.tokens -= tokens
	}
	*field = on
}

// setNote sets whether the system message e is a note: an entry of the list rather than a
// system entry. tags are the raw tokens of the tags that a note may be sent with.
func (e *entry) setNote(note bool, tags int64) { e.setCounted(&e.note, note, tags) }

// isSystem reports whether e is a system entry, which comes before all others.
func (e *entry) isSystem() bool { return e.msg.Role == RoleSystem && !e.note }

// An edited identifies the content of an entry that an edit made, among the entries with
// its ID. Each entry that an edit puts in place of another, under the same ID, points to
// its own edited. An entry that no edit made behaves as if both fields were nil.
type edited struct {
	looks *edited // equal if the model sees no difference
	reads *edited // equal if a summarizer reads no difference, as after a cut
}

// looks identifies what the model sees of e, among the entries with its ID.
func (e *entry) looks() *edited { return orNil(e.own().edit).looks }

// reads identifies what a summarizer reads of e, among the entries with its ID. It
// changes when e is rewritten, and when a result in e is forgotten or cleared with a
// caller-supplied text.
func (e *entry) reads() *edited { return orNil(e.own().edit).reads }

// noTime is the time of an entry whose time is not known.
const noTime = math.MinInt64

// time returns when e was appended, or the zero time if that is not known.
func (e *entry) time() time.Time {
	if e.at == noTime {
		return time.Time{}
	}
	return time.Unix(0, e.at)
}

// nanoseconds converts t to the time of an entry. ok is false if t is out of range.
func nanoseconds(t time.Time) (at int64, ok bool) {
	if t.IsZero() {
		return noTime, true
	}
	at = t.UnixNano()
	return at, at != noTime && time.Unix(0, at).Equal(t)
}

// ephemeral is a set of ephemeral messages. It never changes.
type ephemeral struct {
	msgs    []Message
	raw     int64
	content fingerprint.Sum

	// The two sets that a set was joined of; nil if it was not.
	back *ephemeral // of Options.AfterCompaction
	own  *ephemeral // of SetEphemeral; nil: none
}

// add adds a message with the given raw tokens to a set that is being made.
func (e *ephemeral) add(m Message, tokens int64) {
	e.msgs = append(e.msgs, m)
	e.content = e.content.Uint64(uint64(m.content()))
	e.raw += tokens
}

// joinEphemeral returns the set of the messages of Options.AfterCompaction and of
// SetEphemeral, both of which may be nil.
func joinEphemeral(back, own *ephemeral) *ephemeral {
	if back == nil {
		return own
	}
	all := &ephemeral{back: back, own: own, raw: back.raw + own.tokens()}
	for _, m := range slices.Concat(back.msgs, orNil(own).msgs) {
		all.add(m, 0)
	}
	return all
}

// sameAs reports whether two sets, which may be nil, have the same messages.
func (e *ephemeral) sameAs(f *ephemeral) bool {
	return slices.EqualFunc(orNil(e).msgs, orNil(f).msgs, func(m, n Message) bool { return m.sameAs(&n) })
}

// split is the inverse of joinEphemeral. e may be nil.
func (e *ephemeral) split() (back, own *ephemeral) {
	if e == nil || e.back == nil {
		return nil, e
	}
	return e.back, e.own
}

func (e *ephemeral) tokens() int64 { return orNil(e).raw }

// A toolset is what SetTools or SetToolsKey has set. It never changes.
type toolset struct {
	tools   []Tool
	key     string
	raw     int64 // raw tokens of tools
	content fingerprint.Sum
}

// tokens returns the raw tokens of the tools. t may be nil.
func (t *toolset) tokens() int64 { return orNil(t).raw }

// sameAs reports whether both are for the same tools. Both may be nil.
func (t *toolset) sameAs(u *toolset) bool {
	return t == u || orNil(t).key == orNil(u).key && slices.Equal(orNil(t).tools, orNil(u).tools)
}

func (s *state) len() int { return len(s.sys) + len(s.list) }

// raw returns the raw tokens of the whole view. It is not inlined, because it has many
// callers and each copy makes programs larger.
//
//go:noinline
func (s *state) raw() int64 {
	return s.tools.tokens() + s.sysRaw + s.listRaw + s.summary.tokens() + s.eph.tokens()
}

// clipped returns a copy of s whose slices have no spare capacity, so appending to them
// never writes to memory that s uses.
func (s *state) clipped() state {
	c := *s
	c.sys, c.list, c.pins = slices.Clip(s.sys), slices.Clip(s.list), slices.Clip(s.pins)
	c.originals = slices.Clip(s.originals)
	return c
}

// setKeep sets how many originals to keep.
func (s *state) setKeep(keep keeping) {
	s.keep = keep
	s.putOriginals(s.originals, s.originalRaw)
}

// putOriginals sets the originals, of so many raw tokens, but for those that are not kept.
func (s *state) putOriginals(all []*original, raw int64) {
	s.originals, s.originalRaw = s.keep.trim(all, raw, s.summary)
}

// withEphemeral returns the next version of s, with other ephemeral messages, which may be nil.
func (s *state) withEphemeral(eph *ephemeral) *state {
	c := *s
	c.eph = eph
	c.version++
	c.sumMeasured(true)
	return &c
}

// at returns the i-th entry; i must be in range.
func (s *state) at(i int) *entry {
	if i < len(s.sys) {
		return s.sys[i]
	}
	return s.list[i-len(s.sys)]
}

// find returns the entry with the ID, or nil if the view has none.
func (s *state) find(id ID) *entry {
	if i, ok := index(s.list, id); ok {
		return s.list[i]
	}
	if i, ok := index(s.sys, id); ok {
		return s.sys[i]
	}
	return nil
}

// messages returns the number of messages that the model sees.
func (s *state) messages() int {
	n := s.len() + len(orNil(s.eph).msgs)
	if s.summary != nil {
		n++
	}
	return n
}

func (s *state) key() string { return orNil(s.id).key }

// counter returns the counter of the History that s belongs to, or the default counter.
func (s *state) counter() *counter { return s.identity().counter }

// identity returns s.id, or a new identity if there is none.
func (s *state) identity() *identity {
	if s.id == nil {
		return newIdentity(newCounter(nil, Overheads{}), nil, "")
	}
	return s.id
}

// Only the next four methods write sys, list, sysRaw, listRaw, turns, turn, media, wide,
// huge, originals and originalRaw. TestState_Writers checks this. Pins, summary and the other
// fields are written where they change.

// append adds an entry, with its original if that is not nil, to the end of sys or list.
func (s *state) append(e *entry, o *original) {
	e.setContent()
	if e.isSystem() {
		s.sys = append(s.sys, e)
		s.sysRaw += e.tokens
		s.sysFold = s.sysFold.Add(e.content)
	} else {
		s.turn = max(s.turn, e.turn)
		if len(s.list) == cap(s.list) {
			s.list = slices.Grow(s.list, len(s.list)/2+1) // append alone grows a long list by a quarter, and copies twice as much
		}
		s.list = append(s.list, e)
		s.count(len(s.list)-1, 1)
		s.fold = s.fold.Add(e.content)
		s.request, s.asked = s.request.Joined(s.list), s.asked.Joined(s.list)
	}
	if o != nil {
		s.putOriginals(append(s.originals, o), s.originalRaw+o.tokens)
	}
	s.appended = min(s.appended+e.tokens, maxTotal)
}

// cutTail removes the entries of list from index n on. seen reports whether a snapshot may
// share them. If so, the remaining entries are copied to a new array with some spare
// capacity. Then no append overwrites entries of the snapshot, and s does not keep the
// removed entries in memory.
func (s *state) cutTail(n int, seen bool) {
	raw := s.listRaw
	if n < len(s.list) {
		if k, _ := s.originalAt(s.list[n].id); k < len(s.originals) {
			s.putOriginals(slices.Clone(s.originals[:k]), rawOriginals(s.originals[:k]))
		}
	}
	for _, r := range [...]**request{&s.request, &s.asked} {
		if own := (*r).Cut(s.list, n); own != *r {
			*r = own.Back()
		}
	}
	for i, e := range slices.Backward(s.list[n:]) {
		s.count(n+i, -1)
		s.fold = s.fold.Remove(e.content)
	}
	if seen {
		own := make([]*entry, n, n+n/8+8)
		copy(own, s.list)
		s.list = own
	} else {
		clear(s.list[n:])
		s.list = s.list[:n]
	}
	s.appended = max(s.appended-(raw-s.listRaw), 0)
	s.turn = max(s.touched, newestTurn(s.list))
}

// putTail undoes a cutTail: it puts the entries from index n on back, in a new array.
func (s *state) putTail(n int, tail []*entry) { s.list = slices.Concat(s.list[:n], tail) }

// replace replaces all entries: after an edit, for a rollback, or when the system entries
// change. turn and originals belong to the new list. The caller must have set the pins, and must
// call sumMeasured to set pinMeasured.
func (s *state) replace(sys, list []*entry, originals []*original, turn int) {
	if len(list) != len(s.list) || len(list) > 0 && &list[0] != &s.list[0] {
		was := s.list
		s.list = list
		s.listRaw, s.pinRaw, s.turns, s.media, s.wide, s.huge, s.fold = 0, 0, 0, 0, 0, 0, 0
		for i, e := range list {
			e.setContent()
			s.count(i, 1)
			s.fold = s.fold.Add(e.content)
		}
		s.request, s.asked = s.request.Moved(was, list), s.asked.Moved(was, list)
	}
	s.sysFold = 0
	for _, e := range sys {
		e.setContent()
		s.sysFold = s.sysFold.Add(e.content)
	}
	s.sys, s.sysRaw = sys, rawOf(sys)
	s.turn = turn
	s.putOriginals(originals, rawOriginals(originals))
}

// count adds list[i] to the sums over the list, or with -1 takes it away.
func (s *state) count(i, by int) {
	e := s.list[i]
	s.listRaw += int64(by) * e.tokens
	if s.isPinned(e.head) {
		s.pinRaw += int64(by) * e.tokens
	}
	if e.turn > newestTurn(s.list[:i]) {
		s.turns += by
	}
	s.media += by * e.msg.media()
	if e.marks.has(wide) {
		s.wide += by
	}
	if e.marks.has(huge) {
		s.huge += by
	}
}

// mediaLimit returns how many media the model takes in a request with the largest images of
// s, and from which size on an image is such a large one: its longer side in pixels. Zeros
// mean that no limit is known. It reads no message.
func (s *state) mediaLimit() (most, side int) {
	if s.media <= fewMedia {
		return 0, 0
	}
	l := models.ImagesOf(s.known().model)
	most = l.Count
	if l.Many == 2000 && s.wide > 0 || l.Many == 4096 && s.huge > 0 {
		most, side = l.Few, l.Many
	}
	return most, side
}

// fewMedia is a number of media that every model takes.
const fewMedia = 14

// setHeads sets the heads of the entries of a list that has not been checked yet. A tool
// message belongs to the exchange of the preceding assistant message with calls.
func setHeads(list []*entry) {
	head := ID(0)
	for _, e := range list {
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
	return slices.ContainsFunc(m.Parts, isA[ToolCall])
}

// splitSystem splits a list into its leading system entries and the others. System
// messages among the others are notes. tags are as in setNote.
func splitSystem(list []*entry, tags int64) (sys, others []*entry) {
	n := 0
	for n < len(list) && list[n].msg.Role == RoleSystem {
		list[n].turn = 0
		n++
	}
	for _, e := range list[n:] {
		if e.msg.Role == RoleSystem {
			e.setNote(true, tags)
		}
	}
	return slices.Clip(list[:n]), list[n:]
}

// exchange returns the entries of the exchange with this head.
func (s *state) exchange(head ID) []*entry {
	i, ok := index(s.list, head)
	if !ok {
		return nil
	}
	_, to := exchangeAt(s.list, i)
	return s.list[i:to]
}

// pinned returns the IDs of all entries of pinned exchanges, ascending.
func (s *state) pinned() (ids []ID) {
	for _, head := range s.pins {
		ids = append(ids, idsOf(s.exchange(head))...)
	}
	return ids
}

// pin pins the exchanges with these heads. It may reorder heads.
func (s *state) pin(heads ...ID) {
	heads = s.countPins(heads, 1)
	if len(heads) != 1 || !s.isPinned(heads[0]) {
		s.pins = withPin(s.pins, heads...)
	}
}

// countPins adds the exchanges with these heads that are not pinned to what the pinned ones have,
// or with -1 takes away those that are. It returns the heads in order, each once.
func (s *state) countPins(heads []ID, by int64) []ID {
	slices.Sort(heads)
	heads = slices.Compact(heads)
	for _, head := range heads {
		if s.isPinned(head) == (by < 0) {
			for _, e := range s.exchange(head) {
				s.pinRaw += by * e.tokens
				if s.isMeasured(e) {
					s.pinMeasured += by * e.tokens
				}
			}
		}
	}
	return heads
}

// isPinned reports whether the exchange with this head is pinned.
func (s *state) isPinned(head ID) bool {
	if n := len(s.pins); n > 0 && s.pins[n-1] < head {
		return false // the usual case when an entry is appended
	}
	return hasID(s.pins, head)
}

// hasID reports whether an ID is in a list, which ascends.
func hasID(list []ID, id ID) bool {
	_, ok := slices.BinarySearch(list, id)
	return ok
}

// withPin returns pins with heads added. It may write to the spare capacity of pins,
// which no snapshot shows, but does not change existing elements.
func withPin(pins []ID, heads ...ID) []ID {
	if len(heads) == 1 && (len(pins) == 0 || pins[len(pins)-1] < heads[0]) {
		return append(pins, heads[0])
	}
	all := slices.Concat(pins, heads)
	slices.Sort(all)
	return slices.Compact(all)
}

// withoutPin returns a new slice with the pins that are not in heads. It sorts heads.
func withoutPin(pins []ID, heads ...ID) []ID {
	slices.Sort(heads)
	return added(heads, pins)
}

// added returns the IDs in to that are not in from. Both lists ascend.
func added(from, to []ID) (ids []ID) {
	for _, id := range to {
		if !hasID(from, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// index returns the index of the entry with the ID in an ascending list, or the index
// where it would be inserted, and reports whether the list has it.
func index(list []*entry, id ID) (int, bool) {
	if len(list) > 0 { // usually there are no gaps
		if i := id - list[0].id; i >= 0 && i < ID(len(list)) && list[i].id == id {
			return int(i), true
		}
	}
	return slices.BinarySearchFunc(list, id, func(e *entry, id ID) int { return cmp.Compare(e.id, id) })
}

// samePart returns the length of the common prefix of two lists. It does not compare
// memory that they share, because entries that a snapshot shows are never overwritten.
func samePart(a, b []*entry) int { return kept.SamePart(a, b) }

// rawOf returns the raw tokens of a list.
func rawOf(list []*entry) int64 { return kept.RawOf(list) }

// newestTurn returns the turn of the newest entry of a list, or 0 if it is empty.
func newestTurn(list []*entry) int {
	if n := len(list); n > 0 {
		return list[n-1].turn
	}
	return 0
}

// newestRole returns the role of the newest entry, ignoring notes, or RoleNone if there
// is none.
func (s *state) newestRole() Role {
	switch e := s.newestMessage(); {
	case e != nil:
		return e.msg.Role
	case s.len() > 0:
		return RoleSystem
	}
	return RoleNone
}

// newestMessage returns the newest entry that is neither a system entry nor a note, or nil if
// there is none.
func (s *state) newestMessage() *entry {
	for _, e := range slices.Backward(s.list) {
		if !e.note {
			return e
		}
	}
	return nil
}

// newestID returns the ID of the newest entry that is not a system entry, or 0 if there
// is none.
func (s *state) newestID() ID {
	if n := len(s.list); n > 0 {
		return s.list[n-1].id
	}
	return 0
}

// isPaused reports whether the view ends with a paused answer, notes aside.
func (s *state) isPaused() bool {
	e := s.newestMessage()
	return e != nil && e.marks.has(paused) && e.msg.Role == RoleAssistant && e.calls == nil
}

// exchangeAt returns the bounds [from, to) of the exchange that contains list[i].
func exchangeAt(list []*entry, i int) (from, to int) {
	head := list[i].head
	from, to = i, i+1
	for from > 0 && list[from-1].head == head {
		from--
	}
	for to < len(list) && list[to].head == head {
		to++
	}
	return from, to
}

// turnUsers returns the bounds [from, to) of the user messages at the beginning of the
// newest turn, including the notes between them. The range is empty if the turn does not
// begin with a user message.
func turnUsers(list []*entry) (from, to int) {
	if len(list) == 0 {
		return 0, 0
	}
	turn := list[len(list)-1].turn
	from = sort.Search(len(list), func(i int) bool { return list[i].turn >= turn })
	to = from
	for i := from; i < len(list) && (list[i].msg.Role == RoleUser || list[i].note && i > from); i++ {
		if !list[i].note {
			to = i + 1
		}
	}
	return from, to
}

// A leftRow is an entry with a key that an edit has dropped.
type leftRow struct {
	id  ID
	key string
}

// cutLeft forgets the rows newer than last that have left.
func (s *state) cutLeft(last ID) {
	n := sort.Search(len(s.left), func(i int) bool { return s.left[i].id > last })
	s.left = s.left[:n:n]
}

// newestLeft returns the newest row that has left, or none.
func (s *state) newestLeft() leftRow { return lastOf(s.left) }

// An editMark records an applied edit that no rollback has undone. The marks of a state
// ascend by version and descend by newest. A mark is removed when a later edit touches an
// entry that is at least as new, because then only the later edit matters. So there are
// never more marks than entries in the view.
type editMark struct {
	version uint64 // of the view after the edit
	newest  ID     // the newest entry that the edit dropped or changed; 0 if there is none
}

// lastEdit returns the version made by the newest edit in the view, or 0 if there is
// none.
func (s *state) lastEdit() uint64 { return lastOf(s.edits).version }

// lastOf returns the last element of a list, or the zero value if it is empty.
func lastOf[T any](list []T) (v T) {
	if n := len(list); n > 0 {
		v = list[n-1]
	}
	return v
}

// orNil returns what p points to, or the zero value if p is nil.
func orNil[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// sortByID sorts a list by the IDs that id returns. What has the same ID stays in its order.
func sortByID[T any](list []T, id func(*T) ID) {
	sort.SliceStable(list, func(i, j int) bool { return id(&list[i]) < id(&list[j]) })
}

func idsOf(list []*entry) []ID {
	ids := make([]ID, len(list))
	for i, e := range list {
		ids[i] = e.id
	}
	return ids
}

// sumMeasured computes measured, the raw tokens of the view that the last
// report measured, and pinMeasured. rewritten says whether more than the end of the
// list has changed since that report.
func (s *state) sumMeasured(rewritten bool) {
	s.measured, s.pinMeasured = 0, 0
	if s.known().cal != nil {
		s.measured, s.pinMeasured = s.sharedWith(s.known().cal.at, rewritten)
	}
}

// withoutEphemeral returns s without its ephemeral messages, which are not
// saved.
func (s *state) withoutEphemeral() state {
	out := *s
	if s.eph != nil && s.known().cal != nil && s.known().cal.at.eph == s.eph {
		out.measured -= s.eph.tokens()
	}
	out.eph = nil
	return out
}

// withoutFrame returns s without its system entries, tools and ephemeral messages.
func (s *state) withoutFrame() state {
	out := s.withoutEphemeral()
	out.tools = nil
	out.replace(nil, s.list, s.originals, s.turn)
	out.sumMeasured(true)
	return out
}

// before returns s up to list[n], which it has, without what is not an entry.
func (s *state) before(n int) state {
	id, next := s.list[n].id, s.clipped()
	next.cutTail(n, true)
	next.eph, next.queue = nil, nil
	next.cutLeft(id - 1)
	pins, _ := slices.BinarySearch(next.pins, id)
	next.pins = slices.Clip(next.pins[:pins])
	next.version++
	next.sumMeasured(true)
	return next
}

// asText returns s without the native items of its summary.
func (s *state) asText() state {
	next := s.clipped()
	if s.summary != nil {
		own := *s.summary
		own.sum.Native = Native{}
		next.summary = &own
	}
	return next
}

// withoutSummary returns s without its summary.
func (s *Snapshot) withoutSummary() *Snapshot {
	next := *s
	next.summary = nil
	return &next
}
