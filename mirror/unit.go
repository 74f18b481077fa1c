package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A unit is a message that one entry of the History is made of, or could be. A value of the
// framework has a unit for each message that it is decoded to, and for each result.
type unit[M any] struct {
	key    string // of its entry, which never changes; "": the History has made the entry
	host   string // the key that the list names it by; "": none
	isPart bool   // it is not the first unit of a value, so host is made up
	id     convo.ID
	stand  standing
	role   convo.Role
	at     int    // which call it answers, if it is a result
	sum    uint64 // see read; 0: not computed yet
	isEnd  bool   // it is an answer without calls
	row    *row[M]
	exact  uint64   // see sum; of the value of row
	calls  []string // IDs of the calls in the value of row, or of those that it answers

	index  int            // in the items of the plan that it is in
	early  bool           // it was compacted before the Mirror was made, so that its ID is not known
	listed bool           // the newest list holds it
	place  int            // in that list, after the system messages
	msg    *convo.Message // of a unit that has no entry yet, or that the list does not hold; else nil
	behind int            // of a unit that the list does not hold: how many units of the list it stands behind
	rest   int            // and how many of these were compacted, or in the view with it
	isOwn  bool           // it came from Add
}

// A standing says where the entry of a unit is.
type standing int

const (
	isNew   standing = iota // it has none, or it was taken back
	inView                  // in the view
	covered                 // the summary stands for it
	hasLeft                 // a compaction has dropped it
)

// A row is a value of the framework.
type row[M any] struct {
	value M
	held  bool   // value is set
	shown bool   // only used by letGo
	key   string // of the framework
	index int    // in the list that it was read from
	units []*unit[M]
}

// isSystem reports whether r is a system message and nothing else.
func (r *row[M]) isSystem() bool {
	return !slices.ContainsFunc(r.units, func(u *unit[M]) bool { return u.role != convo.RoleSystem })
}

// Keys of entries: that of the first unit of a value is the key that the framework gave to
// it, with each "#" doubled. Others have "#" and their number behind it. A unit without a
// key of the framework has "#" and a number, which no other one gets.

func hostKey(key string, part int) string {
	key = strings.ReplaceAll(key, "#", "##")
	if part > 0 {
		key += "#" + strconv.Itoa(part)
	}
	return key
}

func ownKey(n int) string { return "#" + strconv.Itoa(n) }

// isOwnKey reports whether a key is one of ownKey.
func isOwnKey(key string) bool {
	return len(key) > 1 && key[0] == '#' && key[1] != '#'
}

// isPartKey reports whether a key is one of hostKey for another unit than the first.
func isPartKey(key string) bool {
	at := strings.LastIndexByte(key, '#')
	_, err := strconv.Atoi(key[at+1:])
	return at > 0 && err == nil && (len(key[:at])-len(strings.TrimRight(key[:at], "#")))%2 == 0
}

// name gives a unit that is about to be appended its key.
func (m *Mirror[M]) name(u *unit[M]) {
	if u.key == "" {
		if u.key = u.host; u.key == "" {
			m.named++
			u.key = ownKey(m.named)
		}
	}
	own := u.message()
	own.Key = u.key
	u.msg = &own
}

// A reading is a list that was read.
type reading[M any] struct {
	values []M
	rows   []*row[M]  // of each value; nil: it is for one request
	system []*unit[M] // the system messages in front
	items  []*unit[M] // what comes after them
	tail   []M        // what stands at the end for one request
	heads  int        // how many values are in front of the first message that is no system message
	shared int        // how many items are the units of the list before themselves
}

// A given is a value of the newest list.
type given[M any] struct {
	value M
	row   *row[M]    // nil: it is for one request
	items []*unit[M] // what it was decoded to; nil: units of the list, which are those of row
}

// again returns what decode returns for a value that is the same.
func (g *given[M]) again(v M) *row[M] {
	r, items := &row[M]{value: v, held: true, key: g.row.key}, g.items
	if items == nil {
		items = g.row.units
	}
	for _, it := range items {
		r.units = append(r.units, &unit[M]{row: r, msg: it.msg, role: it.role, exact: it.exact, sum: it.sum, calls: it.calls, host: it.host, isPart: it.isPart, isEnd: it.isEnd})
	}
	return r
}

