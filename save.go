package convo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/links"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// Open returns the [History] saved in s under a key, or an empty one if the key is not in
// use; [History.Saved] of that has the Seq 0. [History.Save] saves it there. Open itself writes
// nothing.
//
// It restores the entries with their IDs, turns, times and pins, the summary, the queue,
// the calibration, and the model. The limits that SetLimits or SetModel set override
// Options.Limits; to change them, call SetLimits after Open. Queued messages stay queued.
// Ephemeral messages are not restored. The originals of results that were cut or cleared
// stay in the log, where summarizers find them. Options.Repair works as in [Restore], and
// the next Save saves its changes. [History.Run] goes on with a turn that a crash has left
// without an answer; to end it, call [History.AnswerOpenCalls] or [History.Rewind].
//
// It returns a [*ValueError] for a nil [Store] or a key that is empty or too long, a
// [*DamageError] for a damaged log, and the errors of Restore and of s. They match
// [ErrVersion] if a later version wrote the log.
func Open(ctx context.Context, s Store, key string, opts *Options) (*History, error) {
	if err := checkStore(s, key, opts != nil && opts.PruneAbove > 0); err != nil {
		return nil, err
	}
	r, err := readLog(ctx, s, key, 0)
	if err != nil {
		return nil, err
	}
	if r == nil {
		h, err := New(opts)
		if err != nil {
			return nil, err
		}
		h.locked(func() { h.adoptLocked(newLogbook(s, key), keepsake{}) })
		return h, nil
	}
	p, err := r.start(ctx, s, false)
	if err != nil {
		return nil, err
	}
	h, saved, err := r.open(p, opts)
	if err != nil {
		return nil, r.inRecord(err)
	}
	h.locked(func() { h.adoptLocked(newLogbook(s, key).asRead(r, saved, h.last), keepsake{}) })
	if err := h.finishLoad(false); err != nil {
		return nil, err
	}
	return h, nil
}

// Load returns the state saved in s under a key, as of the record with that Seq, or as of
// the newest record if seq is 0. [Restore] makes a History from it, and
// [History.Rollback] returns to it. If the record does not exist, the error matches
// [ErrNotFound]. Other errors are those of [Open].
func Load(ctx context.Context, s Store, key string, seq uint64) (*Snapshot, error) {
	if err := checkStore(s, key, false); err != nil {
		return nil, err
	}
	r, err := readLog(ctx, s, key, seq)
	switch {
	case err != nil:
		return nil, err
	case r == nil && seq == 0:
		return nil, fmt.Errorf("%w: %q has no log; List shows the keys of the Store", ErrNotFound, key)
	case r == nil:
		return nil, fmt.Errorf("%w: the log of %q has no record %d; Archive shows those that it has", ErrNotFound, key, seq)
	case seq > 0 && r.state.lost:
		return nil, fmt.Errorf("%w: the state of record %d was lost before Salvage made the log of %q; load a later record", ErrNotFound, seq, key)
	}
	p, err := r.start(ctx, s, true)
	if err != nil {
		return nil, err
	}
	return p.loaded(), nil
}

// checkStore returns a *ValueError unless s is a Store and key is valid. If prunes is set,
// s must be a Pruner.
func checkStore(s Store, key string, prunes bool) error {
	if s == nil {
		return &ValueError{Name: "Store", Value: nil, Want: "a Store, such as a filestore.Store"}
	}
	if err := CheckKey(key); err != nil || !prunes {
		return err
	}
	_, err := prunerOf(s)
	return err
}

// readLog reads the log up to the record with the Seq seq, or up to the newest one if seq
// is 0. It returns nil if there is no such record.
func readLog(ctx context.Context, s Store, key string, seq uint64) (r *reading, err error) {
	var damage *DamageError
	for back := uint64(64); ; back *= 4 { // the full record before seq is usually near
		from := min(seq, 1)
		if 0 < back && back < seq { // 0: it overflowed
			from = seq - back
		}
		r, damage, err = readFrom(ctx, s, key, from, seq)
		if from <= 1 || err != nil || r != nil && damage == nil {
			break
		}
	}
	switch {
	case err != nil:
		return nil, err
	case damage != nil:
		return nil, &DamageError{Key: key, Offset: damage.Offset, Seq: newestWhole(ctx, s, key, seq), Err: damage.Err}
	case r != nil && seq > 0 && r.seq != seq:
		return nil, nil
	}
	return r, nil
}

