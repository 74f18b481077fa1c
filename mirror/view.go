package mirror

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// View returns the messages of a request that shows s: the system messages, the summary,
// and the entries in order, with the ephemeral messages in their place. A message of which
// nothing was cleared, cut, rewritten or masked is the value that Sync or Add has last been
// given for it, unless it has results in another order than the calls. All others are made by
// Encode. The slice is the caller's.
//
// s must be a snapshot of the History, most often the result of Prepare or Recover; nil is a
// [*convo.ValueError]. View does not notice a snapshot of another History, such as a fork:
// it shows what that says, with the values of m for entries with the same keys that say the
// same.
func (m *Mirror[M]) View(s *convo.Snapshot) (view []M, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer catch(&err)
	if s == nil {
		return nil, &convo.ValueError{Name: "the snapshot given to View", Want: "one of the History, such as Prepare returns"}
	}
	shown := m.shown(s)
	view = make([]M, 0, len(shown)+len(m.tail))
	for len(shown) > 0 {
		n := 1
		var v M
		if r := m.whole(shown); r != nil {
			v, n = r.value, len(r.units)
		} else if v, n, err = m.build(shown); err != nil {
			return nil, fmt.Errorf("mirror: entry %d: %w", shown[0].id, err)
		}
		view, shown = append(view, v), shown[n:]
	}
	m.meet(m.h.Snapshot())
	m.letGo()
	return append(view, m.tail...), nil
}

// A sight is a message that the model sees.
type sight[M any] struct {
	id   convo.ID // of its entry; 0: the summary, or an ephemeral message
	msg  convo.Message
	sum  uint64
	unit *unit[M] // nil: the framework has not given it
}

func (m *Mirror[M]) shown(s *convo.Snapshot) []sight[M] {
	unbound := s.Unbound()
	if m.codec.Seals == nil || !m.codec.Seals(s.Model()) { // only what a provider has refused is left out
		unbound = slices.DeleteFunc(unbound, func(id convo.ID) bool { return id > s.Released() })
	}
	front, system := m.front(s), 0
	all := make([]sight[M], 0, s.Len()+4)
	last := -1
	for i, msg := range s.MessagesFrom(0, func(convo.Role, string) bool { return true }) {
		if i == last { // only the last message beside an index is that of the entry
			all[len(all)-1].id = 0
		}
		last = i
		e, _ := s.At(i)
		if _, found := slices.BinarySearch(unbound, e.ID); found {
			msg.Parts = slices.DeleteFunc(msg.Parts, isSealed)
		}
		all = append(all, sight[M]{id: e.ID, msg: msg, sum: m.sum(&msg)})
	}
	var tagged []convo.Message
	for i := range all {
		v := &all[i]
		switch {
		case v.id == 0: // the summary has its tags already
		case i < front:
			if system < len(m.system) {
				v.unit = m.system[system]
			}
			system++
		default:
			e, _ := s.Find(v.id)
			v.unit = m.find(e)
		}
		if (v.unit == nil || v.unit.row == nil) && v.msg.Author != "" { // the framework may have no field for a name
			if tagged == nil {
				tagged = s.Messages()
			}
			v.msg = tagged[i]
		}
	}
	return all
}

func isSealed(p convo.Part) bool {
	r, ok := p.(convo.Reasoning)
	return ok && (r.Signature != "" || r.Encrypted != "")
}

// row returns the row of the unit that v shows, or nil.
func (v *sight[M]) row() *row[M] {
	if v.unit == nil {
		return nil
	}
	return v.unit.row
}

// whole returns the row whose value shows what shown begins with, or nil if there is none.
func (m *Mirror[M]) whole(shown []sight[M]) *row[M] {
	r := shown[0].row()
	if r == nil || !r.held || len(r.units) > len(shown) {
		return nil
	}
	for i, u := range r.units { // with results in the order of the calls, however the list is made
		if v := &shown[i]; v.unit != u || v.sum != u.exact || !u.hasCalls(&v.msg) {
			return nil
		}
	}
	return r
}

// hasCalls reports whether the calls in msg, or those that it answers, have the IDs of the
// framework's value. A call without an ID gets one from Append.
func (u *unit[M]) hasCalls(msg *convo.Message) bool {
	for i, id := range callsOf(msg) {
		if i < len(u.calls) && u.calls[i] != "" && u.calls[i] != id {
			return false
		}
	}
	return true
}

// build returns what Encode makes of the first message of shown, and of how many it is made:
// results of one value stay together, in the order of the calls.
func (m *Mirror[M]) build(shown []sight[M]) (v M, n int, err error) {
	msg, r := shown[0].msg, shown[0].row()
	if n = 1; r == nil {
		v, err = m.codec.Encode(msg, nil)
		return v, n, err
	}
	msg.Parts = slices.Clone(msg.Parts)
	for ; n < len(shown) && msg.Role == convo.RoleTool && shown[n].row() == r && shown[n].msg.Role == convo.RoleTool; n++ {
		msg.Parts = append(msg.Parts, shown[n].msg.Parts...)
	}
	var was *M
	if r.held {
		value := r.value
		was = &value
	}
	v, err = m.codec.Encode(msg, was)
	return v, n, err
}

// sum returns a hash of what msg says to the model. IDs of calls are not in it: Append
// gives one to a call that has none. Nor does invalid UTF-8 matter, which Append replaces.
func (m *Mirror[M]) sum(msg *convo.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	write := func(kind byte, texts ...string) {
		h.WriteByte(kind)
		for _, t := range texts {
			t = text.Valid(t)
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(len(t)))
			h.Write(n[:])
			h.WriteString(t)
		}
	}
	var parts func([]convo.Part)
	parts = func(list []convo.Part) {
		for _, p := range list {
			switch p := p.(type) {
			case convo.Text:
				write('t', string(p))
			case convo.Reasoning:
				write('r', p.ID, p.Text, p.Signature, p.Encrypted)
			case convo.ToolCall:
				write('c', p.Name, p.Arguments)
			case convo.ToolResult:
				write('a')
				if p.IsError {
					write('e')
				}
				parts(p.Parts)
				write('z')
			case convo.Media:
				write('m', p.MIME, p.Data, p.URL)
			case convo.Opaque:
				write('o', p.Format, p.JSON)
			}
		}
	}
	write('m', string(msg.Role), msg.Author)
	parts(msg.Parts)
	return h.Sum64()
}
