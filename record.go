package convo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// recordFormat is the Format of the records that this package writes, and the highest
// Format that it reads.
const recordFormat = 1

// noPicture is the empty picture that the first record is compared with.
var noPicture = &picture{view: new(Snapshot)}

// learn sets the changes of the calibrations.
func (r *stateJSON) learn(from, to *picture) {
	a, b := from.view.known(), to.view.known()
	same := !from.recounted && slices.EqualFunc(a.learned, b.learned, func(c, d *calibration) bool { return c.sameAs(d) })
	if !same {
		r.learned = new(slices.Clone(b.learned))
	}
	if same && a.model == b.model && a.reported == b.reported && from.rewritten == to.rewritten && from.seenRaw() == to.seenRaw() && a.cal.sameReport(b.cal) || b.cal == nil {
		return
	}
	if !b.cal.sameAs(b.learned.of(b.model)) {
		r.cal = b.cal
	}
	r.seen = &seenJSON{heard: b.reported, raw: to.seenRaw()}
	at := b.cal.at
	r.seen.summary = to.view.summary != nil && at.summary == to.view.summary
	r.seen.tools = to.view.tools != nil && at.tools == to.view.tools
	switch {
	case to.rewritten > at.version: // more than the end of the list has changed since
		var ids []ID
		add := func(e *entry) { ids = append(ids, e.id) }
		eachShared(to.view.sys, at.sys, add)
		eachShared(to.view.list, at.list, add)
		slices.Sort(ids)
		r.seen.ids = ranges.Of[Range](ids)
	case at.last > 0: // all entries up to at.last
		r.seen.ids = []Range{{1, at.last}}
	}
}

// seenRaw returns the raw tokens of the saved part of the measured view.
func (p *picture) seenRaw() int64 {
	s := p.view.withoutEphemeral()
	return s.measured
}

// sameAs reports whether two calibrations have the same figures.
func (c *calibration) sameAs(d *calibration) bool {
	if c == nil || d == nil {
		return c == d
	}
	return c == d || c.Model == d.Model && c.Calibration == d.Calibration
}

// sameReport reports whether two calibrations also come from the same usage report.
func (c *calibration) sameReport(d *calibration) bool {
	return c.sameAs(d) && (c == d || c.at != nil && d.at != nil && c.at.version == d.at.version)
}

// sameEntries reports whether two lists hold the same entries.
func sameEntries(a, b []*entry) bool { return len(a) == len(b) && samePart(a, b) == len(a) }

// compare sets the entries that left the view and those that are new or changed.
func (r *stateJSON) compare(was, is *picture) {
	from, to := was.view.list, is.view.list
	n := samePart(from, to)
	from, to = from[n:], to[n:]
	for _, e := range to {
		if i, ok := index(from, e.id); !ok || from[i] != e {
			r.entries = append(r.entries, e)
		}
	}
	joined := false // the entry before is in the last range of r.out
	for _, e := range from {
		_, stays := index(to, e.id)
		switch {
		case stays:
		case joined:
			r.out[len(r.out)-1].Last = e.id
		default:
			r.out = append(r.out, Range{e.id, e.id})
		}
		joined = !stays
	}
}

// keep adds what a record has besides the state: what from holds for the archive, and the counter
// of the tokens of entries.
func (r *stateJSON) keep(from *draft) {
	r.undone, r.notes = from.undone, from.notes
	if len(r.entries) > 0 {
		r.counter = from.picture.view.id.name()
	}
	for _, s := range from.summaries {
		r.summaries = append(r.summaries, s.sum)
	}
	for _, id := range slices.Sorted(maps.Keys(from.past)) {
		d := from.past[id]
		if d.original == nil && from.picture.view.find(id) == d.was {
			continue // an edit was undone
		}
		e := *d.was
		if o := d.original; o != nil {
			e.msg = o.msg
			own := e.own()
			own.missing = o.missing
			e.setOwn(own)
		}
		r.past = append(r.past, &e)
	}
}

// decode reads the Data of a record. An error is a *SnapshotError, or matches ErrVersion.
func (rec *Record) decode() (*stateJSON, error) {
	if rec.Format < 1 || rec.Format > recordFormat {
		return nil, fmt.Errorf("%w: record %d of %q has format %d, and this version reads up to %d; use the release of convo that wrote it, or a later one", ErrVersion, rec.Seq, rec.Key, rec.Format, recordFormat)
	}
	in, err := decode(rec.Data, inRecord)
	if err == nil && in.last != rec.Upto {
		err = &SnapshotError{Index: -1, Err: fmt.Errorf("last is %d, and the record says %d", in.last, rec.Upto)}
	}
	return in, err
}

// A reading is the combined content of the records of a log, read in order from a full
// record on.
type reading struct {
	logEnd           // recent also has what the full record names
	key    string    // of the log
	state  stateJSON // all of them as one record

	counted int64 // raw tokens of the view as counted by the History made from it
	mended  bool  // the content of that History differs from the records
}

