package convo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// recordFormat is the Format of the records that this package writes, and the
// highest that it reads.
const recordFormat = 1

// A recordJSON is what the Data of a record says: how the state differs from that of
// the record before, or, in a full one, from the state of an empty History. What is
// nil or zero did not change.
type recordJSON struct {
	key         string // of the conversation, as in a snapshot
	log         string // names the log; in full records
	title, meta *string
	last        ID
	turn        *int
	touched     *int
	appended    *int64
	ever        *int64
	edited      time.Time
	failures    *int
	failedAt    *int64
	excused     *bool

	// The model in force, and what usage reports have taught. If seen is there, a
	// calibration is in force: cal, or if that is absent the learned one of the
	// model. If none of learned, cal and seen is there, and the model is the
	// same, the one in force did not change either.
	model   *string
	limits  *Limits
	learned *learned
	cal     *calibration
	seen    *seenJSON
	raw     *int64 // raw tokens of the view after this record; learned, cal and seen are counted alike
	named   *bound

	toolsSet *bool // History.toolsSet

	summary *Summary  // without a text: there is none any more
	system  *[]*entry // all of them
	out     []Range   // entries that have left
	in      []*entry  // entries that are new or changed, with their tokens if counter is there
	counter string    // names what counted the tokens of in; see counter.name
	pin     []ID
	unpin   []ID
	queue   *[]*queued // all of it

	// For the archive.
	undone    []Range
	past      []*entry
	summaries []Summary
	notes     []string
	lost      bool // Salvage has made the record in the place of one whose state is lost

	recent []string // IDs of the records before this one, the newest last; in full records

	tokens []int64 // of in, while the record is read
}

// A seenJSON says what the calibration in force was measured for, as far as it is
// still in the view.
type seenJSON struct {
	ids     []Range
	summary bool  // whether the summary belongs to it
	heard   bool  // whether that was in this model's turn; see Estimate.Measured
	raw     int64 // its raw tokens, counted as recordJSON.raw is
}

// encodeRecord returns the Data of a record.
func encodeRecord(r *recordJSON) ([]byte, error) {
	size := 1024 + 16*(len(r.pin)+len(r.unpin)) + 8*len(r.in)
	for _, list := range [][]*entry{orNil(r.system), r.in, r.past} {
		for _, e := range list {
			size += 96 + e.msg.jsonSize()
		}
	}
	var err error
	entry := func(dst []byte, e *entry) []byte {
		dst, failed := appendEntry(dst, e)
		err = cmp.Or(err, failed)
		return dst
	}
	ids := func(dst []byte, id ID) []byte { return strconv.AppendInt(dst, int64(id), 10) }

	dst := append(make([]byte, 0, size), '{')
	dst = strictjson.Text(dst, "key", r.key)
	dst = strictjson.Text(dst, "log", r.log)
	dst = appendChangedText(dst, "title", r.title)
	dst = appendChangedText(dst, "meta", r.meta)
	dst = strictjson.Int(dst, "last", r.last)
	dst = appendChangedInt(dst, "turn", r.turn)
	dst = appendChangedInt(dst, "touched", r.touched)
	dst = appendChangedInt(dst, "appended", r.appended)
	dst = appendChangedInt(dst, "ever", r.ever)
	dst = strictjson.Time(dst, "edited", r.edited)
	dst = appendChangedInt(dst, "failures", r.failures)
	dst = appendChangedInt(dst, "failed_at", r.failedAt)
	if r.excused != nil {
		dst = strconv.AppendBool(strictjson.Key(dst, "excused"), *r.excused)
	}
	dst = appendChangedText(dst, "model", r.model)
	if r.limits != nil {
		dst = appendLimits(strictjson.Key(dst, "limits"), r.limits)
	}
	if r.learned != nil {
		dst = appendArray(dst, "learned", *r.learned, appendCalibration)
	}
	if r.cal != nil {
		dst = appendCalibration(strictjson.Key(dst, "cal"), r.cal)
	}
	if s := r.seen; s != nil {
		dst = append(strictjson.Key(dst, "seen"), '{')
		dst = appendRanges(dst, "ids", s.ids)
		dst = strictjson.Bool(dst, "summary", s.summary)
		dst = strictjson.Bool(dst, "heard", s.heard)
		dst = append(strictjson.Int(dst, "raw", s.raw), '}')
	}
	dst = appendChangedInt(dst, "raw", r.raw)
	if n := r.named; n != nil {
		dst = append(strictjson.Key(dst, "named"), '{')
		dst = strictjson.Int(dst, "limit", n.limit)
		dst = append(strictjson.Int(dst, "of", n.of), '}')
	}
	if r.toolsSet != nil {
		dst = strconv.AppendBool(strictjson.Key(dst, "tools_set"), *r.toolsSet)
	}
	if r.summary != nil {
		dst = appendSummary(strictjson.Key(dst, "summary"), r.summary)
	}
	if r.system != nil {
		dst = appendArray(dst, "system", *r.system, entry)
	}
	dst = appendRanges(dst, "out", r.out)
	dst = appendList(dst, "in", r.in, entry)
	if r.counter != "" {
		dst = strictjson.Text(dst, "counter", r.counter)
		dst = appendArray(dst, "tokens", r.in, appendTokens)
	}
	dst = appendList(dst, "pin", r.pin, ids)
	dst = appendList(dst, "unpin", r.unpin, ids)
	if r.queue != nil {
		dst = appendArray(dst, "queue", *r.queue, func(dst []byte, q *queued) []byte {
			dst, failed := appendMessage(dst, &q.msg)
			err = cmp.Or(err, failed)
			return dst
		})
	}
	dst = appendRanges(dst, "undone", r.undone)
	dst = appendList(dst, "past", r.past, entry)
	dst = appendList(dst, "summaries", r.summaries, func(dst []byte, s Summary) []byte { return appendSummary(dst, &s) })
	dst = appendList(dst, "notes", r.notes, strictjson.AppendString)
	dst = strictjson.Bool(dst, "lost", r.lost)
	dst = appendList(dst, "recent", r.recent, strictjson.AppendString)
	return append(dst, '}'), err
}

