package convo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// An Archived is one thing that the log of a conversation holds. One field beside Seq
// is set.
type Archived struct {
	Seq     uint64   // of the record that holds it
	Entry   *Entry   // as it was appended; Tokens and Pinned are not set
	Summary *Summary // with the IDs that it covers, and the time when it was put in place
	Undone  []Range  // entries that a rollback took back; a range may hold IDs of system entries, which stay
	Gone    []Range  // entries whose records were removed by Prune or are damaged, or that were never saved; show a placeholder
	Note    string   // given to History.Note
}

// String returns the one field that is set, in short.
func (a Archived) String() string {
	switch {
	case a.Entry != nil:
		return fmt.Sprintf("record %d: %v", a.Seq, a.Entry)
	case a.Summary != nil:
		return fmt.Sprintf("record %d: %v", a.Seq, a.Summary)
	case a.Undone != nil:
		return fmt.Sprintf("record %d: undone %s", a.Seq, printRanges(a.Undone))
	case a.Gone != nil:
		return fmt.Sprintf("record %d: gone %s", a.Seq, printRanges(a.Gone))
	}
	return fmt.Sprintf("record %d: note %s", a.Seq, abbreviate(a.Note))
}

// Archive yields everything that was ever saved of h, oldest first: each entry once,
// as it was appended, whatever compactions have made of it since; each summary; what
// rollbacks took back; notes. With ids, it yields only entries with an ID in one of
// the ranges, and those of Gone.
//
// What an edit was told to forget before it was saved is not there, and neither is
// what a rollback took back before it was saved.
//
// Archive reads the Store as the caller ranges over it, one record at a time, and may
// be ranged over again. Where the log is damaged, it yields a [*DamageError]; a loop that
// goes on gets what comes after the damage. Entries of damaged records are yielded where a
// later record holds them again, and the IDs of the others are in Gone, after the next full
// record or at the end. After any other error, which is one of those of [Open] or
// [ErrNoStore], nothing more is yielded. Archive also works after Close.
func (h *History) Archive(ctx context.Context, ids ...Range) iter.Seq2[Archived, error] {
	ids = slices.Clone(ids)
	return func(yield func(Archived, error) bool) {
		l, err := h.openLog()
		if err != nil {
			yield(Archived{}, err)
			return
		}
		a := archive{yield: yield, ids: ids}
		a.read(records(ctx, l.store, l.key, 1))
	}
}

// ArchiveBefore returns the end of what [History.Archive] yields, from the n-th last entry
// on, without reading the whole log. If before is not 0, it returns the n entries before
// the first one with at least that ID, and what Archive yields between and after them, so
// that a program can show a conversation page by page. It reads the log from the page to
// the end.
//
// If there is a [*DamageError] on the page, ArchiveBefore returns it with the page. Other
// errors are those of Archive, and a [*ValueError] for n below 1.
func (h *History) ArchiveBefore(ctx context.Context, before ID, n int) ([]Archived, error) {
	if n < 1 {
		return nil, &ValueError{Name: "n", Value: n, Want: "at least 1"}
	}
	l, err := h.openLog()
	if err != nil {
		return nil, err
	}
	_, newest := h.Saved()
	for from := range windows(newest) {
		var page []Archived
		var entries []int // where they are in page
		var damage error
		damaged := -1 // where in page
		var fault error
		a := archive{yield: func(x Archived, err error) bool {
			switch _, ok := errors.AsType[*DamageError](err); {
			case ok:
				damage, damaged = err, len(page)
				return true
			case err != nil:
				fault = err
				return false
			case x.Entry != nil && before > 0 && x.Entry.ID >= before:
				return false
			case x.Entry != nil:
				entries = append(entries, len(page))
			}
			page = append(page, x)
			return true
		}}
		log := records(ctx, l.store, l.key, from)
		if from > 1 {
			log = a.startAtFull(log)
		}
		a.read(log)
		switch k := len(entries) - n; {
		case fault != nil:
			return nil, fault
		case k >= 0:
			page, damaged = page[entries[k]:], damaged-entries[k]
		case from > 1:
			continue
		}
		if damaged < 0 {
			damage = nil
		}
		return page, damage
	}
	return nil, nil
}

// startAtFull passes on what comes after the first full record, which a only notes.
func (a *archive) startAtFull(log iter.Seq2[Record, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		started := false
		for rec, err := range log {
			_, damaged := errors.AsType[*DamageError](err)
			switch {
			case started || err != nil && !damaged:
				if !yield(rec, err) {
					return
				}
			case err == nil && rec.Full:
				show := a.yield
				a.yield = func(Archived, error) bool { return true }
				started = a.add(&rec) == nil
				a.yield, a.missing = show, nil
			}
		}
	}
}

