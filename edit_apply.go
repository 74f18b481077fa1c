package convo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// An edit is applied in three steps. checkEdit checks it against the snapshot that it was
// planned for. prepare makes and counts the texts that it puts in place. edited applies it
// to the current state, or finds that it no longer fits. Only prepare runs the caller's
// code.

// A checkedEdit is an edit that breaks no rule for its snapshot.
type checkedEdit struct {
	at         *state   // the snapshot
	drop       []ID     // in ascending order
	covered    []ID     // the part of drop that newSummary stands for
	changes    []change // in ascending order of entries; for a dropped entry, what to forget
	byStrategy bool     // it may not rewrite the floor
	newSummary *Summary // nil: leave the summary as it is; empty: remove it

	// What a compaction adds.
	yields       bool                            // the messages of Options.AfterCompaction leave
	noSpill      bool                            // Options.Spill is not called
	focus        string                          // of the compaction
	acceptLocked func(before, next *state) error // nil: the edit is accepted; else called before it takes effect, with the lock held
}

// A change says what an edit does with one entry. If the entry is dropped, texts and msg say what
// of it is to be forgotten.
type change struct {
	id     ID
	from   *entry   // in the snapshot, to be rewritten or cut; else nil
	msg    *Message // what from is rewritten to; nil: results of it are cut
	texts  []Clear  // of results
	drop   bool
	forget bool // the original

	r *replacement // what prepare has made of the entry, or a cut; nil: nothing
}

// matches returns the Clear that applies to the result of a call, or nil.
func (c *change) matches(callID string) (found *Clear) {
	for _, t := range slices.Backward(c.texts) { // the last one wins
		if t.CallID != "" && t.CallID != callID {
			continue
		}
		if found == nil {
			found = &t
		}
		found.Forget = found.Forget || t.Forget
	}
	return found
}

// results yields the indices of the results among parts that c clears, and how. If forget is
// true, it yields those whose originals are forgotten, and otherwise the others.
func (c *change) results(parts []Part, forget bool) iter.Seq2[int, *Clear] {
	return func(yield func(int, *Clear) bool) {
		for i, p := range parts {
			r, ok := p.(ToolResult)
			if !ok {
				continue // the snapshot was not checked
			}
			if t := c.matches(r.CallID); t != nil && t.Forget == forget && !yield(i, t) {
				return
			}
		}
	}
}

// checkEdit returns an *EditError if the edit breaks a rule for the view at.
func checkEdit(at *state, e *Edit, byStrategy bool) (*checkedEdit, error) {
	ed := &checkedEdit{at: at, byStrategy: byStrategy}
	ed.drop = slices.Compact(slices.Sorted(slices.Values(e.Drop)))
	err := ed.checkDrop()
	if err == nil {
		err = ed.checkClear(e.Clear)
	}
	if err == nil {
		err = ed.checkRewrite(e.Rewrite)
	}
	if err == nil && e.Summary != nil {
		err = ed.checkSummary(*e.Summary)
	}
	return ed, err
}

func (ed *checkedEdit) sort() { sortByID(ed.changes, func(c *change) ID { return c.id }) }