// readFrom reads the records from one on, as Records does, up to the Seq to, or to the
// end if to is 0. It returns a reading of the newest full record among them and the
// records after it, or nil if there is none. It also returns any damage between them or,
// without a full record, the last damage.
func readFrom(ctx context.Context, s Store, key string, from, to uint64) (r *reading, damage *DamageError, err error) {
	for rec, err := range records(ctx, s, key, from) {
		if to > 0 && rec.Seq > to {
			break
		}
		if err == nil {
			r, err = r.next(&rec)
			err = damageIn(key, 0, err)
		}
		d, isDamage := errors.AsType[*DamageError](err)
		switch {
		case err != nil && !isDamage:
			return nil, nil, err
		case isDamage:
			damage = cmp.Or(damage, d)
		case r != nil:
			damage = nil // nothing is missing
		}
		if to == 0 && damage != nil || rec.Seq == to && to > 0 {
			break // later records may be damaged
		}
	}
	return r, damage, nil
}

// newestWhole returns the Seq of the newest record whose state Load can return, or 0 if
// there is none. If below is not 0, only records below it count. newestWhole is called
// for damaged logs.
func newestWhole(ctx context.Context, s Store, key string, below uint64) (newest uint64) {
	var r *reading
	for rec, err := range records(ctx, s, key, 1) {
		if err != nil {
			continue
		}
		if below > 0 && rec.Seq >= below {
			break
		}
		r, _ = r.next(&rec)
		if r == nil || r.state.lost {
			continue
		}
		if _, err := r.picture(false); err == nil {
			newest = rec.Seq
		}
	}
	return newest
}

// open returns a History with the state read. p is what start has returned.
func (r *reading) open(p *picture, opts *Options) (h *History, saved *picture, err error) {
	if h, err = newHistory(opts, p.view.id); err != nil {
		return nil, nil, err
	}
	if p.chosen {
		h.setLimitsLocked(p.limits, p.toolsSet)
	}
	h.meter.adoptNamed(p.named)
	h.compactor.adopt(breaker{}, p.breaker, 0)
	saved, err = r.load(&h.setup, &h.view, p)
	return h, saved, err
}

// inRecord returns err, and names the newest record if the content of the log is at fault.
func (r *reading) inRecord(err error) error {
	if _, ok := errors.AsType[*SnapshotError](err); ok {
		return errorf("record %d of %q: %w", r.seq, r.key, err)
	}
	return err
}

// start returns a picture of the state read. If count is false, load counts it, with the
// tokenizer of the Options.
func (r *reading) start(ctx context.Context, s Store, count bool) (*picture, error) {
	p, err := r.picture(count)
	if err != nil {
		key := r.key
		return nil, damageIn(key, newestWhole(ctx, s, key, r.seq), err)
	}
	return p, nil
}

// asRead returns b as it is once the log was read. p is the content of the log, and loaded
// the last ID after loading.
func (b logbook) asRead(r *reading, p *picture, loaded ID) logbook {
	marks := slices.DeleteFunc(slices.Clone(b.marks), func(m summaryMark) bool { return b.name != r.name || m.seq >= r.first() })
	for _, m := range r.marks {
		marks = withMark(marks, m)
	}
	size := b.size
	size.Open(r.state.before, r.size.Read, r.size.Count, p.view.raw())
	b.logEnd = r.logEnd
	b.marks, b.size, b.recent = marks, size, r.newest()
	b.saved, b.loaded, b.drafts = p, loaded, nil
	return b
}

// Attach makes [History.Save] save h in s under a key from now on, and no longer where it
// was saved before. If the key is in use, Attach returns a [*ConflictError]. Attach
// writes nothing, and the next Save writes everything. If the log of h was deleted, h may
// be attached to the same key again.
//
// Attach returns a [*ValueError] for a nil [Store] or a key that is empty or too long,
// and the errors of s; then nothing changes.
func (h *History) Attach(ctx context.Context, s Store, key string) error {
	if h.ident == nil {
		return ErrClosed
	}
	if err := checkStore(s, key, h.opts.PruneAbove > 0); err != nil {
		return err
	}
	ctx, err := h.takeLog(ctx)
	if err != nil {
		return err
	}
	defer h.saving.release()
	if err := isFree(ctx, s, key); err != nil {
		return err
	}
	return h.ifOpen(func() error {
		h.adoptLocked(newLogbook(s, key), h.unsavedOriginals())
		return nil
	})
}

