package convo

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// snapshotVersion is the version of the JSON of a snapshot that this package
// writes. It reads this one and no other.
const snapshotVersion = 1

type snapshotJSON struct {
	Version  int          `json:"version"`
	Key      string       `json:"key"`
	Last     ID           `json:"last_id"`
	Turn     int          `json:"turn"`
	Touched  int          `json:"touched_turn,omitempty"`
	Appended int64        `json:"appended,omitempty"`
	Model    string       `json:"model,omitempty"`
	Learned  learned      `json:"calibration,omitempty"`
	Summary  *summaryJSON `json:"summary,omitempty"`
	Pins     []ID         `json:"pins,omitempty"`
	System   []entryJSON  `json:"system,omitempty"`
	Entries  []entryJSON  `json:"entries,omitempty"`
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

// UnmarshalJSON stops at the first entry that cannot be one, before a long
// list of such is in memory.
func (e *entryJSON) UnmarshalJSON(data []byte) error {
	if err := decodeStrict(data, &e.entryFields); err != nil {
		return err
	}
	if e.ID < 1 || e.Message.Role == RoleNone {
		return errors.New("an entry without an id or without a message")
	}
	return nil
}

// maxID keeps IDs far from overflow and exact in every JSON reader.
const maxID = 1 << 53

// MarshalJSON writes s: entries with their IDs, pins, the summary, the key and
// the calibration; no ephemeral messages, and no token counts, for who reads
// it counts anew.
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	out := snapshotJSON{
		Version: snapshotVersion, Key: s.key(), Last: s.last, Turn: s.turn, Touched: s.touched,
		Appended: s.appended, Model: s.known().model, Learned: s.carried(), Pins: s.pins,
	}
	if s.slot != nil {
		sum := &s.slot.sum
		out.Summary = &summaryJSON{Text: sum.Text, Covers: sum.Covers, Updates: sum.Updates, Time: sum.Time.UTC()}
	}
	for _, e := range s.sys {
		out.System = append(out.System, e.json())
	}
	for _, e := range s.list {
		out.Entries = append(out.Entries, e.json())
	}
	return json.Marshal(out)
}

func (e *entry) json() entryJSON {
	return entryJSON{entryFields{ID: e.id, Turn: e.turn, Time: time.Unix(0, e.at).UTC(), Message: e.msg}}
}

// UnmarshalJSON fills an empty snapshot with what MarshalJSON wrote; one that
// holds something does not change. Tokens are counted by [Heuristic]. What is
// wrong is a [*SnapshotError], and s stays as it was; whether calls and
// results pair is for [Restore] to say.
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	if s.owner != nil || s.id != nil || s.len() > 0 {
		return &SnapshotError{Index: -1, Err: errors.New("decoding into a snapshot that is not empty")}
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return &SnapshotError{Index: -1, Err: err}
	}
	if v.Version != snapshotVersion {
		return &SnapshotError{Index: -1, Err: fmt.Errorf("version %d, this package reads %d: %w", v.Version, snapshotVersion, ErrVersion)}
	}
	var in snapshotJSON
	if err := decodeStrict(data, &in); err != nil {
		return &SnapshotError{Index: -1, Err: err}
	}
	next, err := in.state()
	if err != nil {
		return err
	}
	s.state = next
	return nil
}

