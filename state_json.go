package convo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/kept"
	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/tags"
)

// versions are the versions of the JSON that this package writes and reads. A record has its
// version in Record.Format.
var versions = [...]int{inSnapshot: 1, inDecisions: 3}

// A stateJSON is what is saved of a History. The Data of a record holds the difference
// from the state of the previous record, or in a full record from the state of an empty
// History. A snapshot and Decisions are like a full record with fewer fields; see
// savedFields. Apart from the scalars, a nil or empty field means no change.
type stateJSON struct {
	version int    // of a snapshot or Decisions
	key     string // of the conversation
	log     string // names the log; in full records
	before  int64  // as Before of logbook.size
	scalars
	title, meta *string

	// Calibrations from usage reports. If seen is set, a calibration is in force: cal, or
	// if that is absent the learned calibration of the model. If learned, cal and seen
	// are all absent and the model is the same, the calibration in force did not change
	// either.
	learned *learned
	cal     *calibration
	seen    *seenJSON

	tools   *toolset  // without tools and a key: they were removed
	summary *Summary  // without a text: the summary was removed
	system  *[]*entry // all of them
	out     []Range   // entries that left the view
	entries []*entry  // new or changed entries, with their tokens if counter is set
	counter string    // name of the counter of the entries' tokens; see counter.name
	rows    *rowList  // in Decisions: what stands in place of entries that the application has
	pins    []ID      // new pins
	unpin   []ID
	queue   *[]*queued    // all of it
	back    *[]Range      // what was taken back: all of it
	left    *leftRow      // the newest row that an edit dropped and no rollback took back; zero: there is none any more
	heads   *kept.Heads   // of the last answered request
	sent    *kept.Figures // the same

	// For the archive.
	undone    []Range
	past      []*entry
	summaries []Summary
	notes     []string
	lost      bool // Salvage made this record in place of one whose state is lost

	recent []string // IDs of the previous records, the newest last; in full records

	fault error // of an entry that cannot be written or read
	index int   // while reading: of the next entry, as in a snapshot
}

// Scalars are the figures that each record holds completely.
type scalars struct {
	last ID
	turn int
	figures
	model    string
	ever     int64
	edited   time.Time
	breaker  breaker // without its cause
	toolsSet bool    // see knowledge
	meterFigures
	counted int64 // raw tokens of the view without ephemeral messages; those of learned, cal and seen are counted the same way
}

// scalars returns the scalars that a snapshot has.
func (s *state) scalars() scalars {
	return scalars{last: s.last, turn: s.turn, figures: s.figures, model: s.known().model}
}

// A form is a form in which a state is saved, or several of them.
type form uint8

const (
	inRecord form = 1 << iota
	inSnapshot
	inDecisions

	inLog = inRecord | inDecisions // but not in a snapshot
	inAll = inRecord | inSnapshot | inDecisions
)

// A savedField is a field of the JSON of a state.
type savedField struct {
	key string
	in  form

	// at returns the value of a [strictjson.Field]. An optional value is replaced by that of
	// a later record, if that has one.
	at func(in *stateJSON) any

	most func(in *stateJSON) int64              // bounds a number, which is at least 0; nil: the number is checked elsewhere
	set  func(in *stateJSON, from, to *picture) // sets the field, and some that follow it, to what has changed; nil: it is set elsewhere
}

