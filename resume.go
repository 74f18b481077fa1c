package convo

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/pairs"
	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/runs"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A resumer makes a History from Decisions and rows.
type resumer struct {
	in       *stateJSON
	rows     *rowList
	accepted map[string]bool
	isCut    bool // some rows are taken back

	*runs.Placer[ID, Message]

	originals []*original
	ids       map[ID]string // the keys of entries that a row tells
}

func (r *resumer) resume(rows iter.Seq2[Message, error], opts *Options) (*History, error) {
	if err := r.read(rows); err != nil {
		return nil, err
	}
	own := orNil(opts)
	repair, asSent := own.Repair, own.AsSent
	own.Repair, own.AsSent = nil, false
	if err := r.build(&own); err != nil {
		return nil, err
	}
	if err := r.compare(); err != nil {
		return nil, err
	}
	log := &reading{state: *r.in}
	p, err := log.picture(false)
	if err != nil {
		return nil, r.faultOf(err)
	}
	p.view.keep.most = maxTotal
	p.view.replace(p.view.sys, p.view.list, r.originals, p.view.turn)
	h, _, err := log.open(p, &own)
	if err != nil {
		return nil, r.faultOf(err)
	}
	if at, ok := nanoseconds(r.rows.lastAppend); ok && at != noTime {
		h.appendedAt(at)
	}
	h.opts.Repair, h.opts.AsSent = repair, asSent
	if err := h.appendTail(r); err != nil {
		return nil, err
	}
	h.setResumed(&r.rows.measuredFrame)
	if err := h.finishLoad(false); err != nil {
		return nil, err
	}
	return h, nil
}

// read takes the rows.
func (r *resumer) read(rows iter.Seq2[Message, error]) (err error) {
	defer catch(&err, "the rows given to Resume")
	n := len(r.in.entries)
	isTold := n == 0 || r.in.entries[n-1].id <= cmp.Or(r.rows.Newest(), r.rows.left.id)
	counter := newCounter(nil, Overheads{})
	r.Placer = runs.NewPlacer(&r.rows.List, r.rows.end(), isTold, r.isOther)
	for m, err := range rows {
		if err != nil {
			return fmt.Errorf("convo: rows: %w", err)
		}
		if fault := r.Take(givenRow(m, counter)); fault != nil {
			if fault.Key == "" {
				fault.Err = &MessageError{Role: m.Role, Part: -1, Reason: "a row needs a key; set Message.Key before Append, also of answers and results, or store the messages of the Reply of AppendReply, Do or Steps"}
			}
			return (*RowError)(fault)
		}
	}
	if fault := r.End(); fault != nil {
		return (*RowError)(fault)
	}
	return nil
}

// givenRow returns a copy of m, and what its place depends on.
func givenRow(m Message, by *counter) runs.Given[ID, Message] {
	m = m.clone()             // rows may use its slices again
	m.Key = text.Valid(m.Key) // as it was appended
	m.nameCalls()
	row := runs.Given[ID, Message]{Key: m.Key, Role: string(m.Role), Message: m, Calls: newCalls(&m, by)}
	for _, p := range m.Parts {
		result, ok := p.(ToolResult)
		if !ok {
			row.IsMixed = true
			break
		}
		row.Results = append(row.Results, pairs.Call{ID: result.CallID, Name: result.Name})
	}
	return row
}

// isOther reports whether a row is not what stood in a place, as far as that is known.
func (r *resumer) isOther(place int, row runs.Given[ID, Message]) bool {
	x, e := r.rows.Rows[place], &entry{msg: row.Message}
	isValid := e.msg.checkShared(&e.inline) == nil
	return !isValid || !r.rows.isShort(x.ID) && (x.Sum^fingerprint.Sum(e.msg.Sum()))>>callBits != 0
}

