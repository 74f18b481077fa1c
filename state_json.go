package convo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// snapshotVersion is the version of a snapshot's JSON that this package writes, and the
// highest version that it reads.
const snapshotVersion = 1

// A stateJSON is the JSON form of a state, either the Data of a record or a snapshot. The
// Data of a record holds the difference from the state of the previous record, or in a
// full record from the state of an empty History. A snapshot is like a full record, but
// only has the fields in snapshotKeys. Apart from the scalars, a nil or empty field means
// no change.
type stateJSON struct {
	version int    // of a snapshot
	key     string // of the conversation
	log     string // names the log; in full records
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
	pins    []ID      // new pins
	unpin   []ID
	queue   *[]*queued      // all of it
	back    *[]Range        // what was taken back: all of it
	heads   *requestHeads   // of the last answered request
	sent    *requestFigures // the same
	left    *leftRow        // the newest row that an edit dropped and no rollback took back; zero: there is none any more

	// In Decisions, rows stand in place of entries that the application has. appendRows
	// writes them, and is nil elsewhere.
	rows       *rowList
	appendRows func(dst []byte) []byte

	// For the archive.
	undone    []Range
	past      []*entry
	summaries []Summary
	notes     []string
	lost      bool // Salvage made this record in place of one whose state is lost

	recent []string // IDs of the previous records, the newest last; in full records

	// Used while reading.
	tokens []int64 // of entries
	index  int     // index of the entry that could not be read, as in a snapshot
	failed ID      // its ID
}

// Scalars are the figures that each record holds completely. A snapshot has the fields
// down to model, and zero for the others.
type scalars struct {
	last          ID
	turn, touched int
	appended      int64
	model         string
	released      ID
	ever          int64
	edited        time.Time
	breaker       breaker // without its cause
	toolsSet      bool    // see knowledge
	meterFigures
	counted int64 // raw tokens of the view without ephemeral messages; those of learned, cal and seen are counted the same way
}

// fields returns the members of the JSON.
func (s *scalars) fields() []strictjson.Field {
	l := &s.limits
	return []strictjson.Field{
		{Key: "last", Value: (*int64)(&s.last)},
		{Key: "turn", Value: &s.turn},
		{Key: "touched", Value: &s.touched},
		{Key: "appended", Value: &s.appended},
		{Key: "model", Value: &s.model},
		{Key: "released", Value: (*int64)(&s.released)},
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

// check returns an error if a figure is out of range.
func (s *scalars) check() error {
	for _, f := range [...]struct {
		name        string
		value, most int64
	}{
		{"last", int64(s.last), maxID},
		{"turn", int64(s.turn), min(int64(s.last), maxTurn)},
		{"released", int64(s.released), int64(s.last)},
		{"touched", int64(s.touched), int64(s.turn)},
		{"appended", s.appended, maxTotal},
		{"ever", s.ever, maxTotal},
		{"failed_at", s.breaker.appended, s.ever},
		{"the limit of named", int64(s.named.limit), maxTotal},
		{"raw", s.counted, maxTotal},
	} {
		if f.value < 0 || f.value > f.most {
			return fmt.Errorf("%s is %d, want 0 to %d", f.name, f.value, f.most)
		}
	}
	if s.breaker.failures < 0 {
		return fmt.Errorf("failures is %d, want 0 or more", s.breaker.failures)
	}
	if at, ok := nanoseconds(s.edited); !ok || at == 0 {
		return fmt.Errorf("edited is %v, want a year from 1678 to 2261", s.edited)
	}
	if s.limits == (Limits{}) {
		return nil
	}
	l := s.limits
	l.Reserve = cmp.Or(l.Reserve, -1) // s.limits has its defaults, where 0 means none
	_, faults := l.withDefaults()
	return errors.Join(faults...)
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

// fields returns the members of the JSON, except for the IDs.
func (s *seenJSON) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "tools", Value: &s.tools}, {Key: "summary", Value: &s.summary}, {Key: "heard", Value: &s.heard}, {Key: "raw", Value: &s.raw}}
}

