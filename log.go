package convo

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/links"
)

// A recorder knows where a History is saved, and what its next record holds.
type recorder struct {
	logbook
	keepsake
	kept ID // the last ID that may be in the log and that no rollback took back
}

// A logbook describes the log of a History: the record last saved, and records that may
// or may not have been stored. A copy of it does not change, so a Save reads it without
// the lock. It is changed only while History.saving is held, but for the notes.
type logbook struct {
	logEnd
	store  Store // nil: there is none
	key    string
	saved  *picture // what the record last saved holds; nil: there is none
	loaded ID       // entries up to it were read, and repaired by Options.Repair if they are in no record

	// archive is readArchive. What compacts calls it here, so that programs without a Store
	// do not contain the code that reads records.
	archive func(context.Context, Store, string, ...Range) iter.Seq2[Archived, error]

	drafts []*draft // records that may have been stored, all of them after id
	notes  []string // that no record holds
}

// A logEnd is what is known of the newest records of a log, which were read or written one after
// the other.
type logEnd struct {
	summaryMark        // of the newest record
	name        string // of the log, in each full record of it
	id          string // of the newest record; empty: there is none
	created     time.Time
	recent      []string // IDs of the newest records up to id, the newest last
	size        links.Size
	torn        int64         // bytes after the newest record that are not a record
	marks       []summaryMark // records before one whose summary stands for newer entries, oldest first
}

// add adds a record with so many bytes of Data, whose summary stands for entries up to covered.
func (c *logEnd) add(rec *Record, bytes int, covered ID) {
	if c.id != "" && covered > c.covered {
		c.marks = withMark(c.marks, c.summaryMark)
	}
	c.id, c.created, c.torn = rec.ID, rec.Created, rec.Torn
	c.recent, c.summaryMark = append(c.recent, rec.ID), summaryMark{rec.Seq, rec.Upto, covered}
	c.size.Add(int64(bytes), rec.Full)
}

// first returns the Seq of the first record that Open reads.
func (c *logEnd) first() uint64 { return c.seq - uint64(c.size.Count) + 1 }

// newest returns the IDs of the maxRecent newest records, in memory of their own.
func (c *logEnd) newest() []string { return slices.Clone(c.recent[max(len(c.recent)-maxRecent, 0):]) }

// A summaryMark says what a record holds.
type summaryMark struct {
	seq     uint64
	last    ID // in the record
	covered ID // the newest that its summary stands for; 0: none
}

// withMark returns the marks with another. Only the newest of them are needed often.
func withMark(marks []summaryMark, m summaryMark) []summaryMark {
	const most = 100
	marks = append(slices.Clip(marks), m)
	return marks[max(len(marks)-most, 0):]
}

// A keepsake is what a record holds for the archive, in addition to the state, and what
// only a Reload needs.
type keepsake struct {
	past      map[ID]departed  // entries that no record holds as they were appended
	summaries []*placedSummary // that were replaced, and that no record holds
	undone    []Range          // IDs that rollbacks took back
	made      map[ID]*queued   // entries that no record holds and that came out of the queue
}

// A draft is a record that Append of the Store was called with.
type draft struct {
	record  Record // without Data
	picture *picture
	full    bool
	bytes   int    // of its Data
	name    string // of the log
	notes   []string
	size    links.Size // of the log before it
	keepsake
}

// A picture is the state of a History that a record holds, or several records
// together. It is immutable.
type picture struct {
	view *Snapshot
	scalars
	rewritten uint64
	estimated int  // as LogInfo shows it
	recounted bool // what was learned is converted; the log holds it as another counter has it
}

// pictureLocked returns the picture that a record of h would hold now.
func (h *History) pictureLocked() *picture {
	p := h.picture(h.snapshotLocked())
	p.breaker, p.meterFigures = h.compactor.saved(), h.meter.saved()
	p.estimated = h.estimate().Tokens
	return p
}