// read reads a list. What is the same as in the list before is not decoded. As far as nothing
// has changed, its items are the units of that list themselves.
func (m *Mirror[M]) read(list []M) (*reading[M], error) {
	in := &reading[M]{values: list, rows: make([]*row[M], len(list))}
	var isTaken map[string]bool // keys of rows that are not shared
	shares := false
	for i, v := range list {
		r, err := m.readValue(i, v)
		if err == nil && r == nil {
			in.tail = append(in.tail, v)
			continue
		}
		if err == nil && in.heads == i-len(in.tail) && r.isSystem() {
			if r.isShared() { // it was a note
				r = m.given[i].again(v)
			}
			in.heads = i + 1
		}
		if err == nil && len(r.units) > 0 && in.heads <= i {
			key, isShared := r.units[0].host, r.isShared()
			if key != "" && (isTaken[key] || shares && !isShared && in.shares(key)) {
				err = &convo.RowError{Key: r.key, Fault: "twice"}
			}
			if shares = shares || isShared; !isShared {
				if isTaken == nil {
					isTaken = make(map[string]bool)
				}
				isTaken[key] = true
			}
		}
		if err != nil {
			return nil, fmt.Errorf("mirror: message %d: %w", i, err)
		}
		r.index, in.rows[i], in.tail = i, r, nil
	}
	if !m.arrange(in) {
		for i, r := range in.rows {
			if r != nil && r.isShared() {
				in.rows[i] = m.given[i].again(list[i])
				in.rows[i].index = i
			}
		}
		m.arrange(in)
	}
	return in, nil
}

// isShared reports whether r is of the list before, and not made for the list that is read.
func (r *row[M]) isShared() bool { return len(r.units) > 0 && r.units[0].listed }

// shares reports whether a shared row has a key.
func (in *reading[M]) shares(key string) bool {
	return slices.ContainsFunc(in.rows, func(r *row[M]) bool { return r != nil && r.isShared() && r.units[0].host == key })
}

// readValue returns the row of the value with index i, or nil if that is for one request. It may
// be that of the list before.
func (m *Mirror[M]) readValue(i int, v M) (*row[M], error) {
	once, err := m.once(v)
	if once || err != nil {
		return nil, err
	}
	key, err := m.key(v)
	if err != nil {
		return nil, err
	}
	if i < len(m.given) && m.given[i].row != nil && m.given[i].row.key == key {
		g := &m.given[i]
		same, err := m.same(g.value, v)
		switch {
		case err != nil:
			return nil, err
		case same && g.items == nil && g.row.isShared():
			return g.row, nil
		case same:
			return g.again(v), nil
		}
	}
	return m.decode(v, key)
}

func (m *Mirror[M]) same(was, now M) (is bool, err error) {
	defer catch(&err)
	return m.codec.Same(was, now), nil
}

func (m *Mirror[M]) once(v M) (is bool, err error) {
	defer catch(&err)
	return m.codec.Once != nil && m.codec.Once(v), nil
}

func (m *Mirror[M]) key(v M) (key string, err error) {
	defer catch(&err)
	if m.codec.Key != nil {
		key = m.codec.Key(v)
	}
	return key, nil
}

// decode returns the row of a value with a key.
func (m *Mirror[M]) decode(v M, key string) (r *row[M], err error) {
	defer catch(&err)
	msgs, err := m.codec.Decode(v)
	if err != nil {
		return nil, err
	}
	r = &row[M]{value: v, held: true, key: key}
	key = text.Valid(key) // as Append keeps it
	for _, msg := range split(msgs) {
		msg.Key = ""
		u := &unit[M]{row: r, msg: &msg, role: msg.Role, exact: m.sum(&msg), calls: callsOf(&msg), isPart: len(r.units) > 0}
		u.isEnd = msg.Role == convo.RoleAssistant && len(u.calls) == 0
		if key != "" {
			u.host = hostKey(key, len(r.units))
		}
		r.units = append(r.units, u)
	}
	return r, nil
}

// load decodes the value of an item that was not decoded, since its message is needed.
func (m *Mirror[M]) load(p *plan[M], it *unit[M]) error {
	if it.msg != nil {
		return nil
	}
	i, units := it.row.index, it.row.units
	r, err := m.decode(p.values[i], it.row.key)
	if err == nil && len(r.units) != len(units) {
		err = errors.New("the value is the same as before, and Decode returns another number of messages")
	}
	if err != nil {
		return fmt.Errorf("mirror: message %d: %w", i, err)
	}
	for k, u := range units {
		u.msg = r.units[k].msg
	}
	return nil
}