// adoptLocked makes b the log of h.
func (h *History) adoptLocked(b logbook, k keepsake) {
	h.recorder.adopt(b, k)
	h.keepOriginalsLocked()
}

// isFree returns a *ConflictError if there is a log under a key.
func isFree(ctx context.Context, s Store, key string) error {
	for rec, err := range records(ctx, s, key, 0) {
		if err != nil {
			return err
		}
		return &ConflictError{Key: key, Have: rec.Seq, Want: 1, ID: rec.ID}
	}
	return nil
}

// unsavedOriginals returns what the first record in another log holds for the archive.
func (s *state) unsavedOriginals() (k keepsake) {
	k.past = make(map[ID]departed)
	for _, o := range s.originals {
		if e := s.find(o.id); e != nil {
			k.past[o.id] = departed{was: e, original: o}
		}
	}
	return k
}

// Save atomically writes the changes since h was last saved in one record. When it
// returns nil, the state at the time of the call, or a later state, survives a power cut.
// Its cost is proportional to the changes. If nothing has changed, it does nothing. What
// is appended while it runs may not be saved. Save writes everything in a full record when
// Open would otherwise read more than three times as much, or more than 256 records and
// more than one for each 512 bytes of a full record.
//
// If another writer has saved the conversation since, Save returns a [*ConflictError] and
// writes nothing: call [History.Reload], then Save. After any other error the record may
// be in the Store, or still be written. The next Save checks this and writes the changes
// that are missing. It returns [ErrNoStore] if h has no Store, and a [*ValueError] if a
// record is too long.
//
// Only one Save, Reload, Attach or Prune of a History runs at a time. Other calls wait
// until it ends or their own ctx ends.
func (h *History) Save(ctx context.Context) error {
	if _, err := h.openLog(); err != nil || h.unsaved() == 0 {
		return err
	}
	ctx, _, err := h.takeOpenLog(ctx)
	if err != nil {
		return err
	}
	defer h.saving.release()
	return h.write(ctx, false)
}

// unsaved returns how many changes were made since h was last saved.
func (h *History) unsaved() (n int) {
	h.locked(func() {
		b := h.recorder.book()
		n = b.unsaved(&h.state, h.compactor.saved())
	})
	return n
}

// takeOpenLog is takeLog for callers that need a Store. It does not wait if there is none.
func (h *History) takeOpenLog(ctx context.Context) (context.Context, logbook, error) {
	b, err := h.openLog()
	if err != nil {
		return ctx, b, err
	}
	ctx, err = h.takeLog(ctx)
	if err != nil {
		return ctx, b, err
	}
	b, err = h.openLog() // the current one: an Attach may have come first
	if err != nil {
		h.saving.release()
	}
	return ctx, b, err
}

// takeLog takes the slot for the log, and returns the ctx for the Store.
func (s *slots) takeLog(ctx context.Context) (context.Context, error) {
	ctx, err := s.saving.enter(ctx)
	switch {
	case err != nil:
		return ctx, err
	case ctx.Err() != nil:
		return ctx, errorf("nothing was done: %w", causeOf(ctx))
	}
	return s.saving.mark(ctx), s.saving.take(ctx, nil, "stopped waiting for another Save, Reload, Attach or Prune")
}

// write writes a record of the changes or, if full is set, of the whole state. It prunes the
// log before that, so that the record has the right size.Before although another History
// has pruned the log after its last record, and after it.
func (h *History) write(ctx context.Context, full bool) error {
	pruned := h.pruneAbove(ctx)
	for isOlder := true; isOlder; {
		var b logbook
		var d *draft
		h.locked(func() { b, d = h.recorder.book(), h.recorder.draft(h.pictureLocked(), full) })
		o := b.write(ctx, d)
		h.wrote(o)
		if o.err != nil {
			return o.err
		}
		isOlder = o.isOlder
	}
	if pruned {
		h.pruneAbove(ctx)
	}
	return nil
}