func appendTokens(dst []byte, e *entry) []byte { return strconv.AppendInt(dst, e.tokens, 10) }

// appendChangedText appends the member of an object with a string, or nothing if s is
// nil.
func appendChangedText(dst []byte, key string, s *string) []byte {
	if s == nil {
		return dst
	}
	return strictjson.AppendString(strictjson.Key(dst, key), *s)
}

// appendChangedInt appends the member of an object with an integer, or nothing if n is
// nil.
func appendChangedInt[N ~int | ~int64](dst []byte, key string, n *N) []byte {
	if n == nil {
		return dst
	}
	return strconv.AppendInt(strictjson.Key(dst, key), int64(*n), 10)
}

// appendLimits appends the JSON of limits with their defaults. A reserve of -1 stands
// for none.
func appendLimits(dst []byte, l *Limits) []byte {
	dst = strictjson.Int(append(dst, '{'), "window", l.Window)
	dst = strictjson.Int(dst, "reserve", cmp.Or(l.Reserve, -1))
	dst = strictjson.Int(dst, "tools", l.Tools)
	dst = strictjson.Int(dst, "high", l.High)
	dst = strictjson.Int(dst, "low", l.Low)
	dst = strictjson.Int(dst, "soft", l.Soft)
	dst = strictjson.Int(dst, "min_free", l.MinFree)
	return append(strictjson.Bool(dst, "assumed", l.Assumed), '}')
}

// decodeRecord reads the Data of a record. An error is a *SnapshotError.
func decodeRecord(data []byte) (*recordJSON, error) {
	r := strictjson.NewReader(data)
	in := new(recordJSON)
	if r.Null() {
		r.Fail(errors.New("the record is null"))
	}
	for key := range r.Object {
		if !r.Null() {
			in.read(r, key)
		}
	}
	in.setTokens(r)
	if r.End(); r.Err() != nil {
		return nil, &SnapshotError{Index: -1, Err: r.Err()}
	}
	return in, nil
}

// setTokens sets the tokens of the entries in in.in to those that were read.
func (in *recordJSON) setTokens(r *strictjson.Reader) {
	tokens, sum := in.tokens, int64(0)
	in.tokens = nil
	if in.counter == "" && tokens == nil {
		return
	}
	if in.counter == "" || len(tokens) != len(in.in) {
		r.Fail(fmt.Errorf("%d tokens by counter %.40q for %d entries", len(tokens), in.counter, len(in.in)))
		return
	}
	for i, e := range in.in {
		if e.tokens = tokens[i]; e.tokens < 0 || e.tokens > maxTotal-sum {
			r.Fail(fmt.Errorf("entry %d has %d tokens", e.id, e.tokens))
			return
		}
		sum += e.tokens
	}
}