// split returns msgs with each result in a message of its own.
func split(msgs []convo.Message) []convo.Message {
	var out []convo.Message
	for _, msg := range msgs {
		if msg.Role != convo.RoleTool || len(msg.Parts) < 2 {
			out = append(out, msg)
			continue
		}
		for _, p := range msg.Parts {
			one := msg
			one.Parts = []convo.Part{p}
			out = append(out, one)
		}
	}
	return out
}

// callsOf returns the IDs of the calls in msg, or of those that it answers.
func callsOf(msg *convo.Message) (ids []string) {
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case convo.ToolCall:
			ids = append(ids, p.ID)
		case convo.ToolResult:
			ids = append(ids, p.CallID)
		}
	}
	return ids
}

// arrange puts the units of the rows in order. It reports whether those that are shared are the
// first ones, as they were in the list before.
func (m *Mirror[M]) arrange(in *reading[M]) bool {
	in.system, in.items, in.shared = nil, make([]*unit[M], 0, len(m.list)+8), 0
	for i, r := range in.rows {
		switch {
		case r == nil:
		case i < in.heads:
			in.system = append(in.system, r.units...)
		default:
			in.items = append(in.items, r.units...)
		}
	}
	if !pair(in.items) {
		return false
	}
	for i, u := range in.items {
		if !u.listed {
			continue
		}
		if i != in.shared || i >= len(m.list) || m.list[i] != u {
			return false
		}
		in.shared++
	}
	return true
}

// pair adds to what the model reads of each result which call it answers, and puts results
// that follow one another in the order of their calls. It reports whether those of the list
// before answer what they did.
func pair[M any](units []*unit[M]) bool {
	gather(units)
	var calls []string
	for i := 0; i < len(units); i++ {
		if units[i].role != convo.RoleTool {
			calls = units[i].calls
			continue
		}
		from := i
		for ; i < len(units) && units[i].role == convo.RoleTool; i++ {
			at := i - from // without an ID, results are in the order of the calls
			if ids := units[i].calls; len(ids) > 0 && ids[0] != "" {
				at = slices.Index(calls, ids[0])
			}
			if units[i].listed && units[i].at != at {
				return false
			}
			units[i].at = at
		}
		slices.SortStableFunc(units[from:i], func(a, b *unit[M]) int { return a.at - b.at })
		i--
	}
	return true
}

// gather puts a result that comes after another message to the other results of its calls.
func gather[M any](units []*unit[M]) {
	var open []string // calls without a result
	end := 0          // of the results
	for i, u := range units {
		if u.role != convo.RoleTool {
			if len(u.calls) > 0 {
				open, end = append(open[:0], u.calls...), i+1
			}
			continue
		}
		at := -1
		if len(u.calls) > 0 && u.calls[0] != "" {
			at = slices.Index(open, u.calls[0])
		}
		if at >= 0 {
			open = slices.Delete(open, at, at+1)
			copy(units[end+1:i+1], units[end:i])
			units[end] = u
		}
		if at >= 0 || i == end {
			end++
		}
	}
}

// answers says which call of the answer before it u is the result of, whose entry has ids.
func (u *unit[M]) answers(calls, ids []string) {
	if u.at = -1; len(ids) > 0 {
		u.at = slices.Index(calls, ids[0])
	}
}

// message returns the message of u, or none.
func (u *unit[M]) message() convo.Message {
	if u.msg == nil {
		return convo.Message{}
	}
	return *u.msg
}

// read returns a fingerprint of what the model reads of u, and of which call it answers.
func (u *unit[M]) read() uint64 {
	if u.sum == 0 {
		u.sum = max(u.message().Sum(), 1)
	}
	if u.role == convo.RoleTool {
		return u.sum*31 + uint64(u.at)
	}
	return u.sum
}

// same reports whether it is what the list has of u: the model reads the same, and the key is
// the same where both have one.
func (u *unit[M]) same(it *unit[M]) bool {
	isEqual := u.exact == it.exact && u.at == it.at && slices.Equal(u.calls, it.calls)
	return (isEqual || u.read() == it.read()) && (u.host == it.host || u.host == "" || u.isPart || it.isPart)
}