// pruneAbove removes the records before the newest full one if the log is longer than
// Options.PruneAbove. It reports whether that succeeded, if it was due.
func (h *History) pruneAbove(ctx context.Context) bool {
	b, _ := h.openLog()
	if b.size.Before == 0 || !b.exceeds(h.opts.PruneAbove) {
		return true
	}
	err := h.prune(ctx, b, b.first(), b.size.Before)
	if err != nil {
		h.warn("convo: old records not removed", "key", b.key, "cause", err)
	}
	return err == nil
}

func (h *History) wrote(o outcome) { h.locked(func() { h.recorder.wrote(o) }) }

// write writes a draft after the record last saved, unless one of the drafts in doubt is
// there.
func (b *logbook) write(ctx context.Context, d *draft) outcome {
	if len(b.drafts) >= doubtful {
		if found, _, err := b.find(ctx, b.drafts); found != nil || err != nil {
			return outcome{stored: found, isOlder: true, err: err}
		}
	}
	rec, err := b.record(d)
	switch {
	case err != nil:
		return outcome{err: err}
	case rec == nil:
		return outcome{settled: d}
	}
	err = appendTo(ctx, b.store, *rec)
	conflict, ok := errors.AsType[*ConflictError](err)
	switch {
	case err == nil:
		return outcome{stored: d}
	case !ok:
		return outcome{doubted: d, err: err}
	}
	found, isNewest, err := b.find(ctx, append(slices.Clip(b.drafts), d))
	if err == nil && !isNewest {
		err = conflict
	}
	return outcome{stored: found, isOlder: found != d, err: err}
}

// appendTo calls Append of the Store and turns a panic into an error.
func appendTo(ctx context.Context, s Store, r Record) (err error) {
	defer catch(&err, "Store.Append")
	return wording.WithBothEnds(ctx, s.Append(ctx, r))
}

// record returns the record of a draft, or nil if it has no changes and no other draft is
// in doubt.
func (b *logbook) record(d *draft) (*Record, error) {
	d.name = cmp.Or(b.name, links.NewID())
	data, changed, err := b.data(d)
	if err != nil || !changed && len(b.drafts) == 0 {
		return nil, err
	}
	now := time.Now().UTC().Round(0)
	d.bytes = len(data)
	d.record = Record{
		LogInfo: LogInfo{
			Key: b.key, Title: d.picture.view.meta.title, Seq: b.seq + 1, Created: b.created, Updated: now,
			Entries: d.picture.view.len(), Tokens: d.picture.estimated,
		},
		ID: links.NewID(), Prev: b.id, Full: d.full, Format: recordFormat, Upto: d.picture.last,
	}
	if b.created.IsZero() {
		d.record.Created = now
	}
	rec := d.record
	rec.Data = data
	return &rec, rec.Check()
}

// data returns the Data of a draft, and reports whether it has changes. It makes the
// draft full if Open would otherwise read more than three times as much as that, or many
// short records.
func (b *logbook) data(d *draft) (data []byte, changed bool, err error) {
	if d.full {
		data, err = b.full(d)
		return data, true, err
	}
	patch := difference(b.saved, d.picture)
	patch.keep(d)
	changed = patch.scalars != b.saved.scalars || !patch.isEmpty()
	patch.before = b.size.Before
	data, err = patch.encode(inRecord)
	if err != nil || !changed {
		return data, changed, err
	}
	may, must := d.size.MayBeFull(len(data), d.picture.view.raw())
	if !may {
		return data, true, nil
	}
	full, err := b.full(d)
	d.full = must || d.size.IsTooMuch(len(data), len(full))
	if err != nil || d.full {
		return full, true, err
	}
	return data, true, nil
}

// full returns the Data of a draft as a full record, and measures it.
func (b *logbook) full(d *draft) ([]byte, error) {
	r := difference(noPicture, d.picture)
	r.keep(d)
	r.log, r.recent, r.before = d.name, b.newest(), b.size.Bytes()
	data, err := r.encode(inRecord)
	if len(d.past)+len(d.notes) == 0 { // otherwise much of it is not the view
		d.size.Measure(len(data), d.picture.view.raw())
	}
	return data, err
}

