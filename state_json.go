package convo

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// snapshotVersion is the version of a snapshot's JSON that this package writes,
// and the highest that it reads.
const snapshotVersion = 1

// A stateJSON is what JSON says of a state. It is the Data of a record, which says how the
// state differs from that of the record before, or, in a full one, from the state of an
// empty History; or it is a snapshot, which is like a full record and has the fields in
// snapshotKeys only. What is nil or empty did not change, apart from the scalars.
type stateJSON struct {
	version int    // of a snapshot
	key     string // of the conversation
	log     string // names the log; in full records
	scalars
	title, meta *string

	// What usage reports have taught. If seen is there, a calibration is in force: cal, or
	// if that is absent the learned one of the model. If none of learned, cal and seen is
	// there, and the model is the same, the one in force did not change either.
	learned *learned
	cal     *calibration
	seen    *seenJSON

	summary *Summary  // without a text: there is none any more
	system  *[]*entry // all of them
	out     []Range   // entries that have left
	entries []*entry  // entries that are new or changed, with their tokens if counter is there
	counter string    // names what counted the tokens of entries; see counter.name
	pins    []ID      // new ones
	unpin   []ID
	queue   *[]*queued // all of it

	// For the archive.
	undone    []Range
	past      []*entry
	summaries []Summary
	notes     []string
	lost      bool // Salvage has made the record in the place of one whose state is lost

	recent []string // IDs of the records before this one, the newest last; in full records

	// While it is read.
	tokens []int64 // of entries
	index  int     // of the entry that could not be read, as in a snapshot
	failed ID      // its ID
}

// Scalars are the figures that each record holds whole. A snapshot has those down to
// model, and zero for the others.
type scalars struct {
	last          ID
	turn, touched int
	appended      int64
	model         string
	ever          int64
	edited        time.Time
	breaker       breaker // without its cause
	chosen        bool    // SetLimits or SetModel has set limits
	limits        Limits  // those in force, if chosen is set
	toolsSet      bool    // History.toolsSet
	named         bound
	counted       int64 // raw tokens of the view without ephemeral messages; learned, cal and seen are counted alike
}

// A bound is the limit that Recover has learned of from an error, in tokens of the
// whole request, and the one that was set then.
type bound struct{ limit, of int }

// fields returns the members of the JSON.
func (s *scalars) fields() []strictjson.Field {
	l := &s.limits
	return []strictjson.Field{
		{Key: "last", Value: (*int64)(&s.last)},
		{Key: "turn", Value: &s.turn},
		{Key: "touched", Value: &s.touched},
		{Key: "appended", Value: &s.appended},
		{Key: "model", Value: &s.model},
		{Key: "ever", Value: &s.ever},
		{Key: "edited", Value: &s.edited},
		{Key: "failures", Value: &s.breaker.failures},
		{Key: "failed_at", Value: &s.breaker.appended},
		{Key: "excused", Value: &s.breaker.excused},
		{Key: "limits", Value: []strictjson.Field{
			{Key: "chosen", Value: &s.chosen},
			{Key: "window", Value: &l.Window},
			{Key: "reserve", Value: &l.Reserve},
			{Key: "tools", Value: &l.Tools},
			{Key: "high", Value: &l.High},
			{Key: "low", Value: &l.Low},
			{Key: "soft", Value: &l.Soft},
			{Key: "min_free", Value: &l.MinFree},
			{Key: "assumed", Value: &l.Assumed},
		}},
		{Key: "tools_set", Value: &s.toolsSet},
		{Key: "named", Value: []strictjson.Field{{Key: "limit", Value: &s.named.limit}, {Key: "of", Value: &s.named.of}}},
		{Key: "raw", Value: &s.counted},
	}
}

