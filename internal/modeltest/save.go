package modeltest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A shelf is a Store in memory with one log.
type shelf struct {
	log   []convo.Record
	fault int           // the fault of the next Append: 1 fails, 2 fails but writes, 3 fails and writes later
	late  *convo.Record // to be written later
}

var errShelf = errors.New("shelf")

// Append adds a record, or fails according to s.fault.
func (s *shelf) Append(_ context.Context, r convo.Record) error {
	fault := s.fault
	s.fault = 0
	switch fault {
	case 1:
		return errShelf
	case 2:
		_ = s.add(r)
		return errShelf
	case 3:
		s.late = &r
		return errShelf
	}
	return s.add(r)
}

func (s *shelf) add(r convo.Record) error {
	var newest convo.Record
	if n := len(s.log); n > 0 {
		newest = s.log[n-1]
	}
	switch newest.ID {
	case r.ID:
	case r.Prev:
		s.log = append(s.log, r)
	default:
		return &convo.ConflictError{Key: r.Key, Have: newest.Seq, Want: r.Seq, ID: newest.ID}
	}
	return nil
}

// Prune removes the records before a full one.
func (s *shelf) Prune(_ context.Context, _ string, before uint64) error {
	i := slices.IndexFunc(s.log, func(r convo.Record) bool { return r.Full && r.Seq == before })
	s.log = slices.Clone(s.log[max(i, 0):]) // if there is none, another Prune has removed it
	return nil
}

// land writes the delayed record, if it still fits.
func (s *shelf) land() {
	if s.late != nil {
		_ = s.add(*s.late)
	}
	s.late = nil
}