// checkSummary checks a summary that is to be put in place, and sets what is about it in ed.
func (ed *checkedEdit) checkSummary(summary Summary) error {
	summary.Text, summary.Names = text.Valid(summary.Text), strings.Join(strings.Fields(text.Valid(summary.Names)), " ")
	if summary.Text != "" && strings.TrimSpace(summary.Text) == "" {
		return &EditError{Rule: "the summary is blank; an empty one removes it"}
	}
	if summary.Stop != StopDone {
		return summary.fault()
	}
	if err := summary.Native.fault(); err != nil {
		return &EditError{Rule: err.Error()}
	}
	if summary.Text == "" && summary.Native.Format != "" {
		return &EditError{Rule: "a native summary needs a text, which all other models get"}
	}
	summary.Native = summary.Native.clone()
	for _, list := range [...]struct {
		verb   string
		ranges []Range
	}{{"covers", summary.Covers}, {"has read", summary.Read}} {
		for _, r := range list.ranges {
			if r.First < 1 || r.Last < r.First || r.Last > ed.at.last {
				return &EditError{Rule: fmt.Sprintf("the summary %s %d to %d, which is not an ascending range of IDs from 1 to %d", list.verb, r.First, r.Last, ed.at.last)}
			}
		}
	}
	summary.Read = slices.Clone(summary.Read)
	ranges.Sort(summary.Read)
	if summary.Covers == nil && summary.Text != "" {
		summary.Covers, ed.covered = ranges.Of[Range](ed.drop), ed.drop
	} else {
		summary.Covers = slices.Clone(summary.Covers)
		ranges.Sort(summary.Covers)
		ed.covered = ranges.Within(ed.drop, summary.Covers)
	}
	if summary.Usage.fault() != nil {
		summary.Usage = Usage{}
	}
	ed.newSummary = &summary
	return nil
}

// checkDrop checks ed.drop: it must name whole exchanges outside the floor.
func (ed *checkedEdit) checkDrop() error {
	at, drop := ed.at, ed.drop
	floor := at.floor()
	for len(drop) > 0 {
		i, ok := index(at.list, drop[0])
		if !ok {
			return unknownEntry(at, drop[0])
		}
		from, to := exchangeAt(at.list, i)
		named := 1
		for named < len(drop) && drop[named] <= at.list[to-1].id {
			if _, ok := index(at.list, drop[named]); !ok {
				return unknownEntry(at, drop[named])
			}
			named++
		}
		if named < to-from {
			return &EditError{Rule: "drops part of an exchange; name all entries of it, or none", ID: at.list[from].id}
		}
		if rule := floor.rule(from); rule != "" {
			return &EditError{Rule: "drops " + rule + leaveOut(rule), ID: at.list[from].id}
		}
		drop = drop[named:]
	}
	return nil
}

// leaveOut says what to do about an edit that changes what rule names.
func leaveOut(rule string) string {
	if rule == pinnedRule {
		return "; Unpin it first, or leave it out"
	}
	return "; leave it out"
}

// unknownEntry returns the error for an ID that is not in the list.
func unknownEntry(at *state, id ID) error {
	if _, ok := index(at.sys, id); ok {
		return &EditError{Rule: "names a system entry; SetSystem replaces them", ID: id}
	}
	return &EditError{Rule: "names an entry that the snapshot does not hold; Snapshot.All lists those that it holds", ID: id}
}

// checkClear checks clears, which must name results outside the floor, and collects
// them in ed.changes.
func (ed *checkedEdit) checkClear(clears []Clear) error {
	clears = slices.Clone(clears)
	sortByID(clears, func(c *Clear) ID { return c.ID })
	at, floor := ed.at, ed.at.floor()
	for _, c := range clears {
		i, ok := index(at.list, c.ID)
		if !ok {
			return unknownEntry(at, c.ID)
		}
		e := at.list[i]
		if !hasResult(e, c.CallID) {
			return &EditError{Rule: "clears a result that is not there; name a tool entry, and the ID of a call that it answers", ID: c.ID, CallID: c.CallID}
		}
		if rule := floor.rule(i); rule != "" {
			return &EditError{Rule: "clears " + rule + leaveOut(rule), ID: c.ID, CallID: c.CallID}
		}
		dropped := hasID(ed.drop, c.ID)
		if dropped && !c.Forget {
			continue
		}
		c.Text = text.Valid(c.Text)
		if c.Forget {
			c.Text = strings.Clone(c.Text) // it may share memory with forgotten content
		}
		if n := len(ed.changes); n == 0 || ed.changes[n-1].id != c.ID {
			ed.changes = append(ed.changes, change{id: c.ID, drop: dropped})
		}
		last := &ed.changes[len(ed.changes)-1]
		last.texts = append(last.texts, c)
	}
	return nil
}