// read reads what stands behind a key.
func (in *recordJSON) read(r *strictjson.Reader, key []byte) {
	switch string(key) {
	case "key":
		in.key = r.Text()
	case "log":
		in.log = r.Text()
	case "title":
		in.title = new(r.Text())
	case "meta":
		in.meta = new(r.Text())
	case "last":
		in.last = ID(r.Int64())
	case "turn":
		in.turn = new(r.Int())
	case "touched":
		in.touched = new(r.Int())
	case "appended":
		in.appended = new(r.Int64())
	case "ever":
		in.ever = new(r.Int64())
	case "edited":
		in.edited = readTime(r)
	case "failures":
		in.failures = new(r.Int())
	case "failed_at":
		in.failedAt = new(r.Int64())
	case "excused":
		in.excused = new(r.Bool())
	case "model":
		in.model = new(r.Text())
	case "limits":
		in.limits = new(readLimits(r))
	case "learned":
		in.learned = new(learned(readList(r, readCalibration)))
	case "cal":
		in.cal = readCalibration(r)
	case "seen":
		in.seen = new(readSeen(r))
	case "raw":
		in.raw = new(r.Int64())
	case "tools_set":
		in.toolsSet = new(r.Bool())
	case "named":
		in.named = new(readBound(r))
	case "summary":
		in.summary = new(readSummary(r, snapshotVersion))
	case "system":
		in.system = new(readList(r, readEntry))
	case "out":
		in.out = readRanges(r)
	case "in":
		in.in = readList(r, readEntry)
	case "counter":
		in.counter = r.Text()
	case "tokens":
		in.tokens = readList(r, (*strictjson.Reader).Int64)
	case "pin":
		in.pin = readList(r, readID)
	case "unpin":
		in.unpin = readList(r, readID)
	case "queue":
		in.queue = new(readList(r, readQueued))
	case "undone":
		in.undone = readRanges(r)
	case "past":
		in.past = readList(r, readEntry)
	case "summaries":
		in.summaries = readList(r, func(r *strictjson.Reader) Summary { return readSummary(r, snapshotVersion) })
	case "notes":
		in.notes = readList(r, (*strictjson.Reader).Text)
	case "lost":
		in.lost = r.Bool()
	case "recent":
		in.recent = readList(r, (*strictjson.Reader).Text)
	default:
		r.Unknown(key)
	}
}

func readLimits(r *strictjson.Reader) (l Limits) {
	for key := range r.Object {
		switch string(key) {
		case "window":
			l.Window = r.Int()
		case "reserve":
			l.Reserve = r.Int()
		case "tools":
			l.Tools = r.Int()
		case "high":
			l.High = r.Int()
		case "low":
			l.Low = r.Int()
		case "soft":
			l.Soft = r.Int()
		case "min_free":
			l.MinFree = r.Int()
		case "assumed":
			l.Assumed = r.Bool()
		default:
			r.Unknown(key)
		}
	}
	return l
}

func readBound(r *strictjson.Reader) (b bound) {
	for key := range r.Object {
		switch string(key) {
		case "limit":
			b.limit = r.Int()
		case "of":
			b.of = r.Int()
		default:
			r.Unknown(key)
		}
	}
	return b
}

func readSeen(r *strictjson.Reader) (s seenJSON) {
	for key := range r.Object {
		switch string(key) {
		case "ids":
			s.ids = readRanges(r)
		case "summary":
			s.summary = r.Bool()
		case "heard":
			s.heard = r.Bool()
		case "raw":
			s.raw = r.Int64()
		default:
			r.Unknown(key)
		}
	}
	return s
}

// noPicture is what the first record differs from.
var noPicture = &picture{Snapshot: new(Snapshot)}