// MarshalJSON encodes s in the form that docs/format.md describes: the entries with their
// IDs, the pins, the summary, the key, the calibration, the messages in the queue, and
// the title and data set by SetMeta. Ephemeral messages, token counts and the originals
// of cut or cleared results are left out. The zero Snapshot has no key, and decodes to
// the zero Snapshot. A direct call is faster than json.Marshal, which checks each byte
// again.
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	out := stateJSON{
		version: snapshotVersion, key: s.key(),
		scalars: scalars{last: s.last, turn: s.turn, touched: s.touched, appended: s.appended, model: s.known().model, released: s.released},
		title:   changed("", s.meta.title), meta: changed("", s.meta.data),
		pins: s.pins, entries: s.list,
	}
	if models := s.carried(); len(models) > 0 {
		out.learned = &models
	}
	if s.summary != nil {
		out.summary = &s.summary.sum
	}
	out.tools = s.tools
	if sys := s.sys; len(sys) > 0 {
		out.system = &sys
	}
	if queue := s.queue; len(queue) > 0 {
		out.queue = &queue
	}
	if len(s.takenBack) > 0 {
		out.back = &s.takenBack
	}
	out.left = changed(leftRow{}, s.newestLeft())
	out.setRequest(nil, s.request)
	data, err := out.encode()
	if err != nil {
		return nil, err
	}
	return data, nil
}

// setRequest sets the changes of the last request. Both may be nil.
func (in *stateJSON) setRequest(from, to *request) {
	was, now := orNil(from), orNil(to)
	in.heads = changed(was.requestHeads, now.requestHeads)
	in.sent = changed(was.requestFigures, now.requestFigures)
}

// changed returns a pointer to the new value, or nil if it is equal to the old one.
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
	if s.tools != nil {
		dst = appendToolset(strictjson.Key(dst, "tools"), s.tools)
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
	if s.appendRows != nil {
		dst = s.appendRows(strictjson.Key(dst, "rows"))
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
	if s.back != nil {
		dst = appendArray(dst, "taken_back", *s.back, appendRange)
	}
	if s.left != nil {
		dst = strictjson.AppendObject(strictjson.Key(dst, "left"), s.left.fields())
	}
	if s.heads != nil {
		dst = strictjson.Text(dst, "heads", s.heads.text())
	}
	if s.sent != nil {
		dst = s.sent.append(dst)
	}
	dst = appendRanges(dst, "undone", s.undone)
	dst = appendList(dst, "past", s.past, one)
	dst = appendList(dst, "summaries", s.summaries, func(dst []byte, x Summary) []byte { return appendSummary(dst, &x) })
	dst = appendList(dst, "notes", s.notes, strictjson.AppendString)
	dst = strictjson.Bool(dst, "lost", s.lost)
	dst = appendList(dst, "recent", s.recent, strictjson.AppendString)
	return append(dst, '}'), err
}

// appendChanged appends a string member of an object, or nothing if s is nil.
func appendChanged(dst []byte, key string, s *string) []byte {
	if s == nil {
		return dst
	}
	return strictjson.AppendString(strictjson.Key(dst, key), *s)
}

// appendList appends an array member of an object, or nothing if the list is empty.
func appendList[E any](dst []byte, key string, list []E, add func([]byte, E) []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	return appendArray(dst, key, list, add)
}

// appendArray appends an array member of an object.
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
	dst = strictjson.Int(dst, "missing", e.missing())
	dst = strictjson.Bool(dst, "final", e.final)
	dst = strictjson.Bool(dst, "paused", e.marks.has(paused))
	dst = strictjson.Bool(dst, "bare", e.marks.has(bare))
	dst = strictjson.Bool(dst, "tools", e.tools && e.msg.Role != RoleTool && e.calls == nil)
	if made := e.made(); made != 0 {
		dst = strictjson.Text(dst, "made", fmt.Sprintf("%016x", uint64(made)))
	}
	dst, err := appendMessage(strictjson.Key(dst, "message"), &e.msg)
	return append(dst, '}'), err
}

