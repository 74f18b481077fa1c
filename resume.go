package convo

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// A resumer makes a History from Decisions and rows.
type resumer struct {
	in       *stateJSON
	rows     *rowList
	accepted map[string]bool

	given  map[string]bool // keys of the rows so far
	listed map[string]int  // the places of rows whose keys are listed
	places []Message       // the rows that the view shows, in order; some may be missing among the listed ones
	keys   []string        // of places; "": the row is not there yet
	run    int             // the run that the next row belongs to
	at     int             // index of the next row in that run
	place  int             // of the next row
	isOpen bool            // the first row from which on all are given was given
	tail   []Message       // the rows after the decisions

	originals []*original
	ids       map[ID]string // the keys of entries that a row tells
}

func (r *resumer) resume(rows iter.Seq2[Message, error], opts *Options) (*History, error) {
	if err := r.read(rows); err != nil {
		return nil, err
	}
	own := Options{}
	if opts != nil {
		own = *opts
	}
	repair, asSent := own.Repair, own.AsSent
	own.Repair, own.AsSent = nil, false
	if err := r.build(&own); err != nil {
		return nil, err
	}
	log := new(reading)
	if err := log.state.apply(r.in); err != nil {
		return nil, &SnapshotError{Index: -1, Err: err}
	}
	p, err := log.picture(false)
	if err != nil {
		return nil, r.faultOf(err)
	}
	h, err := newHistory(&own, p.view.id)
	if err != nil {
		return nil, err
	}
	s := &p.view.state
	s.keep = maxTotal
	s.replace(s.sys, s.list, r.originals, s.listRaw, s.turns, s.turn)
	l := &loader{h: h, from: p.view, own: true}
	if err := l.fill(); err != nil {
		return nil, r.faultOf(err)
	}
	if err := r.compare(h); err != nil {
		return nil, err
	}
	if log.counted, err = l.counts(); err != nil {
		return nil, err
	}
	h.opts.Repair, h.opts.AsSent = repair, asSent
	h.mu.Lock()
	h.resumeLocked(p, log)
	if at, ok := nanoseconds(r.rows.lastAppend); ok && at != noTime {
		h.lastAppend = max(h.lastAppend, at)
	}
	h.mu.Unlock()
	if err := r.appendTail(h); err != nil {
		return nil, err
	}
	h.resumed = r.rows
	if l.isUnfinished() {
		if err := l.settle(); err != nil {
			return nil, err
		}
	}
	h.warnAssumed()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updateChargeLocked()
	return h, nil
}

// read takes the rows.
func (r *resumer) read(rows iter.Seq2[Message, error]) (err error) {
	defer catch(&err, "the rows given to Resume")
	n := len(r.rows.hashes)
	r.places, r.keys = make([]Message, n), make([]string, n)
	r.given, r.listed = make(map[string]bool), make(map[string]int)
	for _, run := range r.rows.runs[:r.rows.from] {
		for _, key := range run.keys {
			r.listed[key] = r.place
			r.place++
		}
	}
	r.run, r.isOpen = r.rows.from, len(r.rows.runs) == 0
	for m, err := range rows {
		if err != nil {
			return fmt.Errorf("convo: rows: %w", err)
		}
		if err := r.take(m); err != nil {
			return err
		}
	}
	if r.run < len(r.rows.runs) {
		run := r.rows.runs[r.run]
		return &RowError{Key: run.keys[min(r.at, len(run.keys)-1)], Fault: RowMissing}
	}
	return nil
}

// take takes a row.
func (r *resumer) take(m Message) error {
	m.Key = text.Valid(m.Key) // as it was appended
	place, isListed := r.listed[m.Key]
	begins := r.run < len(r.rows.runs) && r.at == 0 && r.rows.runs[r.run].keys[0] == m.Key
	switch {
	case m.Role == RoleSystem && len(r.given) == 0 && !isListed && !begins:
		return nil // the application sets it again
	case m.Key == "":
		return &RowError{Fault: RowUnexpected, Err: &MessageError{Role: m.Role, Part: -1, Reason: "a row needs a key"}}
	case r.given[m.Key]:
		return &RowError{Key: m.Key, Fault: RowTwice}
	}
	r.given[m.Key] = true
	m = m.clone() // rows may use its slices again
	if isListed {
		r.places[place], r.keys[place] = m, m.Key
		return nil
	}
	if r.isOpen = r.isOpen || begins; !r.isOpen {
		return &RowError{Key: m.Key, Fault: RowUnexpected}
	}
	switch {
	case r.run == len(r.rows.runs):
		r.tail = append(r.tail, m)
		return nil
	case r.at == 0 && !begins:
		return nil // the view does not show it
	}
	run := r.rows.runs[r.run]
	isLast, last := r.at == run.n-1, run.keys[len(run.keys)-1]
	switch {
	case isLast && m.Key != last:
		return &RowError{Key: r.firstOther(run, m.Key), Fault: RowUnexpected, Err: fmt.Errorf("%q did not come where it stood", abbreviate(last))}
	case !isLast && m.Key == last && r.at > 0:
		return &RowError{Key: r.firstOther(run, m.Key), Fault: RowMissing, Err: fmt.Errorf("%s before %q", counted(run.n-1-r.at, "row", "rows"), abbreviate(last))}
	}
	r.places[r.place], r.keys[r.place] = m, m.Key
	r.place++
	if r.at++; isLast {
		r.run, r.at = r.run+1, 0
	}
	return nil
}