// savedFields are all fields, in the order in which they are written. It has no function
// calls, so that programs that save nothing do not contain the code.
var savedFields = [...]savedField{
	{key: "version", in: inSnapshot | inDecisions, at: func(in *stateJSON) any { return &in.version }},
	{key: "key", in: inAll, at: func(in *stateJSON) any { return &in.key }, set: func(in *stateJSON, from, to *picture) {
		in.key = orNil(changed(from.view.key(), to.view.key()))
	}},
	{key: "log", in: inRecord, at: func(in *stateJSON) any { return &in.log }},
	{key: "before", in: inRecord, at: func(in *stateJSON) any { return &in.before }, most: anyTotal},

	// The scalars.
	{key: "last", in: inAll, at: func(in *stateJSON) any { return (*int64)(&in.last) }, most: func(*stateJSON) int64 { return maxID }},
	{key: "turn", in: inAll, at: func(in *stateJSON) any { return &in.turn }, most: func(in *stateJSON) int64 { return min(int64(in.last), maxTurn) }},
	{key: "touched", in: inAll, at: func(in *stateJSON) any { return &in.touched }, most: func(in *stateJSON) int64 { return int64(in.turn) }},
	{key: "appended", in: inAll, at: func(in *stateJSON) any { return &in.appended }, most: anyTotal},
	{key: "model", in: inAll, at: func(in *stateJSON) any { return &in.model }},
	{key: "released", in: inAll, at: func(in *stateJSON) any { return (*int64)(&in.released) }, most: func(in *stateJSON) int64 { return int64(in.last) }},
	{key: "ever", in: inLog, at: func(in *stateJSON) any { return &in.ever }, most: anyTotal},
	{key: "edited", in: inLog, at: func(in *stateJSON) any { return &in.edited }},
	{key: "failures", in: inLog, at: func(in *stateJSON) any { return &in.breaker.Failures }, most: anyTotal},
	{key: "failed_at", in: inLog, at: func(in *stateJSON) any { return &in.breaker.Appended }, most: func(in *stateJSON) int64 { return in.ever }},
	{key: "excused", in: inLog, at: func(in *stateJSON) any { return &in.breaker.Excused }},
	{key: "limits", in: inLog, at: func(in *stateJSON) any { return in.meterFigures.limitFields() }},
	{key: "tools_set", in: inLog, at: func(in *stateJSON) any { return &in.toolsSet }},
	{key: "named", in: inLog, at: func(in *stateJSON) any { return in.named.fields() }},
	{key: "raw", in: inLog, at: func(in *stateJSON) any { return &in.counted }, most: anyTotal},

	// The state. A record has what has changed of it.
	{key: "title", in: inAll, at: func(in *stateJSON) any { return optional(&in.title) }, set: func(in *stateJSON, from, to *picture) {
		in.title = changed(from.view.meta.title, to.view.meta.title)
	}},
	{key: "meta", in: inAll, at: func(in *stateJSON) any { return optional(&in.meta) }, set: func(in *stateJSON, from, to *picture) {
		in.meta = changed(from.view.meta.data, to.view.meta.data)
	}},
	{key: "learned", in: inAll, at: func(in *stateJSON) any { return strictjson.Optional(&in.learned, (*learned).value) }, set: (*stateJSON).learn},
	{key: "cal", in: inLog, at: func(in *stateJSON) any { return strictjson.Optional(&in.cal, (*calibration).fields) }},
	{key: "seen", in: inLog, at: func(in *stateJSON) any { return strictjson.Optional(&in.seen, (*seenJSON).fields) }},
	{key: "tools", in: inRecord | inSnapshot, at: func(in *stateJSON) any { return strictjson.Optional(&in.tools, (*toolset).fields) }, set: func(in *stateJSON, from, to *picture) {
		in.tools = unless(from.view.tools.sameAs(to.view.tools), orNil(to.view.tools))
	}},
	{key: "summary", in: inAll, at: func(in *stateJSON) any { return strictjson.Optional(&in.summary, (*Summary).fields) }, set: func(in *stateJSON, from, to *picture) {
		in.summary = unless(from.view.summary == to.view.summary, orNil(to.view.summary).sum)
	}},
	{key: "system", in: inRecord | inSnapshot, at: func(in *stateJSON) any { return strictjson.Optional(&in.system, in.shown) }, set: func(in *stateJSON, from, to *picture) {
		in.system = unless(sameEntries(from.view.sys, to.view.sys), to.view.sys)
	}},
	{key: "out", in: inRecord, at: func(in *stateJSON) any { return rangesJSON(&in.out) }},
	{key: "entries", in: inAll, at: func(in *stateJSON) any { return in.shown(&in.entries) }, set: (*stateJSON).compare},
	{key: "counter", in: inRecord, at: func(in *stateJSON) any { return &in.counter }},
	{key: "rows", in: inDecisions, at: func(in *stateJSON) any { return strictjson.Optional(&in.rows, (*rowList).fields) }},
	{key: "pins", in: inAll, at: func(in *stateJSON) any { return strictjson.Ints(&in.pins) }, set: func(in *stateJSON, from, to *picture) {
		if !slices.Equal(from.view.pins, to.view.pins) {
			in.pins, in.unpin = added(from.view.pins, to.view.pins), added(to.view.pins, from.view.pins)
		}
	}},
	{key: "unpin", in: inRecord, at: func(in *stateJSON) any { return strictjson.Ints(&in.unpin) }},
	{key: "queue", in: inAll, at: func(in *stateJSON) any { return strictjson.Optional(&in.queue, in.queued) }, set: func(in *stateJSON, from, to *picture) {
		in.queue = unless(slices.Equal(from.view.queue, to.view.queue), to.view.queue)
	}},
	{key: "taken_back", in: inAll, at: func(in *stateJSON) any { return strictjson.Optional(&in.back, rangesJSON) }, set: func(in *stateJSON, from, to *picture) {
		in.back = unless(slices.Equal(from.view.takenBack, to.view.takenBack), to.view.takenBack)
	}},
	{key: "left", in: inAll, at: func(in *stateJSON) any { return strictjson.Optional(&in.left, (*leftRow).fields) }, set: func(in *stateJSON, from, to *picture) {
		in.left = changed(from.view.newestLeft(), to.view.newestLeft())
	}},
	{key: "heads", in: inAll, at: func(in *stateJSON) any { return strictjson.Optional(&in.heads, (*kept.Heads).Value) }, set: func(in *stateJSON, from, to *picture) {
		in.heads = changed(orNil(from.view.request).Heads, orNil(to.view.request).Heads)
	}},
	{key: "sent", in: inAll, at: func(in *stateJSON) any { return strictjson.Optional(&in.sent, (*kept.Figures).Value) }, set: func(in *stateJSON, from, to *picture) {
		in.sent = changed(orNil(from.view.request).Figures, orNil(to.view.request).Figures)
	}},

	// For the archive; see keep.
	{key: "undone", in: inRecord, at: func(in *stateJSON) any { return rangesJSON(&in.undone) }},
	{key: "past", in: inRecord, at: func(in *stateJSON) any { return strictjson.Array(&in.past, in.appendEntry, readEntry) }},
	{key: "summaries", in: inRecord, at: func(in *stateJSON) any { return strictjson.Objects(&in.summaries, (*Summary).fields) }},
	{key: "notes", in: inRecord, at: func(in *stateJSON) any { return strictjson.Texts(&in.notes) }},
	{key: "lost", in: inRecord, at: func(in *stateJSON) any { return &in.lost }},
	{key: "recent", in: inRecord, at: func(in *stateJSON) any { return strictjson.Texts(&in.recent) }},
}

