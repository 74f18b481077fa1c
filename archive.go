package convo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// An Archived is an item in a conversation's log. One field besides Seq is set.
type Archived struct {
	Seq     uint64   // of the record that holds it
	Entry   *Entry   // as it was appended; Tokens and Pinned are not set
	Summary *Summary // with the IDs that it covers, and the time when it was put in place
	Undone  []Range  // entries that a rollback took back; a range may include system entries, which stay
	Gone    []Range  // entries whose records were removed by Prune or are damaged, or that were never saved; show a placeholder
	Note    string   // given to History.Note
}

// Archive yields everything that was ever saved of h, oldest first: each entry once, as
// it was appended, even if compactions have changed it since; each summary; what
// rollbacks took back; and notes. With ids, it yields only the entries in one of the
// ranges, and the parts of Gone in them. What was forgotten or taken back before it was
// saved is not included.
//
// The [Store] is read during the iteration, one record at a time; the sequence may be
// iterated again. At damage in the log it yields a [*DamageError]; a loop that continues
// gets what follows the damage. Entries of damaged records are yielded if a later record
// holds them again. The IDs of the others are in Gone, after the next full record or at
// the end. Any other error ends the sequence; it is [ErrNoStore] or an error of [Open].
func (h *History) Archive(ctx context.Context, ids ...Range) iter.Seq2[Archived, error] {
	ids = slices.Clone(ids)
	return func(yield func(Archived, error) bool) {
		b, err := h.openLog()
		if err != nil {
			yield(Archived{}, err)
			return
		}
		readArchive(ctx, b.store, b.key, ids...)(yield)
	}
}

// readArchive is Archive for the log of a key.
func readArchive(ctx context.Context, s Store, key string, ids ...Range) iter.Seq2[Archived, error] {
	return func(yield func(Archived, error) bool) {
		a := archive{yield: yield, ids: slices.Clone(ids)}
		ranges.Sort(a.ids)
		a.read(records(ctx, s, key, 1))
	}
}

// An archive yields the contents of records in order.
type archive struct {
	yield   func(Archived, error) bool
	ids     []Range // nil: everything
	last    ID      // of the records so far
	prev    Record  // the last good one, without Data; ID "": none was read
	gap     bool    // a record before the next one is lost
	missing []Range // ascending: IDs up to last that were in lost records and in none since
	told    []Range // of missing, when it was shown as gone
	summary Summary
	done    bool // yield returned false
}

// read yields the contents of a log, and its errors.
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

// add yields the contents of a record.
func (a *archive) add(rec *Record) error {
	r, err := rec.decode()
	if err != nil {
		return damageIn(rec.Key, a.prev.Seq, err)
	}
	entries := merge(r.past, merge(orNil(r.system), r.entries))
	fresh := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.id <= a.last && !ranges.Has(a.missing, e.id) })
	a.missing = ranges.Minus(a.missing, ranges.Of[Range](idsOf(fresh)))
	// In a copy of a pruned log, the first Prev is empty.
	isAfterGap := a.gap || r.lost || a.prev.ID == "" && rec.Seq > 1 || a.prev.ID != "" && rec.Prev != a.prev.ID
	if isAfterGap && rec.Upto > a.last {
		a.missing = append(a.missing, ranges.Minus([]Range{{a.last + 1, rec.Upto}}, ranges.Of[Range](idsOf(entries)))...)
	}
	if rec.Full && !r.lost {
		a.showGone(rec.Seq)
	}
	a.show(Archived{Seq: rec.Seq, Undone: r.undone})
	for _, sum := range r.summaries {
		a.showSummary(rec.Seq, sum)
	}
	for _, e := range fresh {
		a.show(Archived{Seq: rec.Seq, Entry: &Entry{ID: e.id, Message: e.msg, Turn: e.turn, Time: e.time(), Missing: clampInt(e.missing())}})
	}
	a.showSummary(rec.Seq, orNil(r.summary))
	for _, note := range r.notes {
		a.show(Archived{Seq: rec.Seq, Note: note})
	}
	a.last, a.gap = max(a.last, rec.Upto), r.lost
	a.prev = *rec
	a.prev.Data = nil
	return nil
}