// appendToolset appends the JSON of t.
func appendToolset(dst []byte, t *toolset) []byte {
	dst = strictjson.Text(append(dst, '{'), "key", t.key)
	dst = appendList(dst, "list", t.tools, func(dst []byte, t Tool) []byte { return strictjson.AppendObject(dst, t.fields()) })
	return append(dst, '}')
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

// readToolset reads what appendToolset has written.
func readToolset(r *strictjson.Reader) *toolset {
	t := new(toolset)
	for key := range r.Object {
		switch string(key) {
		case "key":
			t.key = r.Text()
		case "list":
			t.tools = readList(r, readTool)
		default:
			r.Unknown(key)
		}
	}
	if len(t.tools) > mostTools || len(t.key) > maxToolsKey { // fail early, as in readEntry
		r.Fail(fmt.Errorf("%d tools, or a key of %d bytes; want at most %d, and %d", len(t.tools), len(t.key), mostTools, maxToolsKey))
	}
	return t
}

func readTool(r *strictjson.Reader) (t Tool) {
	r.Fields(t.fields())
	if err := t.check(); err != nil {
		r.Fail(err)
	}
	return t
}

// appendSummary appends the JSON of s.
func appendSummary(dst []byte, s *Summary) []byte {
	dst = strictjson.AppendString(append(dst, `{"text":`...), s.Text)
	dst = strictjson.Text(dst, "names", s.Names)
	dst = appendRanges(dst, "covers", s.Covers)
	dst = appendRanges(dst, "read", s.Read)
	if s.before != nil {
		dst = appendSummary(strictjson.Key(dst, "before"), s.before)
	}
	dst = strictjson.Int(dst, "updates", s.Updates)
	dst = strictjson.Time(dst, "time", s.Time)
	dst = strictjson.AppendFields(dst, []strictjson.Field{{Key: "usage", Value: s.Usage.fields()}})
	dst = strictjson.Text(dst, "model", s.Model)
	if n := &s.Native; n.Format != "" {
		dst = strictjson.Text(append(strictjson.Key(dst, "native"), '{'), "format", n.Format)
		dst = strictjson.Text(dst, "model", n.Model)
		dst = appendArray(dst, "items", n.Items, strictjson.AppendString)
		dst = appendList(dst, "stood_for", n.stoodFor, func(dst []byte, c coveredView) []byte {
			return fmt.Appendf(dst, `"%016x%016x%016x"`, uint64(c.front), uint64(c.heads), uint64(c.list))
		})
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func readNative(r *strictjson.Reader) (n Native) {
	for key := range r.Object {
		switch string(key) {
		case "format":
			n.Format = r.Text()
		case "model":
			n.Model = r.Text()
		case "items":
			n.Items = readList(r, (*strictjson.Reader).Text)
		case "stood_for":
			n.stoodFor = readList(r, readCovered)
		default:
			r.Unknown(key)
		}
	}
	if err := n.fault(); err != nil {
		r.Fail(err)
	}
	if n.Format == "" {
		r.Fail(errors.New("native has no format"))
	}
	return n
}

// readCovered reads three sums.
func readCovered(r *strictjson.Reader) (c coveredView) {
	s := r.Text()
	var sums [3]uint64
	for i := range sums {
		var err error
		if len(s) == 48 {
			sums[i], err = strconv.ParseUint(s[16*i:16*i+16], 16, 64)
		}
		if err != nil || len(s) != 48 {
			r.Fail(fmt.Errorf("stood_for holds %.60q, want 48 hexadecimal digits", s))
			return c
		}
	}
	c.front, c.heads, c.list = fingerprint.Sum(sums[0]), fingerprint.Sum(sums[1]), fingerprint.List(sums[2])
	return c
}

// fields returns the members of the JSON.
func (u *Usage) fields() (fields []strictjson.Field) {
	for i, f := range u.figures() {
		fields = append(fields, strictjson.Field{Key: usageKeys[i], Value: f})
	}
	return fields
}

// appendRanges appends a member of an object that is an array of ranges.
func appendRanges(dst []byte, key string, ranges []Range) []byte {
	return appendList(dst, key, ranges, appendRange)
}

func appendRange(dst []byte, r Range) []byte {
	return strictjson.AppendObject(dst, r.fields())
}

// fields returns the members of the JSON.
func (r *Range) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "first", Value: (*int64)(&r.First)}, {Key: "last", Value: (*int64)(&r.Last)}}
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

// UnmarshalJSON decodes the output of MarshalJSON into s, which must be empty. Tokens are
// counted by [Heuristic]. If data is not valid or s is not empty, it returns a
// [*SnapshotError] and leaves s unchanged; the error matches [ErrVersion] if this package
// does not read the version of data. [Restore] checks roles, calls and results.
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
		return nil, &SnapshotError{Index: -1, Err: fmt.Errorf("%w %d, want %d; use the release of convo that wrote it, or a later one", ErrVersion, version, snapshotVersion)}
	}
	return readState(data, snapshotKeys[:], (*stateJSON).read)
}