func anyTotal(*stateJSON) int64 { return maxTotal }

// optional returns the value of a text that is left out if it is nil.
func optional(at **string) strictjson.Value { return strictjson.Optional(at, strictjson.Plain) }

// field returns the field in the i-th row of savedFields.
func (in *stateJSON) field(i int) strictjson.Field {
	return strictjson.Field{Key: savedFields[i].key, Value: savedFields[i].at(in)}
}

// difference returns the changes from from to to.
func difference(from, to *picture) *stateJSON {
	r := &stateJSON{scalars: to.scalars}
	for i := range savedFields {
		if set := savedFields[i].set; set != nil {
			set(r, from, to)
		}
	}
	return r
}

// changed returns a pointer to the new value, or nil if it is equal to the old one.
func changed[T comparable](from, to T) *T { return unless(from == to, to) }

// unless returns a pointer to a value, or nil if it is the same as before.
func unless[T any](same bool, now T) *T {
	if same {
		return nil
	}
	return new(now)
}

// encode returns the JSON.
func (in *stateJSON) encode(as form) ([]byte, error) {
	size := 1024 + 16*(len(in.pins)+len(in.unpin)) + 8*len(in.entries)
	for _, list := range [][]*entry{orNil(in.system), in.entries, in.past} {
		for _, e := range list {
			size += 96 + e.msg.jsonSize()
		}
	}
	data := append(make([]byte, 0, size), '{')
	allFields.Use(in, func(i int, f *strictjson.Field) {
		if savedFields[i].in&as != 0 {
			data = f.Append(data)
		}
	})
	if in.fault != nil {
		return nil, in.fault
	}
	return append(data, '}'), nil
}