// build adds the entries of the rows to r.in.
func (r *resumer) build(opts *Options) error {
	entries, err := r.entries(&setup{opts: Options{Time: opts.Time}})
	if err != nil {
		return err
	}
	r.setMade(entries)
	r.in.entries = append(r.in.entries, entries...)
	slices.SortFunc(r.in.entries, func(a, b *entry) int { return int(a.id - b.id) })
	r.nameResults()
	changes := r.rows.changes
	for _, e := range entries {
		n := 0
		for n < len(changes) && changes[n].id <= e.id {
			n++
		}
		if err := r.change(e, changes[:n], opts.Spill != nil); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// entries returns the entries of the rows, without those that the Decisions hold. namer gives
// them their times.
func (r *resumer) entries(namer *setup) (entries []*entry, err error) {
	r.ids = make(map[ID]string)
	var turns runs.Turns
	for place, x := range r.rows.Rows {
		m := r.Places[place].Message
		key := m.Key
		i, isWhole := index(r.in.entries, x.ID)
		switch {
		case isWhole:
			m = r.in.entries[i].msg
		case key == "":
			return nil, &RowError{Key: x.Key, Fault: runs.Missing}
		}
		turn := turns.Next(x.Begins, x.Turn, string(m.Role))
		if isWhole {
			continue
		}
		e, err := r.entry(m, x.ID, turn, namer)
		if err != nil {
			return nil, &RowError{Key: key, Fault: runs.Changed, Err: err}
		}
		r.ids[x.ID] = key
		entries = append(entries, e)
	}
	return entries, nil
}

// entry returns the entry of a row.
func (r *resumer) entry(m Message, id ID, turn int, namer *setup) (*entry, error) {
	e := &entry{msg: m, id: id, at: noTime, turn: turn, tools: ranges.Has(r.rows.tools, id)}
	e.marks.set(paused, ranges.Has(r.rows.paused, id))
	if err := e.msg.checkShared(&e.inline); err != nil {
		return nil, err
	}
	return e, namer.identify(e)
}

// setMade sets what the signed answers among the entries were made for. If there are fewer than
// there were, rows have lost reasoning, and what is left is not bound.
func (r *resumer) setMade(entries []*entry) {
	made := r.rows.made
	signed := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return !e.msg.isSigned() })
	if len(signed) > len(made) || len(signed) < len(made) && !r.isCut {
		return
	}
	for i, e := range signed {
		e.setMade(made[i])
	}
}

// nameResults gives results without an ID or a name those of their calls, as Append did:
// the rows may hold what Append was given. Results that answer no call stay as they are, and
// are found later.
func (r *resumer) nameResults() {
	for i := 0; i < len(r.in.entries); i++ {
		head, from := r.in.entries[i], i+1
		for i+1 < len(r.in.entries) && r.in.entries[i+1].msg.Role == RoleTool {
			i++
		}
		answers := r.in.entries[from : i+1]
		if !slices.ContainsFunc(answers, (*entry).isUnnamed) || !hasCalls(&head.msg) {
			continue
		}
		calls := newCalls(&head.msg, newCounter(nil, Overheads{}))
		var rest []*entry
		var answered []int
		for _, e := range answers {
			if len(e.msg.ToolResults()) < len(e.msg.Parts) {
				continue
			}
			if all, err := e.pairByID(calls, &answered); err == nil && !all {
				rest = append(rest, e)
			}
		}
		_, _, _ = pairRest(calls, rest)
		for _, e := range answers {
			e.tokens = 0 // it is counted when it has its names
		}
	}
}

// isUnnamed reports whether e holds a result without an ID or a name.
func (e *entry) isUnnamed() bool {
	return slices.ContainsFunc(e.msg.Parts, func(p Part) bool {
		r, ok := p.(ToolResult)
		return ok && (r.CallID == "" || r.Name == "")
	})
}

