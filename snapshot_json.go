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
// and the highest that it reads. Version 1 has no title, no meta, and of a summary
// neither usage nor model.
const snapshotVersion = 2

// A snapshotJSON is what the JSON of a snapshot says.
type snapshotJSON struct {
	version         int
	key             string
	last            ID
	turn, touched   int
	appended        int64
	meta            meta
	knowledge       *knowledge
	summary         *Summary
	pins            []ID
	system, entries []*entry
	queue           []*queued
	uncounted       bool // state leaves tokens and calls of entries alone, for a reader that counts itself
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
	size := 1024 + 16*len(s.pins)
	for i := range s.len() {
		size += 96 + s.at(i).msg.jsonSize()
	}
	dst := append(make([]byte, 0, size), '{')
	dst = strictjson.Int(dst, "version", snapshotVersion)
	dst = strictjson.Text(dst, "key", s.key())
	dst = strconv.AppendInt(strictjson.Key(dst, "last_id"), int64(s.last), 10)
	dst = strconv.AppendInt(strictjson.Key(dst, "turn"), int64(s.turn), 10)
	dst = strictjson.Int(dst, "touched_turn", s.touched)
	dst = strictjson.Int(dst, "appended", s.appended)
	dst = strictjson.Text(dst, "title", s.meta.title)
	dst = strictjson.Text(dst, "meta", s.meta.data)
	if model, models := s.known().model, s.carried(); model != "" || models != nil {
		dst = append(strictjson.Key(dst, "calibration"), '{')
		dst = strictjson.Text(dst, "model", model)
		dst = appendList(dst, "models", models, appendCalibration)
		dst = append(dst, '}')
	}
	if s.summary != nil {
		dst = appendSummary(strictjson.Key(dst, "summary"), &s.summary.sum)
	}
	dst = appendList(dst, "pins", s.pins, func(dst []byte, id ID) []byte { return strconv.AppendInt(dst, int64(id), 10) })
	var err error
	entry := func(dst []byte, e *entry) []byte {
		dst, failed := appendEntry(dst, e)
		err = cmp.Or(err, failed)
		return dst
	}
	dst = appendList(dst, "system", s.sys, entry)
	dst = appendList(dst, "entries", s.list, entry)
	dst = appendList(dst, "queued", s.queue, func(dst []byte, q *queued) []byte {
		dst, failed := appendMessage(dst, &q.msg)
		err = cmp.Or(err, failed)
		return dst
	})
	if err != nil {
		return nil, err
	}
	return append(dst, '}'), nil
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
	if u := s.Usage; u != (Usage{}) {
		dst = append(strictjson.Key(dst, "usage"), '{')
		for i, f := range u.figures() {
			dst = strictjson.Int(dst, usageKeys[i], *f)
		}
		dst = append(dst, '}')
	}
	return append(strictjson.Text(dst, "model", s.Model), '}')
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
	dst = strictjson.AppendString(append(dst, `{"model":`...), c.Model)
	for _, f := range []struct {
		key   string
		value float64
	}{{"ratio", c.Ratio}, {"weight", c.Weight}, {"spread", c.Spread}, {"seen", c.Seen}} {
		dst = strconv.AppendFloat(strictjson.Key(dst, f.key), f.value, 'g', -1, 64)
	}
	dst = strconv.AppendInt(strictjson.Key(dst, "tokens"), c.Tokens, 10)
	dst = strconv.AppendInt(strictjson.Key(dst, "raw"), c.Raw, 10)
	dst = strictjson.Int(dst, "doubt", c.Doubt)
	dst = strconv.AppendInt(strictjson.Key(dst, "small_tokens"), c.SmallTokens, 10)
	dst = strconv.AppendInt(strictjson.Key(dst, "small_raw"), c.SmallRaw, 10)
	return append(dst, '}')
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
	in, err := readSnapshot(data)
	if err != nil {
		return err
	}
	if in.isZero() {
		return nil
	}
	next, err := in.state()
	if err != nil {
		return err
	}
	s.state = next
	return nil
}

// readSnapshot reads a snapshot. An error is a *SnapshotError.
func readSnapshot(data []byte) (*snapshotJSON, error) {
	version, err := readVersion(data)
	switch {
	case err != nil:
		return nil, &SnapshotError{Index: -1, Err: err}
	case version < 1 || version > snapshotVersion:
		return nil, &SnapshotError{Index: -1, Err: fmt.Errorf("%w %d, want 1 to %d", ErrVersion, version, snapshotVersion)}
	}
	in := &snapshotJSON{version: version}
	r := strictjson.NewReader(data)
	index, id := -1, ID(0) // of the entry that could not be read
	entries := func(first int) (list []*entry) {
		for i := range r.Array {
			e := readEntry(r)
			if list = append(list, e); r.Err() != nil {
				index, id = first+i, e.id
			}
		}
		return list
	}
	for key := range r.Object {
		switch string(key) {
		case "version":
			r.Int()
		case "key":
			in.key = r.Text()
		case "last_id":
			in.last = ID(r.Int64())
		case "turn":
			in.turn = r.Int()
		case "touched_turn":
			in.touched = r.Int()
		case "appended":
			in.appended = r.Int64()
		case "calibration":
			if !r.Null() {
				in.knowledge = readKnowledge(r)
			}
		case "summary":
			if !r.Null() {
				in.summary = new(readSummary(r, version))
			}
		case "pins":
			in.pins = readList(r, readID)
		case "system":
			in.system = entries(0)
		case "entries":
			in.entries = entries(len(in.system))
		case "queued":
			in.queue = readList(r, readQueued)
		default:
			switch {
			case version > 1 && string(key) == "title":
				in.meta.title = r.Text()
			case version > 1 && string(key) == "meta":
				in.meta.data = r.Text()
			default:
				r.Unknown(key)
			}
		}
	}
	if r.End(); r.Err() != nil {
		return nil, &SnapshotError{Index: index, ID: id, Err: r.Err()}
	}
	return in, nil
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

// readSummary reads a summary as a snapshot of the version has it.
func readSummary(r *strictjson.Reader, version int) (s Summary) {
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
		default:
			switch {
			case version > 1 && string(key) == "usage":
				s.Usage = readUsage(r)
			case version > 1 && string(key) == "model":
				s.Model = r.Text()
			default:
				r.Unknown(key)
			}
		}
	}
	return s
}