// allFields has the fields of a stateJSON, by their rows in savedFields.
var allFields = strictjson.Pool[stateJSON]{Fields: func(in *stateJSON) []strictjson.Field {
	fields := make([]strictjson.Field, len(savedFields))
	for i := range fields {
		fields[i] = in.field(i)
	}
	return fields
}}

// decode reads the JSON of a form. Entries, pins and ranges are in order then. An error is a
// *SnapshotError.
func decode(data []byte, as form) (*stateJSON, error) {
	r := strictjson.NewReader(data)
	if err := checkVersion(r, as); err != nil {
		return nil, asSnapshotError(err)
	}
	in := new(stateJSON)
	if r.Null() {
		r.Fail(errors.New("it is null"))
	}
	r.Each(len(savedFields), func(i int) string { return savedFields[i].key }, func(i int) {
		if savedFields[i].in&as == 0 {
			r.Unknown([]byte(savedFields[i].key))
			return
		}
		in.field(i).Read(r)
	})
	r.End()
	return in, asSnapshotError(cmp.Or(in.fault, r.Err(), in.checkOrder()))
}

// asSnapshotError returns err as a *SnapshotError, or nil if it is nil.
func asSnapshotError(err error) error {
	if _, ok := err.(*SnapshotError); ok || err == nil {
		return err
	}
	return &SnapshotError{Index: -1, Err: err}
}

// checkVersion returns an error unless this package reads the version of the JSON of a form, which
// r is about to read.
func checkVersion(r *strictjson.Reader, as form) error {
	if as == inRecord {
		return nil
	}
	version, want := r.PeekInt("version"), versions[as]
	switch {
	case r.Err() != nil || version == want:
		return r.Err()
	case as == inDecisions && version > 0 && version < want:
		return fmt.Errorf("%w %d of Decisions, want %d; make a History of the rows with Restore, and store its Decisions", ErrVersion, version, want)
	}
	return fmt.Errorf("%w %d, want %d; use the release of convo that wrote it, or a later one", ErrVersion, version, want)
}

// checkOrder returns an error unless entries, pins and ranges ascend, and the tokens of entries
// are within bounds.
func (in *stateJSON) checkOrder() error {
	i, raw := 0, int64(0)
	for _, list := range [...][]*entry{orNil(in.system), in.entries, in.past} {
		prev := ID(0)
		for _, e := range list {
			switch {
			case e.id <= prev || e.id > in.last:
				return &SnapshotError{Index: i, ID: e.id, Err: fmt.Errorf("ID does not ascend from %d, or is above last, %d", prev, in.last)}
			case e.tokens < 0 || e.tokens > maxTotal-raw || e.tokens > 0 && in.counter == "":
				return &SnapshotError{Index: i, ID: e.id, Err: fmt.Errorf("it has %d tokens by counter %.40q", e.tokens, in.counter)}
			}
			prev, i, raw = e.id, i+1, raw+e.tokens
		}
	}
	lists := [...][]Range{ranges.Of[Range](in.pins), ranges.Of[Range](in.unpin), in.out}
	for i, name := range [...]string{"pins", "unpin", "out"} {
		if !ranges.Ascend(lists[i], maxID) {
			return fmt.Errorf("%s is %v, want ascending IDs", name, lists[i])
		}
	}
	for _, u := range in.undone {
		if u.First < 1 || u.Last < u.First {
			return fmt.Errorf("undone has %d to %d, want ranges of IDs", u.First, u.Last)
		}
	}
	return nil
}