// snapshotKeys are the fields of a snapshot's JSON.
var snapshotKeys = [...]string{
	"version", "key", "last", "turn", "touched", "appended", "model", "released", "title", "meta", "learned", "tools", "summary", "pins", "system", "entries", "queue", "taken_back", "left", "heads", "sent",
}

// decodeState reads the JSON of a record or of Decisions. An error is a *SnapshotError.
func decodeState(data []byte) (*stateJSON, error) {
	return readState(data, nil, (*stateJSON).readRecord)
}

// readState reads the JSON of a state, with read for each field that is not one of the
// scalars. If keys is not nil, only these fields are allowed. An error is a
// *SnapshotError.
func readState(data []byte, keys []string, read func(in *stateJSON, r *strictjson.Reader, key []byte)) (*stateJSON, error) {
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
			read(in, r, key)
		}
	}
	in.setTokens(r)
	if r.End(); r.Err() != nil {
		return nil, &SnapshotError{Index: in.index, ID: in.failed, Err: r.Err()}
	}
	in.index = 0
	return in, nil
}

// setTokens gives the entries the tokens that were read.
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

// read reads the value of a key that a snapshot may have, and that is not one of the
// scalars.
func (in *stateJSON) read(r *strictjson.Reader, key []byte) {
	switch string(key) {
	case "version":
		in.version = r.Int()
	case "key":
		in.key = r.Text()
	case "title":
		in.title = new(r.Text())
	case "meta":
		in.meta = new(r.Text())
	case "learned":
		in.learned = new(learned(readList(r, readCalibration)))
	case "tools":
		in.tools = readToolset(r)
	case "summary":
		in.summary = new(readSummary(r))
	case "system":
		in.system = new(in.readEntries(r, 0))
	case "entries":
		in.entries = in.readEntries(r, len(orNil(in.system)))
	case "pins":
		in.pins = readList(r, readID)
	case "queue":
		in.queue = new(readList(r, readQueued))
	case "taken_back":
		in.back = new(readRanges(r))
	case "left":
		in.left = new(leftRow)
		r.Fields(in.left.fields())
	case "heads":
		in.heads = readHeads(r)
	case "sent":
		in.sent = readFigures(r)
	default:
		r.Unknown(key)
	}
}