// showGone yields the missing IDs, unless it has done so already.
func (a *archive) showGone(seq uint64) {
	gone := ranges.Minus(a.missing, a.told)
	a.told = a.missing
	if a.ids != nil {
		gone = ranges.Minus(gone, ranges.Minus(gone, a.ids)) // the parts of them in a.ids
	}
	a.show(Archived{Seq: seq, Gone: gone})
}

// show yields x, unless x is empty, the loop has ended, or it is not asked for.
func (a *archive) show(x Archived) {
	isEmpty := x.Entry == nil && x.Summary == nil && len(x.Undone) == 0 && len(x.Gone) == 0 && x.Note == ""
	isWanted := a.ids == nil || x.Gone != nil || x.Entry != nil && ranges.Has(a.ids, x.Entry.ID)
	if !a.done && !isEmpty && isWanted {
		a.done = !a.yield(x, nil)
	}
}

// showSummary yields a summary, unless it is empty or was shown last.
func (a *archive) showSummary(seq uint64, sum Summary) {
	if sum.Text != "" && !reflect.DeepEqual(a.summary, sum) {
		a.summary = sum
		a.show(Archived{Seq: seq, Summary: &sum})
	}
}

// merge returns the entries of two ascending lists in order. If both have an entry with the
// same ID, it takes the one in a.
func merge(a, b []*entry) []*entry { return ranges.Merge(b, a, func(e *entry) ID { return e.id }) }

// Note adds a line to the [History.Archive], such as the name of a trace or a remark. The
// next Save writes it. It is never sent to a model and is not part of a snapshot: a note
// of [RolePolicy] is something else. Note returns [ErrNoStore] if h has no Store, and a
// [*ValueError] for a note that is empty or longer than 64 KiB.
func (h *History) Note(note string) error {
	note = text.Valid(note)
	if note == "" || len(note) > maxNote {
		return &ValueError{Name: "Note", Value: fmt.Sprintf("%d bytes long", len(note)), Want: fmt.Sprintf("1 to %d bytes", maxNote)}
	}
	return h.ifOpen(func() error {
		if b := h.recorder.book(); b.store == nil {
			return ErrNoStore
		}
		h.recorder.add(note, nil)
		return nil
	})
}

const maxNote = 64 << 10

// An originals reads the entries of a snapshot as a summarizer should. It takes from the
// archive what the History does not keep in memory.
type originals struct {
	at    *Snapshot
	ident *identity
	book  logbook // without a Store: nothing is saved

	once  sync.Once
	found map[ID]*Entry
}

// newOriginals returns an originals for a snapshot of h.
func (h *History) newOriginals(at *Snapshot) *originals {
	b, _ := h.openLog()
	return &originals{at: at, ident: h.ident, book: b}
}

// read returns an entry with the results that were cut or cleared, as far as they are
// kept in memory or saved. It is a Goal.Original.
func (o *originals) read(ctx context.Context, id ID) (Entry, bool) {
	out, ok := o.at.toRead(ctx, id)
	if !ok || out.Missing == 0 || o.at.find(id).final {
		return out, ok
	}
	o.once.Do(func() { o.readArchive(ctx) })
	if saved := o.found[id]; saved != nil && saved.Missing < out.Missing && saved.Time.Equal(out.Time) && saved.Message.Role == out.Message.Role {
		out.Message, out.Missing = saved.Message.clone(), saved.Missing
		out.Tokens = clampInt(o.ident.message(&out.Message))
	}
	return out, true
}

// readArchive finds what the archive has of the entries that lack something. After an
// error, that is what was read before.
func (o *originals) readArchive(ctx context.Context) {
	o.found = make(map[ID]*Entry)
	if o.book.store == nil {
		return
	}
	var ids []ID
	for _, e := range o.at.list {
		if e.missing() > 0 && !e.final {
			ids = append(ids, e.id)
		}
	}
	for x, err := range o.book.archive(ctx, o.book.store, o.book.key, ranges.Of[Range](ids)...) {
		if _, isDamaged := errors.AsType[*DamageError](err); err != nil && !isDamaged {
			break
		}
		if x.Entry != nil {
			o.found[x.Entry.ID] = x.Entry
		}
	}
}