// MarshalJSON encodes s in the form that docs/format.md describes: the entries with their IDs,
// the pins, the summary, the key, the calibration, the messages in the queue, and the title and
// data set by SetMeta. Ephemeral messages, token counts and the originals of cut or cleared
// results are left out. The zero Snapshot has no key, and decodes to the zero Snapshot. A
// direct call is faster than json.Marshal.
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	out := difference(noPicture, &picture{view: s, scalars: s.scalars()})
	out.version, out.learned = versions[inSnapshot], nil
	if models := s.carried(); len(models) > 0 {
		out.learned = &models
	}
	return out.encode(inSnapshot)
}

// UnmarshalJSON decodes the output of MarshalJSON into s, which must be empty. Tokens are
// counted by [Heuristic]. If data is not valid or s is not empty, it returns a
// [*SnapshotError] and leaves s unchanged; the error matches [ErrVersion] if this package
// does not read the version of data. [Restore] checks roles, calls and results.
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	if s.owner != nil || s.id != nil || s.len() > 0 {
		return &SnapshotError{Index: -1, Err: fmt.Errorf("cannot decode into a snapshot with %d entries; use an empty one", s.len())}
	}
	in, err := decode(data, inSnapshot)
	if err != nil || in.key == "" && in.scalars == (scalars{}) && in.isEmpty() {
		return err
	}
	next, err := in.state(true)
	if err != nil {
		return err
	}
	s.state = next
	return nil
}

// limitFields returns the members of the JSON of the limits.
func (m *meterFigures) limitFields() []strictjson.Field {
	l := &m.limits
	return []strictjson.Field{
		{Key: "chosen", Value: &m.chosen},
		{Key: "window", Value: &l.Window},
		{Key: "reserve", Value: &l.Reserve},
		{Key: "tools", Value: &l.Tools},
		{Key: "high", Value: &l.High},
		{Key: "low", Value: &l.Low},
		{Key: "soft", Value: &l.Soft},
		{Key: "min_free", Value: &l.MinFree},
		{Key: "assumed", Value: &l.Assumed},
	}
}

// fields returns the members of the JSON.
func (b *namedLimit) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "limit", Value: &b.limit}, {Key: "of", Value: &b.of}}
}

// A seenJSON describes the view that the calibration in force was measured for, as far as
// it is still in the view.
type seenJSON struct {
	ids     []Range
	tools   bool  // whether the tools are part of it
	summary bool  // whether the summary is part of it
	heard   bool  // whether it was measured in this model's turn; see Estimate.Measured
	raw     int64 // its raw tokens, counted as scalars.counted is
}

// fields returns the members of the JSON.
func (s *seenJSON) fields() []strictjson.Field {
	return []strictjson.Field{
		{Key: "ids", Value: rangesJSON(&s.ids)},
		{Key: "tools", Value: &s.tools},
		{Key: "summary", Value: &s.summary},
		{Key: "heard", Value: &s.heard},
		{Key: "raw", Value: &s.raw},
	}
}

// value returns the value of the JSON.
func (l *learned) value() strictjson.Value {
	return strictjson.Pointers((*[]*calibration)(l), (*calibration).fields)
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

// fields returns the members of the JSON.
func (t *toolset) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "key", Value: &t.key}, {Key: "list", Value: strictjson.Objects(&t.tools, (*Tool).fields)}}
}

// fields returns the members of the JSON.
func (t *Tool) fields() []strictjson.Field {
	return []strictjson.Field{
		{Key: "name", Value: &t.Name},
		{Key: "description", Value: &t.Description},
		{Key: "schema", Value: &t.Schema},
		{Key: "format", Value: &t.Opaque.Format},
		{Key: "json", Value: &t.Opaque.JSON},
	}
}