// hasResult reports whether the entry holds a result of that call, or any result if
// callID is empty.
func hasResult(e *entry, callID string) bool {
	return slices.ContainsFunc(e.msg.Parts, func(p Part) bool {
		r, ok := p.(ToolResult)
		return ok && (callID == "" || r.CallID == callID)
	})
}

// prepared holds the new summary of an edit, counted, and what could not be cleared.
type prepared struct {
	summary   *placedSummary // nil: none
	spillErrs []error        // why results are not cleared
	unspilled []Clear        // these results
}

// notSpilled notes that a result was not cleared, and why.
func (p *prepared) notSpilled(c Clear, err error) {
	if n := len(p.spillErrs); n == 0 || p.spillErrs[n-1] != errSpillDown { // add it once
		p.spillErrs = append(p.spillErrs, err)
	}
	p.unspilled = append(p.unspilled, c)
}

// A replacement is an entry, a copy of it that was cut, cleared or rewritten, and
// the original of the copy.
type replacement struct {
	from, to *entry
	original *original
	was      departed // for the report; unused for a cut
}

// prepare makes and counts the texts that an edit puts in place, for the view now.
// It runs the caller's code, so no lock may be held.
func (id *identity) prepare(now *state, ed *checkedEdit, spill *spiller) *prepared {
	p, made := new(prepared), make([]replacement, len(ed.changes))
	for i := range ed.changes {
		c := &ed.changes[i]
		if c.texts == nil && c.msg == nil {
			continue
		}
		c.r = nil
		from := now.find(c.id)
		switch {
		case from == nil: // perform will return a staleError
		case now.isPinned(from.head): // perform will keep it
		case c.from == nil:
			made[i] = id.cleared(from, now.original(c.id), c, spill, p)
		case c.from == from: // otherwise perform will return a staleError
			made[i] = id.rewritten(c, now.original(c.id))
		}
		if made[i].from != nil {
			c.r = &made[i]
		}
	}
	if ed.newSummary != nil && ed.newSummary.Text != "" {
		p.summary = id.place(*ed.newSummary)
	}
	return p
}

// cleared returns the replacement of an entry with results cleared, or none if there is nothing
// to clear; o is its original, nil if there is none. The copy does not keep the cleared content
// in memory.
func (id *identity) cleared(from *entry, o *original, c *change, spill *spiller, p *prepared) replacement {
	was, o := id.forgotten(from, o, c)
	to, next := was.replaced(o)
	changed, written := false, false
	for i, t := range c.results(to.msg.Parts, false) {
		r, text := to.msg.Parts[i].(ToolResult), t.Text
		if text == "" {
			if r.Cleared {
				continue
			}
			var err error
			if text, err = spill.marker(id, from, next, i); err != nil {
				p.notSpilled(Clear{ID: from.id, CallID: r.CallID}, err)
				continue
			}
		}
		r.Parts, r.Cleared = textParts(text), true
		to.msg.Parts[i] = r
		changed = true
		if t.Text != "" {
			if !written {
				next.read.Parts, written = slices.Clone(next.read.Parts), true
			}
			next.read.Parts[i] = r
		}
	}
	if !changed && was == from {
		return replacement{}
	}
	if !changed {
		return replacement{from, was, o, departed{was, was, o}}
	}
	if written {
		to.setReads()
		next.readTokens = id.message(&next.read)
	}
	to.tokens = id.message(&to.msg)
	to.setMissing(next)
	return replacement{from, to, next, departed{was, to, o}}
}