// difference returns how to differs from from.
func difference(from, to *picture) *recordJSON {
	r := new(recordJSON)
	if from.key() != to.key() {
		r.key = to.key()
	}
	if from.last != to.last {
		r.last = to.last
	}
	r.title, r.meta = changed(from.meta.title, to.meta.title), changed(from.meta.data, to.meta.data)
	r.turn = changed(from.turn, to.turn)
	r.touched = changed(from.touched, to.touched)
	r.appended = changed(from.appended, to.appended)
	r.ever = changed(from.ever, to.ever)
	if from.edited != to.edited {
		r.edited = timeOf(to.edited).UTC()
	}
	r.failures = changed(from.breaker.failures, to.breaker.failures)
	r.failedAt = changed(from.breaker.appended, to.breaker.appended)
	r.excused = changed(from.breaker.excused, to.breaker.excused)
	r.learn(from, to)
	r.raw, r.named = changed(from.counted, to.counted), changed(from.named, to.named)
	r.toolsSet = changed(from.toolsSet, to.toolsSet)
	if from.summary != to.summary {
		r.summary = new(to.summary.saved())
	}
	if !sameEntries(from.sys, to.sys) {
		r.system = new(to.sys)
	}
	if r.compare(from.list, to.list); len(r.in) > 0 {
		r.counter = to.id.name()
	}
	if !sameIDs(from.pins, to.pins) {
		r.pin, r.unpin = added(from.pins, to.pins), added(to.pins, from.pins)
	}
	if !sameQueue(from.queue, to.queue) {
		r.queue = new(to.queue)
	}
	return r
}

// changed returns a pointer to the new value, or nil if it is the old one.
func changed[T comparable](from, to T) *T {
	if from == to {
		return nil
	}
	return &to
}

// learn sets what changed of the model and of what was learned.
func (r *recordJSON) learn(from, to *picture) {
	a, b := from.known(), to.known()
	if to.chosen && (!from.chosen || from.limits != to.limits) {
		r.limits = new(to.limits)
	}
	r.model = changed(a.model, b.model)
	same := !from.recounted && slices.EqualFunc(a.learned, b.learned, func(c, d *calibration) bool { return c.sameAs(d) })
	if !same {
		r.learned = new(slices.Clone(b.learned))
	}
	if same && r.model == nil && from.heard == to.heard && from.rewritten == to.rewritten && from.seenRaw() == to.seenRaw() && a.cal.sameReport(b.cal) || b.cal == nil {
		return
	}
	if !b.cal.sameAs(b.learned.of(b.model)) {
		r.cal = b.cal
	}
	r.seen = &seenJSON{heard: to.heard, raw: to.seenRaw()}
	at := b.cal.at
	r.seen.summary = to.summary != nil && at.summary == to.summary
	switch {
	case to.rewritten > at.version: // more than the end of the list has changed since
		ids := append(shared(to.sys, at.sys), shared(to.list, at.list)...)
		slices.Sort(ids)
		r.seen.ids = rangesOf(ids)
	case at.last > 0: // all entries with these IDs
		r.seen.ids = []Range{{1, at.last}}
	}
}

// seenRaw returns the raw tokens of what is saved of the view that was measured.
func (p *picture) seenRaw() int64 {
	s := p.withoutEphemeral()
	return s.measured
}

// sameAs reports whether two calibrations have the same figures.
func (c *calibration) sameAs(d *calibration) bool {
	if c == nil || d == nil {
		return c == d
	}
	return c == d || c.Model == d.Model && c.Calibration == d.Calibration
}

// sameReport reports whether they also rest on the same report.
func (c *calibration) sameReport(d *calibration) bool {
	return c.sameAs(d) && (c == d || c.at != nil && d.at != nil && c.at.version == d.at.version)
}

// shared returns the IDs of the entries that are both in a list and in an older one.
func shared(list []*entry, old shown) (ids []ID) {
	eachShared(list, old, func(e *entry) { ids = append(ids, e.id) })
	return ids
}

// saved returns what a record holds of s, which may be nil.
func (s *placedSummary) saved() Summary {
	if s == nil {
		return Summary{}
	}
	out := s.sum
	out.Tokens = 0
	return out
}

// sameEntries reports whether two lists hold the same entries.
func sameEntries(a, b []*entry) bool { return len(a) == len(b) && samePart(a, b) == len(a) }

// compare sets what left a list, and what is new or changed in it.
func (r *recordJSON) compare(from, to []*entry) {
	n := samePart(from, to)
	from, to = from[n:], to[n:]
	joined := false // the last range of r.out reaches up to here
	for len(from) > 0 || len(to) > 0 {
		switch {
		case len(to) == 0 || len(from) > 0 && from[0].id < to[0].id:
			id := from[0].id
			if joined {
				r.out[len(r.out)-1].Last = id
			} else {
				r.out, joined = append(r.out, Range{id, id}), true
			}
			from = from[1:]
		case len(from) == 0 || to[0].id < from[0].id:
			r.in = append(r.in, to[0])
			to = to[1:]
		default:
			if from[0] != to[0] {
				r.in = append(r.in, to[0])
			}
			from, to, joined = from[1:], to[1:], false
		}
	}
}

