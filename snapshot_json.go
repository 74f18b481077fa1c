package convo

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// snapshotVersion is the version of a snapshot's JSON that this package writes,
// and the only one that it reads.
const snapshotVersion = 1

type snapshotJSON struct {
	Version     int              `json:"version"`
	Key         string           `json:"key,omitempty"`
	Last        ID               `json:"last_id"`
	Turn        int              `json:"turn"`
	Touched     int              `json:"touched_turn,omitempty"`
	Appended    int64            `json:"appended,omitempty"`
	Calibration *calibrationJSON `json:"calibration,omitempty"`
	Summary     *summaryJSON     `json:"summary,omitempty"`
	Pins        []ID             `json:"pins,omitempty"`
	System      []entryJSON      `json:"system,omitempty"`
	Entries     []entryJSON      `json:"entries,omitempty"`
	Queued      []queuedJSON     `json:"queued,omitempty"`
}

// calibrationJSON is what usage reports have taught. A reader may ignore it: it
// only makes estimates better.
type calibrationJSON struct {
	Model  string  `json:"model,omitempty"` // that of the next requests
	Models learned `json:"models,omitempty"`
}

type summaryJSON struct {
	Text    string    `json:"text"`
	Covers  []Range   `json:"covers,omitempty"`
	Updates int       `json:"updates,omitempty"`
	Time    time.Time `json:"time,omitzero"`
}

type entryJSON struct {
	entryFields
}