// readRecord is read for a record or Decisions, which have more keys.
func (in *stateJSON) readRecord(r *strictjson.Reader, key []byte) {
	switch string(key) {
	case "log":
		in.log = r.Text()
	case "cal":
		in.cal = readCalibration(r)
	case "seen":
		in.seen = readSeen(r)
	case "out":
		in.out = readRanges(r)
	case "counter":
		in.counter = r.Text()
	case "tokens":
		in.tokens = readList(r, (*strictjson.Reader).Int64)
	case "rows":
		in.rows = readRowList(r)
	case "unpin":
		in.unpin = readList(r, readID)
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
		in.read(r, key)
	}
}

// readEntries reads a list of entries. first is the index of the first of them in a
// snapshot.
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

// readVersion reads the version of a snapshot, and the fields before it.
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
		case "time":
			e.at, _ = nanoseconds(readTime(r))
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
			own.made = readSum(r)
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

// readSum reads a fingerprint.
func readSum(r *strictjson.Reader) fingerprint.Sum {
	s := r.Text()
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		r.Fail(fmt.Errorf("made is %.20q, want 16 hexadecimal digits", s))
	}
	return fingerprint.Sum(n)
}

// readTime reads a time that is valid for an entry.
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
		case "names":
			s.Names = r.Text()
		case "covers":
			s.Covers = readRanges(r)
		case "read":
			s.Read = readRanges(r)
		case "before":
			s.before = new(readSummary(r))
		case "updates":
			s.Updates = r.Int()
		case "time":
			s.Time = readTime(r)
		case "usage":
			r.Fields(s.Usage.fields())
		case "model":
			s.Model = r.Text()
		case "native":
			s.Native = readNative(r)
		default:
			r.Unknown(key)
		}
	}
	return s
}

// readRanges reads an array of ranges.
func readRanges(r *strictjson.Reader) (ranges []Range) {
	return readList(r, func(r *strictjson.Reader) (x Range) {
		r.Fields(x.fields())
		return x
	})
}

func readCalibration(r *strictjson.Reader) *calibration {
	c := new(calibration)
	r.Fields(c.fields())
	if !c.valid() { // fail early, as in readEntry
		r.Fail(fmt.Errorf("calibration of model %.40q is out of range", c.Model))
	}
	return c
}

// readList reads an array, with read for each element.
func readList[E any](r *strictjson.Reader, read func(*strictjson.Reader) E) (list []E) {
	for range r.Array {
		list = append(list, read(r))
	}
	return list
}

func readID(r *strictjson.Reader) ID { return ID(r.Int64()) }

// readQueued reads a queued message.
func readQueued(r *strictjson.Reader) *queued {
	m, _ := readMessage(r, nil)
	if m.Role != RoleUser {
		r.Fail(fmt.Errorf("queued message with role %q, want a user message", m.Role))
	}
	return &queued{msg: m}
}

// isZero reports whether in is the encoding of the zero Snapshot.
func (in *stateJSON) isZero() bool {
	return in.key == "" && in.scalars == (scalars{}) && in.title == nil && in.meta == nil && in.learned == nil && in.tools == nil && in.summary == nil &&
		in.pins == nil && in.system == nil && in.entries == nil && in.queue == nil && in.back == nil && in.left == nil
}

// metaOf returns the title and the application data.
func (in *stateJSON) metaOf() meta { return meta{orNil(in.title), orNil(in.meta)} }

// check returns an error if a value outside the entries is out of range.
func (in *stateJSON) check() error {
	if err := cmp.Or(in.metaOf().check(), in.scalars.check(), in.checkLeft()); err != nil {
		return err
	}
	switch {
	case !isKey(in.key):
		return fmt.Errorf("key is %.20q, want %c and %d lower-case letters", in.key, keyBegin, keyLen-1)
	case !slices.IsSorted(in.pins) || len(slices.Compact(slices.Clone(in.pins))) < len(in.pins):
		return errors.New("pins do not ascend")
	case !ascend(orNil(in.back), in.last):
		return fmt.Errorf("taken_back is %v, want ascending ranges from 1 to last, %d", orNil(in.back), in.last)
	case in.summary == nil:
		return nil
	case in.summary.Text == "" && in.version > 0:
		return errors.New("the summary has no text")
	}
	return in.summary.faultIn(in.last)
}