func readUsage(r *strictjson.Reader) (u Usage) {
	figures := u.figures()
	for key := range r.Object {
		if i := slices.Index(usageKeys[:], string(key)); i >= 0 {
			*figures[i] = r.Int()
		} else {
			r.Unknown(key)
		}
	}
	return u
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

// readKnowledge reads the calibrations of a snapshot.
func readKnowledge(r *strictjson.Reader) *knowledge {
	k := new(knowledge)
	for key := range r.Object {
		switch string(key) {
		case "model":
			k.model = r.Text()
		case "models":
			k.learned = readList(r, readCalibration)
		default:
			r.Unknown(key)
		}
	}
	return k
}

func readCalibration(r *strictjson.Reader) *calibration {
	c := new(calibration)
	for key := range r.Object {
		switch string(key) {
		case "model":
			c.Model = r.Text()
		case "ratio":
			c.Ratio = r.Float()
		case "weight":
			c.Weight = r.Float()
		case "spread":
			c.Spread = r.Float()
		case "seen":
			c.Seen = r.Float()
		case "tokens":
			c.Tokens = r.Int64()
		case "raw":
			c.Raw = r.Int64()
		case "doubt":
			c.Doubt = r.Int64()
		case "small_tokens":
			c.SmallTokens = r.Int64()
		case "small_raw":
			c.SmallRaw = r.Int64()
		default:
			r.Unknown(key)
		}
	}
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
func (in *snapshotJSON) isZero() bool {
	return reflect.DeepEqual(*in, snapshotJSON{version: in.version})
}

// state checks in and returns the state that it describes.
func (in *snapshotJSON) state() (state, error) {
	if err := in.check(); err != nil {
		return state{}, &SnapshotError{Index: -1, Err: err}
	}
	s := state{
		id:   &identity{counter: newCounter(nil, Overheads{}), key: in.key},
		last: in.last, touched: in.touched, appended: in.appended, meta: in.meta, pins: in.pins,
		knowledge: cmp.Or(in.knowledge, new(knowledge)), queue: in.queue,
	}
	if err := in.finish(&s, in.system, 0, true); err != nil {
		return s, err
	}
	if err := in.finish(&s, in.entries, len(in.system), false); err != nil {
		return s, err
	}
	sys, list := in.system, in.entries
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
	if in.summary != nil {
		s.summary = &placedSummary{sum: *in.summary, raw: s.id.summaryTokens(in.summary.Text)}
		s.summary.sum.Tokens = clampInt(s.summary.raw)
	}
	return s, nil
}

// check returns an error if anything but the entries is out of range.
func (in *snapshotJSON) check() error {
	if err := in.meta.check(); err != nil {
		return err
	}
	switch {
	case !isKey(in.key):
		return fmt.Errorf("key is %.20q, want %c and %d lower-case letters", in.key, keyBegin, keyLen-1)
	case in.last < 0 || in.last > maxID:
		return fmt.Errorf("last_id is %d, want 0 to %d", in.last, int64(maxID))
	case in.turn < 0 || in.turn > maxTurn || ID(in.turn) > in.last:
		return fmt.Errorf("turn is %d, want 0 to last_id and at most %d", in.turn, maxTurn)
	case in.touched < 0 || in.touched > in.turn:
		return fmt.Errorf("touched_turn is %d, want 0 to turn, %d", in.touched, in.turn)
	case in.appended < 0 || in.appended > maxTotal:
		return fmt.Errorf("appended is %d, want 0 to %d", in.appended, int64(maxTotal))
	case !slices.IsSorted(in.pins) || len(slices.Compact(slices.Clone(in.pins))) < len(in.pins):
		return errors.New("pins do not ascend")
	}
	if in.summary == nil {
		return nil
	}
	if in.summary.Text == "" {
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
			return fmt.Errorf("the summary covers %d to %d, want ascending ranges from 1 to last_id, %d", r.First, r.Last, in.last)
		}
		last = r.Last
	}
	return nil
}

// finish checks a list, which is either the system entries or the others, and counts
// it. first is the index of its first entry in the snapshot.
func (in *snapshotJSON) finish(s *state, list []*entry, first int, system bool) error {
	prev, said := &entry{}, &entry{} // the entry before, and that before which is no note
	for i, e := range list {
		user := e.msg.Role == RoleUser
		e.note = !system && e.msg.Role == RoleSystem
		var fault string
		switch {
		case e.id <= prev.id || e.id > in.last:
			fault = fmt.Sprintf("ID does not ascend from %d, or is above last_id, %d", prev.id, in.last)
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
		if !in.uncounted {
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
