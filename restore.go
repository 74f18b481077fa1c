package convo

import (
	"errors"
	"slices"
)

// OnLoad says what [Restore] does with tool calls that are open in the newest
// exchange.
type OnLoad uint8

// Ways to treat open calls.
const (
	OnLoadKeep  OnLoad = iota // they stay open: their results are still to come
	OnLoadClose               // each is answered with an error result, "no result"
	OnLoadDrop                // the newest turn is taken back
)

func (o OnLoad) String() string { return nameOf(o, "keep", "close", "drop") }

// A Fault is something wrong in a conversation that [Restore] has mended.
type Fault struct {
	Index  int   // position of the entry as Snapshot.At counts; -1 for one that was put in
	ID     ID    // of the entry in the snapshot; 0 for one that was put in
	NewID  ID    // its ID now; 0 when it is gone
	Err    error // what was wrong: *MessageError, *RoleError or *PairError; nil when only the ID moved
	Mended string
}

// Restore makes a new History of a snapshot, with the same entries, IDs, pins,
// summary, key and calibration, and the same last ID ever given. It is also
// the way to fork: the snapshot may be of a History that lives on. Ephemeral
// messages stay behind. Tokens are counted as the options say.
//
// Structure is checked always, role order only between entries whose IDs
// follow one another directly, for a reduction may leave others as neighbours.
// A fault is a [*SnapshotError] that says where. With Options.Repair it is
// mended instead, and told: calls left open before the newest exchange are
// answered with error results, orphan results are dropped, a system message
// further on is moved to the front, what a message may not hold is taken out
// of it, and neighbours that the policy does not allow stay. Where a new entry
// takes a place in between, or neighbours stay, that entry and those after it
// get new IDs, and each move is told.
func Restore(s *Snapshot, opts *Options) (*History, error) {
	if s == nil {
		return nil, &SnapshotError{Index: -1, Err: errors.New("nil snapshot")}
	}
	h, err := newHistory(opts, s.id)
	if err != nil {
		return nil, err
	}
	if err := h.load(s); err != nil {
		return nil, err
	}
	h.settle()
	return h, nil
}

// load fills a new History that nobody else has yet.
func (h *History) load(s *Snapshot) (err error) {
	defer catch(&err, "Options.Tokenizer")
	h.last, h.turn, h.touched, h.appended = s.last, s.turn, s.touched, s.appended
	if s.slot != nil {
		h.slot = &slot{sum: s.slot.sum, raw: h.ident.summaryTokens(s.slot.sum.Text)}
		h.slot.sum.Tokens = clampInt(h.slot.raw)
	}

	if !h.share(s) {
		l := loader{h: h, from: s}
		for i := range s.len() {
			if err := l.entry(i, s.at(i)); err != nil {
				return err
			}
		}
	}
	h.calls = callsOf(h.list)
	h.sysRaw, h.listRaw, h.turns = rawOf(h.sys), rawOf(h.list), countTurns(h.list)
	h.sumPins()
	h.resume(s)
	switch {
	case h.calls.openCalls() == 0:
	case h.opts.OnLoad == OnLoadClose:
		const reason = "no result"
		made, _ := h.answers(reason, h.ident.text(reason))
		for _, e := range made {
			h.push(e)
			h.last = e.id
		}
	case h.opts.OnLoad == OnLoadDrop:
		n := len(h.list)
		for turn := h.list[n-1].turn; n > 0 && h.list[n-1].turn == turn; {
			n--
		}
		h.cut(n, h.list[n].id-1)
	}
	return nil
}

// share takes the very entries of a snapshot, when they are known to be in
// order and counted alike: those of another History with default counting. The
// list is clipped, so that neither History can write what the other sees.
func (h *History) share(s *Snapshot) bool {
	if s.owner == nil || s.id == nil || !s.id.isDefault || !h.ident.isDefault {
		return false
	}
	prev := &entry{}
	for i := range s.len() {
		e := s.at(i)
		role := e.msg.Role
		if role == RoleUser || role == RoleAssistant {
			if e.msg.isEmpty() && !h.opts.Roles.KeepEmpty || s.direct(prev.id, e.id) && !h.opts.Roles.allows(prev.msg.Role, role) {
				return false
			}
		}
		prev = e
	}
	c := s.state.clipped()
	h.sys, h.list, h.pins = c.sys, c.list, c.pins
	return true
}