// check returns an error if one of s is out of range.
func (s *scalars) check() error {
	switch at, ok := nanoseconds(s.edited); {
	case s.last < 0 || s.last > maxID:
		return fmt.Errorf("last is %d, want 0 to %d", s.last, int64(maxID))
	case s.turn < 0 || s.turn > maxTurn || ID(s.turn) > s.last:
		return fmt.Errorf("turn is %d, want 0 to last and at most %d", s.turn, maxTurn)
	case s.touched < 0 || s.touched > s.turn:
		return fmt.Errorf("touched is %d, want 0 to turn, %d", s.touched, s.turn)
	case s.appended < 0 || s.appended > maxTotal:
		return fmt.Errorf("appended is %d, want 0 to %d", s.appended, int64(maxTotal))
	case s.ever < 0 || s.ever > maxTotal:
		return fmt.Errorf("ever is %d, want 0 to %d", s.ever, int64(maxTotal))
	case !ok || at == 0:
		return fmt.Errorf("edited is %v, want a year from 1678 to 2261", s.edited)
	case s.breaker.failures < 0:
		return fmt.Errorf("failures is %d, want 0 or more", s.breaker.failures)
	case s.breaker.appended < 0 || s.breaker.appended > s.ever:
		return fmt.Errorf("failed_at is %d, want 0 to ever, %d", s.breaker.appended, s.ever)
	case s.named.limit < 0 || int64(s.named.limit) > maxTotal:
		return fmt.Errorf("named has a limit of %d, want 0 to %d", s.named.limit, int64(maxTotal))
	case s.counted < 0 || s.counted > maxTotal:
		return fmt.Errorf("raw is %d, want 0 to %d", s.counted, int64(maxTotal))
	}
	if s.limits == (Limits{}) {
		return nil
	}
	l := s.limits
	l.Reserve = cmp.Or(l.Reserve, -1) // s.limits has its defaults: 0 is none
	_, faults := l.withDefaults()
	return errors.Join(faults...)
}

// A seenJSON says what the calibration in force was measured for, as far as it is
// still in the view.
type seenJSON struct {
	ids     []Range
	summary bool  // whether the summary belongs to it
	heard   bool  // whether that was in this model's turn; see Estimate.Measured
	raw     int64 // its raw tokens, counted as scalars.counted is
}

// fields returns the members of the JSON, apart from the IDs.
func (s *seenJSON) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "summary", Value: &s.summary}, {Key: "heard", Value: &s.heard}, {Key: "raw", Value: &s.raw}}
}

// MarshalJSON encodes s in the form that the package documentation describes:
// the entries with their IDs, pins, the summary, the key and the calibration, the
// messages that wait in the queue, and what SetMeta was given. Ephemeral messages and
// the originals of results that were cut or cleared are left out, and so are token
// counts, because the reader counts again. The zero Snapshot has no key, and decodes to
// the zero Snapshot.
//
// It takes less time than json.Marshal, which calls it and then checks each byte
// again.
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	out := stateJSON{
		version: snapshotVersion, key: s.key(),
		scalars: scalars{last: s.last, turn: s.turn, touched: s.touched, appended: s.appended, model: s.known().model},
		title:   changed("", s.meta.title), meta: changed("", s.meta.data),
		pins: s.pins, entries: s.list,
	}
	if models := s.carried(); len(models) > 0 {
		out.learned = &models
	}
	if s.summary != nil {
		out.summary = &s.summary.sum
	}
	if sys := s.sys; len(sys) > 0 {
		out.system = &sys
	}
	if queue := s.queue; len(queue) > 0 {
		out.queue = &queue
	}
	data, err := out.encode()
	if err != nil {
		return nil, err
	}
	return data, nil
}

// changed returns a pointer to the new value, or nil if it is the old one.
func changed[T comparable](from, to T) *T {
	if from == to {
		return nil
	}
	return &to
}