// firstOther returns the key of the first row of a run that is not what stood in its place,
// or the key otherwise.
func (r *resumer) firstOther(run rowRun, otherwise string) string {
	for i := range r.at {
		place, id := r.place-r.at+i, run.first+ID(i)
		e := new(entry)
		var err error
		if e.msg, err = r.places[place].checked(&e.inline); err != nil {
			return r.keys[place]
		}
		e.setContent()
		isOther := isIn(r.rows.cleared, id) || slices.ContainsFunc(r.rows.changes, func(c rowChange) bool { return c.id == id })
		if !isOther && rowHash(e) != r.rows.hashes[place] {
			return r.keys[place]
		}
	}
	return otherwise
}

// build adds the entries of the rows to r.in.
func (r *resumer) build(opts *Options) error {
	wholes := make(map[ID]*entry)
	for _, e := range r.in.entries {
		wholes[e.id] = e
	}
	r.ids = make(map[ID]string)
	changes, namer := r.rows.changes, &History{opts: Options{Time: opts.Time}}
	var signed []*entry
	var changed []changedRow
	place := 0
	for i, run := range r.rows.runs {
		turn, role := run.turn, RoleNone
		for k := range run.n {
			m, key, id := r.places[place], r.keys[place], run.first+ID(k)
			place++
			whole := wholes[id]
			switch {
			case whole != nil:
				m = whole.msg
			case key == "":
				if r.rows.isListed(i) {
					key = run.keys[k]
				}
				return &RowError{Key: key, Fault: RowMissing}
			}
			if k > 0 && m.Role == RoleUser && role != RoleUser {
				turn++
			}
			if k == 0 || m.Role != RoleSystem {
				role = m.Role
			}
			if whole != nil {
				continue
			}
			r.ids[id] = key
			e := &entry{id: id, at: noTime, turn: turn, tools: isIn(r.rows.tools, id)}
			e.marks.set(paused, isIn(r.rows.paused, id))
			var err error
			if e.msg, err = m.checked(&e.inline); err == nil {
				err = namer.identify(e)
			}
			if err != nil {
				return &RowError{Key: key, Fault: RowChanged, Err: err}
			}
			if e.msg.isSigned() {
				signed = append(signed, e)
			}
			n := 0
			for n < len(changes) && changes[n].id <= id {
				n++
			}
			changed = append(changed, changedRow{e, isIn(r.rows.cleared, id), changes[:n]})
			changes = changes[n:]
			r.in.entries = append(r.in.entries, e)
		}
	}
	if len(signed) == len(r.rows.made) { // otherwise rows have lost reasoning, and what is left is not bound
		for i, e := range signed {
			e.setMade(r.rows.made[i])
		}
	}
	slices.SortFunc(r.in.entries, func(a, b *entry) int { return int(a.id - b.id) })
	r.nameResults()
	for _, c := range changed {
		if err := r.change(c.entry, c.cleared, c.changes, opts.Spill != nil); err != nil {
			return err
		}
	}
	return nil
}