// direct reports whether an entry was appended right behind another, or as the
// first of all when that is 0. Behind system entries it is known only while
// they are those that came first.
func (s *state) direct(before, id ID) bool {
	if n := len(s.sys); n > 0 && before == s.sys[n-1].id && s.sys[0].id != 1 {
		return false
	}
	return id == before+1
}

// A loader walks over the entries of a snapshot and takes copies of them into
// a History.
type loader struct {
	h    *History
	from *Snapshot

	calls   *calls // of the newest exchange
	prev    Role
	prevID  ID                  // of the entry before, in the snapshot
	moving  bool                // from here on entries get new IDs
	renamed map[string][]string // new IDs of doubled calls of the newest exchange
}

func (l *loader) entry(i int, old *entry) error {
	e := &entry{id: old.id, at: old.at, turn: old.turn}
	if err := l.admit(i, old, e); err != nil || e.msg.Role == RoleNone {
		return err
	}
	direct := l.from.direct(l.prevID, old.id)
	l.prevID = old.id

	role := e.msg.Role
	switch {
	case role == RoleTool:
		return l.results(i, old, e)
	case role == RoleSystem && len(l.h.list) > 0:
		return l.hoist(i, old, e)
	case l.calls.openCalls() > 0:
		if err := l.answerOpen(i, old); err != nil {
			return err
		}
	}
	if role != RoleSystem && direct && !l.h.opts.Roles.allows(l.prev, role) {
		err := &RoleError{Attempted: role, Previous: l.prev, HasPrevious: l.prev != RoleNone, Index: i}
		if err := l.fault(i, old, err); err != nil {
			return err
		}
		l.moving = true
		l.h.last++ // a gap: they no longer follow one another directly
		if err := l.tell(Fault{Index: i, ID: old.id, NewID: l.h.last + 1, Err: err, Mended: "stays as it is"}); err != nil {
			return err
		}
	}
	if role != RoleSystem {
		e.calls = newCalls(&e.msg, l.h.ident.counter)
		l.calls = nil
	}
	return l.take(i, old, e)
}

// admit makes e of an entry of the snapshot. It leaves e without a role when
// nothing of it can be kept.
func (l *loader) admit(i int, old, e *entry) error {
	if old.msg.Role != RoleTool {
		l.renamed = nil // the exchange is over
	}
	var err error
	if e.msg, err = old.msg.admit(&e.inline); err == nil && e.msg.isEmpty() && !l.h.opts.Roles.KeepEmpty {
		err = &MessageError{Role: old.msg.Role, Part: -1, Reason: "empty message"}
	}
	if err == nil {
		return nil
	}
	err = atIndex(err, i)
	if err := l.fault(i, old, err); err != nil {
		return err
	}
	e.msg = l.mended(old.msg)
	if e.msg.Role == RoleNone {
		return l.tell(Fault{Index: i, ID: old.id, Err: err, Mended: "dropped"})
	}
	return l.tell(Fault{Index: i, ID: old.id, NewID: old.id, Err: err, Mended: "what it may not hold was taken out"})
}

// mended returns what a History can keep of a message, without a role when
// that is nothing.
func (l *loader) mended(m Message) Message {
	parts := m.Parts
	m.Parts = nil
	seen := make(map[string]bool)
	for _, p := range parts {
		own, reason := admitPart(p, m.Role)
		if c, ok := p.(ToolCall); ok && reason != "" {
			c.Arguments = "{}"
			own, reason = admitPart(c, m.Role)
		}
		if reason != "" {
			continue
		}
		if c, ok := own.(ToolCall); ok {
			if seen[c.ID] {
				if l.renamed == nil {
					l.renamed = make(map[string][]string)
				}
				doubled := c.ID
				c.ID, c.Minted = newCallID(), true
				l.renamed[doubled] = append(l.renamed[doubled], c.ID)
				own = c
			}
			seen[c.ID] = true
		}
		m.Parts = append(m.Parts, own)
	}
	m, err := m.admit(new([1]Part))
	if err != nil || m.isEmpty() && !l.h.opts.Roles.KeepEmpty {
		return Message{}
	}
	return m
}