// encode returns the JSON.
func (s *stateJSON) encode() ([]byte, error) {
	size := 1024 + 16*(len(s.pins)+len(s.unpin)) + 8*len(s.entries)
	for _, list := range [][]*entry{orNil(s.system), s.entries, s.past} {
		for _, e := range list {
			size += 96 + e.msg.jsonSize()
		}
	}
	var err error
	one := func(dst []byte, e *entry) []byte {
		dst, failed := appendEntry(dst, e)
		err = cmp.Or(err, failed)
		return dst
	}
	ids := func(dst []byte, id ID) []byte { return strconv.AppendInt(dst, int64(id), 10) }

	dst := append(make([]byte, 0, size), '{')
	dst = strictjson.Int(dst, "version", s.version)
	dst = strictjson.Text(dst, "key", s.key)
	dst = strictjson.Text(dst, "log", s.log)
	dst = strictjson.AppendFields(dst, s.scalars.fields())
	dst = appendChanged(dst, "title", s.title)
	dst = appendChanged(dst, "meta", s.meta)
	if s.learned != nil {
		dst = appendArray(dst, "learned", *s.learned, appendCalibration)
	}
	if s.cal != nil {
		dst = appendCalibration(strictjson.Key(dst, "cal"), s.cal)
	}
	if s.seen != nil {
		dst = appendRanges(append(strictjson.Key(dst, "seen"), '{'), "ids", s.seen.ids)
		dst = append(strictjson.AppendFields(dst, s.seen.fields()), '}')
	}
	if s.summary != nil {
		dst = appendSummary(strictjson.Key(dst, "summary"), s.summary)
	}
	if s.system != nil {
		dst = appendArray(dst, "system", *s.system, one)
	}
	dst = appendRanges(dst, "out", s.out)
	dst = appendList(dst, "entries", s.entries, one)
	if s.counter != "" {
		dst = strictjson.Text(dst, "counter", s.counter)
		dst = appendArray(dst, "tokens", s.entries, func(dst []byte, e *entry) []byte { return strconv.AppendInt(dst, e.tokens, 10) })
	}
	dst = appendList(dst, "pins", s.pins, ids)
	dst = appendList(dst, "unpin", s.unpin, ids)
	if s.queue != nil {
		dst = appendArray(dst, "queue", *s.queue, func(dst []byte, q *queued) []byte {
			dst, failed := appendMessage(dst, &q.msg)
			err = cmp.Or(err, failed)
			return dst
		})
	}
	dst = appendRanges(dst, "undone", s.undone)
	dst = appendList(dst, "past", s.past, one)
	dst = appendList(dst, "summaries", s.summaries, func(dst []byte, x Summary) []byte { return appendSummary(dst, &x) })
	dst = appendList(dst, "notes", s.notes, strictjson.AppendString)
	dst = strictjson.Bool(dst, "lost", s.lost)
	dst = appendList(dst, "recent", s.recent, strictjson.AppendString)
	return append(dst, '}'), err
}

// appendChanged appends the member of an object with a string, or nothing if s is nil.
func appendChanged(dst []byte, key string, s *string) []byte {
	if s == nil {
		return dst
	}
	return strictjson.AppendString(strictjson.Key(dst, key), *s)
}

// appendList appends the member of an object with an array, or nothing if the list is
// empty.
func appendList[E any](dst []byte, key string, list []E, add func([]byte, E) []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	return appendArray(dst, key, list, add)
}

// appendArray appends the member of an object with an array.
func appendArray[E any](dst []byte, key string, list []E, add func([]byte, E) []byte) []byte {
	dst = append(strictjson.Key(dst, key), '[')
	for _, e := range list {
		dst = add(strictjson.Next(dst), e)
	}
	return append(dst, ']')
}

// appendEntry appends the JSON of e.
func appendEntry(dst []byte, e *entry) ([]byte, error) {
	dst = strictjson.Int(append(dst, '{'), "id", e.id)
	dst = strictjson.Int(dst, "turn", e.turn)
	dst = strictjson.Time(dst, "time", e.time())
	dst = strictjson.Int(dst, "missing", e.missing)
	dst = strictjson.Bool(dst, "tools", e.tools && e.msg.Role != RoleTool && e.calls == nil)
	dst, err := appendMessage(strictjson.Key(dst, "message"), &e.msg)
	return append(dst, '}'), err
}

