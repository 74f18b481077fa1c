package convo

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"
)

// A recorder knows where a History is saved.
type recorder struct {
	saving slot     // taken while the log is written or compared with
	log    *logbook // nil: it has no Store
}

// A logbook describes the log of a History: the record last saved, records that
// may or may not have been stored, and what the next record holds for the
// archive.
//
// All fields are written with History.mu held. Those above keepsake are written only
// while History.saving is also held, and may then be read without the lock.
type logbook struct {
	store   Store
	key     string
	name    string // of the log, in each full record of it
	id      string // of the record last saved; empty: there is none
	seq     uint64
	created time.Time
	recent  []string // IDs of the newest records up to id, the newest last
	saved   *picture // what the record with that ID holds; nil: there is none
	loaded  ID       // entries up to it were read, and repaired by Options.Repair if they are in no record
	made    []ID     // results that Options.OnLoad made after these

	// archive is History.Archive. What compacts calls it here, so that programs without
	// a Store do not contain the code that reads records.
	archive func(context.Context, ...Range) iter.Seq2[Archived, error]

	delivered map[ID]*queued // entries that came out of the queue, and that no record holds
	read      int64          // bytes of Data that Open reads
	retry     int64          // no full record is tried before read is above this
	count     int            // records that Open reads
	torn      int64          // bytes after the newest record that are not a record
	excess    bool           // records before the newest full one are to be removed; see Options.NoArchive

	perToken float64 // bytes of a full record for each raw token of the view

	marks  []summaryMark // oldest first
	drafts []*draft      // records that may have been stored, all of them after id
	keepsake
	kept ID // the last ID that may be in the log and that no rollback took back
}

// A summaryMark is the newest record before one whose summary stands for newer entries.
type summaryMark struct {
	seq     uint64
	last    ID // in the record
	covered ID // the newest that its summary stands for; 0: none
}

// withMark returns the marks with another. Only the newest of them are needed often.
func withMark(marks []summaryMark, m summaryMark) []summaryMark {
	const most = 100
	marks = append(marks, m)
	return marks[max(len(marks)-most, 0):]
}

// A keepsake is what a record holds for the archive, in addition to the state.
type keepsake struct {
	past      map[ID]departed  // entries that no record holds as they were appended
	summaries []*placedSummary // that were replaced, and that no record holds
	undone    []Range          // IDs that rollbacks took back
	notes     []string
}

// A draft is a record that Append of the Store was called with.
type draft struct {
	id      string
	picture *picture
	full    bool
	size    int64 // of its Data
	name    string
	created time.Time
	keepsake
}

// A picture is the state of a History that a record holds, or several records
// together. It is immutable.
type picture struct {
	view *Snapshot
	scalars
	heard              bool
	rewritten          uint64
	entries, estimated int  // as LogInfo shows them
	recounted          bool // what was learned is converted; the log holds it as another counter has it
}

// pictureLocked returns the picture that a record of h would hold now.
func (h *History) pictureLocked() *picture {
	at := h.snapshotLocked()
	p := &picture{
		view: at,
		scalars: scalars{
			last: h.last, turn: h.turn, touched: h.touched, appended: h.appended, model: h.known().model, released: h.released,
			ever: h.appendedEver, edited: timeOf(h.lastEdit).UTC(), breaker: h.compactor.breaker.saved(),
			chosen: h.meter.chosen, toolsSet: h.meter.toolsSet, counted: at.raw() - at.eph.tokens(),
		},
		heard: h.meter.heard, rewritten: h.rewritten,
		entries: h.state.len(), estimated: h.estimateLocked().Tokens,
	}
	if h.meter.chosen {
		p.limits = h.meter.limits
	}
	if h.meter.named > 0 {
		p.named = bound{h.meter.named, clampInt(h.meter.limits.most())}
	}
	return p
}

// saved returns the part of b that a record holds.
func (b *breaker) saved() breaker {
	return breaker{failures: b.failures, appended: b.appended, excused: b.excused}
}

// unsavedLocked returns how many changes were made since h was last saved, or 0 if
// it has no Store. Save does nothing when it returns 0.
func (h *History) unsavedLocked() int {
	l := h.recorder.log
	if l == nil {
		return 0
	}
	n := len(l.notes)
	if p := l.saved; p == nil {
		n += clampInt(int64(h.version)) + h.state.len() + len(h.queue)
		if h.meta != (meta{}) {
			n++
		}
	} else {
		n += clampInt(int64(h.version - p.view.version))
		if !slices.Equal(h.queue, p.view.queue) {
			n++
		}
		if h.meta != p.view.meta {
			n++
		}
		if h.compactor.breaker.saved() != p.breaker {
			n++
		}
	}
	if n == 0 && len(l.drafts) > 0 {
		return 1 // Save must find out whether they were stored
	}
	return n
}

// tornLocked returns how many bytes after the newest record are not a record.
func (h *History) tornLocked() int {
	if h.recorder.log == nil {
		return 0
	}
	return clampInt(h.recorder.log.torn)
}

// newLogbookLocked returns a logbook for a log without records.
func (h *History) newLogbookLocked(s Store, key string) *logbook {
	l := &logbook{store: s, key: key, archive: h.Archive, perToken: defaultPerToken, delivered: make(map[ID]*queued), keepsake: keepsake{past: make(map[ID]departed)}}
	for _, o := range h.originals {
		if e := h.find(o.id); e != nil {
			l.past[o.id] = departed{was: e, original: o}
		}
	}
	return l
}

