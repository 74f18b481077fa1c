package mirror

import (
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// A plan says how the History gets what a list holds.
type plan[M any] struct {
	*reading[M]
	list   []*unit[M] // the unit that stands for each: a known unit, or the item itself
	known  []*unit[M] // of the list before, as far as this one goes on with it
	common int        // how many of known were found
	follow bool       // the list may contradict what is known
	joined map[*unit[M]]bool
	wrong  []*unit[M] // known units that the list contradicts
	gone   []*unit[M] // known units that the list does not hold any more
	behind int        // how many items the list before began with
	append []*unit[M]
	from   convo.ID // what stands from this entry on is taken back; 0: everything, -1: nothing
	past   *PastError
}

// compare finds out which units of a list are known. A list that contradicts what the Mirror
// has seen of it is a PastError; with follow, only a list that has nothing in common with that.
func (m *Mirror[M]) compare(s *convo.Snapshot, in *reading[M], follow bool) (*plan[M], error) {
	p := &plan[M]{reading: in, known: m.list, follow: follow, joined: map[*unit[M]]bool{}, from: -1}
	items := p.items
	p.list = make([]*unit[M], 0, len(items))
	last := convo.ID(0)
	ended := 0 // how many items there are up to the newest answer that ended a turn
	for i, it := range items {
		u := m.recall(p, i, ended)
		if u != nil {
			last = max(last, u.id)
			if !u.listed { // if the list has held u, the message is needed only to append it again
				if err := m.load(p, it); err != nil {
					return nil, err
				}
			}
			u.msg = it.msg
		} else if err := m.depart(p, it, last); err != nil {
			return nil, err
		} else {
			u = it
			if err := m.translate(s, p, it); err != nil {
				return nil, err
			}
		}
		it.index, u.index = i, i
		if p.list = append(p.list, u); it.isEnd {
			ended = i + 1
		}
	}
	if rest := p.known[p.common:]; isStuck(rest) {
		at := 0
		if len(items) > 0 {
			at = items[len(items)-1].row.index + 1
		}
		if err := p.contradict(rest, m.past(at, rest[0], last, "is missing")); err != nil {
			return nil, err
		}
	}
	if m.filled && len(items) > 0 && !m.compacted(p) {
		return nil, m.past(items[0].row.index, items[0], 0, "begins a list that has no entry of the History, which is not empty and is found again by the keys of its entries; Resume of this package needs none, and ReplaceRows(0) of the History begins anew")
	}
	p.gone = append(p.gone, p.known[p.common:]...)
	for n := min(len(items), len(m.seen)); p.behind < n && (p.behind < len(m.list) && p.list[p.behind] == m.list[p.behind] || items[p.behind].read() == m.seen[p.behind]); {
		p.behind++
	}
	m.order(s, p)
	return p, nil
}

// recall returns the known unit that the item with index i is, or nil.
func (m *Mirror[M]) recall(p *plan[M], i, ended int) *unit[M] {
	it, at := p.items[i], p.common
	for at < len(p.known) && p.known[at].stand == isNew && !p.known[at].same(it) {
		at++ // it was taken back, and the list need not hold it
	}
	if at < len(p.known) && p.known[at].same(it) {
		p.common = at + 1
		return p.known[at]
	}
	u := m.join(p, i, ended)
	if u != nil {
		p.joined[u] = true
	}
	return u
}

// depart notes that the list goes on with a new item.
func (m *Mirror[M]) depart(p *plan[M], it *unit[M], last convo.ID) error {
	reason, wrong := "is a different message than before", p.known[p.common:]
	if len(wrong) > 0 && it.host != "" && it.host == wrong[0].host {
		reason = "has different content than before"
	}
	if !isStuck(wrong) {
		if wrong = m.rivals(p, it); len(wrong) > 0 {
			reason = "has different content than before"
		}
	}
	if len(wrong) > 0 {
		if err := p.contradict(wrong, m.past(it.row.index, it, last, reason)); err != nil {
			return err
		}
	}
	p.gone = append(p.gone, p.known[p.common:]...)
	p.known = p.known[:p.common]
	return nil
}

// contradict notes what the list contradicts, or returns err if it must not.
func (p *plan[M]) contradict(wrong []*unit[M], err *PastError) error {
	if err.isAlone = p.follow; !p.follow || p.common == 0 {
		return err
	}
	if p.past == nil {
		p.past = err
	}
	p.wrong = append(p.wrong, wrong...)
	return nil
}

// isStuck reports whether the view, or the summary, shows any of units.
func isStuck[M any](units []*unit[M]) bool {
	return slices.ContainsFunc(units, func(u *unit[M]) bool { return u.stand == inView || u.stand == covered })
}

// compacted says of the first list of a History that was filled before that what stands before
// the last entry that was found was compacted. It reports whether any was found.
func (m *Mirror[M]) compacted(p *plan[M]) bool {
	n := len(p.list)
	for n > 0 && !p.joined[p.list[n-1]] {
		n--
	}
	for _, u := range p.list[:n] {
		if !p.joined[u] {
			u.early, u.stand = true, hasLeft
		}
	}
	return n > 0
}

// join returns the unit that the list did not hold and that the item with index i is, or nil.
// Without a key, what is said again after an answer that ended a turn is another message.
func (m *Mirror[M]) join(p *plan[M], i, ended int) *unit[M] {
	it := p.items[i]
	if m.filled && m.codec.Key == nil {
		return nil // only Resume can tell
	}
	for _, u := range m.loose {
		switch {
		case p.joined[u]:
		case m.filled && (u.host != "" && u.host == it.host || m.isResult(p, u, it)):
			return u
		case !u.same(it):
		case u.host != "" && u.host == it.host:
			return u
		case m.filled: // it stands behind what was found so far
			if at := slices.Index(m.view, u); !slices.ContainsFunc(m.view[at+1:], func(o *unit[M]) bool { return p.joined[o] }) {
				return u
			}
		case ended > u.behind || i < u.behind && slices.ContainsFunc(p.items[i+1:min(u.behind, len(p.items))], func(o *unit[M]) bool { return o.isEnd }):
		default:
			return u
		}
	}
	return nil
}

// isResult reports whether u answers the call that it answers: in a History that was filled
// before, its content may have been cleared.
func (m *Mirror[M]) isResult(p *plan[M], u, it *unit[M]) bool {
	if it.role != convo.RoleTool || u.role != convo.RoleTool || u.at != it.at {
		return false
	}
	i := len(p.list) - 1
	for i >= 0 && p.list[i].role == convo.RoleTool {
		i--
	}
	from, at := -1, slices.Index(m.view, u)
	if i >= 0 {
		from = slices.Index(m.view, p.list[i])
	}
	return from >= 0 && from < at && !slices.ContainsFunc(m.view[from+1:at], func(o *unit[M]) bool { return o.role != convo.RoleTool })
}

// rivals returns the units that the list did not hold so far, and that have the key of it, or
// are a result for the same call, and have other content.
func (m *Mirror[M]) rivals(p *plan[M], it *unit[M]) (wrong []*unit[M]) {
	for _, u := range m.loose {
		isRival := it.host != "" && u.host == it.host || u.isOwn && u.stand == inView && m.isResult(p, u, it)
		if isRival && !p.joined[u] && (u.stand == inView || u.stand == covered) {
			wrong = append(wrong, u)
		}
	}
	return wrong
}

// indexOf returns where u is in the list, and whether it is.
func (p *plan[M]) indexOf(u *unit[M]) (int, bool) {
	return u.index, u.index < len(p.list) && p.list[u.index] == u
}

// translate gives a new result the ID that its call has in the History, where the list has
// another one by now.
func (m *Mirror[M]) translate(s *convo.Snapshot, p *plan[M], it *unit[M]) error {
	if it.role != convo.RoleTool || len(it.calls) == 0 || it.calls[0] == "" {
		return nil
	}
	id := p.callID(s, it.calls[0])
	if id == it.calls[0] {
		return nil
	}
	if err := m.load(p, it); err != nil {
		return err
	}
	own := it.message()
	own.Parts = slices.Clone(own.Parts)
	for i, part := range own.Parts {
		if r, ok := part.(convo.ToolResult); ok {
			r.CallID = id
			own.Parts[i] = r
		}
	}
	it.msg = &own
	return nil
}

// callID returns the ID that the newest call with an ID in the list has in the History.
func (p *plan[M]) callID(s *convo.Snapshot, id string) string {
	for i, u := range slices.Backward(p.list) {
		it := p.items[i]
		at := slices.Index(it.calls, id)
		if it.role != convo.RoleAssistant || at < 0 {
			continue
		}
		if u.stand == inView {
			e, _ := s.Find(u.id)
			if calls := e.Message.ToolCalls(); at < len(calls) {
				return calls[at].ID
			}
		}
		break
	}
	return id
}

// order finds out what has to be appended, so that the view has the order of the list. What the
// list does not hold stands behind what the list held when it came.
func (m *Mirror[M]) order(s *convo.Snapshot, p *plan[M]) {
	want := m.wanted(p)
	n := 0
	for n < len(want) && n < len(m.view) && want[n] == m.view[n] {
		n++
	}
	newest := convo.ID(0) // that the summary stands for
	if sum, ok := s.Summary(); ok && len(sum.Covers) > 0 {
		newest = sum.Covers[len(sum.Covers)-1].Last
	}
	for _, u := range slices.Concat(p.gone, want[n:]) { // what has left the view must not come back by Undo
		if u.stand == hasLeft && u.id > newest && (p.from < 0 || u.id < p.from) {
			p.from = u.id
		}
	}
	for n > 0 && p.from >= 0 && m.ids[n-1] > p.from {
		n--
	}
	if p.append = want[n:]; n < len(m.view) && (p.from < 0 || m.ids[n] < p.from) {
		p.from = m.ids[n]
	}
	switch {
	case slices.ContainsFunc(p.wrong, func(u *unit[M]) bool { return u.stand == covered }), len(p.wrong) > 0 && p.from >= 0 && p.from <= newest:
		m.beginAnew(p)
	case p.from >= 0 && p.from <= newest:
		p.keepOrder() // the summary stands for newer entries
	case p.from >= 0:
		p.append = slices.DeleteFunc(p.append, func(u *unit[M]) bool { // the results that the History has made are made again
			return u.stand == inView && !u.listed && !p.joined[u] && u.role == convo.RoleTool && !u.isOwn
		})
	}
}

// wanted returns the units that the view should show, in order.
func (m *Mirror[M]) wanted(p *plan[M]) (want []*unit[M]) {
	rest := 0 // what stands before this item and is not in the view was compacted
	for i, u := range p.list {
		if u.stand == inView || u.stand == covered {
			rest = i + 1
		}
	}
	for _, u := range m.loose {
		if u.stand == inView && !p.joined[u] {
			rest = max(rest, u.rest)
		}
	}
	loose := m.others(p)
	want = make([]*unit[M], 0, len(p.list)+len(loose))
	for i := range len(p.list) + 1 {
		for len(loose) > 0 && (i == len(p.list) || loose[0].behind <= i) {
			want, loose = append(want, loose[0]), loose[1:]
		}
		if i == len(p.list) {
			break
		}
		if u := p.list[i]; u.stand == inView || u.stand == isNew || u.stand == hasLeft && i >= rest {
			want = append(want, u)
		}
	}
	return want
}

// others returns the units in the view that the list does not hold, and finds out behind how many
// units of the list each stands.
func (m *Mirror[M]) others(p *plan[M]) (loose []*unit[M]) {
	var follows map[*unit[M]]int // place of the unit of the list that stands after it, also if the list holds it again
	if len(p.wrong) > 0 {
		follows = make(map[*unit[M]]int, len(m.view))
		again, next := p.again(), len(p.list)
		for _, u := range slices.Backward(m.view) {
			if i, ok := p.indexOf(u); ok {
				next = i
			} else if i, ok := again[u]; ok {
				next = i
			}
			follows[u] = next
		}
	}
	before, wrong := 0, false // how many units the list has up to the last unit that stands before it in the view
	for _, u := range m.view {
		i, ok := p.indexOf(u)
		switch {
		case ok:
			before = max(before, i+1)
		case slices.Contains(p.wrong, u):
			wrong = true
		case u.listed:
		case wrong:
			before = max(before, follows[u])
			u.behind = before
			loose = append(loose, u)
		default:
			u.behind = max(before, min(u.behind, p.behind))
			loose = append(loose, u)
		}
	}
	return loose
}

// again returns the places of the units that the list does not hold where they stood, and that
// it holds again behind what has changed.
func (p *plan[M]) again() map[*unit[M]]int {
	places, from := make(map[*unit[M]]int), p.behind
	for _, u := range p.gone {
		for i := from; i < len(p.items); i++ {
			if p.list[i] == p.items[i] && u.same(p.items[i]) {
				places[u], from = i, i+1
				break
			}
		}
	}
	return places
}

// ready divides what is to be appended: what came by Add would stand after an open call of the
// list, and waits.
func (p *plan[M]) ready() (now, waits []*unit[M]) {
	open := 0
	for _, u := range p.list {
		switch u.role {
		case convo.RoleAssistant:
			open = len(u.calls)
		case convo.RoleTool:
			open--
		case convo.RoleUser:
			open = 0
		}
	}
	n := len(p.append)
	for p.from >= 0 && open > 0 && n > 0 && p.append[n-1].isOwn && !p.joined[p.append[n-1]] {
		n--
	}
	return p.append[:n], p.append[n:]
}

// beginAnew makes p append the whole list, and what it does not hold behind it.
func (m *Mirror[M]) beginAnew(p *plan[M]) {
	p.from, p.append = 0, slices.Clone(p.list)
	for _, u := range m.loose {
		if !p.joined[u] && !slices.Contains(p.wrong, u) && (u.isOwn || u.role != convo.RoleTool) {
			p.append, u.behind = append(p.append, u), len(p.list)
		}
	}
}

// keepOrder leaves what is in the view where it is.
func (p *plan[M]) keepOrder() {
	p.from = -1
	p.append = slices.DeleteFunc(p.append, func(u *unit[M]) bool { return u.stand == inView })
}

// commit does what p says.
func (m *Mirror[M]) commit(p *plan[M]) error {
	units, waits := p.ready()
	msgs := make([]convo.Message, len(units))
	for i, u := range units {
		if n, ok := p.indexOf(u); ok {
			if err := m.load(p, p.items[n]); err != nil {
				return err
			}
			u.msg = p.items[n].msg
		}
		m.name(u)
		msgs[i] = u.message()
	}
	var last convo.ID
	var err error
	switch {
	case p.from >= 0:
		last, err = m.h.ReplaceRows(p.from, msgs...)
	case len(msgs) > 0:
		last, err = m.h.AppendRows(msgs...)
	}
	if err != nil {
		return err
	}
	for _, u := range m.list {
		u.listed = false
	}
	m.seen = m.seen[:0]
	for i, u := range p.list {
		it := p.items[i]
		if u.host == "" || u.isPart && !it.isPart {
			u.host, u.isPart = it.host, it.isPart
		}
		if m.filled {
			u.sum, u.at = max(it.message().Sum(), 1), it.at
		}
		u.listed, u.place, u.isOwn = true, i, false
		m.seen = append(m.seen, u.read())
	}
	for _, u := range m.list {
		if !u.listed {
			m.unregister(u)
		}
	}
	m.loose = slices.DeleteFunc(m.loose, func(u *unit[M]) bool { return u.listed })
	for _, u := range waits {
		m.unregister(u)
		u.id = 0
		m.waiting = append(m.waiting, &row[M]{units: []*unit[M]{u}})
	}
	m.loose = slices.DeleteFunc(m.loose, func(u *unit[M]) bool { return slices.Contains(waits, u) })
	for _, u := range m.loose {
		u.behind = min(u.behind, len(p.list))
	}
	for _, units := range [][]*unit[M]{p.list, m.loose} {
		for _, u := range units {
			if u.stand == hasLeft && p.from >= 0 && u.id >= p.from {
				u.id = 0 // it was not taken back, but its ID was
			}
		}
	}
	for i, u := range units {
		delete(m.byID, u.id)
		u.early = false
		u.id, u.stand = last-convo.ID(len(units)-1-i), inView // meet finds it, if results were made in between
		m.register(u)
	}
	m.takeValues(p)
	m.list, m.filled = p.list, false
	return nil
}

// takeValues gives units the values that the list has for them. A value that says the same
// and is another one does not replace the value that was sent.
func (m *Mirror[M]) takeValues(p *plan[M]) {
	if n := len(p.rows); m.codec.Same != nil {
		clear(m.given[min(n, len(m.given)):])
		m.given = append(m.given[:min(n, len(m.given))], make([]given[M], max(n-len(m.given), 0))...)
	}
	for i, r := range p.rows {
		g := given[M]{value: p.values[i], row: r}
		switch {
		case r == nil || len(r.units) == 0 || i < p.heads:
		case r.units[0].index < p.shared:
			r.value, r.held = g.value, true
		default:
			items := r.units
			m.takeValue(p, r)
			if m.codec.Same != nil {
				p.settle(&g, items)
			}
		}
		if m.codec.Same != nil {
			m.given[i] = g
		}
	}
}

// takeValue gives units the value of r.
func (m *Mirror[M]) takeValue(p *plan[M], r *row[M]) {
	items, was := r.units, p.list[r.units[0].index].row
	isSame, isEqual := was != nil && was != r && len(was.units) == len(items), true // the same units; of the same bytes
	for i, it := range items {
		u := p.list[it.index]
		isSame = isSame && was.units[i] == u
		isEqual = isEqual && u.exact == it.exact && slices.Equal(u.calls, it.calls)
	}
	switch {
	case isSame && was.held && !isEqual:
		return
	case isSame:
		was.value, was.held = r.value, true
	}
	if !isSame {
		r.units = slices.Clone(items) // settle needs them
	}
	for i, it := range items {
		u := p.list[it.index]
		switch {
		case u == it:
		case isSame:
			u.exact, u.calls = it.exact, it.calls
		case isEqual || u.row == nil || !u.row.held:
			u.row, u.exact, u.calls = r, it.exact, it.calls
			r.units[i] = u
		}
	}
}

// settle finds out what the next list can share of a value that was decoded to items: its row,
// if that has the same units and they are as if they had been decoded from it.
func (p *plan[M]) settle(g *given[M], items []*unit[M]) {
	r := p.list[items[0].index].row
	isClean := r != nil && len(r.units) == len(items)
	for i, it := range items {
		u := p.list[it.index]
		isClean = isClean && r.units[i] == u && u.row == r && u.host == it.host && u.isPart == it.isPart && u.exact == it.exact && slices.Equal(u.calls, it.calls)
	}
	if isClean {
		g.row = r
		return
	}
	g.items = items
	for _, it := range items {
		it.read()
		it.msg = nil
	}
}