// faultIn returns an error for a figure of a summary that was read, of a view whose last ID is
// last.
func (s *Summary) faultIn(last ID) error {
	if n := s.Updates; n < 0 || n > maxUpdates {
		return fmt.Errorf("the summary has %d updates, want 0 to %d", n, maxUpdates)
	}
	if err := s.Usage.fault(); err != nil {
		return err
	}
	switch {
	case !ascend(s.Covers, last):
		return fmt.Errorf("the summary covers %v, want ascending ranges from 1 to last, %d", s.Covers, last)
	case !ascend(s.Read, last):
		return fmt.Errorf("the summary has read %v, want ascending ranges from 1 to last, %d", s.Read, last)
	case s.before == nil:
		return nil
	case s.before.before != nil || len(s.before.Read) > 0:
		return errors.New("the summary from before the reading has read something itself")
	}
	return s.before.faultIn(last)
}

// fields returns the members of the JSON.
func (r *leftRow) fields() []strictjson.Field {
	return []strictjson.Field{{Key: "id", Value: (*int64)(&r.id)}, {Key: "key", Value: &r.key}}
}

// checkLeft returns an error if left cannot be an entry that is not in the view.
func (in *stateJSON) checkLeft() error {
	left := orNil(in.left)
	_, isShown := index(in.entries, left.id)
	switch {
	case left == leftRow{} && in.version == 0:
		return nil // there is none any more
	case in.left != nil && (left.id < 1 || left.id > in.last || left.key == "" || len(left.key) > maxMessageKey || isShown):
		return fmt.Errorf("left is entry %d with the key %.40q, want an entry up to last, %d, that is not in the view, with a key", left.id, left.key, in.last)
	}
	return nil
}

// append appends the JSON of f: a list that ends before its last zeros.
func (f *requestFigures) append(dst []byte) []byte {
	all := f.numbers()
	n := len(all)
	for n > 0 && *all[n-1] == 0 {
		n--
	}
	return appendArray(dst, "sent", all[:n], func(dst []byte, n *int64) []byte { return strconv.AppendInt(dst, *n, 10) })
}

// readFigures reads what append has written.
func readFigures(r *strictjson.Reader) *requestFigures {
	f := new(requestFigures)
	all := f.numbers()
	for i, n := range readList(r, (*strictjson.Reader).Int64) {
		if i >= len(all) || n < 0 || n > maxTotal {
			r.Fail(fmt.Errorf("number %d of sent is %d, want at most %d numbers from 0 to %d", i, n, len(all), int64(maxTotal)))
			break
		}
		*all[i] = n
	}
	return f
}

// text returns h as it is saved, and readHeads reads that.
func (h *requestHeads) text() string { return sumsText(h.model, h.tools, h.sys, h.summary, h.eph) }

func readHeads(r *strictjson.Reader) *requestHeads {
	sums := readSums(r, 5)
	return &requestHeads{sums[0], sums[1], sums[2], sums[3], sums[4]}
}

// ascend reports whether the ranges ascend, from 1 to last.
func ascend(ranges []Range, last ID) bool {
	prev := ID(0)
	for _, r := range ranges {
		if r.First <= prev || r.Last < r.First {
			return false
		}
		prev = r.Last
	}
	return prev <= last
}

// finish checks a list, either the system entries or the others, and counts its tokens
// and calls if count is set. first is the index of its first entry in the snapshot.
func (in *stateJSON) finish(s *state, list []*entry, first int, system, count bool) error {
	prev, said := &entry{}, &entry{} // the previous entry, and the previous entry that is not a note
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
		case e.missing() < 0 || e.missing() > maxTotal:
			fault = fmt.Sprintf("missing is %d, want 0 to %d", e.missing(), int64(maxTotal))
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