// An archive yields what records hold, one after the other.
type archive struct {
	yield   func(Archived, error) bool
	ids     []Range // nil: everything
	last    ID      // of the records so far
	prev    Record  // the last good one, without Data; ID "": none was read
	gap     bool    // a record before the next one is lost
	missing []Range // ascending: IDs up to last of entries that were in lost records, and in none since
	untold  bool    // not all of missing was shown as gone
	summary Summary
	done    bool // yield returned false
}

// read yields what records hold, and the errors among them.
func (a *archive) read(log iter.Seq2[Record, error]) {
	for rec, err := range log {
		if err == nil {
			err = a.add(&rec)
		}
		if err != nil && !a.done {
			_, damaged := errors.AsType[*DamageError](err)
			a.done = !a.yield(Archived{}, err) || !damaged
		}
		if a.done {
			return
		}
	}
	a.showGone(a.prev.Seq)
}

// add yields what a record holds.
func (a *archive) add(rec *Record) error {
	r, err := archivedIn(rec)
	if err != nil {
		if errors.Is(err, ErrVersion) {
			return err
		}
		return &DamageError{Key: rec.Key, Offset: -1, Seq: a.prev.Seq, Err: err}
	}
	entries := merge(r.past, merge(orNil(r.system), r.entries))
	isNew := func(e *entry) bool { return e.id > a.last || hasID(a.missing, e.id) }
	fresh := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return !isNew(e) })
	a.missing = without(a.missing, idsOf(fresh))
	// In a copy of a pruned log, the first Prev is empty.
	if a.gap || r.lost || a.prev.ID == "" && rec.Seq > 1 || a.prev.ID != "" && rec.Prev != a.prev.ID {
		a.missing = append(a.missing, missing(entries, a.last, rec.Upto)...)
		a.untold = true
	}
	if rec.Full && !r.lost {
		a.showGone(rec.Seq)
	}
	if a.ids == nil {
		a.show(Archived{Seq: rec.Seq, Undone: r.undone})
		for i := range r.summaries {
			a.showSummary(rec.Seq, &r.summaries[i])
		}
	}
	for _, e := range fresh {
		if a.ids == nil || hasID(a.ids, e.id) {
			a.show(Archived{Seq: rec.Seq, Entry: &Entry{ID: e.id, Message: e.msg, Turn: e.turn, Time: e.time(), Missing: clampInt(e.missing)}})
		}
	}
	if a.ids == nil {
		if r.summary != nil && r.summary.Text != "" {
			a.showSummary(rec.Seq, r.summary)
		}
		for _, note := range r.notes {
			a.show(Archived{Seq: rec.Seq, Note: note})
		}
	}
	a.last, a.gap = max(a.last, rec.Upto), r.lost
	a.prev = *rec
	a.prev.Data = nil
	return nil
}

// archivedIn returns what Archive shows of a record.
func archivedIn(rec *Record) (*stateJSON, error) {
	if rec.Format < 1 || rec.Format > recordFormat {
		return nil, (&reading{}).add(rec)
	}
	r, err := decodeState(rec.Data, nil)
	if err == nil {
		err = r.checkPast(rec.Upto)
	}
	return r, err
}

// showGone yields the IDs of what is missing, unless that was done.
func (a *archive) showGone(seq uint64) {
	if a.untold {
		a.show(Archived{Seq: seq, Gone: a.within(slices.Clone(a.missing))})
		a.untold = false
	}
}

// hasID reports whether one of the ranges holds an ID.
func hasID(ranges []Range, id ID) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.First <= id && id <= r.Last })
}

// checkPast returns an error if what Archive shows of a record is out of range.
func (r *stateJSON) checkPast(upto ID) error {
	for _, list := range [][]*entry{r.past, orNil(r.system), r.entries} {
		if err := checkEntries(list, upto); err != nil {
			return &SnapshotError{Index: -1, Err: err}
		}
	}
	return nil
}

// show yields x, unless nothing is set in it or the caller wants no more.
func (a *archive) show(x Archived) {
	empty := x.Entry == nil && x.Summary == nil && len(x.Undone) == 0 && len(x.Gone) == 0 && x.Note == ""
	if !a.done && !empty {
		a.done = !a.yield(x, nil)
	}
}