// find returns the one of the drafts that the Store has, or nil if it has none, and
// reports whether that is also the newest record.
func (b *logbook) find(ctx context.Context, drafts []*draft) (found *draft, isNewest bool, err error) {
	n := 0
	for rec, err := range records(ctx, b.store, b.key, b.seq+1) {
		if err != nil {
			return nil, false, err
		}
		n++
		if n > 1 {
			break
		}
		if found = draftIn(drafts, rec.ID); found != nil {
			isNewest = true
		} else if rec.Full && rec.Seq > b.seq+1 && rec.Format <= recordFormat { // the records in between were pruned
			in, err := decode(rec.Data, inRecord)
			if err != nil {
				return nil, false, damageIn(b.key, 0, err)
			}
			found = draftIn(drafts, in.recent...)
		}
	}
	return found, isNewest && n == 1, nil
}

// draftIn returns the draft with one of the IDs, or nil if there is none.
func draftIn(drafts []*draft, ids ...string) *draft {
	i := slices.IndexFunc(drafts, func(d *draft) bool { return slices.Contains(ids, d.record.ID) })
	if i < 0 {
		return nil
	}
	return drafts[i]
}

// Prune removes records that were saved before a time and that Open does not need.
// [History.Archive] no longer yields their contents. With the zero time.Time, it first
// saves everything in a full record, and then removes all others. That record includes
// entries that were appended and have left the view since the last Save; to remove them
// as well, call Save before Prune.
//
// Prune does not erase data from the disk: free blocks, journals of a database and
// backups may still hold what it removed. If the [Store] is not a [Pruner], the error
// matches [errors.ErrUnsupported]. Other errors are those of [History.Save] and of the
// Store.
func (h *History) Prune(ctx context.Context, before time.Time) error {
	ctx, b, err := h.takeOpenLog(ctx)
	if err != nil {
		return err
	}
	defer h.saving.release()
	if _, err := prunerOf(b.store); err != nil {
		return err
	}
	if before.IsZero() {
		if err := h.write(ctx, true); err != nil {
			return err
		}
		b, _ = h.openLog()
		return h.prune(ctx, b, b.seq, b.size.Before)
	}
	keep, freed, err := b.neededAt(ctx, before)
	if err != nil || keep == 0 {
		return err
	}
	return h.prune(ctx, b, keep, freed)
}

// neededAt returns the Seq of the oldest record that Open needs or that was saved at a time
// or later, or 0 if these are all of them. The records before it have freed bytes.
func (b *logbook) neededAt(ctx context.Context, at time.Time) (keep uint64, freed int64, err error) {
	sum := int64(0)
	for rec, err := range records(ctx, b.store, b.key, 1) {
		if _, damaged := errors.AsType[*DamageError](err); damaged {
			continue
		}
		switch {
		case err != nil:
			return 0, 0, err
		case rec.Full && sum > 0:
			keep, freed = rec.Seq, sum
		}
		sum += int64(len(rec.Data)) + links.AroundData
		if !rec.Updated.Before(at) {
			break
		}
	}
	return keep, freed, nil
}

// prune removes the records of h that are older than before, which have freed bytes.
func (h *History) prune(ctx context.Context, b logbook, before uint64, freed int64) error {
	p, err := prunerOf(b.store)
	if err == nil {
		err = prune(ctx, p, b.key, before)
	}
	if err == nil {
		h.wrote(outcome{pruned: before, freed: freed})
	}
	return err
}

// prunerOf returns s as a Pruner, or an error if it is not one.
func prunerOf(s Store) (Pruner, error) {
	p, ok := s.(Pruner)
	if !ok {
		return nil, fmt.Errorf("convo: the Store %T cannot remove records: %w", s, errors.ErrUnsupported)
	}
	return p, nil
}

// prune calls Prune of the Store with a full record that was there. If it is missing
// and the records before it are not, the log is a different one. A panic becomes an
// error.
func prune(ctx context.Context, p Pruner, key string, before uint64) (err error) {
	defer catch(&err, "Store.Prune")
	err = wording.WithBothEnds(ctx, p.Prune(ctx, key, before))
	if _, ok := errors.AsType[*ValueError](err); ok {
		text := fmt.Sprintf("prune %q: the log was deleted, and another was begun; Open that", key)
		return worded(text, &ConflictError{Key: key, Want: before})
	}
	return err
}