// appendSummary appends the JSON of s.
func appendSummary(dst []byte, s *Summary) []byte {
	dst = strictjson.AppendString(append(dst, `{"text":`...), s.Text)
	dst = appendRanges(dst, "covers", s.Covers)
	dst = strictjson.Int(dst, "updates", s.Updates)
	dst = strictjson.Time(dst, "time", s.Time)
	dst = strictjson.AppendFields(dst, []strictjson.Field{{Key: "usage", Value: s.Usage.fields()}})
	return append(strictjson.Text(dst, "model", s.Model), '}')
}

// fields returns the members of the JSON.
func (u *Usage) fields() (fields []strictjson.Field) {
	for i, f := range u.figures() {
		fields = append(fields, strictjson.Field{Key: usageKeys[i], Value: f})
	}
	return fields
}

// appendRanges appends the member of an object with ranges.
func appendRanges(dst []byte, key string, ranges []Range) []byte {
	return appendList(dst, key, ranges, func(dst []byte, r Range) []byte {
		dst = strictjson.Int(append(dst, '{'), "first", r.First)
		return append(strictjson.Int(dst, "last", r.Last), '}')
	})
}

// appendCalibration appends the JSON of c.
func appendCalibration(dst []byte, c *calibration) []byte {
	return strictjson.AppendObject(dst, c.fields())
}

// fields returns the members of the JSON.
func (c *calibration) fields() []strictjson.Field {
	return []strictjson.Field{
		{Key: "model", Value: &c.Model},
		{Key: "ratio", Value: &c.Ratio},
		{Key: "weight", Value: &c.Weight},
		{Key: "spread", Value: &c.Spread},
		{Key: "seen", Value: &c.Seen},
		{Key: "tokens", Value: &c.Tokens},
		{Key: "raw", Value: &c.Raw},
		{Key: "doubt", Value: &c.Doubt},
		{Key: "small_tokens", Value: &c.SmallTokens},
		{Key: "small_raw", Value: &c.SmallRaw},
	}
}

// UnmarshalJSON decodes into s, which must be empty, what MarshalJSON has
// written. Tokens are counted by [Heuristic]. It returns a [*SnapshotError],
// and leaves s unchanged, when data is not valid or s is not empty; the error
// matches [ErrVersion] when data has a version that this package does not read.
// Whether roles follow each other and calls and results match is checked by
// [Restore].
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	if r := strictjson.NewReader(data); r.Null() {
		if r.End(); r.Err() == nil {
			return nil
		}
	}
	if s.owner != nil || s.id != nil || s.len() > 0 {
		return &SnapshotError{Index: -1, Err: fmt.Errorf("cannot decode into a snapshot with %d entries; use an empty one", s.len())}
	}
	in, err := decodeSnapshot(data)
	if err != nil {
		return err
	}
	if in.isZero() {
		return nil
	}
	next, err := in.state(true)
	if err != nil {
		return err
	}
	s.state = next
	return nil
}

// decodeSnapshot reads the JSON of a snapshot. An error is a *SnapshotError.
func decodeSnapshot(data []byte) (*stateJSON, error) {
	version, err := readVersion(data)
	switch {
	case err != nil:
		return nil, &SnapshotError{Index: -1, Err: err}
	case version != snapshotVersion:
		return nil, &SnapshotError{Index: -1, Err: fmt.Errorf("%w %d, want %d", ErrVersion, version, snapshotVersion)}
	}
	return decodeState(data, snapshotKeys[:])
}

// snapshotKeys are the fields of a snapshot's JSON.
var snapshotKeys = [...]string{
	"version", "key", "last", "turn", "touched", "appended", "model", "title", "meta", "learned", "summary", "pins", "system", "entries", "queue",
}