// last returns the last ID in the record last saved.
func (l *logbook) last() ID {
	if l.saved == nil {
		return 0
	}
	return l.saved.last
}

// isOwn reports whether the record that at was loaded from is in the log, as far as the
// IDs of the newest records show.
func (l *logbook) isOwn(at *Snapshot) bool {
	k := len(l.recent) - 1 - int(l.seq-at.loaded.seq) // of the record with its Seq
	return k < 0 || k >= len(l.recent) || l.recent[k] == at.loaded.id
}

// leftLocked notes for the archive that an entry has left the view or was replaced.
// forgotten says that its original is not to be written.
func (h *History) leftLocked(d departed, forgotten bool) {
	l := h.recorder.log
	if l == nil || d.was.id <= l.last() {
		return
	}
	if _, ok := l.past[d.was.id]; !ok || forgotten {
		l.past[d.was.id] = departed{was: d.was, original: d.original}
	}
}

// tookBackLocked notes that all entries newer than last were taken back. Those
// never saved are not written anywhere.
func (h *History) tookBackLocked(last ID) {
	l := h.recorder.log
	if l == nil {
		return
	}
	maps.DeleteFunc(l.past, func(id ID, d departed) bool { return id > last && !d.was.isSystem() })
	maps.DeleteFunc(l.delivered, func(id ID, _ *queued) bool { return id > last })
	if last < l.kept {
		l.undone = append(l.undone, Range{last + 1, l.kept})
		l.kept = last
	}
}

// unsummarisedLocked notes that the summary s is restored, so that those after
// it are not written anywhere.
func (h *History) unsummarisedLocked(s *placedSummary) {
	if l := h.recorder.log; l != nil && s != h.summary {
		l.summaries = slices.Clip(l.summaries[:max(slices.Index(l.summaries, s), 0)])
	}
}

// draftLocked returns a draft of the state as it is.
func (h *History) draftLocked(l *logbook) *draft {
	d := &draft{picture: h.pictureLocked(), keepsake: l.keepsake}
	d.past = maps.Clone(l.past)
	d.summaries, d.undone, d.notes = slices.Clip(l.summaries), slices.Clip(l.undone), slices.Clip(l.notes)
	l.kept = h.last
	return d
}

// storedLocked notes that a draft was stored after the record last saved.
func (l *logbook) storedLocked(d *draft) {
	if l.id == "" {
		l.name, l.created = d.name, d.created
	}
	if p := l.saved; p != nil && d.picture.view.summary.newestCovered() > p.view.summary.newestCovered() {
		l.marks = withMark(l.marks, summaryMark{l.seq, p.last, p.view.summary.newestCovered()})
	}
	l.id, l.seq, l.drafts = d.id, l.seq+1, nil
	l.recent = append(slices.Clone(l.recent[max(len(l.recent)-maxRecent+1, 0):]), d.id)
	if d.full {
		l.read, l.retry, l.count, l.excess = 0, 0, 0, l.seq > 1
		l.weighed(d, d.size)
	}
	l.read += d.size
	l.count++
	l.torn = 0 // the Append has cut it off
	l.settledLocked(d)
}

// settledLocked notes that the log holds the content of the draft.
func (l *logbook) settledLocked(d *draft) {
	l.saved = d.picture
	maps.DeleteFunc(l.past, func(id ID, _ departed) bool { return id <= d.picture.last })
	if len(l.past) == 0 {
		l.past = make(map[ID]departed) // a clone of a map that was large is large
	}
	maps.DeleteFunc(l.delivered, func(id ID, _ *queued) bool { return id <= d.picture.last })
	l.summaries = slices.DeleteFunc(slices.Clone(l.summaries), func(s *placedSummary) bool {
		return s == d.picture.view.summary || slices.Contains(d.summaries, s)
	})
	l.undone, l.notes = slices.Clone(l.undone[len(d.undone):]), slices.Clone(l.notes[len(d.notes):])
}

// A full record names the maxRecent records before it. With doubtful drafts or more,
// Save first checks whether one of them was stored. It remembers the newest maxDrafts;
// an older one that was stored is taken for the record of another writer.
const (
	maxRecent = 16
	doubtful  = 8
	maxDrafts = 64
)

// weighed notes how long a draft is as a full record.
func (l *logbook) weighed(d *draft, size int64) {
	if raw := d.picture.view.raw(); raw >= 200 && len(d.past)+len(d.notes) == 0 { // otherwise much of it is not the view
		l.perToken = max(float64(size-frameBytes)/float64(raw), 0.5)
	}
}

// The length of a full record is estimated from the raw tokens of the view: as many
// bytes for each as the last one had, and a frame.
const (
	maxRead         = 3   // most that Open reads, in lengths of a full record
	maxCount        = 256 // most records that Open reads: each may be a request to a server
	perRecord       = 512 // most bytes of a full record for each record since the last; more would make the log much longer
	frameBytes      = 800
	defaultPerToken = 4 // until a full record was measured
)

// openLog returns the logbook of h, or an error if there is none.
func (h *History) openLog() (*logbook, error) {
	if h.ident == nil {
		return nil, ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recorder.log == nil {
		return nil, ErrNoStore
	}
	return h.recorder.log, nil
}

// Saved returns the key of h and the Seq of the record it was last saved in, for [Load].
// The key is empty without a Store, the Seq 0 before the first Save.
func (h *History) Saved() (key string, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.recorder.log == nil {
		return "", 0
	}
	return h.recorder.log.key, h.recorder.log.seq
}