// Records yields the records from a Seq on.
func (s *shelf) Records(_ context.Context, _ string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		start := 0
		for i, r := range s.log {
			if from == 0 && r.Full || from > 0 && r.Seq < from {
				start = i
				if from > 0 {
					start++
				}
			}
		}
		for _, r := range s.log[start:] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// List and Delete are not used.
func (s *shelf) List(context.Context, convo.ListOptions) iter.Seq2[convo.LogInfo, error] {
	panic("unused")
}
func (s *shelf) Delete(context.Context, string) error { panic("unused") }

// save saves the History, sometimes with a Store that fails, and checks the History that
// opens afterwards. Sometimes it continues with that History.
func (d *driver) save() {
	if d.shelf == nil {
		d.shelf = new(shelf)
		if err := d.h.Attach(context.Background(), d.shelf, "key"); err != nil {
			d.fail("Attach: %v", err)
		}
	}
	if d.n(3) == 0 {
		d.shelf.fault = 1 + d.n(3)
		d.say("save with fault %d", d.shelf.fault)
		unsaved := d.h.Status().Unsaved
		err := d.h.Save(context.Background())
		if d.shelf.fault = 0; err == nil && unsaved > 0 && d.h.Status().Unsaved > 0 {
			d.fail("Save returned nil, and %d are unsaved", d.h.Status().Unsaved)
		}
		if d.n(2) == 0 {
			d.shelf.land()
		}
		return
	}
	g := d.saved()
	switch d.n(4) {
	case 0:
		d.resumeSaved(g)
	case 1:
		if len(d.m.queue) == 0 {
			d.rival(g)
		}
	}
}

// saved saves the History and returns the History that opens afterwards, which must be
// the same. It often prunes the log.
func (d *driver) saved() *convo.History {
	d.say("save")
	if err := d.h.Save(context.Background()); err != nil {
		d.fail("Save: %v", err)
	}
	if n := d.h.Status().Unsaved; n != 0 {
		d.fail("%d unsaved after Save", n)
	}
	opts := d.opts
	opts.Limits = d.made
	opts.PruneAbove = []int64{0, 1, 3000, 30_000}[len(d.shelf.log)%4]
	g, err := convo.Open(context.Background(), d.shelf, "key", &opts)
	if err != nil {
		d.fail("Open: %v", err)
	}
	other := *d
	other.h, other.m = g, d.m.copy()
	other.m.view.ephemeral, other.m.ephemeralUID = nil, other.m.newUID()
	other.compare()
	if g.Status().Unsaved != 0 {
		d.fail("%d unsaved after Open", g.Status().Unsaved)
	}
	if d.h.Status().LastEdit.Sub(g.Status().LastEdit) != 0 {
		d.fail("last edit %v, want %v", g.Status().LastEdit, d.h.Status().LastEdit)
	}
	return g
}

// copy returns an independent copy of the model.
func (m *model) copy() *model {
	c := *m
	c.view = m.view.clone()
	c.queue = slices.Clone(m.queue)
	c.takenBack, c.undone, c.forgotten = maps.Clone(m.takenBack), maps.Clone(m.undone), maps.Clone(m.forgotten)
	c.learned, c.reported, c.order = maps.Clone(m.learned), maps.Clone(m.reported), slices.Clone(m.order)
	return &c
}

// resumeSaved continues with a History that was opened.
func (d *driver) resumeSaved(g *convo.History) {
	d.say("go on with what was opened")
	d.checkKept()
	d.h, d.told = g, false
	d.forget()
	d.m.requestFailed(nil)
	d.m.view.ephemeral, d.m.ephemeralUID = nil, d.m.newUID()
	d.m.reported, d.m.implausible = map[string]uint64{}, nil
	for name, c := range d.m.learned { // the views of the other models are not saved
		if c != d.m.current {
			own := *c
			own.at = nil
			d.m.learned[name] = &own
		}
	}
	for _, list := range [][]entry{d.m.sys, d.m.list} {
		for i := range list {
			list[i].original = nil
		}
	}
	d.stats.saw.saved = true
}

// forget removes the state that only earlier snapshots and reports need.
func (d *driver) forget() {
	d.kept = nil
	if n := len(d.edits); n > 0 {
		d.oldReport = &d.edits[n-1]
	}
	d.edits = nil
	d.m.applied, d.m.takenBack = nil, map[convo.ID]bool{}
}

// rival changes and saves g, which is the same conversation, while the driver's own
// History also continues. Then the own History is reloaded.
func (d *driver) rival(g *convo.History) {
	theirs := *d
	theirs.h, theirs.m, theirs.kept, theirs.edits = g, d.m.copy(), nil, nil
	theirs.m.requestFailed(nil)
	theirs.m.uids += 1 << 20 // its entries differ from ours
	theirs.m.view.ephemeral = nil
	theirs.m.applied, theirs.m.takenBack = nil, map[convo.ID]bool{}
	for i := range theirs.m.list {
		theirs.m.list[i].original = nil
	}
	theirs.say("a rival")
	d.acting = &theirs
	for range 1 + d.n(2) {
		switch theirs.n(4) {
		case 0:
			theirs.pin()
		case 1:
			theirs.splice()
		default:
			theirs.append(theirs.sensible())
		}
	}
	d.acting, d.choices, d.log = nil, theirs.choices, theirs.log
	d.say("ours")
	_, before := g.Saved()
	if err := g.Save(context.Background()); err != nil {
		d.fail("Save of a rival: %v", err)
	}
	_, after := g.Saved()
	last := d.m.last
	if d.n(2) == 0 {
		d.append(d.sensible())
		d.append(d.sensible())
	}
	kept := d.kept
	moved, refused, err := d.h.Reload(context.Background())
	if err != nil {
		d.fail("Reload: %v", err)
	}
	if after == before {
		return
	}
	d.told = false
	for _, s := range kept {
		if err := d.h.Rollback(s.real); !errors.Is(err, convo.ErrStale) {
			d.fail("Rollback to a snapshot from before a Reload: %v", err)
		}
	}
	own := slices.Concat(d.m.sys, d.m.list)
	slices.SortFunc(own, func(a, b entry) int { return int(a.id - b.id) })
	ours := d.m
	m := theirs.m
	m.uids = max(m.uids, ours.uids)
	m.view.ephemeral, m.ephemeralUID = ours.view.ephemeral, ours.ephemeralUID
	m.learned, m.current, m.order = ours.learned, ours.current, ours.order
	m.reported, m.implausible, m.sent, m.time = ours.reported, ours.implausible, ours.sent, ours.time
	for i := range m.list {
		m.list[i].original = nil // only the rival has the originals of entries that it appended
	}
	m.keep(own)
	m.failed = ours.failed
	d.m = m
	d.forget()
	d.reloadOwn(own, last, ours.pins, moved, refused)
	d.stats.saw.rival = true
}

// keep sets the originals of the entries that are unchanged in m to those in own.
func (m *model) keep(own []entry) {
	for i := range m.list {
		for _, e := range own {
			if e.uid == m.list[i].uid && e.id == m.list[i].id {
				m.list[i].original = e.original
			}
		}
	}
}

// opens reports whether the calls that the results in msg answer are open in m, in the
// exchange with that head.
func (m *model) opens(head convo.ID, msg message) bool {
	newest := m.newestExchange()
	return len(newest) > 0 && newest[0].id == head && m.copy().append([]message{msg}) == success
}

// reloadOwn appends the messages of own that are newer than last to the model, and
// compares them with the result of Reload. pins are the pins of the own History.
func (d *driver) reloadOwn(own []entry, last convo.ID, pins []convo.ID, moved map[convo.ID]convo.ID, refused []convo.Message) {
	failed := d.m.failed
	if d.m.failed = 0; failed <= last {
		defer func() { d.m.failed = failed }()
	}
	var left []string
	want := map[convo.ID]convo.ID{}
	for i := 0; i < len(own); {
		end := i + 1
		for end < len(own) && own[end].head == own[i].head {
			end++
		}
		var batch []message
		var ids []convo.ID
		var whole []entry
		for _, e := range own[i:end] {
			if e.id > last {
				msg := e.msg
				msg.results, msg.again = slices.Clone(msg.results), true
				for k := range msg.results {
					msg.results[k].noID = false
				}
				if own[i].head <= last && msg.role == convo.RoleTool && !d.m.opens(own[i].head, msg) {
					left = append(left, msg.print()) // its calls are not open in the stored conversation
					continue
				}
				batch, ids, whole = append(batch, msg), append(ids, e.id), append(whole, e)
			}
		}
		i = end
		isSystem := len(batch) > 0 && whole[0].isSystem()
		before := len(d.m.list)
		same := func(e entry) bool { return e.msg.text == batch[0].text }
		if len(batch) == 0 || isSystem && slices.ContainsFunc(d.m.sys, same) {
			continue
		}
		if isSystem && before > 0 || d.m.append(batch) != success {
			for _, msg := range batch {
				left = append(left, msg.print())
			}
			continue
		}
		if n := len(d.m.list); slices.Contains(pins, own[end-1].head) && n > before && !d.m.isPinned(d.m.list[n-1]) {
			d.m.pins = append(d.m.pins, d.m.list[n-1].head)
		}
		for k, e := range whole {
			if n := len(d.m.list); n > before {
				d.m.list[n-len(whole)+k].missing, d.m.list[n-len(whole)+k].original = e.missing, e.original
			}
		}
		for k, id := range ids {
			next := d.m.last - convo.ID(len(ids)-1-k)
			if next != id {
				want[id] = next
			}
			if id == failed {
				d.m.failed = next
			}
		}
	}
	var got []string
	for _, msg := range refused {
		got = append(got, PrintMessage(msg))
	}
	same := func(got, left string) bool {
		return got == left || strings.Contains(left, "[cut: ") // refused messages are returned as they were before they were cut
	}
	if !slices.EqualFunc(got, left, same) {
		d.fail("refused %q, want %q", got, left)
	}
	if !maps.Equal(moved, want) {
		d.fail("moved %v, want %v", moved, want)
	}
	d.say("%s", fmt.Sprintf("reloaded: moved %v, refused %q", moved, got))
}