// decodeState reads the JSON of a state. If keys is not nil, only these fields may be
// there. An error is a *SnapshotError.
func decodeState(data []byte, keys []string) (*stateJSON, error) {
	r := strictjson.NewReader(data)
	in := &stateJSON{index: -1}
	if r.Null() {
		r.Fail(errors.New("it is null"))
	}
	scalars := in.scalars.fields()
	for key := range r.Object {
		switch {
		case keys != nil && !slices.Contains(keys, string(key)):
			r.Unknown(key)
		case r.Null() || r.Field(key, scalars):
		default:
			in.read(r, key)
		}
	}
	in.setTokens(r)
	if r.End(); r.Err() != nil {
		return nil, &SnapshotError{Index: in.index, ID: in.failed, Err: r.Err()}
	}
	in.index = 0
	return in, nil
}

// setTokens sets the tokens of the entries to those that were read.
func (in *stateJSON) setTokens(r *strictjson.Reader) {
	tokens, sum := in.tokens, int64(0)
	in.tokens = nil
	if in.counter == "" && tokens == nil {
		return
	}
	if in.counter == "" || len(tokens) != len(in.entries) {
		r.Fail(fmt.Errorf("%d tokens by counter %.40q for %d entries", len(tokens), in.counter, len(in.entries)))
		return
	}
	for i, e := range in.entries {
		if e.tokens = tokens[i]; e.tokens < 0 || e.tokens > maxTotal-sum {
			r.Fail(fmt.Errorf("entry %d has %d tokens", e.id, e.tokens))
			return
		}
		sum += e.tokens
	}
}

