package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/seed-c1b73e60/convo"
)

// A saved is what Decisions returns.
type saved struct {
	Version   int             `json:"version"`
	Rows      int             `json:"rows"`              // how many messages of the list were synced, without those in Unnamed that are loose
	Unnamed   []unnamed       `json:"unnamed,omitempty"` // what has entries that the keys of the rows do not name
	Waiting   []convo.Message `json:"waiting,omitempty"` // what Add could not append yet
	Decisions json.RawMessage `json:"decisions"`         // of the History
}

// An unnamed is a row whose entries have no keys.
type unnamed struct {
	First convo.ID `json:"first,omitempty"` // its first entry, if that is in the view
	Count int      `json:"count"`           // of its entries
	Key   string   `json:"key,omitempty"`   // of the value
	Place int      `json:"place"`           // in the list, after the system messages; -1: it is not there
	Loose bool     `json:"loose,omitempty"`
}

const savedVersion = 1

// Decisions returns what Resume needs besides the framework's list: what the History has
// decided, a few kilobytes, and which messages of the list it has. It needs to be stored
// when Status.Decisions of the History has changed, and after Add. The messages of Add are
// in it as convo has them, whatever else the framework has put on them.
//
// The History must not name messages itself, by Options.Key. Errors are those of
// History.Decisions.
func (m *Mirror[M]) Decisions() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.h.Decisions()
	if err != nil {
		return nil, err
	}
	out := saved{Version: savedVersion, Rows: len(m.rows), Decisions: d}
	shown := m.h.Snapshot()
	add := func(r *row[M], loose bool) {
		u := unnamed{First: r.first, Count: len(r.sums), Key: r.key, Place: r.place, Loose: loose}
		if r.first == 0 || !r.isIn(shown) {
			u.First = 0
		}
		if u.First > 0 || loose && u.Place >= 0 {
			out.Unnamed = append(out.Unnamed, u)
		}
	}
	for _, r := range m.rows {
		if r.key == "" && m.codec.Key != nil {
			add(r, false)
		}
	}
	for _, r := range m.loose {
		add(r, true)
	}
	for _, it := range m.waiting {
		for i := range it.msgs {
			msg := it.msgs[i]
			msg.Key = it.key
			out.Waiting = append(out.Waiting, msg)
		}
	}
	return json.Marshal(out)
}

// Resume returns a Mirror and its History as they were when Decisions returned data. list is
// the framework's list, which may have grown since: what is new is appended by the next Sync.
// Tools, ephemeral messages and OnCompaction are the program's to set again, as with
// [convo.Resume]; the system messages of the list are set by Sync.
//
// A message of the list that is in view and is missing or has changed is a
// [*convo.RowError], and a list that is too short a [*convo.ValueError]. Other errors are
// those of Decode, [convo.ReadDecisions] and [convo.Resume]. With any error, the Mirror is
// nil, and a new History may begin with the whole list.
func Resume[M any](data []byte, list []M, codec Codec[M], opts *convo.Options) (m *Mirror[M], err error) {
	defer func() {
		if err == nil {
			return
		}
		if m != nil && m.h != nil {
			err = errors.Join(err, m.h.Close())
		}
		m = nil
	}()
	defer catch(&err)
	var in saved
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("mirror: not what Decisions has returned: %w", err)
	}
	if in.Version != savedVersion {
		return nil, fmt.Errorf("mirror: Decisions of version %d, want %d; use the release of convo that wrote it, or a later one: %w", in.Version, savedVersion, convo.ErrVersion)
	}
	d, err := convo.ReadDecisions(in.Decisions)
	if err != nil {
		return nil, err
	}
	m = empty(nil, codec)
	items, _, err := m.read(list)
	if err != nil {
		return nil, err
	}
	items = items[frontOf(items):]
	apart := map[int]bool{}
	for _, u := range in.Unnamed {
		if u.Place >= len(items) {
			return nil, tooShort(items, u.Place+1)
		}
		apart[u.Place] = u.Loose
	}
	var rows []*item[M]
	for i, it := range items {
		if it.place = i; !apart[i] && len(rows) < in.Rows {
			m.name(it, len(rows))
			rows = append(rows, it)
		}
	}
	if len(rows) < in.Rows {
		return nil, tooShort(rows, in.Rows)
	}
	if m.h, err = convo.Resume(d, needed(d, rows), opts); err != nil {
		return m, err
	}
	if err := m.find(rows, items, in.Unnamed); err != nil {
		return m, err
	}
	for _, msg := range in.Waiting {
		r := &row[M]{key: msg.Key, place: -1, sums: []uint64{m.sum(&msg)}}
		msg.Key = ""
		m.waiting = append(m.waiting, &item[M]{row: r, msgs: []convo.Message{msg}})
	}
	return m, m.meet()
}

func tooShort[M any](have []*item[M], want int) error {
	return &convo.ValueError{Name: "the length of the list, without its system messages,", Value: len(have), Want: fmt.Sprintf("at least %d, as when it was synced", want)}
}

// needed yields the messages of rows that Resume wants.
func needed[M any](d *convo.Decisions, rows []*item[M]) iter.Seq2[convo.Message, error] {
	keys, from := d.Needs()
	listed := make(map[string]bool)
	for _, k := range keys {
		listed[k] = true
	}
	return func(yield func(convo.Message, error) bool) {
		begun := from == ""
		for _, it := range rows {
			for _, msg := range it.msgs {
				if begun = begun || msg.Key == from; msg.Key != "" && (begun || listed[msg.Key]) && !yield(msg, nil) {
					return
				}
			}
		}
	}
}

// find gives the rows of a resumed History the entries that they stand for.
func (m *Mirror[M]) find(rows, items []*item[M], others []unnamed) error {
	s := m.h.Snapshot()
	byKey := map[string]convo.ID{}
	for i := m.front(s); i < s.Len(); i++ {
		if e, _ := s.At(i); e.Message.Key != "" {
			byKey[e.Message.Key] = e.ID
		}
	}
	for _, it := range rows {
		for i := range it.msgs {
			if id, ok := byKey[it.msgs[i].Key]; ok {
				it.first = id - convo.ID(i)
			}
		}
		m.rows = append(m.rows, it.row)
	}
	for _, u := range others {
		r := &row[M]{key: u.Key, place: -1}
		if u.Place >= 0 {
			r = items[u.Place].row
		} else {
			for e, ok := s.Find(u.First); ok && len(r.sums) < u.Count; e, ok = s.Find(e.ID + 1) {
				r.sums = append(r.sums, m.sum(&e.Message))
			}
		}
		if r.first = u.First; u.First > 0 {
			for i := range r.sums {
				if e, ok := s.Find(u.First + convo.ID(i)); ok && e.Message.Key != "" || m.at[u.First+convo.ID(i)] != nil {
					return fmt.Errorf("mirror: Decisions name entry %d twice", u.First+convo.ID(i))
				}
			}
		}
		if u.Loose {
			m.loose = append(m.loose, r)
		}
		m.hold(r)
	}
	for _, r := range m.rows {
		m.hold(r)
	}
	return nil
}

// hold notes which entries a row has.
func (m *Mirror[M]) hold(r *row[M]) {
	for i := range r.sums {
		if r.first > 0 {
			m.at[r.first+convo.ID(i)] = r
		}
	}
}