// showSummary yields a summary, unless the record before showed it.
func (a *archive) showSummary(seq uint64, s *Summary) {
	if reflect.DeepEqual(a.summary, *s) {
		return
	}
	a.summary = *s
	a.show(Archived{Seq: seq, Summary: new(*s)})
}

// within returns the parts of ranges that were asked for.
func (a *archive) within(ranges []Range) (out []Range) {
	if a.ids == nil {
		return ranges
	}
	for _, r := range ranges {
		for _, w := range a.ids {
			if first, last := max(r.First, w.First), min(r.Last, w.Last); first <= last {
				out = append(out, Range{first, last})
			}
		}
	}
	return out
}

// merge returns the entries of two ascending lists in order. Where both have an
// entry with an ID, it takes that of a.
func merge(a, b []*entry) []*entry {
	if len(a) == 0 {
		return b
	}
	out := make([]*entry, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && b[0].id < a[0].id:
			out, b = append(out, b[0]), b[1:]
		case len(b) > 0 && b[0].id == a[0].id:
			b = b[1:]
		default:
			out, a = append(out, a[0]), a[1:]
		}
	}
	return out
}

// missing returns the IDs above one and up to last that no entry has.
func missing(list []*entry, above, last ID) (out []Range) {
	next := above + 1
	for _, e := range list {
		if e.id <= above {
			continue
		}
		if e.id > next {
			out = append(out, Range{next, e.id - 1})
		}
		next = e.id + 1
	}
	if next <= last {
		out = append(out, Range{next, last})
	}
	return out
}

// Note adds a line to the [History.Archive], such as the name of a trace or a remark.
// The next Save writes it. No model sees it, and it is no part of a snapshot. Invalid
// UTF-8 is replaced. Note returns [ErrNoStore] if h has no Store, and a [*ValueError]
// for a note that is empty or longer than 64 KiB.
func (h *History) Note(note string) error {
	note = text.Valid(note)
	if note == "" || len(note) > maxNote {
		return &ValueError{Name: "Note", Value: fmt.Sprintf("%d bytes long", len(note)), Want: fmt.Sprintf("1 to %d bytes", maxNote)}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.endedLocked():
		return ErrClosed
	case h.log == nil:
		return ErrNoStore
	}
	h.log.notes = append(h.log.notes, note)
	return nil
}

const maxNote = 64 << 10

// Prune removes records that were saved before a time and that [Open] does not need,
// and with them what [History.Archive] yields of them. At the zero time it first saves
// everything in a full record, and then removes all others. What was appended and has
// left the view again since the last Save is in that record; to remove that too, call
// Save first, then Prune.
//
// Prune does not erase data from the disk: free blocks, journals of a database and
// backups may still hold what it removed. If the Store is no [Pruner], the error matches
// [errors.ErrUnsupported]. Other errors are those of [History.Save] and of the Store.
func (h *History) Prune(ctx context.Context, before time.Time) error {
	ctx, l, err := h.takeOpenLog(ctx)
	if err != nil {
		return err
	}
	defer h.saving.release()
	pruner, err := prunerOf(l.store)
	if err != nil {
		return err
	}
	if before.IsZero() {
		if err := h.save(ctx, l, true); err != nil {
			return err
		}
		return prune(ctx, pruner, l.key, l.seq)
	}
	keep, first := uint64(0), true
	for rec, err := range records(ctx, l.store, l.key, 1) {
		if _, damaged := errors.AsType[*DamageError](err); damaged {
			continue
		}
		switch {
		case err != nil:
			return err
		case rec.Full && !first:
			keep = rec.Seq
		}
		if first = false; !rec.Updated.Before(before) {
			break
		}
	}
	if keep == 0 {
		return nil
	}
	return prune(ctx, pruner, l.key, keep)
}

// prunerOf returns s as a Pruner, or an error if it is none.
func prunerOf(s Store) (Pruner, error) {
	p, ok := s.(Pruner)
	if !ok {
		return nil, fmt.Errorf("convo: the Store %T cannot remove records: %w", s, errors.ErrUnsupported)
	}
	return p, nil
}

// prune calls Prune of the Store for a full record that was there. If it is not, and
// the records before it are not gone either, the log is another one. A panic becomes an
// error.
func prune(ctx context.Context, p Pruner, key string, before uint64) (err error) {
	defer catch(&err, "Store.Prune")
	err = p.Prune(ctx, key, before)
	if _, ok := errors.AsType[*ValueError](err); ok {
		text := fmt.Sprintf("prune %q: the log was deleted, and another was begun; Open that", key)
		return &wordedError{text, &ConflictError{Key: key, Want: before}}
	}
	return err
}