// change makes the changes to the entry of a row, and keeps its original.
func (r *resumer) change(e *entry, changes []rowChange, spilled bool) error {
	if e.msg.Role == RoleTool && ranges.Has(r.rows.cleared, e.id) {
		changes = slices.DeleteFunc(slices.Clone(changes), func(c rowChange) bool { return c.mark == "" })
		for i := range e.msg.Parts {
			changes = append(changes, rowChange{id: e.id, part: i})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	o := &original{id: e.id, msg: e.msg.clone()}
	read, ok := e.replay(changes)
	if key := r.ids[e.id]; !ok && !r.accepted[key] {
		return &RowError{Key: key, Fault: runs.Changed}
	}
	o.read = read
	for _, c := range changes {
		if spilled && c.mark == "" {
			o.setRef(c.part, c.ref)
		}
	}
	r.originals = append(r.originals, o)
	return nil
}

// faultOf returns the error for entries that cannot be loaded: a *RowError if a row is at
// fault.
func (r *resumer) faultOf(err error) error {
	if wrong, ok := err.(*SnapshotError); ok {
		if key, ok := r.ids[wrong.ID]; ok {
			return &RowError{Key: key, Fault: runs.Changed, Err: wrong.Err}
		}
	}
	return err
}

// compare compares the entries of the rows with what they were.
func (r *resumer) compare() error {
	var rows []*entry // in order
	var now []fingerprint.Sum
	var sums rowSums
	for _, e := range r.in.entries {
		sum := sums.of(e)
		if _, isRow := r.rows.Find(e.id); isRow {
			rows, now = append(rows, e), append(now, sum)
		}
	}
	for place, e := range rows {
		key := r.ids[e.id]
		if key == "" || r.accepted[key] || now[place] == r.rows.Rows[place].Sum {
			continue
		}
		if after := r.stoodAfter(rows, now, place); after != "" {
			return &RowError{Key: key, Fault: runs.Unexpected, Err: fmt.Errorf("it was given, but not where it stood, which is after %q", abbreviate(after))}
		}
		return &RowError{Key: key, Fault: runs.Changed}
	}
	return nil
}

// stoodAfter returns the key of the row that the user rows from a place on stood after, if they
// were given too early, and otherwise "". What stood there is the row after them then.
func (r *resumer) stoodAfter(rows []*entry, now []fingerprint.Sum, place int) string {
	to, n := place+1+slices.Index(r.rows.Sums[place+1:], now[place]), 1
	if to == place || rows[place].msg.Role != RoleUser {
		return ""
	}
	for to+n < len(rows) && rows[place+n].msg.Role == RoleUser && now[place+n] == r.rows.Sums[to+n] {
		n++ // so many are moved
	}
	next := place + n
	if now[next] != r.rows.Sums[place] && !r.rows.isShort(rows[next].id) && !r.rows.isShort(rows[place].id) {
		return ""
	}
	return r.ids[rows[to+n-1].id]
}

// appendTail appends the rows after the decisions. A queued message whose row is given where it
// may not be appended waited: it is appended once it may be, and otherwise stays queued.
func (h *History) appendTail(r *resumer) error {
	queue := h.swapQueue(nil) // what was delivered is among the rows
	for _, q := range queue {
		r.Queued[q.msg.Key] = true
	}
	mayFollow := func() bool { return h.takesUser(&h.opts.Roles, h.talk.hasFailed(h.newestMessage())) }
	delivered := false  // the last message that was appended was queued
	var early []Message // queued rows given where they may not be appended
	for rows := r.Tail; len(rows) > 0; {
		m, n := rows[0], 1
		if r.Queued[m.Key] && (len(early) > 0 || !delivered && !mayFollow()) {
			early, rows = append(early, m), rows[1:]
			continue
		}
		for ; n < len(rows) && rows[n].Role == RoleTool && (&entry{msg: rows[n-1]}).isUnnamed(); n++ {
			// together they name the calls that they answer
		}
		if err := h.appendRow(r, rows[:n]); err != nil {
			return err
		}
		delivered, rows = r.Queued[m.Key], rows[n:]
		if len(early) == 0 || !mayFollow() {
			continue
		}
		for _, m := range early {
			if err := h.appendRow(r, []Message{m}); err != nil {
				return err
			}
		}
		delivered, early = true, nil
	}
	if r.rows.sent != nil {
		h.expect(*r.rows.sent)
	}
	waiting, late := r.waiting(queue, early)
	more, err := h.newQueued(late)
	h.swapQueue(append(waiting, more...))
	return err
}

// appendRow appends rows that belong together.
func (h *History) appendRow(r *resumer, rows []Message) error {
	if rows[0].Role == RoleAssistant {
		sent := sentView{known: true, open: h.openCount() > 0, prefix: h.wholeIn(r.rows.frame)}
		if r.rows.sent != nil {
			sent, r.rows.sent = *r.rows.sent, nil
		}
		h.expect(sent)
	}
	if _, err := h.AppendRows(rows...); err != nil {
		return &RowError{Key: rows[0].Key, Fault: runs.Unexpected, Err: err}
	}
	return nil
}

// waiting returns what still waits of the queue of the decisions, and the messages that were
// queued after them. early are the rows that were not appended.
func (r *resumer) waiting(queue []*queued, early []Message) (waiting []*queued, late []Message) {
	left := make(map[string]bool)
	for _, m := range early {
		left[m.Key] = true
	}
	for _, q := range queue {
		if !r.Seen[q.msg.Key] || left[q.msg.Key] {
			waiting = append(waiting, q)
			delete(left, q.msg.Key)
		}
	}
	return waiting, slices.DeleteFunc(early, func(m Message) bool { return !left[m.Key] })
}