// find returns the unit of an entry, or nil.
func (m *Mirror[M]) find(e convo.Entry) *unit[M] {
	if e.Message.Key != "" {
		return m.byKey[e.Message.Key]
	}
	return m.byID[e.ID]
}

// front returns how many system entries s begins with.
func (m *Mirror[M]) front(s *convo.Snapshot) int {
	for i, e := range s.All() {
		if e.Message.Role != convo.RoleSystem || e.Message.Key != "" || m.byID[e.ID] != nil {
			return i
		}
	}
	return s.Len()
}

// meet notes where the entries of all units are, forgets those that were taken back and that the
// list does not hold, and takes note of entries that it has not seen yet.
func (m *Mirror[M]) meet(s *convo.Snapshot) {
	sum, _ := s.Summary()
	stand := func(u *unit[M]) {
		switch i, _ := slices.BinarySearchFunc(sum.Covers, u.id, func(r convo.Range, id convo.ID) int { return cmp.Compare(r.Last, id) }); {
		case u.early && sum.Text != "": // which may stand for it
			u.stand = covered
		case u.id == 0:
			u.stand = hasLeft
		case s.TakenBack(u.id):
			u.stand = isNew
		case i < len(sum.Covers) && sum.Covers[i].First <= u.id:
			u.stand = covered
		default:
			u.stand = hasLeft
		}
	}
	front := m.front(s)
	kept := 0 // how many units of view are in it still
	if m.met != nil {
		kept = min(max(s.Same(m.met)-front, 0), len(m.view))
	}
	last := convo.ID(0)
	if kept > 0 {
		last = m.ids[kept-1]
	}
	for _, units := range [][]*unit[M]{m.list, m.loose} {
		for _, u := range units {
			if u.stand != inView || u.id > last {
				stand(u)
			}
		}
	}
	clear(m.view[kept:])
	m.met, m.view, m.ids = s, m.view[:kept], m.ids[:kept]
	var others []*unit[M] // that were not seen before, and that no unit of the list follows so far
	var calls []string    // of the newest entry that is no result
	from := front + kept
	for from > front && from < s.Len() && m.view[from-front-1].role == convo.RoleTool {
		from--
	}
	for i := max(from-1, front); i < s.Len(); i++ {
		e, _ := s.At(i)
		msg := e.Message
		if msg.Role != convo.RoleTool {
			calls = callsOf(&msg)
		}
		if i < front+kept {
			continue
		}
		u := m.find(e)
		if u == nil {
			u = &unit[M]{key: msg.Key, id: e.ID, role: msg.Role, sum: max(msg.Sum(), 1), calls: callsOf(&msg), msg: &msg, behind: len(m.seen)}
			if msg.Role == convo.RoleTool {
				u.answers(calls, u.calls)
			}
			if !isOwnKey(msg.Key) {
				u.host, u.isPart = msg.Key, isPartKey(msg.Key)
			}
			u.isEnd = msg.Role == convo.RoleAssistant && len(u.calls) == 0
			m.loose = append(m.loose, u)
			m.register(u)
			others = append(others, u)
		}
		if u.isOwn && u.role == convo.RoleTool && u.at < 0 { // it was given to Add
			u.answers(calls, callsOf(&msg))
		}
		if u.id, u.stand = e.ID, inView; u.listed {
			for _, o := range others {
				o.behind = u.place
			}
			others = nil
		}
		m.view, m.ids = append(m.view, u), append(m.ids, e.ID)
	}
	m.rest = 0
	for _, u := range slices.Backward(m.list) {
		if u.stand == inView || u.stand == covered {
			m.rest = u.place + 1
			break
		}
	}
	for _, u := range m.loose {
		if u.stand == inView {
			u.rest = max(u.rest, m.rest)
		}
	}
	m.loose = slices.DeleteFunc(m.loose, func(u *unit[M]) bool {
		if u.stand == isNew {
			m.unregister(u)
		}
		return u.stand == isNew
	})
}

func (m *Mirror[M]) register(u *unit[M]) {
	if u.key != "" {
		m.byKey[u.key] = u
	} else {
		m.byID[u.id] = u
	}
}

func (m *Mirror[M]) unregister(u *unit[M]) {
	if m.byKey[u.key] == u {
		delete(m.byKey, u.key)
	}
	if m.byID[u.id] == u {
		delete(m.byID, u.id)
	}
}