// read reads the value of a key that is none of the scalars.
func (in *stateJSON) read(r *strictjson.Reader, key []byte) {
	switch string(key) {
	case "version":
		in.version = r.Int()
	case "key":
		in.key = r.Text()
	case "log":
		in.log = r.Text()
	case "title":
		in.title = new(r.Text())
	case "meta":
		in.meta = new(r.Text())
	case "learned":
		in.learned = new(learned(readList(r, readCalibration)))
	case "cal":
		in.cal = readCalibration(r)
	case "seen":
		in.seen = readSeen(r)
	case "summary":
		in.summary = new(readSummary(r))
	case "system":
		in.system = new(in.readEntries(r, 0))
	case "out":
		in.out = readRanges(r)
	case "entries":
		in.entries = in.readEntries(r, len(orNil(in.system)))
	case "counter":
		in.counter = r.Text()
	case "tokens":
		in.tokens = readList(r, (*strictjson.Reader).Int64)
	case "pins":
		in.pins = readList(r, readID)
	case "unpin":
		in.unpin = readList(r, readID)
	case "queue":
		in.queue = new(readList(r, readQueued))
	case "undone":
		in.undone = readRanges(r)
	case "past":
		in.past = readList(r, readEntry)
	case "summaries":
		in.summaries = readList(r, readSummary)
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

// readEntries reads a list of entries. first is the index of its first in a snapshot.
func (in *stateJSON) readEntries(r *strictjson.Reader, first int) (list []*entry) {
	for i := range r.Array {
		e := readEntry(r)
		if list = append(list, e); r.Err() != nil {
			in.index, in.failed = first+i, e.id
		}
	}
	return list
}

func readSeen(r *strictjson.Reader) *seenJSON {
	s := new(seenJSON)
	fields := s.fields()
	for key := range r.Object {
		switch {
		case string(key) == "ids":
			s.ids = readRanges(r)
		case !r.Field(key, fields):
			r.Unknown(key)
		}
	}
	return s
}

// readVersion reads the version of a snapshot, and what comes before it.
func readVersion(data []byte) (version int, err error) {
	r := strictjson.NewReader(data)
	for key := range r.Object {
		if string(key) == "version" {
			version = r.Int()
			break
		}
		r.Skip()
	}
	return version, r.Err()
}

// readEntry reads an entry, without head and tokens.
func readEntry(r *strictjson.Reader) *entry {
	e := &entry{at: noTime}
	for key := range r.Object {
		switch string(key) {
		case "id":
			e.id = ID(r.Int64())
		case "turn":
			e.turn = r.Int()
		case "time":
			e.at, _ = nanoseconds(readTime(r))
		case "missing":
			e.missing = r.Int64()
		case "tools":
			e.tools = r.Bool()
		case "message":
			e.msg, _ = readMessage(r, &e.inline)
		default:
			r.Unknown(key)
		}
	}
	if e.id < 1 || e.msg.Role == RoleNone { // so that a long list of such values is not read into memory
		r.Fail(fmt.Errorf("entry with ID %d and role %q, want a positive ID and a message", e.id, e.msg.Role))
	}
	return e
}

// readTime reads a time that an entry can have.
func readTime(r *strictjson.Reader) time.Time {
	t := r.Time()
	if _, ok := nanoseconds(t); !ok {
		r.Fail(fmt.Errorf("time is %v, want a year from 1678 to 2261", t))
	}
	return t
}

func readSummary(r *strictjson.Reader) (s Summary) {
	for key := range r.Object {
		switch string(key) {
		case "text":
			s.Text = r.Text()
		case "covers":
			s.Covers = readRanges(r)
		case "updates":
			s.Updates = r.Int()
		case "time":
			s.Time = readTime(r)
		case "usage":
			r.Fields(s.Usage.fields())
		case "model":
			s.Model = r.Text()
		default:
			r.Unknown(key)
		}
	}
	return s
}

// readRanges reads an array of ranges.
func readRanges(r *strictjson.Reader) (ranges []Range) {
	for range r.Array {
		var x Range
		for key := range r.Object {
			switch string(key) {
			case "first":
				x.First = ID(r.Int64())
			case "last":
				x.Last = ID(r.Int64())
			default:
				r.Unknown(key)
			}
		}
		ranges = append(ranges, x)
	}
	return ranges
}

func readCalibration(r *strictjson.Reader) *calibration {
	c := new(calibration)
	r.Fields(c.fields())
	if !c.valid() { // at once, as for entries
		r.Fail(fmt.Errorf("calibration of model %.40q is out of range", c.Model))
	}
	return c
}

// readList reads an array whose elements are read by read.
func readList[E any](r *strictjson.Reader, read func(*strictjson.Reader) E) (list []E) {
	for range r.Array {
		list = append(list, read(r))
	}
	return list
}

func readID(r *strictjson.Reader) ID { return ID(r.Int64()) }

// readQueued reads a message of the queue.
func readQueued(r *strictjson.Reader) *queued {
	m, _ := readMessage(r, nil)
	if m.Role != RoleUser {
		r.Fail(fmt.Errorf("queued message with role %q, want a user message", m.Role))
	}
	return &queued{msg: m}
}

// isZero reports whether in is what the zero Snapshot is encoded as.
func (in *stateJSON) isZero() bool {
	return reflect.DeepEqual(*in, stateJSON{version: in.version})
}

// state checks in and returns the state that it describes. If count is not set, the
// entries get no calls, and no tokens but those that were read.
func (in *stateJSON) state(count bool) (state, error) {
	if err := in.check(); err != nil {
		return state{}, &SnapshotError{Index: -1, Err: err}
	}
	sys, list := orNil(in.system), in.entries
	s := state{
		id:   &identity{counter: newCounter(nil, Overheads{}), key: in.key},
		last: in.last, touched: in.touched, appended: in.appended, meta: in.metaOf(), pins: in.pins,
		knowledge: &knowledge{model: in.model, learned: orNil(in.learned)}, queue: orNil(in.queue),
	}
	if err := in.finish(&s, sys, 0, true, count); err != nil {
		return s, err
	}
	if err := in.finish(&s, list, len(sys), false, count); err != nil {
		return s, err
	}
	setHeads(list)
	for i, e := range list {
		if e.head != e.id && e.turn != list[i-1].turn {
			return s, &SnapshotError{Index: len(sys) + i, ID: e.id, Err: fmt.Errorf("the result is in turn %d, its exchange in turn %d", e.turn, list[i-1].turn)}
		}
	}
	for _, pin := range s.pins {
		if i, ok := index(list, pin); !ok || list[i].head != pin {
			return s, &SnapshotError{Index: -1, ID: pin, Err: fmt.Errorf("pin %d is not the first entry of an exchange", pin)}
		}
	}
	for _, e := range sys {
		if _, ok := index(list, e.id); ok {
			return s, &SnapshotError{Index: -1, ID: e.id, Err: fmt.Errorf("two entries with ID %d", e.id)}
		}
	}
	s.load(sys, list, nil, in.turn)
	if in.summary != nil && in.summary.Text != "" {
		s.summary = &placedSummary{sum: *in.summary, raw: s.id.summaryTokens(in.summary.Text)}
		s.summary.sum.Tokens = clampInt(s.summary.raw)
	}
	return s, nil
}

// metaOf returns the title and the data of the application.
func (in *stateJSON) metaOf() meta { return meta{orNil(in.title), orNil(in.meta)} }

// check returns an error if anything but the entries is out of range.
func (in *stateJSON) check() error {
	if err := cmp.Or(in.metaOf().check(), in.scalars.check()); err != nil {
		return err
	}
	switch {
	case !isKey(in.key):
		return fmt.Errorf("key is %.20q, want %c and %d lower-case letters", in.key, keyBegin, keyLen-1)
	case !slices.IsSorted(in.pins) || len(slices.Compact(slices.Clone(in.pins))) < len(in.pins):
		return errors.New("pins do not ascend")
	case in.summary == nil:
		return nil
	case in.summary.Text == "" && in.version > 0:
		return errors.New("the summary has no text")
	}
	if n := in.summary.Updates; n < 0 || n > maxUpdates {
		return fmt.Errorf("the summary has %d updates, want 0 to %d", n, maxUpdates)
	}
	if err := in.summary.Usage.fault(); err != nil {
		return err
	}
	last := ID(-1)
	for _, r := range in.summary.Covers {
		if r.First < 1 || r.First <= last || r.Last < r.First || r.Last > in.last {
			return fmt.Errorf("the summary covers %d to %d, want ascending ranges from 1 to last, %d", r.First, r.Last, in.last)
		}
		last = r.Last
	}
	return nil
}

// finish checks a list, which is either the system entries or the others, and counts
// it if count is set. first is the index of its first entry in the snapshot.
func (in *stateJSON) finish(s *state, list []*entry, first int, system, count bool) error {
	prev, said := &entry{}, &entry{} // the entry before, and that before which is no note
	for i, e := range list {
		user := e.msg.Role == RoleUser
		e.note = !system && e.msg.Role == RoleSystem
		var fault string
		switch {
		case e.id <= prev.id || e.id > in.last:
			fault = fmt.Sprintf("ID does not ascend from %d, or is above last, %d", prev.id, in.last)
		case system && e.msg.Role != RoleSystem:
			fault = fmt.Sprintf("role %s among the system entries", e.msg.Role)
		case e.turn < prev.turn || e.turn > in.turn || system && e.turn != 0:
			fault = fmt.Sprintf("turn is %d, want at least that of the entry before and at most %d, and 0 for a system entry", e.turn, in.turn)
		case user && e.turn == 0, user && said.msg.Role != RoleUser && e.turn <= said.turn:
			fault = fmt.Sprintf("user message in turn %d, want it to begin a new turn", e.turn)
		case e.missing < 0 || e.missing > maxTotal:
			fault = fmt.Sprintf("missing is %d, want 0 to %d", e.missing, int64(maxTotal))
		}
		if fault != "" {
			return &SnapshotError{Index: first + i, ID: e.id, Err: errors.New(fault)}
		}
		e.head = e.id
		if count {
			e.tokens = s.id.message(&e.msg)
			e.calls = newCalls(&e.msg, s.id.counter)
			if e.note {
				e.tokens += s.id.noteTokens()
			}
		}
		if prev = e; !e.note {
			said = e
		}
	}
	return nil
}