func sameIDs(a, b []ID) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// added returns the IDs that to has and from has not. Both ascend.
func added(from, to []ID) (ids []ID) {
	for _, id := range to {
		for len(from) > 0 && from[0] < id {
			from = from[1:]
		}
		if len(from) == 0 || from[0] != id {
			ids = append(ids, id)
		}
	}
	return ids
}

// keep adds what k holds for the archive to a record of the state now.
func (r *recordJSON) keep(k *keepsake, now *state) {
	r.undone, r.notes = k.undone, k.notes
	for _, s := range k.summaries {
		r.summaries = append(r.summaries, s.saved())
	}
	for _, id := range slices.Sorted(maps.Keys(k.past)) {
		d := k.past[id]
		if d.original == nil && now.find(id) == d.was {
			continue // an edit was undone
		}
		e := *d.was
		if o := d.original; o != nil {
			e.msg, e.missing = o.msg, o.missing
		}
		r.past = append(r.past, &e)
	}
}

// A reading is what the records of a log hold together, read in order from a full
// one on.
type reading struct {
	newest Record   // without Data
	ids    []string // of the records before the full one that it names, and of all behind it
	size   int64    // bytes of Data of all
	count  int
	state  recordJSON // all of them as one record

	counted int64 // raw tokens of the view as the History counts that was made of it
	mended  bool  // that History holds something else than the records
}

// add reads another record. An error is a *SnapshotError, or matches ErrVersion.
func (r *reading) add(rec *Record) error {
	if rec.Format < 1 || rec.Format > recordFormat {
		return fmt.Errorf("%w: record %d of %q has format %d, and this version reads up to %d", ErrVersion, rec.Seq, rec.Key, rec.Format, recordFormat)
	}
	next, err := decodeRecord(rec.Data)
	if err != nil {
		return err
	}
	if rec.Full {
		*r = reading{ids: next.recent}
	}
	if err := r.state.apply(next); err != nil {
		return &SnapshotError{Index: -1, Err: err}
	}
	if r.state.last != rec.Upto {
		return &SnapshotError{Index: -1, Err: fmt.Errorf("last is %d, and the record says %d", r.state.last, rec.Upto)}
	}
	r.size += int64(len(rec.Data))
	r.count++
	r.ids = append(r.ids, rec.ID)
	r.newest = *rec
	r.newest.Data = nil
	return nil
}

// apply makes r what r and next hold together.
func (r *recordJSON) apply(next *recordJSON) error {
	if next.last != 0 {
		if next.last < r.last || next.last > maxID {
			return fmt.Errorf("last is %d, want %d to %d", next.last, r.last, int64(maxID))
		}
		r.last = next.last
	}
	r.key, r.log = cmp.Or(next.key, r.key), cmp.Or(next.log, r.log)
	r.lost = next.lost
	r.title, r.meta = cmp.Or(next.title, r.title), cmp.Or(next.meta, r.meta)
	r.turn, r.touched = cmp.Or(next.turn, r.turn), cmp.Or(next.touched, r.touched)
	r.appended, r.ever = cmp.Or(next.appended, r.appended), cmp.Or(next.ever, r.ever)
	if !next.edited.IsZero() {
		r.edited = next.edited
	}
	r.failures, r.failedAt, r.excused = cmp.Or(next.failures, r.failures), cmp.Or(next.failedAt, r.failedAt), cmp.Or(next.excused, r.excused)
	if next.model != nil || next.learned != nil || next.cal != nil || next.seen != nil {
		r.cal, r.seen = next.cal, next.seen
	}
	r.model, r.limits, r.learned = cmp.Or(next.model, r.model), cmp.Or(next.limits, r.limits), cmp.Or(next.learned, r.learned)
	r.raw, r.named, r.toolsSet = cmp.Or(next.raw, r.raw), cmp.Or(next.named, r.named), cmp.Or(next.toolsSet, r.toolsSet)
	r.summary, r.system, r.queue = cmp.Or(next.summary, r.summary), cmp.Or(next.system, r.system), cmp.Or(next.queue, r.queue)
	if err := r.leave(next.out); err != nil {
		return err
	}
	switch {
	case len(next.in) == 0:
	case len(r.in) == 0:
		r.counter = next.counter
	case r.counter != next.counter:
		r.counter = ""
	}
	if err := r.enter(next.in); err != nil {
		return err
	}
	if err := checkEntries(next.past, r.last); err != nil {
		return fmt.Errorf("past: %w", err)
	}
	for _, u := range next.undone {
		if u.First < 1 || u.Last < u.First {
			return fmt.Errorf("undone has %d to %d, want ranges of IDs", u.First, u.Last)
		}
	}
	if r.system != nil {
		if err := checkEntries(*r.system, r.last); err != nil {
			return fmt.Errorf("system: %w", err)
		}
	}
	return r.repin(next.pin, next.unpin)
}