// state checks what was read and makes a state of it.
func (in *snapshotJSON) state() (state, error) {
	s := state{last: in.Last, turn: in.Turn, touched: in.Touched, appended: in.Appended, pins: in.Pins}
	s.knowledge = &knowledge{model: validText(in.Model), learned: in.Learned}
	if err := in.check(); err != nil {
		return s, &SnapshotError{Index: -1, Err: err}
	}
	s.id = &identity{counter: newCounter(nil, Overheads{}), key: in.Key}
	var err error
	if s.sys, err = in.entries(&s, in.System, 0, true); err != nil {
		return s, err
	}
	if s.list, err = in.entries(&s, in.Entries, len(in.System), false); err != nil {
		return s, err
	}
	s.setHeads()
	for _, pin := range s.pins {
		if i, ok := index(s.list, pin); !ok || s.list[i].head != pin {
			return s, &SnapshotError{Index: -1, ID: pin, Err: fmt.Errorf("pin of %d, where no exchange begins", pin)}
		}
	}
	for _, e := range s.sys {
		if _, ok := index(s.list, e.id); ok {
			return s, &SnapshotError{Index: -1, ID: e.id, Err: fmt.Errorf("ID %d twice", e.id)}
		}
	}
	s.sysRaw, s.listRaw, s.turns = rawOf(s.sys), rawOf(s.list), countTurns(s.list)
	s.sumPins()
	if in.Summary != nil {
		sum := in.Summary
		s.slot = &slot{sum: Summary{Text: sum.Text, Covers: sum.Covers, Updates: sum.Updates, Time: sum.Time}}
		s.slot.raw = s.id.summaryTokens(sum.Text)
		s.slot.sum.Tokens = clampInt(s.slot.raw)
	}
	return s, nil
}

// check looks at all but the entries.
func (in *snapshotJSON) check() error {
	validKey := len(in.Key) == keyLen
	for _, c := range []byte(in.Key) {
		validKey = validKey && 'a' <= c && c <= 'z'
	}
	switch {
	case !validKey:
		return fmt.Errorf("key %.20q, want %d letters", in.Key, keyLen)
	case in.Last < 0 || in.Last > maxID:
		return fmt.Errorf("last_id %d out of range", in.Last)
	case in.Turn < 0 || int64(in.Turn) > maxID/2 || in.Touched < 0 || in.Touched > in.Turn:
		return fmt.Errorf("turn %d or touched_turn %d out of range", in.Turn, in.Touched)
	case in.Appended < 0 || in.Appended > maxTotal:
		return fmt.Errorf("appended %d out of range", in.Appended)
	case !slices.IsSorted(in.Pins) || len(slices.Compact(slices.Clone(in.Pins))) < len(in.Pins):
		return errors.New("pins do not ascend")
	}
	for _, c := range in.Learned {
		if !c.valid() {
			return errors.New("calibration out of range")
		}
	}
	if in.Summary == nil {
		return nil
	}
	if in.Summary.Text == "" || in.Summary.Updates < 0 {
		return errors.New("summary without a text or with a negative count of updates")
	}
	last := ID(-1)
	for _, r := range in.Summary.Covers {
		if r.First < 1 || r.First <= last || r.Last < r.First || r.Last > in.Last {
			return fmt.Errorf("summary covers %d to %d, which do not ascend or were not given", r.First, r.Last)
		}
		last = r.Last
	}
	return nil
}

// entries makes entries of what was read, system entries or the others. first
// is the index of the first.
func (in *snapshotJSON) entries(s *state, read []entryJSON, first int, system bool) ([]*entry, error) {
	list := make([]*entry, 0, len(read))
	prev := &entry{}
	for i, r := range read {
		e := &entry{msg: r.Message, id: r.ID, turn: r.Turn, at: r.Time.UnixNano()}
		user := e.msg.Role == RoleUser
		var fault string
		switch {
		case e.id <= prev.id || e.id > in.Last:
			fault = "IDs do not ascend up to last_id"
		case system != (e.msg.Role == RoleSystem):
			fault = "system entries and others are not apart"
		case e.turn < prev.turn || e.turn > in.Turn || e.msg.Role == RoleSystem && e.turn != 0:
			fault = "turns do not ascend up to the newest"
		case user && e.turn == 0, user && prev.msg.Role != RoleUser && e.turn <= prev.turn:
			fault = "a user message does not begin a turn"
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

func countTurns(list []*entry) int {
	n, turn := 0, 0
	for _, e := range list {
		if e.turn > turn {
			turn = e.turn
			n++
		}
	}
	return n
}