// A changedRow is the entry of a row, and what was cleared and cut in it.
type changedRow struct {
	*entry
	cleared bool
	changes []rowChange
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
		if !slices.ContainsFunc(answers, (*entry).isUnnamed) || !slices.ContainsFunc(head.msg.Parts, isCall) {
			continue
		}
		calls := newCalls(&head.msg, newCounter(nil, Overheads{}))
		var rest []*entry
		var answered []int
		for _, e := range answers {
			if _, isRow := r.ids[e.id]; !isRow {
				own := *e // the Decisions may be used again
				own.msg.Parts = slices.Clone(own.msg.Parts)
				e = &own
			}
			if !onlyResults(e.msg.Parts) {
				continue
			}
			tokens := e.tokens
			all, err := calls.pairByID(e, &answered)
			if e.tokens = tokens; err == nil && !all {
				rest = append(rest, e)
			}
		}
		_, _, _ = calls.pairRest(slices.All(rest))
		for _, e := range rest {
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

func isCall(p Part) bool { _, ok := p.(ToolCall); return ok }

// onlyResults reports whether all parts are results.
func onlyResults(parts []Part) bool {
	return !slices.ContainsFunc(parts, func(p Part) bool { _, ok := p.(ToolResult); return !ok })
}

// change clears and cuts results of the entry of a row, and keeps its original.
func (r *resumer) change(e *entry, cleared bool, changes []rowChange, spilled bool) error {
	key := r.ids[e.id]
	fault := func() error {
		if r.accepted[key] {
			return nil
		}
		return &RowError{Key: key, Fault: RowChanged}
	}
	if cleared && e.msg.Role == RoleTool {
		changes = make([]rowChange, len(e.msg.Parts))
		for i := range changes {
			changes[i] = rowChange{id: e.id, part: i}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	o := &original{id: e.id, msg: e.msg.clone()}
	for _, c := range changes {
		if c.id != e.id || c.part >= len(e.msg.Parts) {
			return fault()
		}
		result, ok := e.msg.Parts[c.part].(ToolResult)
		if !ok {
			return fault()
		}
		if result, ok = c.apply(result); !ok {
			if err := fault(); err != nil {
				return err
			}
			continue
		}
		e.msg.Parts[c.part] = result
		if spilled {
			o.setRef(c.part, c.ref)
		}
	}
	o.read = o.msg
	r.originals = append(r.originals, o)
	return nil
}

// faultOf returns the error for entries that cannot be loaded: a *RowError if a row is at
// fault.
func (r *resumer) faultOf(err error) error {
	if wrong, ok := err.(*SnapshotError); ok {
		if key, ok := r.ids[wrong.ID]; ok {
			return &RowError{Key: key, Fault: RowChanged, Err: wrong.Err}
		}
	}
	return err
}

// compare compares the entries of rows with what they were.
func (r *resumer) compare(h *History) error {
	place := 0
	for _, run := range r.rows.runs {
		for i := range run.n {
			hash, id := r.rows.hashes[place], run.first+ID(i)
			place++
			key, isRow := r.ids[id]
			if !isRow || r.accepted[key] {
				continue
			}
			if e := h.find(id); e == nil || rowHash(e) != hash {
				return &RowError{Key: key, Fault: RowChanged}
			}
		}
	}
	if h.fold != r.rows.sum && len(r.rows.runs) == 0 {
		return &SnapshotError{Index: -1, Err: errors.New("the decisions hold no rows, but the fingerprint of some")}
	}
	if h.fold != r.rows.sum && len(r.accepted) == 0 {
		first, last := r.rows.runs[0].keys[0], r.keys[len(r.keys)-1]
		return &RowError{Key: first, Fault: RowChanged, Err: fmt.Errorf("one of the rows up to %q", abbreviate(last))}
	}
	return nil
}

// appendTail appends the rows after the decisions.
func (r *resumer) appendTail(h *History) error {
	queue := make(map[string]bool) // keys of messages that were queued
	for _, q := range h.queue {
		queue[q.msg.Key] = true
	}
	waiting := h.queue
	h.queue = nil // what was delivered is among the rows
	sent, delivered := r.rows.sent, false
	for _, m := range r.tail {
		if m.Role == RoleAssistant {
			h.answers = sentView{known: true, open: h.calls.openCalls() > 0, prefix: h.wholeIn(r.rows.frame)}
			if sent != nil {
				h.answers, sent = *sent, nil
			}
		}
		goesOn := delivered && queue[m.Key]
		delivered = queue[m.Key]
		if err := h.appendRow(m, goesOn); err != nil {
			return &RowError{Key: m.Key, Fault: RowUnexpected, Err: err}
		}
	}
	if sent != nil {
		h.answers = *sent
	}
	h.queue = slices.DeleteFunc(slices.Clone(waiting), func(q *queued) bool { return r.given[q.msg.Key] })
	return nil
}

// appendRow appends the message of a row. goesOn says that it follows another message that
// was queued with it.
func (h *History) appendRow(m Message, goesOn bool) error {
	batch, err := h.newMessages(nil, []Message{m})
	if err != nil {
		return err
	}
	if err := h.cutLong(batch); err != nil {
		return err
	}
	batch[0].goesOn = goesOn
	_, err = h.appendBatch(batch)
	return err
}