// forgotten returns e with those results cleared whose originals are to be
// forgotten, and its original without them. Both are unchanged if there are none.
func (id *identity) forgotten(e *entry, o *original, c *change) (*entry, *original) {
	var to *entry
	var next *original
	for i, t := range c.results(e.msg.Parts, true) {
		r := e.msg.Parts[i].(ToolResult)
		if t.Text == "" && r.Cleared && o == nil {
			continue
		}
		if to == nil {
			to, next = e.replaced(o)
			to.setReads()
			next.msg, next.read = next.msg.clone(), next.read.clone()
			next.refs = maps.Clone(next.refs)
		}
		whole := next.read.Parts[i].(ToolResult)
		switch {
		case t.Text != "":
			r.Parts = textParts(t.Text)
		case !r.Cleared:
			r.Parts = textParts(markerText(&whole, ""))
		}
		r.Cleared = true
		if t.Text == "" {
			next.missing += max(id.parts(whole.Parts)-id.parts(r.Parts), 0)
		}
		to.msg.Parts[i], next.msg.Parts[i], next.read.Parts[i] = r, r, r
		delete(next.refs, i)
	}
	if to == nil {
		return e, o
	}
	next.tokens, next.readTokens = id.message(&next.msg), id.message(&next.read)
	to.tokens = id.message(&to.msg)
	to.setMissing(next)
	if o == nil {
		next = nil // to is complete except for forgotten content
	}
	return to, next
}

// replaced returns a copy of e for an edit to change and put in its place, and a
// copy of o, the original of e. o may be nil.
func (e *entry) replaced(o *original) (*entry, *original) {
	to := *e
	to.msg, to.inline, to.content = e.msg.clone(), [1]Part{}, 0
	own := e.own()
	own.edit = &edited{reads: e.reads()}
	own.edit.looks = own.edit
	to.setOwn(own)
	if o == nil {
		return &to, newOriginal(e)
	}
	was := *o
	return &to, &was
}

// An editEffect is a state after an edit, and what the edit did.
type editEffect struct {
	state
	report  Report // that of the edit
	changed bool
	newest  ID         // the newest entry that was dropped or changed
	gone    []departed // what was dropped or changed, in ascending order
}

// record notes that e was dropped or changed. d.was is e without what is to be forgotten.
func (done *editEffect) record(e *entry, d departed) {
	done.changed, done.newest = true, e.id // IDs ascend
	done.gone = append(done.gone, d)
	if d.was != e {
		done.report.Forgotten = append(done.report.Forgotten, e.id)
	}
}

// edited returns the state after an edit, which leaves s as it is. r is the report so far.
func (s *state) edited(ed *checkedEdit, p *prepared, r Report) (*editEffect, error) {
	before := s.clipped()
	done := &editEffect{state: before, report: r}
	done.id = s.identity()
	if err := done.perform(ed, p); err != nil {
		return done, err
	}
	done.version++
	done.sumMeasured(true)
	done.complete(&before, p)
	done.countLost()
	return done, nil
}

// complete completes the report of an edit, but for the size of the next request.
func (done *editEffect) complete(before *state, p *prepared) {
	r := &done.report
	r.left, r.Released = departureFrom(before, done.gone), done.releasedSince(before)
	r.left.was.summary = before.summary.unread(r.Forgotten)
	for _, id := range r.Forgotten {
		if done.summary.hasRead(id) {
			r.Remembered = append(r.Remembered, id)
		}
	}
	r.Cause = errors.Join(p.spillErrs...)
	for _, d := range done.gone {
		id, missing := d.was.id, d.was.missing()
		counted, isRead := hasID(before.counted, id), !d.was.final && before.summary.hasRead(id)
		switch {
		case hasID(r.Summarised, id) && counted && !isRead:
			r.Unread = max(r.Unread-clampInt(missing), 0) // the strategy has counted it too
		case hasID(r.Dropped, id):
			if counted || isRead || !d.was.final && done.summary.hasRead(id) {
				missing = 0
			}
			r.Unread = clampInt(int64(r.Unread) + d.was.tokens + missing)
		}
	}
	r.SummaryDropped = before.summary != nil && done.summary == nil
	r.SummaryAfter = clampInt(done.summary.tokens())
	if p.summary == nil {
		return
	}
	if r.Usage == (Usage{}) {
		r.Usage = p.summary.sum.Usage
	}
	if done.summary == p.summary {
		r.Model = p.summary.sum.Model
	}
}