// unsaved returns how many changes a view has since the record last saved, or 0 if there
// is no Store. Save does nothing when it returns 0.
func (b *logbook) unsaved(now *state, failures breaker) int {
	if b.store == nil {
		return 0
	}
	n, p := len(b.notes), b.saved
	if p == nil {
		p = noPicture
		n += now.len() + len(now.queue)
	}
	n += clampInt(int64(now.version - p.view.version))
	for _, differs := range [...]bool{p != noPicture && !slices.Equal(now.queue, p.view.queue), now.meta != p.view.meta, p != noPicture && failures != p.breaker} {
		if differs {
			n++
		}
	}
	if n == 0 && len(b.drafts) > 0 {
		return 1 // Save must find out whether they were stored
	}
	return n
}

// newLogbook returns a logbook for a log without records.
func newLogbook(s Store, key string) logbook {
	return logbook{store: s, key: key, archive: readArchive, logEnd: logEnd{size: links.NewSize()}}
}

// exceeds reports whether the log is longer than Options.PruneAbove.
func (b *logbook) exceeds(most int64) bool { return most > 0 && b.size.Bytes() > most }

// isOwn reports whether the record that at was loaded from is in the log, as far as the
// IDs of the newest records show.
func (b *logbook) isOwn(at *Snapshot) bool {
	k := len(b.recent) - 1 - int(b.seq-at.loaded.seq) // of the record with its Seq
	return k < 0 || k >= len(b.recent) || b.recent[k] == at.loaded.id
}

// wayBack says how to take back what is newer than last, although the summary stands for some
// of it. The caller has named id.
func (b *logbook) wayBack(id, last ID, prunes bool) string {
	const steps = "Save, Load %s, Rollback to it, and try again"
	if b.saved == nil || id > b.last || prunes {
		return "Rollback to a snapshot from before that compaction, or Undo it first"
	}
	for _, m := range slices.Backward(withMark(b.marks, b.summaryMark)) {
		if m.covered <= last && id <= m.last {
			return fmt.Sprintf(steps, fmt.Sprintf("record %d", m.seq))
		}
	}
	return fmt.Sprintf(steps, "the record that Archive names for this entry")
}

// savedBeside returns the view that was saved last, for a rollback to a snapshot that was
// loaded from the same log. Its error says that it was not.
func (b *logbook) savedBeside(at *Snapshot) (*state, error) {
	switch {
	case b.store == nil || b.name != at.loaded.log || b.key != at.loaded.key:
		return nil, &staleError{Reason: "it was loaded from another log than that of this History; make a History of it with Restore"}
	case at.loaded.seq > b.seq:
		return nil, &staleError{Reason: "it is newer than what this History has saved; call Reload"}
	case !b.isOwn(at):
		return nil, errOtherCopy
	}
	return &b.saved.view.state, nil
}

// book returns what is known of the log.
func (r *recorder) book() logbook { return r.logbook }

// adopt makes b the logbook. The next record holds k for the archive.
func (r *recorder) adopt(b logbook, k keepsake) {
	if k.past == nil {
		k.past = make(map[ID]departed)
	}
	k.made = make(map[ID]*queued)
	*r = recorder{logbook: b, keepsake: k, kept: b.last}
}

// left notes for the archive that entries have left the view or were replaced. The originals
// of those that were forgotten are not to be written.
func (r *recorder) left(forgotten []ID, gone ...departed) {
	if r.store == nil {
		return
	}
	for _, d := range gone {
		_, known := r.past[d.was.id]
		if _, ok := slices.BinarySearch(forgotten, d.was.id); d.was.id > r.last && (ok || !known) {
			r.past[d.was.id] = departed{was: d.was, original: d.original}
		}
	}
}

// edited notes for the archive what an edit has removed, by its report. The summary now has
// replaced the summary was.
func (r *recorder) edited(by *Report, was, now *placedSummary) {
	r.left(by.Forgotten, by.left.gone...)
	if r.store != nil && was != nil && was != now && (r.saved == nil || was != r.saved.view.summary) {
		r.summaries = append(r.summaries, was)
	}
	r.summaries = slices.DeleteFunc(slices.Clone(r.summaries), func(s *placedSummary) bool { return slices.ContainsFunc(by.Forgotten, s.hasRead) })
}