type entryFields struct {
	ID      ID        `json:"id"`
	Turn    int       `json:"turn,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	Message Message   `json:"message"`
}

// A queuedJSON is a message that waits in the queue.
type queuedJSON struct{ Message }

// UnmarshalJSON returns an error for anything but a user message.
func (q *queuedJSON) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &q.Message); err != nil {
		return err
	}
	if q.Role != RoleUser {
		return fmt.Errorf("queued message with role %q, want a user message", q.Role)
	}
	return nil
}

// UnmarshalJSON returns an error for a value that cannot be an entry, so that a
// long list of such values is not read into memory.
func (e *entryJSON) UnmarshalJSON(data []byte) error {
	if err := decodeStrict(data, &e.entryFields); err != nil {
		return err
	}
	if e.ID < 1 || e.Message.Role == RoleNone {
		return fmt.Errorf("entry with ID %d and role %q, want a positive ID and a message", e.ID, e.Message.Role)
	}
	return nil
}

// MarshalJSON encodes s in the form that the package documentation describes:
// the entries with their IDs, pins, the summary, the key and the calibration, and
// the messages that wait in the queue.
// Ephemeral messages are left out, and so are token counts, because the reader
// counts again. The zero Snapshot has no key, and decodes to the zero Snapshot.
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	out := snapshotJSON{
		Version: snapshotVersion, Key: s.key(), Last: s.last, Turn: s.turn, Touched: s.touched,
		Appended: s.appended, Calibration: s.calibrationJSON(), Pins: s.pins,
	}
	if s.summary != nil {
		sum := &s.summary.sum
		out.Summary = &summaryJSON{Text: sum.Text, Covers: sum.Covers, Updates: sum.Updates, Time: sum.Time.UTC()}
	}
	for _, e := range s.sys {
		out.System = append(out.System, e.json())
	}
	for _, e := range s.list {
		out.Entries = append(out.Entries, e.json())
	}
	for _, q := range s.queue {
		out.Queued = append(out.Queued, queuedJSON{q.msg})
	}
	return json.Marshal(out)
}

func (e *entry) json() entryJSON {
	return entryJSON{entryFields{ID: e.id, Turn: e.turn, Time: e.time().UTC(), Message: e.msg}}
}

// UnmarshalJSON decodes into s, which must be empty, what MarshalJSON has
// written. Tokens are counted by [Heuristic]. It returns a [*SnapshotError],
// and leaves s unchanged, when data is not valid or s is not empty; the error
// matches [ErrVersion] when data has a version that this package does not read.
// Whether roles follow each other and calls and results match is checked by
// [Restore].
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	if s.owner != nil || s.id != nil || s.len() > 0 {
		return &SnapshotError{Index: -1, Err: fmt.Errorf("cannot decode into a snapshot with %d entries; use an empty one", s.len())}
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return &SnapshotError{Index: -1, Err: err}
	}
	if v.Version != snapshotVersion {
		return &SnapshotError{Index: -1, Err: fmt.Errorf("%w %d, want %d", ErrVersion, v.Version, snapshotVersion)}
	}
	var in snapshotJSON
	err := decodeStrict(data, &in)
	if err == nil {
		err = checkKeys(data)
	}
	if err != nil {
		return &SnapshotError{Index: -1, Err: err}
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

// calibrationJSON returns what a snapshot of s is saved with, nil if nothing was
// learned and no model was named.
func (s *state) calibrationJSON() *calibrationJSON {
	c := calibrationJSON{Model: s.known().model, Models: s.carried()}
	if c.Model == "" && c.Models == nil {
		return nil
	}
	return &c
}

func (in *snapshotJSON) models() learned {
	if in.Calibration == nil {
		return nil
	}
	return in.Calibration.Models
}

// isZero reports whether in is what the zero Snapshot is encoded as.
func (in *snapshotJSON) isZero() bool {
	return reflect.DeepEqual(*in, snapshotJSON{Version: snapshotVersion})
}

// state checks in and returns the state that it describes.
func (in *snapshotJSON) state() (state, error) {
	s := state{last: in.Last, touched: in.Touched, appended: in.Appended, pins: in.Pins}
	s.knowledge = new(knowledge)
	if c := in.Calibration; c != nil {
		s.knowledge = &knowledge{model: text.Valid(c.Model), learned: c.Models}
	}
	for _, q := range in.Queued {
		s.queue = append(s.queue, queued{msg: q.Message})
	}
	if err := in.check(); err != nil {
		return s, &SnapshotError{Index: -1, Err: err}
	}
	s.id = &identity{counter: newCounter(nil, Overheads{}), key: in.Key}
	sys, err := in.entries(&s, in.System, 0, true)
	if err != nil {
		return s, err
	}
	list, err := in.entries(&s, in.Entries, len(in.System), false)
	if err != nil {
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
	s.load(sys, list, in.Turn)
	if in.Summary != nil {
		sum := in.Summary
		s.summary = &placedSummary{sum: Summary{Text: sum.Text, Covers: sum.Covers, Updates: sum.Updates, Time: sum.Time}}
		s.summary.raw = s.id.summaryTokens(sum.Text)
		s.summary.sum.Tokens = clampInt(s.summary.raw)
	}
	return s, nil
}

// check returns an error if anything but the entries is out of range.
func (in *snapshotJSON) check() error {
	validKey := len(in.Key) == keyLen
	for _, c := range []byte(in.Key) {
		validKey = validKey && 'a' <= c && c <= 'z'
	}
	switch {
	case !validKey:
		return fmt.Errorf("key is %.20q, want %d lower-case letters", in.Key, keyLen)
	case in.Last < 0 || in.Last > maxID:
		return fmt.Errorf("last_id is %d, want 0 to %d", in.Last, int64(maxID))
	case in.Turn < 0 || in.Turn > maxTurn || ID(in.Turn) > in.Last:
		return fmt.Errorf("turn is %d, want 0 to last_id and at most %d", in.Turn, maxTurn)
	case in.Touched < 0 || in.Touched > in.Turn:
		return fmt.Errorf("touched_turn is %d, want 0 to turn, %d", in.Touched, in.Turn)
	case in.Appended < 0 || in.Appended > maxTotal:
		return fmt.Errorf("appended is %d, want 0 to %d", in.Appended, int64(maxTotal))
	case !slices.IsSorted(in.Pins) || len(slices.Compact(slices.Clone(in.Pins))) < len(in.Pins):
		return errors.New("pins do not ascend")
	}
	for _, c := range in.models() {
		switch {
		case c == nil:
			return errors.New("calibration is null")
		case !c.valid():
			return fmt.Errorf("calibration of model %.40q is out of range", c.Model)
		}
	}
	if in.Summary == nil {
		return nil
	}
	if in.Summary.Text == "" {
		return errors.New("the summary has no text")
	}
	if n := in.Summary.Updates; n < 0 || n > maxUpdates {
		return fmt.Errorf("the summary has %d updates, want 0 to %d", n, maxUpdates)
	}
	if year := in.Summary.Time.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the time of the summary is %v, want the years 0 to 9999", in.Summary.Time)
	}
	last := ID(-1)
	for _, r := range in.Summary.Covers {
		if r.First < 1 || r.First <= last || r.Last < r.First || r.Last > in.Last {
			return fmt.Errorf("the summary covers %d to %d, want ascending ranges from 1 to last_id, %d", r.First, r.Last, in.Last)
		}
		last = r.Last
	}
	return nil
}

// entries checks read, which are either the system entries or the others, and
// returns them as entries. first is the index of the first one in the snapshot.
func (in *snapshotJSON) entries(s *state, read []entryJSON, first int, system bool) ([]*entry, error) {
	list := make([]*entry, 0, len(read))
	prev := &entry{}
	for i, r := range read {
		at, timed := nanoseconds(r.Time)
		e := &entry{msg: r.Message, id: r.ID, turn: r.Turn, at: at}
		user := e.msg.Role == RoleUser
		var fault string
		switch {
		case e.id <= prev.id || e.id > in.Last:
			fault = fmt.Sprintf("ID does not ascend from %d, or is above last_id, %d", prev.id, in.Last)
		case system && e.msg.Role != RoleSystem:
			fault = fmt.Sprintf("role %s among the system entries", e.msg.Role)
		case !system && e.msg.Role == RoleSystem:
			fault = "role system after the system entries"
		case e.turn < prev.turn || e.turn > in.Turn || e.msg.Role == RoleSystem && e.turn != 0:
			fault = fmt.Sprintf("turn is %d, want at least that of the entry before and at most %d, and 0 for a system entry", e.turn, in.Turn)
		case user && e.turn == 0, user && prev.msg.Role != RoleUser && e.turn <= prev.turn:
			fault = fmt.Sprintf("user message in turn %d, want it to begin a new turn", e.turn)
		case !timed:
			fault = fmt.Sprintf("time is %v, want a year from 1678 to 2261", r.Time)
		}
		if fault != "" {
			return nil, &SnapshotError{Index: first + i, ID: e.id, Err: errors.New(fault)}
		}
		e.head = e.id
		e.tokens = s.id.message(&e.msg)
		e.calls = newCalls(&e.msg, s.id.counter)
		list = append(list, e)
		prev = e
	}
	return list, nil
}