// countLost adds to the report what nothing can read any more of the entries that stay, once
// for each.
func (done *editEffect) countLost() {
	var counted []ID
	lost := int64(0)
	for _, e := range done.list {
		switch {
		case e.missing() == 0:
		case hasID(done.counted, e.id):
			counted = append(counted, e.id)
		case e.final || !done.keep.archived && !done.summary.hasRead(e.id) && done.original(e.id) == nil:
			counted, lost = append(counted, e.id), lost+e.missing()
		}
	}
	if lost > 0 {
		done.counted, done.report.Unread = counted, clampInt(int64(done.report.Unread)+lost)
	}
}

// errPrepareAgain says that another edit has changed an entry since an edit was prepared.
var errPrepareAgain = errors.New("convo: the edit must be prepared once more")

// perform applies an edit to done, whose slices must be clipped. After an error, done must not
// be used.
func (done *editEffect) perform(ed *checkedEdit, p *prepared) error {
	if ed.newSummary != nil && done.summary != ed.at.summary {
		return &staleError{Reason: "another summary was put in place since; take a new snapshot"}
	}
	if back, own := done.eph.split(); ed.yields && back != nil {
		done.eph, done.changed, done.report.yielded = own, true, true
	}
	if err := done.checkCovered(ed, p); err != nil {
		return err
	}
	if len(ed.drop)+len(ed.changes) > 0 {
		if err := done.editList(ed); err != nil {
			return err
		}
		done.noteLeft(done.gone)
	}
	done.summary = done.summary.unread(done.report.Forgotten)
	if ed.newSummary != nil && (len(ed.drop) == 0 || len(done.report.Dropped) > 0) {
		done.putSummary(ed, p.summary)
		done.putOriginals(done.originals, done.originalRaw) // some may have been read
	}
	return nil
}

// checkCovered returns an error if the new summary describes content that an entry no longer
// has.
func (done *editEffect) checkCovered(ed *checkedEdit, p *prepared) error {
	if p.summary == nil {
		return nil
	}
	for _, id := range ed.covered {
		if e := done.find(id); e != nil && e.reads() != ed.at.find(id).reads() {
			return &staleError{ID: id, Reason: changedSince}
		}
	}
	if len(ed.newSummary.Read) == 0 {
		return nil
	}
	isRead := ranges.In(ed.newSummary.Read)
	for _, was := range ed.at.list {
		if !isRead(was.id) {
			continue
		}
		if e := done.find(was.id); e == nil || e.reads() != was.reads() {
			return &staleError{ID: was.id, Reason: changedSince}
		}
	}
	return nil
}

// putSummary puts the summary of the edit in place, unless everything that it stands for was
// pinned. If it is nil, putSummary removes the one in place.
func (done *editEffect) putSummary(ed *checkedEdit, s *placedSummary) {
	was, r := done.summary, &done.report
	if s == nil {
		done.changed, done.summary = done.changed || was != nil, nil
		return
	}
	if covered := ranges.Of[Range](ed.covered); len(covered) > 0 && len(r.Dropped) > 0 {
		r.Summarised = ranges.Within(r.Dropped, covered)
		r.Dropped = slices.DeleteFunc(r.Dropped, ranges.In(covered))
	}
	if len(r.Summarised) == 0 && len(ed.covered) > 0 {
		return
	}
	covers, reads := ranges.Minus(ed.newSummary.Covers, ranges.Of[Range](r.Spared)), ed.newSummary.Read
	s.sum.Updates, s.sum.Time = 0, time.Now()
	if was != nil {
		covers, reads = slices.Concat(was.sum.Covers, covers), slices.Concat(was.sum.Read, reads)
		s.sum.Updates = min(was.sum.Updates, maxUpdates-1) + 1
	}
	s.sum.Covers, s.sum.Read = done.covering(covers), done.covering(reads)
	s.setBefore(was, len(r.Summarised) > 0 || slices.ContainsFunc(r.Forgotten, was.hasRead))
	done.summary, done.changed = s, true
	if len(ed.newSummary.Read) > 0 {
		r.Read = added(r.Spared, ranges.Within(idsOf(done.list), ed.newSummary.Read))
	}
}