// leave removes the entries in the ranges, which ascend.
func (r *recordJSON) leave(out []Range) error {
	if len(out) == 0 {
		return nil
	}
	for i, o := range out {
		if o.First < 1 || o.Last < o.First || i > 0 && o.First <= out[i-1].Last {
			return fmt.Errorf("out has %d to %d, want ascending ranges of IDs", o.First, o.Last)
		}
	}
	from, _ := index(r.in, out[0].First)
	kept := r.in[:from]
	for _, e := range r.in[from:] {
		for len(out) > 0 && out[0].Last < e.id {
			out = out[1:]
		}
		if len(out) == 0 || e.id < out[0].First {
			kept = append(kept, e)
		}
	}
	clear(r.in[len(kept):])
	r.in = kept
	return nil
}

// enter adds entries, or puts them in the place of those with the same IDs.
func (r *recordJSON) enter(in []*entry) error {
	if err := checkEntries(in, r.last); err != nil {
		return fmt.Errorf("in: %w", err)
	}
	if n := len(r.in); n == 0 || len(in) > 0 && in[0].id > r.in[n-1].id {
		r.in = append(r.in, in...)
		return nil
	}
	if len(in) == 0 {
		return nil
	}
	from, _ := index(r.in, in[0].id)
	old := slices.Clone(r.in[from:])
	r.in = r.in[:from]
	for len(old) > 0 || len(in) > 0 {
		switch {
		case len(in) == 0 || len(old) > 0 && old[0].id < in[0].id:
			r.in, old = append(r.in, old[0]), old[1:]
		case len(old) > 0 && old[0].id == in[0].id:
			old = old[1:]
		default:
			r.in, in = append(r.in, in[0]), in[1:]
		}
	}
	return nil
}

// checkEntries returns an error unless the IDs ascend up to last.
func checkEntries(list []*entry, last ID) error {
	prev := ID(0)
	for _, e := range list {
		if e.id <= prev || e.id > last {
			return fmt.Errorf("ID %d does not ascend from %d, or is above last, %d", e.id, prev, last)
		}
		prev = e.id
	}
	return nil
}

// repin changes the pins.
func (r *recordJSON) repin(pin, unpin []ID) error {
	if len(pin)+len(unpin) == 0 {
		return nil
	}
	if !slices.IsSorted(unpin) || !slices.IsSorted(pin) {
		return errors.New("pins do not ascend")
	}
	for _, id := range pin {
		if _, ok := index(r.in, id); !ok {
			return fmt.Errorf("pin of entry %d, which is not there", id)
		}
	}
	r.pin = withPin(slices.Clip(withoutPin(r.pin, unpin...)), pin...)
	return nil
}