// hoist moves a system message that stands further on to the front.
func (l *loader) hoist(i int, old, e *entry) error {
	err := &RoleError{Attempted: RoleSystem, Previous: l.prev, HasPrevious: true, Index: i}
	if err := l.fault(i, old, err); err != nil {
		return err
	}
	e.id = l.newID()
	e.head, e.turn = e.id, 0
	e.tokens = l.h.ident.message(&e.msg)
	l.h.sys = append(l.h.sys, e)
	return l.tell(Fault{Index: i, ID: old.id, NewID: e.id, Err: err, Mended: "moved to the front"})
}

// results takes a tool message in, or what of it answers open calls.
func (l *loader) results(i int, old, e *entry) error {
	var kept []Part
	for _, p := range e.msg.Parts {
		r := p.(ToolResult)
		k, err := l.calls.find(r.CallID, r.Name)
		if names := l.renamed[r.CallID]; err != nil && len(names) > 0 {
			r.CallID, l.renamed[r.CallID] = names[0], names[1:]
			k, err = l.calls.find(r.CallID, r.Name)
		}
		if err != nil {
			err := &PairError{Err: err, CallID: r.CallID, Name: r.Name, Index: i}
			if err := l.fault(i, old, err); err != nil {
				return err
			}
			if err := l.tell(Fault{Index: i, ID: old.id, Err: err, Mended: "orphan result dropped"}); err != nil {
				return err
			}
			continue
		}
		l.calls.answer(k)
		if r.CallID == "" {
			r.CallID = l.calls.list[k].id
		}
		if r.Name == "" {
			r.Name = l.calls.list[k].name
		}
		kept = append(kept, r)
	}
	if len(kept) == 0 {
		return nil
	}
	e.msg.Parts = kept
	return l.take(i, old, e)
}

// answerOpen answers the calls that are open before the i-th entry.
func (l *loader) answerOpen(i int, old *entry) error {
	k := l.calls.firstOpen()
	err := &PairError{Err: ErrOpenCalls, CallID: k.id, Name: k.name, Index: i}
	if err := l.fault(i, old, err); err != nil {
		return err
	}
	l.moving = true
	newest := l.h.list[len(l.h.list)-1]
	for i := range l.calls.list {
		k := &l.calls.list[i]
		if k.answered {
			continue
		}
		l.calls.answer(i)
		e := &entry{id: l.newID(), head: l.calls.head, at: newest.at, turn: newest.turn}
		e.msg = ResultError(ToolCall{ID: k.id, Name: k.name}, errors.New("no result"))
		e.tokens = l.h.ident.message(&e.msg)
		l.h.list = append(l.h.list, e)
		if err := l.tell(Fault{Index: -1, NewID: e.id, Err: err, Mended: "answered with an error result"}); err != nil {
			return err
		}
	}
	l.prev = RoleTool
	return nil
}

// take puts an entry in its place, with a new ID where IDs move.
func (l *loader) take(i int, old, e *entry) error {
	if l.moving {
		e.id = l.newID()
	}
	e.head = e.id
	switch {
	case e.msg.Role == RoleTool:
		e.head = l.calls.head
	case e.calls != nil:
		l.calls = e.begin()
	}
	e.tokens = l.h.ident.message(&e.msg)
	l.prev = e.msg.Role
	if e.msg.Role == RoleSystem {
		l.h.sys = append(l.h.sys, e)
	} else {
		l.h.list = append(l.h.list, e)
	}
	if _, pinned := slices.BinarySearch(l.from.pins, old.id); pinned {
		l.h.pins = withPin(l.h.pins, e.head)
	}
	if e.id != old.id {
		return l.tell(Fault{Index: i, ID: old.id, NewID: e.id, Mended: "new ID"})
	}
	return nil
}

func (l *loader) newID() ID {
	l.h.last++
	return l.h.last
}

// fault makes an error of a fault, or nil when it is to be mended.
func (l *loader) fault(i int, old *entry, err error) error {
	if l.h.opts.Repair != nil {
		return nil
	}
	return &SnapshotError{Index: i, ID: old.id, Err: err}
}

// tell tells of a fault that was mended.
func (l *loader) tell(f Fault) (err error) {
	defer catch(&err, "Options.Repair")
	l.h.opts.Repair(f)
	return nil
}