// wentBack notes that all entries newer than last were taken back, and that the summary now
// has replaced the summary was. What was never saved of both is not written anywhere.
func (r *recorder) wentBack(last ID, was, now *placedSummary) {
	if r.store == nil {
		return
	}
	maps.DeleteFunc(r.past, func(id ID, d departed) bool { return id > last && !d.was.isSystem() })
	maps.DeleteFunc(r.made, func(id ID, _ *queued) bool { return id > last })
	if last < r.kept {
		r.undone = append(r.undone, Range{last + 1, r.kept})
		r.kept = last
	}
	if was != now {
		r.summaries = slices.Clip(r.summaries[:max(slices.Index(r.summaries, now), 0)])
	}
}

// add adds a note to the next record, unless it is empty, and notes entries that no caller
// has appended. See keepsake.made.
func (r *recorder) add(note string, made map[ID]*queued) {
	if r.store == nil {
		return
	}
	if note != "" {
		r.notes = append(r.notes, note)
	}
	maps.Copy(r.made, made)
}

// draft returns a draft of the state p. It is a full record if full is set.
func (r *recorder) draft(p *picture, full bool) *draft {
	d := &draft{picture: p, full: full || r.saved == nil, notes: slices.Clip(r.notes), keepsake: r.keepsake, size: r.size}
	d.past, d.made = maps.Clone(r.past), maps.Clone(r.made)
	d.summaries, d.undone = slices.Clip(r.summaries), slices.Clip(r.undone)
	r.kept = p.last
	return d
}

// An outcome is what came of writing a draft, or of removing records.
type outcome struct {
	stored  *draft // is in the log, after the record last saved; nil: none was found there
	settled *draft // holds nothing that is not in the log; nil: none
	doubted *draft // may have been stored; nil: none
	isOlder bool   // stored is an older draft than the one to be written
	pruned  uint64 // no record before it is in the log; 0: none was removed
	freed   int64  // bytes of those that were removed
	err     error
}

// wrote takes note of what has come of a draft.
func (r *recorder) wrote(o outcome) {
	switch {
	case o.stored != nil:
		r.stored(o.stored)
	case o.settled != nil:
		r.settle(o.settled)
	case o.doubted != nil:
		r.drafts = append(slices.Clip(r.drafts[max(len(r.drafts)-maxDrafts+1, 0):]), o.doubted)
		r.size.Learn(o.doubted.size)
	case o.pruned > 0:
		r.size.Before = max(r.size.Before-o.freed, 0)
		r.marks = slices.DeleteFunc(slices.Clone(r.marks), func(m summaryMark) bool { return m.seq < o.pruned })
	}
}

// stored notes that a draft was stored after the record last saved.
func (r *recorder) stored(d *draft) {
	r.name, r.recent, r.drafts = d.name, r.newest(), nil
	r.size.Learn(d.size)
	r.logEnd.add(&d.record, d.bytes, d.picture.view.summary.newestKept())
	r.settle(d)
}

// settle notes that the log holds the content of the draft.
func (r *recorder) settle(d *draft) {
	r.saved = d.picture
	maps.DeleteFunc(r.past, func(id ID, _ departed) bool { return id <= d.picture.last })
	if len(r.past) == 0 {
		r.past = make(map[ID]departed) // a clone of a map that was large is large
	}
	maps.DeleteFunc(r.made, func(id ID, _ *queued) bool { return id <= d.picture.last })
	r.summaries = slices.DeleteFunc(slices.Clone(r.summaries), func(s *placedSummary) bool {
		return s == d.picture.view.summary || slices.Contains(d.summaries, s)
	})
	r.undone, r.notes = append([]Range(nil), r.undone[len(d.undone):]...), append([]string(nil), r.notes[len(d.notes):]...) // nil if nothing is left
}

// A full record names the maxRecent records before it. With doubtful drafts or more,
// Save first checks whether one of them was stored. It remembers the newest maxDrafts;
// an older draft that was stored is taken for the record of another writer.
const (
	maxRecent = 16
	doubtful  = 8
	maxDrafts = 64
)

// openLog returns the logbook of h, or an error if it has no Store.
func (h *History) openLog() (logbook, error) {
	if h.ident == nil {
		return logbook{}, ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.recorder.book()
	if b.store == nil {
		return b, ErrNoStore
	}
	return b, nil
}

// Saved returns the key of h and the Seq of the record it was last saved in, for [Load].
// The key is empty without a Store, the Seq 0 before the first Save.
func (h *History) Saved() (key string, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.recorder.book()
	return b.key, b.seq
}