// picture returns what the records hold together. If count is not set, the entries
// have no calls, and no tokens but those that the records name. An error is a *SnapshotError.
func (r *reading) picture(count bool) (*picture, error) {
	in := &r.state
	as := snapshotJSON{
		version: snapshotVersion, key: in.key, last: in.last, turn: orNil(in.turn), touched: orNil(in.touched), appended: orNil(in.appended),
		meta: meta{orNil(in.title), orNil(in.meta)}, knowledge: &knowledge{model: orNil(in.model), learned: orNil(in.learned)},
		pins: in.pin, system: orNil(in.system), entries: in.in, queue: orNil(in.queue),
		uncounted: !count,
	}
	if in.summary != nil && in.summary.Text != "" {
		as.summary = in.summary
	}
	fault := func(format string, args ...any) (*picture, error) {
		return nil, &SnapshotError{Index: -1, Err: fmt.Errorf(format, args...)}
	}
	s, err := as.state()
	if err != nil {
		return nil, err
	}
	p := &picture{
		Snapshot: &Snapshot{state: s}, ever: orNil(in.ever),
		breaker: breaker{failures: orNil(in.failures), appended: orNil(in.failedAt), excused: orNil(in.excused)},
	}
	switch {
	case p.ever < 0 || p.breaker.failures < 0 || p.breaker.appended < 0:
		return fault("ever, failures or failed_at is negative")
	case p.ever > maxTotal || p.breaker.appended > p.ever:
		return fault("ever or failed_at is too large")
	case in.cal != nil && in.seen == nil:
		return fault("it is not said what the calibration in force was measured for")
	}
	if !in.edited.IsZero() {
		p.edited = in.edited.UnixNano()
	}
	if in.limits != nil {
		limits, faults := in.limits.withDefaults()
		if len(faults) > 0 {
			return fault("%w", errors.Join(faults...))
		}
		p.limits, p.chosen = limits, true
	}
	if b := orNil(in.named); b.limit < 0 || int64(b.limit) > maxTotal || orNil(in.raw) < 0 || orNil(in.raw) > maxTotal {
		return fault("raw or the named limit is out of range")
	}
	p.named, p.counted, p.toolsSet = orNil(in.named), orNil(in.raw), orNil(in.toolsSet)
	p.heard = in.seen != nil && in.seen.heard
	counted := int64(0)
	if count {
		counted = p.raw()
	}
	p.knowledge, p.recounted = in.knowledgeOf(&p.state, counted, false)
	if p.heard && p.known().cal == nil {
		return fault("usage was reported for the model %.40q, and there is no calibration of it", p.known().model)
	}
	p.sumMeasured(true)
	p.loaded = loaded{key: r.newest.Key, log: in.log, seq: r.newest.Seq, id: r.newest.ID}
	return p, nil
}

// orNil returns what p points to, or the zero value if p is nil.
func orNil[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// knowledgeOf returns what usage reports have taught, for s, a state with the
// entries of r. counted is what the view of r weighs as s counts, 0 if that is not
// known; mended says that entries of s may hold something else. If the log was counted
// in another way, the figures are converted, and recounted is true.
func (r *recordJSON) knowledgeOf(s *state, counted int64, mended bool) (k *knowledge, recounted bool) {
	k = &knowledge{model: s.known().model}
	for _, c := range orNil(r.learned) {
		k.learned = append(k.learned, &calibration{Model: c.Model, Calibration: c.Calibration})
	}
	factor := 1.0
	if was := orNil(r.raw); was > 0 && counted > 0 {
		factor = float64(counted) / float64(was)
	}
	was, is := int64(0), int64(0) // raw tokens of what was measured, in the log and here
	if r.seen != nil {
		k.cal = k.learned.of(k.model)
		if r.cal != nil {
			k.cal = &calibration{Model: k.model, Calibration: r.cal.Calibration}
		}
	}
	if k.cal != nil {
		k.cal.at = r.seen.reported(s)
		if r.seen.raw > 0 && k.cal.at.raw > 0 && counted > 0 && !mended {
			was, is = r.seen.raw, k.cal.at.raw
			if r.raw == nil { // an earlier version wrote the log
				factor = float64(is) / float64(was)
			}
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

// reported returns what s still shows of the view that was measured.
func (seen *seenJSON) reported(s *state) *reported {
	at := &reported{
		sys: shown{entries: inRanges(s.sys, seen.ids)}, list: shown{entries: inRanges(s.list, seen.ids)},
		summary: &placedSummary{}, // not that of s
	}
	if seen.summary && s.summary != nil {
		at.summary = s.summary
	}
	at.raw = rawOf(at.sys.entries) + rawOf(at.list.entries) + at.summary.tokens()
	if n := at.list.len(); n > 0 {
		at.last = at.list.at(n - 1).id
	}
	return at
}

// inRanges returns the entries whose IDs are in one of the ranges, which ascend.
func inRanges(list []*entry, ranges []Range) []*entry {
	out := make([]*entry, 0, len(list))
	for _, e := range list {
		for len(ranges) > 0 && ranges[0].Last < e.id {
			ranges = ranges[1:]
		}
		if len(ranges) > 0 && ranges[0].First <= e.id {
			out = append(out, e)
		}
	}
	return slices.Clip(out)
}

// isEmpty reports whether r says that nothing changed.
func (r *recordJSON) isEmpty() bool { return reflect.DeepEqual(r, new(recordJSON)) }