// editList drops, clears, cuts and rewrites entries of the list. Those after the
// last entry that the edit names are copied as they are.
func (done *editEffect) editList(ed *checkedEdit) error {
	w := editWalk{editEffect: done, floor: done.floor(), byStrategy: ed.byStrategy}
	drop, changes := ed.drop, ed.changes
	rewrites := slices.ContainsFunc(changes, func(c change) bool { return c.msg != nil })
	done.report.Dropped = make([]ID, 0, len(drop))
	done.gone = make([]departed, 0, len(drop)+len(changes))
	originals, others := make([]*original, 0, len(done.originals)), done.originals
	list := make([]*entry, 0, max(len(done.list)-len(ed.drop), 0)+min(len(ed.drop), 64))
	i := 0
	for ; i < len(done.list) && len(drop)+len(changes) > 0; i++ {
		e := done.list[i]
		var o *original
		if len(others) > 0 && others[0].id == e.id {
			o, others = others[0], others[1:]
		}
		if c := next(drop, changes); c.id == e.id {
			if len(drop) > 0 && drop[0] == c.id {
				drop = drop[1:]
			}
			if len(changes) > 0 && changes[0].id == c.id {
				changes = changes[1:]
			}
			var err error
			e, o, err = w.apply(i, &c, o)
			if err != nil {
				return err
			}
		}
		if e == nil {
			continue
		}
		w.sealed = w.sealed || rewrites && e.msg.isSigned()
		list = append(list, e)
		if o != nil {
			originals = append(originals, o)
		}
	}
	if len(drop)+len(changes) > 0 {
		return &staleError{ID: next(drop, changes).id, Reason: "has left the view since; take a new snapshot"}
	}
	done.replace(done.sys, append(list, done.list[i:]...), append(originals, others...), done.turn)
	return nil
}

// next returns what an edit does with the first entry that it drops or changes.
func next(drop []ID, changes []change) change {
	if len(changes) > 0 && (len(drop) == 0 || changes[0].id <= drop[0]) {
		return changes[0]
	}
	return change{id: drop[0], drop: true}
}

// An editWalk is an edit on its way through the list.
type editWalk struct {
	*editEffect
	floor      *floor
	byStrategy bool
	sealed     bool // whether an entry that stays holds signed reasoning
}

const changedSince = "was changed by another edit since; take a new snapshot"

// apply returns the entry that takes the place of the one with index i, and its original;
// no entry if it is dropped.
func (w *editWalk) apply(i int, c *change, o *original) (*entry, *original, error) {
	e, r, done := w.list[i], c.r, &w.report
	switch {
	case w.floor.pinned(i):
		done.Spared = append(done.Spared, e.id)
	case c.from != nil && c.from != e:
		return nil, nil, &staleError{ID: e.id, Reason: changedSince}
	case c.from != nil && c.msg == nil:
		done.Shortened = append(done.Shortened, e.id)
		w.record(e, departed{e, r.to, o})
		return r.to, r.original, nil
	case (c.drop || c.from == nil || w.byStrategy) && w.floor.has(i):
		return nil, nil, &staleError{ID: e.id, Reason: fmt.Sprintf("is %s by now, which no compaction removes; take a new snapshot", w.floor.rule(i))}
	case c.drop && (r == nil || r.from == e):
		was := departed{e, nil, o}
		if r != nil && r.was.was != nil { // without what is to be forgotten
			was.was, was.original = r.was.was, r.was.original
		}
		done.Dropped = append(done.Dropped, e.id)
		w.touch(e)
		w.record(e, was)
		return nil, nil, nil
	case r == nil && c.from == nil: // nothing to clear, or Options.Spill failed
	case r == nil || r.from != e:
		return nil, nil, errPrepareAgain
	case r.to == e: // as it was
	case c.from != nil:
		if w.sealed {
			own := *r.to
			own.marks.set(bare, false)
			r.to, r.was.now = &own, &own // what was made after it needs its reasoning, as what stands before it is sent
		}
		done.Rewritten = append(done.Rewritten, e.id)
		w.record(e, r.was)
		return r.to, r.original, nil
	default:
		done.Cleared = append(done.Cleared, e.id)
		w.touch(e)
		w.record(e, r.was)
		return r.to, r.original, nil
	}
	return e, o, nil
}