// fields returns the members of the JSON.
func (s *Summary) fields() []strictjson.Field {
	usage, n := make([]strictjson.Field, len(usageKeys)), &s.Native
	for i, f := range s.Usage.figures() {
		usage[i] = strictjson.Field{Key: usageKeys[i], Value: f}
	}
	return []strictjson.Field{
		{Key: "text", Value: &s.Text},
		{Key: "names", Value: &s.Names},
		{Key: "covers", Value: rangesJSON(&s.Covers)},
		{Key: "read", Value: rangesJSON(&s.Read)},
		{Key: "before", Value: strictjson.Optional(&s.before, func(b *placedSummary) []strictjson.Field { return b.sum.fields() })},
		{Key: "updates", Value: &s.Updates},
		{Key: "time", Value: &s.Time},
		{Key: "usage", Value: usage},
		{Key: "model", Value: &s.Model},
		{Key: "native", Value: []strictjson.Field{
			{Key: "format", Value: &n.Format},
			{Key: "model", Value: &n.Model},
			{Key: "items", Value: strictjson.Texts(&n.Items)},
			{Key: "stood_for", Value: strictjson.Objects(&n.stoodFor, (*coveredView).fields)},
		}},
	}
}

// fields returns the members of the JSON.
func (c *coveredView) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "view", Value: fingerprint.Values{&c.front, &c.heads, (*fingerprint.Sum)(&c.list)}}}
}

// rangesJSON returns the value of a list of ranges.
func rangesJSON(list *[]Range) strictjson.Value { return strictjson.Objects(list, (*Range).fields) }

// fields returns the members of the JSON.
func (r *Range) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "first", Value: (*int64)(&r.First)}, {Key: "last", Value: (*int64)(&r.Last)}}
}

// fields returns the members of the JSON.
func (r *leftRow) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "id", Value: (*int64)(&r.id)}, {Key: "key", Value: &r.key}}
}

// shown returns the value of a list of entries of the view.
func (in *stateJSON) shown(list *[]*entry) strictjson.Value {
	return strictjson.Array(list, in.appendEntry, func(r *strictjson.Reader) *entry {
		e := readEntry(r)
		if err := r.Err(); err != nil {
			in.fault = cmp.Or(in.fault, error(&SnapshotError{Index: in.index, ID: e.id, Err: err}))
		}
		in.index++
		return e
	})
}

// appendEntry appends the JSON of e.
func (in *stateJSON) appendEntry(dst []byte, e *entry) []byte {
	dst = strictjson.Int(append(dst, '{'), "id", e.id)
	dst = strictjson.Int(dst, "turn", e.turn)
	if in.counter != "" && !e.isSystem() {
		dst = strictjson.Int(dst, "tokens", e.tokens)
	}
	dst = strictjson.Time(dst, "time", e.time())
	dst = strictjson.Int(dst, "missing", e.missing())
	dst = strictjson.Bool(dst, "final", e.final)
	dst = strictjson.Bool(dst, "paused", e.marks.has(paused))
	dst = strictjson.Bool(dst, "bare", e.marks.has(bare))
	dst = strictjson.Bool(dst, "tools", e.tools && e.msg.Role != RoleTool && e.calls == nil)
	if made := e.made(); made != 0 {
		dst = fingerprint.Values{&made}.Append(strictjson.Key(dst, "made"))
	}
	return append(in.appendMessage(strictjson.Key(dst, "message"), &e.msg), '}')
}

// appendMessage appends the JSON of m.
func (in *stateJSON) appendMessage(dst []byte, m *Message) []byte {
	dst, err := appendMessage(dst, m)
	in.fault = cmp.Or(in.fault, err)
	return dst
}

