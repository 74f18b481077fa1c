package convo_test

import (
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// The reference model: what DESIGN says of a History, with plain slices that
// are copied whole at every step. It is slow and meant to be obviously right.

// A mEntry is an entry of the model. uid names this very value: clearing makes
// a new one.
type mEntry struct {
	id, head convo.ID
	uid      int
	msg      mMsg
	turn     int
}

// A mMsg is a message of the model: text, or calls with a text, or results.
type mMsg struct {
	role    convo.Role
	text    string
	calls   []string // ids; each call's tool is "tool_" + id
	results []mResult
}

type mResult struct {
	id, text       string
	noName         bool // goes in without a name
	noID           bool // goes in without an id
	isErr, cleared bool
}

const (
	mMessage, mCall, mRes = 4, 8, 4 // default overheads
	mArgs                 = `{"n": 1.0}`
)

func toolOf(id string) string { return "tool_" + id }

// modelCount is how the run at hand counts a text.
var modelCount func(string) int

// tokens counts every text by itself, and the overheads.
func (m mMsg) tokens() int {
	n := mMessage + modelCount(m.text)
	for _, id := range m.calls {
		n += mCall + modelCount(id) + modelCount(toolOf(id)) + modelCount(mArgs)
	}
	for _, r := range m.results {
		n += mRes + modelCount(r.id) + modelCount(toolOf(r.id)) + modelCount(r.text)
	}
	return n
}

// A mView is all that a snapshot shows.
type mView struct {
	sys, list []mEntry
	sum       string // empty: none
	sumUID    int
	covers    []convo.ID
	updates   int
	pins      []convo.ID // heads
	eph       []string
	ephUID    int
	touched   int // newest turn that a reduction took anything of
	appended  int
	last      convo.ID // given so far
}

func (v mView) copy() mView {
	v.sys, v.list = slices.Clone(v.sys), slices.Clone(v.list)
	v.covers, v.pins, v.eph = slices.Clone(v.covers), slices.Clone(v.pins), slices.Clone(v.eph)
	return v
}

func (v mView) raw() int {
	n := 0
	for _, e := range slices.Concat(v.sys, v.list) {
		n += e.msg.tokens()
	}
	return n + v.sumTokens() + v.ephTokens()
}

func (v mView) sumTokens() int {
	if v.sum == "" {
		return 0
	}
	return mMessage + modelCount(wrapperText[0]) + modelCount(v.sum) + modelCount(wrapperText[1])
}

func (v mView) ephTokens() int {
	n := 0
	for _, t := range v.eph {
		n += mMessage + modelCount(t)
	}
	return n
}

func (v mView) find(id convo.ID) (mEntry, bool) {
	for _, e := range slices.Concat(v.sys, v.list) {
		if e.id == id {
			return e, true
		}
	}
	return mEntry{}, false
}

// exchange returns the IDs of the exchange of an entry.
func (v mView) exchange(head convo.ID) []convo.ID {
	var ids []convo.ID
	for _, e := range v.list {
		if e.head == head {
			ids = append(ids, e.id)
		}
	}
	return ids
}

func (v mView) turns() int {
	seen := map[int]bool{}
	for _, e := range v.list {
		if e.turn > 0 {
			seen[e.turn] = true
		}
	}
	return len(seen)
}

// hardFloor is the floor without the pins.
func (v mView) hardFloor(e mEntry) bool {
	if len(v.list) == 0 {
		return false
	}
	newest := v.list[len(v.list)-1]
	return e.head == newest.head || e.msg.role == convo.RoleUser && e.turn == newest.turn
}

func (v mView) pinned(e mEntry) bool { return slices.Contains(v.pins, e.head) }

// open returns the ids of the calls that have no result, in order.
func (v mView) open() []string {
	if len(v.list) == 0 {
		return nil
	}
	var open []string
	head := v.list[len(v.list)-1].head
	for _, e := range v.list {
		if e.head != head {
			continue
		}
		open = append(open, e.msg.calls...)
		for _, r := range e.msg.results {
			if i := slices.Index(open, r.id); i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		}
	}
	return open
}

// answeredIDs are the ids of the newest exchange that have a result.
func (v mView) answeredIDs() []string {
	var ids []string
	if len(v.list) > 0 {
		for _, e := range v.list {
			if e.head == v.list[len(v.list)-1].head {
				for _, r := range e.msg.results {
					ids = append(ids, r.id)
				}
			}
		}
	}
	return ids
}

// A mSnap is a snapshot with what the model says of it.
type mSnap struct {
	real  *convo.Snapshot
	print string // what it showed when it was made
	view  mView
	seq   int // when
	model string
}

// A mEdit is an applied edit.
type mEdit struct {
	seq     int
	touched []convo.ID
}

// A model is a History of plain slices.
type model struct {
	mView
	relaxed  bool
	pinFirst bool
	seq, uid int
	turn     int // newest
	edits    []mEdit
	gone     map[convo.ID]bool // taken back by rollbacks
	model    string
	known    map[string]*mKnown // by model
	now      *mKnown            // of the present one
	order    []string           // of models, by their newest report
	doubted  *mSnap             // reported on with a figure that cannot be
	reported map[string]uint64  // version of the newest snapshot reported on, by model
	guess    int
	sent     *mSnap
}

func newModel(relaxed, pinFirst bool) *model {
	return &model{relaxed: relaxed, pinFirst: pinFirst, gone: map[convo.ID]bool{}, known: map[string]*mKnown{}, reported: map[string]uint64{}}
}

func (m *model) newUID() int { m.uid++; return m.uid }

// append returns the kind of error, and where it is nil changes m.
func (m *model) append(batch []mMsg) (kind string) {
	next := m.mView.copy()
	turn, seen := m.turn, m.turn
	add := func(msg mMsg) {
		next.last++
		e := mEntry{id: next.last, head: next.last, uid: m.newUID(), msg: msg}
		if msg.role == convo.RoleSystem {
			next.sys = append(next.sys, e)
		} else {
			if msg.role == convo.RoleTool {
				e.head = next.list[len(next.list)-1].head
			}
			e.turn = turn
			next.list = append(next.list, e)
		}
		next.appended += msg.tokens()
	}
	if len(batch) == 0 {
		return ""
	}
	if batch[0].role == convo.RoleUser && m.relaxed {
		for _, id := range next.open() {
			add(mMsg{role: convo.RoleTool, results: []mResult{{id: id, text: "interrupted by the user", isErr: true}}})
		}
	}
	for _, msg := range batch {
		prev := convo.RoleNone
		if len(next.sys) > 0 {
			prev = convo.RoleSystem
		}
		if n := len(next.list); n > 0 {
			prev = next.list[n-1].msg.role
		}
		open := next.open()
		switch msg.role {
		case convo.RoleTool:
			var placed []mResult
			answered := next.answeredIDs()
			for _, r := range msg.results {
				i := slices.Index(open, r.id)
				if r.noID && r.noName {
					i = 0
				}
				if len(open) == 0 || i < 0 {
					if !r.noID && slices.Contains(answered, r.id) {
						return "answered"
					}
					return "no open call"
				}
				r.id = open[i]
				answered = append(answered, r.id)
				open = slices.Delete(slices.Clone(open), i, i+1)
				placed = append(placed, r)
			}
			msg.results = placed
		case convo.RoleSystem:
			if len(open) > 0 {
				return "open calls"
			}
			if len(next.list) > 0 {
				return "role"
			}
		default:
			if len(open) > 0 {
				return "open calls"
			}
			strict := msg.role == convo.RoleUser && prev != convo.RoleUser ||
				msg.role == convo.RoleAssistant && (prev == convo.RoleUser || prev == convo.RoleTool)
			if !m.relaxed && !strict {
				return "role"
			}
			if msg.role == convo.RoleUser && prev != convo.RoleUser {
				turn++
			}
		}
		add(msg)
		if m.pinFirst && msg.role == convo.RoleUser && turn == 1 && seen == 0 {
			next.pins = append(next.pins, next.last)
			seen = 1
		}
	}
	m.mView, m.turn = next, turn
	return ""
}

// accepts reports whether the first message of a batch could be appended.
func (v mView) accepts(m *model, batch []mMsg) bool {
	c := *m
	c.mView = v.copy()
	return c.append(batch[:1]) == ""
}

func (m *model) pin(ids []convo.ID, on bool) (kind string) {
	pins := slices.Clone(m.pins)
	for _, id := range ids {
		e, ok := m.find(id)
		if !ok {
			return "not found"
		}
		if e.msg.role == convo.RoleSystem {
			continue
		}
		i := slices.Index(pins, e.head)
		if on && i < 0 {
			pins = append(pins, e.head)
		} else if !on && i >= 0 {
			pins = slices.Delete(pins, i, i+1)
		}
	}
	slices.Sort(pins)
	m.pins = pins
	return ""
}

func (m *model) rollback(at *mSnap) (kind string) {
	for _, e := range at.view.list {
		if m.gone[e.id] {
			return "stale"
		}
	}
	stay := true
	for _, e := range m.edits {
		if e.seq <= at.seq {
			continue
		}
		for _, id := range e.touched {
			if _, ok := at.view.find(id); !ok {
				stay = false
			}
		}
		for _, x := range at.view.list {
			if at.view.hardFloor(x) && !slices.ContainsFunc(m.list, func(y mEntry) bool { return y.uid == x.uid }) {
				stay = false
			}
		}
	}
	var kept []mEntry
	for _, e := range m.list {
		if e.id > at.view.last {
			m.gone[e.id] = true
			if stay {
				m.appended -= e.msg.tokens()
			}
		} else {
			kept = append(kept, e)
		}
	}
	m.appended = max(m.appended, 0)
	// What a reduction has dropped since is newer too, and gone for good.
	for id := at.view.last + 1; id <= m.last; id++ {
		m.gone[id] = true
	}
	if stay {
		m.list = kept
	} else {
		v := at.view.copy()
		m.list, m.sum, m.sumUID, m.covers, m.updates = v.list, v.sum, v.sumUID, v.covers, v.updates
		m.touched, m.appended = v.touched, v.appended
		m.edits = slices.DeleteFunc(m.edits, func(e mEdit) bool { return e.seq > at.seq })
	}
	m.afterRollback()
	return ""
}

func (m *model) afterRollback() {
	m.pins = slices.DeleteFunc(slices.Clone(m.pins), func(head convo.ID) bool {
		_, ok := m.find(head)
		return !ok
	})
	m.turn = m.touched
	if n := len(m.list); n > 0 {
		m.turn = max(m.turn, m.list[n-1].turn)
	}
}

func (m *model) rewind(turns int) (taken int) {
	for taken < turns && len(m.list) > 0 {
		turn := m.list[len(m.list)-1].turn
		if turn == 0 || turn <= m.touched {
			break
		}
		for n := len(m.list); n > 0 && m.list[n-1].turn == turn; n-- {
			m.gone[m.list[n-1].id] = true
			m.appended -= m.list[n-1].msg.tokens()
			m.list = m.list[: n-1 : n-1]
		}
		m.appended = max(m.appended, 0)
		taken++
	}
	if taken > 0 {
		m.afterRollback()
	}
	return taken
}