// maxLeft is how many rows that have left a History knows. Resume cannot tell an older one
// from a new row if a rollback goes back to it.
const maxLeft = 1000

// noteLeft notes the rows among entries that an edit has dropped or changed.
func (s *state) noteLeft(gone []departed) {
	all := slices.Clip(s.left)
	for _, d := range gone {
		if key := d.was.msg.Key; d.now == nil && key != "" {
			all = append(all, leftRow{d.was.id, strings.Clone(key)})
		}
	}
	if len(all) > len(s.left) {
		sortByID(all, func(r *leftRow) ID { return r.id })
		s.left = slices.Clip(all[max(len(all)-maxLeft, 0):])
	}
}

// touch records that e was dropped or cleared. A turn in which entries were only
// cut or rewritten can still be taken back by Rewind.
func (done *editEffect) touch(e *entry) { done.touched = max(done.touched, e.turn) }

// carryOut applies an edit and fills in the report, or returns an error and changes nothing.
// It returns the results that were not cleared because their originals could not be stored.
func (h *History) carryOut(ctx context.Context, ed *checkedEdit, r *Report) ([]Clear, error) {
	spill, end := h.newSpiller(ctx, ed.noSpill)
	defer end()
	for {
		now := h.Snapshot()
		p, err := safely("Options.Tokenizer", func() *prepared { return h.ident.prepare(&now.state, ed, spill) })
		if err != nil {
			return nil, err
		}
		err = h.commitEdit(ed, p, r)
		if err != errPrepareAgain {
			spill.applied = err == nil && r.Outcome == OutcomeApplied
			return p.unspilled, err
		}
	}
}

// commitEdit applies a prepared edit and fills in the report.
func (h *History) commitEdit(ed *checkedEdit, p *prepared, r *Report) error {
	return h.ifOpen(func() error {
		if h.isBeforeReload(ed.at) {
			return errReloaded
		}
		h.measureBeforeLocked(r)
		done, err := h.edit(ed, p, *r)
		if err != nil {
			return err
		}
		r.Spared, r.Cause = done.report.Spared, done.report.Cause
		if !done.changed {
			r.Outcome, r.Cause = OutcomeDeclined, cmp.Or(r.Cause, error(ErrNoGain))
			return nil
		}
		if ed.acceptLocked != nil {
			if err := ed.acceptLocked(&h.state, &done.state); err != nil {
				return err
			}
		}
		was := h.summary
		h.commit(done, ed.focus)
		if ed.byStrategy {
			h.compactor.settled(h.version, true)
		}
		h.recorder.edited(&done.report, was, h.summary)
		*r = done.report
		r.Outcome = OutcomeApplied
		r.MessagesAfter, r.TokensAfter, r.Fits = h.messages(), h.estimate().Upper, h.fits(h.meter.marks())
		return nil
	})
}

// edit returns the view after an edit, which leaves v as it is, and compares the next request
// with the last one, or with v if none was answered.
func (v *view) edit(ed *checkedEdit, p *prepared, r Report) (*editEffect, error) {
	before := v.state
	if before.request == nil {
		before.request = before.asRequest(before.version)
	}
	done, err := before.edited(ed, p, r)
	if err == nil && done.changed {
		done.report.PrefixKept, done.report.PrefixEnd, _ = done.prefixKept()
	}
	if v.request == nil {
		done.request = nil
	}
	return done, err
}

// commit puts done, which an edit has made of v, in its place. focus is that of the
// compaction, if any.
func (v *view) commit(done *editEffect, focus string) {
	v.state, v.snap = done.state, nil
	v.recordEdit(done.newest)
	v.rewritten, v.heldSince = v.version, 0
	v.appended, v.editedAt, v.lastFocus = 0, time.Now().UnixNano(), focus
	for _, id := range done.report.Forgotten {
		v.forgotten = append(v.forgotten, forgetting{id, v.version})
	}
	v.releaseViews(0)
}