// readEntry reads an entry, without its head and tokens.
func readEntry(r *strictjson.Reader) *entry {
	e := &entry{at: noTime}
	var own rare
	for key := range r.Object {
		switch string(key) {
		case "id":
			e.id = ID(r.Int64())
		case "turn":
			e.turn = r.Int()
		case "tokens":
			e.tokens = r.Int64()
		case "time":
			e.at = readTime(r)
		case "missing":
			own.missing = r.Int64()
		case "final":
			e.final = r.Bool()
		case "paused":
			e.marks.set(paused, r.Bool())
		case "bare":
			e.marks.set(bare, r.Bool())
		case "tools":
			e.tools = r.Bool()
		case "made":
			fingerprint.Values{&own.made}.Read(r)
		case "message":
			e.msg, _ = readMessage(r, &e.inline)
		default:
			r.Unknown(key)
		}
	}
	e.setOwn(own)
	if e.id < 1 || e.msg.Role == RoleNone { // fail early to avoid reading a long list of invalid entries into memory
		r.Fail(fmt.Errorf("entry with ID %d and role %q, want a positive ID and a message", e.id, e.msg.Role))
	}
	return e
}

// readTime reads the time of an entry.
func readTime(r *strictjson.Reader) int64 {
	t := r.Time()
	if err := checkTime("time", t); err != nil {
		r.Fail(err)
	}
	at, _ := nanoseconds(t)
	return at
}

// checkTime returns an error unless t can be the time of an entry.
func checkTime(name string, t time.Time) error {
	if _, ok := nanoseconds(t); !ok {
		return fmt.Errorf("%s is %v, want a year from 1678 to 2261", name, t)
	}
	return nil
}

// queued returns the value of a queue.
func (in *stateJSON) queued(list *[]*queued) strictjson.Value {
	add := func(dst []byte, q *queued) []byte { return in.appendMessage(dst, &q.msg) }
	return strictjson.Array(list, add, func(r *strictjson.Reader) *queued {
		m, _ := readMessage(r, nil)
		if m.Role != RoleUser {
			r.Fail(fmt.Errorf("queued message with role %q, want a user message", m.Role))
		}
		return &queued{msg: m}
	})
}

// check returns an error if a value outside the entries is out of range.
func (in *stateJSON) check() error {
	title := meta{orNil(in.title), orNil(in.meta)}
	if err := cmp.Or(title.check(), in.checkFigures(), in.checkLeft(), in.tools.check(), in.summary.checkSaved(in.last, mostBefore+2)); err != nil {
		return err
	}
	switch {
	case !ranges.Ascend(orNil(in.back), in.last):
		return fmt.Errorf("taken_back is %v, want ascending ranges from 1 to last, %d", orNil(in.back), in.last)
	case !tags.IsKey(in.key):
		return fmt.Errorf("key is %.20q, want @ and 7 lower-case letters", in.key)
	case in.summary != nil && in.summary.Text == "" && in.version > 0:
		return errors.New("the summary has no text")
	case in.cal != nil && in.seen == nil:
		return errors.New("it is not said what the calibration in force was measured for")
	}
	for _, c := range append(slices.Clip(orNil(in.learned)), in.cal) {
		if c != nil && !c.valid() {
			return fmt.Errorf("calibration of model %.40q is out of range", c.Model)
		}
	}
	return nil
}

// checkFigures returns an error if a scalar is out of range.
func (in *stateJSON) checkFigures() error {
	for i := range savedFields {
		f := &savedFields[i]
		if f.most == nil {
			continue
		}
		n, most := reflect.ValueOf(f.at(in)).Elem().Int(), f.most(in)
		if n < 0 || n > most {
			return fmt.Errorf("%s is %d, want 0 to %d", f.key, n, most)
		}
	}
	if n := in.named.limit; n < 0 || int64(n) > maxTotal {
		return fmt.Errorf("the limit of named is %d, want 0 to %d", n, int64(maxTotal))
	}
	if at, ok := nanoseconds(in.edited); !ok || at == 0 {
		return fmt.Errorf("edited is %v, want a year from 1678 to 2261", in.edited)
	}
	if in.limits == (Limits{}) {
		return nil
	}
	l := in.limits
	l.Reserve = cmp.Or(l.Reserve, -1) // in.limits has its defaults, where 0 means none
	_, faults := l.withDefaults()
	return errors.Join(faults...)
}

