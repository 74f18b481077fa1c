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
	Gone    []Range  // entries whose records were removed by Prune; show a placeholder
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

// GoString returns what String returns.
func (a Archived) GoString() string { return a.String() }

// Archive yields everything that was ever saved of h, oldest first: each entry once,
// as it was appended, whatever compactions have made of it since; each summary; what
// rollbacks took back; notes. With ids, it yields only entries with an ID in one of
// the ranges, and those of Gone.
//
// What an edit was told to forget before it was saved is not there, and neither is
// what a rollback took back before it was saved.
//
// Archive reads the Store as the caller ranges over it, one record at a time, and may
// be ranged over again. After an error, which is one of those of [Open] or
// [ErrNoStore], nothing more is yielded. It also works after Close.
func (h *History) Archive(ctx context.Context, ids ...Range) iter.Seq2[Archived, error] {
	ids = slices.Clone(ids)
	return func(yield func(Archived, error) bool) {
		l, err := h.openLog()
		if err != nil {
			yield(Archived{}, err)
			return
		}
		a := archive{yield: yield, ids: ids}
		for rec, err := range records(ctx, l.store, l.key, 1) {
			if err == nil {
				err = a.add(&rec)
			}
			if err != nil {
				yield(Archived{}, err)
				return
			}
			if a.done {
				return
			}
		}
	}
}

// An archive yields what records hold, one after the other.
type archive struct {
	yield   func(Archived, error) bool
	ids     []Range // nil: everything
	last    ID      // of the records so far
	first   bool    // a record was read
	summary Summary
	prev    uint64 // Seq of the last good record
	done    bool   // yield returned false
}

// add yields what a record holds.
func (a *archive) add(rec *Record) error {
	if rec.Format < 1 || rec.Format > recordFormat {
		return (&reading{}).add(rec)
	}
	r, err := decodeRecord(rec.Data)
	if err == nil {
		err = r.checkPast(rec.Upto)
	}
	if err != nil {
		return &DamageError{Key: rec.Key, Offset: -1, Seq: a.prev, Err: err}
	}
	entries := merge(r.past, merge(orNil(r.system), r.in))
	if !a.first && rec.Seq > 1 { // in a copy of a pruned log, its Prev is empty
		a.show(Archived{Seq: rec.Seq, Gone: a.within(missing(entries, rec.Upto))})
	}
	if a.ids == nil {
		a.show(Archived{Seq: rec.Seq, Undone: r.undone})
		for i := range r.summaries {
			a.showSummary(rec.Seq, &r.summaries[i])
		}
	}
	for _, e := range entries {
		if e.id > a.last && (a.ids == nil || a.has(e.id)) {
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
	a.last, a.first, a.prev = max(a.last, rec.Upto), true, rec.Seq
	return nil
}

// checkPast returns an error if what Archive shows of a record is out of range.
func (r *recordJSON) checkPast(upto ID) error {
	for _, list := range [][]*entry{r.past, orNil(r.system), r.in} {
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

// has reports whether one of the ranges that were asked for holds the ID.
func (a *archive) has(id ID) bool {
	return slices.ContainsFunc(a.ids, func(r Range) bool { return r.First <= id && id <= r.Last })
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

// missing returns the IDs from 1 to last that no entry has.
func missing(list []*entry, last ID) (out []Range) {
	next := ID(1)
	for _, e := range list {
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
// everything in a full record, and then removes all others.
//
// Prune does not wipe: disk blocks, journals of a database and backups may still hold
// what it removed. If the Store is no [Pruner], the error matches
// [errors.ErrUnsupported]. Other errors are those of [History.Save] and of the Store.
func (h *History) Prune(ctx context.Context, before time.Time) error {
	ctx, l, err := h.takeOpenLog(ctx)
	if err != nil {
		return err
	}
	defer h.releaseLog()
	pruner, ok := l.store.(Pruner)
	if !ok {
		return fmt.Errorf("convo: the Store %T cannot remove records: %w", l.store, errors.ErrUnsupported)
	}
	if before.IsZero() {
		if err := h.save(ctx, l, true); err != nil {
			return err
		}
		return prune(ctx, pruner, l.key, l.seq)
	}
	keep, first := uint64(0), true
	for rec, err := range records(ctx, l.store, l.key, 1) {
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

// prune calls Prune of the Store. A panic becomes an error.
func prune(ctx context.Context, p Pruner, key string, before uint64) (err error) {
	defer catch(&err, "Store.Prune")
	return p.Prune(ctx, key, before)
}