// next returns r with another record, or nil if that is not full and does not follow the newest
// of r, which may be nil. An error is a *SnapshotError, or matches ErrVersion.
func (r *reading) next(rec *Record) (*reading, error) {
	if !rec.Full && (r == nil || rec.Prev != r.id) {
		return nil, nil
	}
	next, err := rec.decode()
	if err != nil {
		return nil, err
	}
	if rec.Full {
		r = &reading{key: rec.Key, logEnd: logEnd{name: next.log, recent: next.recent}}
	}
	if err := r.state.apply(next); err != nil {
		return nil, asSnapshotError(err)
	}
	r.add(rec, len(rec.Data), r.state.summary.newestKept())
	return r, nil
}

// apply merges next into r.
func (r *stateJSON) apply(next *stateJSON) error {
	if next.last < r.last {
		return fmt.Errorf("last is %d, want at least %d", next.last, r.last)
	}
	if next.model != r.model || next.learned != nil || next.cal != nil || next.seen != nil {
		r.cal, r.seen = next.cal, next.seen
	}
	r.scalars = next.scalars
	r.key, r.log = cmp.Or(next.key, r.key), cmp.Or(next.log, r.log)
	r.lost, r.before = next.lost, next.before
	allFields.Update(r, next)
	if len(next.out) > 0 {
		left := ranges.In(next.out)
		r.entries = slices.DeleteFunc(r.entries, func(e *entry) bool { return left(e.id) })
	}
	if list := next.entries; len(list) > 0 {
		if len(r.entries) == 0 {
			r.counter = next.counter
		} else if r.counter != next.counter {
			r.counter = ""
		}
		from, _ := index(r.entries, list[0].id)
		r.entries = append(r.entries[:from], merge(list, r.entries[from:])...)
	}
	if len(next.pins)+len(next.unpin) > 0 {
		r.pins = withPin(slices.Clip(withoutPin(r.pins, next.unpin...)), next.pins...)
	}
	return nil
}

// knowledgeOf returns the knowledge from usage reports for s, a state with the entries
// of r. counted is the raw tokens of the view of r as s counts. If mended is true, entries
// of s may differ from those of r. If the log was counted in another way, the figures are
// converted and recounted is true.
func (r *stateJSON) knowledgeOf(s *state, counted int64, mended bool) (k *knowledge, recounted bool) {
	k = &knowledge{model: r.model, reported: r.seen != nil && r.seen.heard}
	for _, c := range orNil(r.learned) {
		k.learned = append(k.learned, &calibration{Model: c.Model, Calibration: c.Calibration})
	}
	factor := 1.0
	if was := r.counted; was > 0 {
		factor = float64(counted) / float64(was)
	}
	was, is := int64(0), int64(0) // raw tokens of the measured view, in the log and in s
	if r.seen != nil {
		k.cal = k.learned.of(k.model)
		if r.cal != nil {
			k.cal = &calibration{Model: k.model, Calibration: r.cal.Calibration}
		}
	}
	if k.cal != nil {
		k.cal.at = r.seen.reported(s)
		if r.seen.raw > 0 && k.cal.at.raw > 0 && !mended {
			was, is = r.seen.raw, k.cal.at.raw
		}
	}
	if recounted = factor != 1 || was != is; !recounted {
		return k, false
	}
	for _, c := range k.learned {
		if c != k.cal {
			c.Recount(factor, 0, 0)
		}
	}
	if k.cal != nil {
		k.cal.Recount(factor, was, is)
	}
	return k, true
}

// reported returns the part of the measured view that s still shows.
func (seen *seenJSON) reported(s *state) *reported {
	at := &reported{
		sys: shown{entries: entriesIn(s.sys, seen.ids)}, list: shown{entries: entriesIn(s.list, seen.ids)},
		tools: &toolset{}, summary: &placedSummary{}, // not those of s
	}
	if seen.summary && s.summary != nil {
		at.summary = s.summary
	}
	if seen.tools {
		at.tools = s.tools
	}
	at.raw = at.tools.tokens() + rawOf(at.sys.entries) + rawOf(at.list.entries) + at.summary.tokens()
	if n := at.list.len(); n > 0 {
		at.last = at.list.at(n - 1).id
	}
	return at
}

// entriesIn returns the entries whose IDs are in one of the ranges. The ranges ascend.
func entriesIn(list []*entry, ids []Range) []*entry {
	in := ranges.In(ids)
	return slices.Clip(slices.DeleteFunc(append([]*entry{}, list...), func(e *entry) bool { return !in(e.id) }))
}

// isEmpty reports whether r changes nothing but the scalars.
func (r *stateJSON) isEmpty() bool {
	isEmpty := true
	allFields.Use(r, func(_ int, f *strictjson.Field) {
		v, isChange := f.Value.(strictjson.Value)
		isEmpty = isEmpty && (!isChange || v.IsZero())
	})
	return isEmpty
}