// check returns an error if t can be no toolset. t may be nil.
func (t *toolset) check() error {
	own := orNil(t)
	if len(own.tools) > mostTools || len(own.key) > maxToolsKey {
		return fmt.Errorf("%d tools, or a key of %d bytes; want at most %d, and %d", len(own.tools), len(own.key), mostTools, maxToolsKey)
	}
	for i := range own.tools {
		if err := own.tools[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// checkSaved returns an error if s, as it was read, is out of range. Before it are less than
// most summaries. s may be nil.
func (s *Summary) checkSaved(last ID, most int) error {
	switch {
	case s == nil:
		return nil
	case most == 0:
		return fmt.Errorf("the summary has more than %d before it", mostBefore+1)
	case s.Updates < 0 || s.Updates > maxUpdates:
		return fmt.Errorf("the summary has %d updates, want 0 to %d", s.Updates, maxUpdates)
	case !ranges.Ascend(s.Covers, last) || !ranges.Ascend(s.Read, last):
		return fmt.Errorf("the summary covers %v and has read %v, want ascending ranges from 1 to last, %d", s.Covers, s.Read, last)
	}
	return cmp.Or(s.Usage.fault(), s.Native.fault(), checkTime("time", s.Time), s.before.summary().checkSaved(last, most-1))
}

// checkLeft returns an error if left cannot be an entry that is not in the view.
func (in *stateJSON) checkLeft() error {
	left := orNil(in.left)
	_, isShown := index(in.entries, left.id)
	isNone := in.left == nil || left == leftRow{} && in.version == 0
	if isNone || 0 < left.id && left.id <= in.last && left.key != "" && len(left.key) <= maxMessageKey && !isShown {
		return nil
	}
	return fmt.Errorf("left is entry %d with the key %.40q, want an entry up to last, %d, that is not in the view, with a key", left.id, left.key, in.last)
}

// finish checks the entries, and counts their tokens and calls if count is set.
func (in *stateJSON) finish(s *state, count bool) error {
	sys := orNil(in.system)
	all := slices.Concat(sys, in.entries)
	setHeads(all)
	prev, said := &entry{}, &entry{} // the previous entry, and the previous entry that is not a note
	for i, e := range all {
		e.note = i >= len(sys) && e.msg.Role == RoleSystem
		if fault := in.faultOf(e, prev, said, i < len(sys)); fault != "" {
			return &SnapshotError{Index: i, ID: e.id, Err: errors.New(fault)}
		}
		if count {
			s.id.weigh(e)
			e.calls = newCalls(&e.msg, s.id.counter)
		}
		prev = e
		if !e.note {
			said = e
		}
	}
	return nil
}

// faultOf says what is wrong with an entry, its message aside. It follows prev, and said is the
// newest entry before it that is not a note.
func (in *stateJSON) faultOf(e, prev, said *entry, system bool) string {
	user := e.msg.Role == RoleUser
	_, twice := index(orNil(in.system), e.id)
	switch {
	case !system && twice:
		return fmt.Sprintf("two entries with ID %d", e.id)
	case system && e.msg.Role != RoleSystem:
		return fmt.Sprintf("role %s among the system entries", e.msg.Role)
	case e.turn < prev.turn || e.turn > in.turn || system && e.turn != 0:
		return fmt.Sprintf("turn is %d, want at least that of the entry before and at most %d, and 0 for a system entry", e.turn, in.turn)
	case user && e.turn == 0, user && said.msg.Role != RoleUser && e.turn <= said.turn:
		return fmt.Sprintf("user message in turn %d, want it to begin a new turn", e.turn)
	case e.head != e.id && e.turn != prev.turn:
		return fmt.Sprintf("the result is in turn %d, its exchange in turn %d", e.turn, prev.turn)
	case e.missing() < 0 || e.missing() > maxTotal:
		return fmt.Sprintf("missing is %d, want 0 to %d", e.missing(), int64(maxTotal))
	}
	return ""
}
