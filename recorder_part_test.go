package convo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A recordsStore keeps the records of one log. Its next Append fails with err, after it has
// stored the record if stores is set.
type recordsStore struct {
	Store
	list   []Record
	err    error
	stores bool
}

func (s *recordsStore) Append(_ context.Context, r Record) error {
	err := s.err
	s.err = nil
	if err != nil && !s.stores {
		return err
	}
	if n := len(s.list); n > 0 && s.list[n-1].ID != r.Prev {
		return &ConflictError{Key: r.Key, Have: s.list[n-1].Seq, Want: r.Seq}
	}
	s.list = append(s.list, r)
	return err
}

func (s *recordsStore) Records(_ context.Context, _ string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range s.list {
			if r.Seq >= from && !yield(r, nil) {
				return
			}
		}
	}
}

// pictureOf returns a picture of an empty view whose last ID is last.
func pictureOf(id *identity, last ID) *picture {
	return &picture{view: &Snapshot{state: state{id: id, last: last, version: uint64(last)}}, scalars: scalars{last: last}}
}

func newTestRecorder(s Store) (*recorder, *identity) {
	r := new(recorder)
	if s != nil {
		r.adopt(newLogbook(s, "key"), keepsake{})
	}
	return r, newIdentity(newCounter(nil, Overheads{}), nil, "")
}

// writeNext writes what has changed up to an ID.
func (r *recorder) writeNext(t *testing.T, id *identity, last ID) outcome {
	t.Helper()
	b := r.book()
	o := b.write(t.Context(), r.draft(pictureOf(id, last), false))
	r.wrote(o)
	return o
}

func TestRecorder_WithoutStore(t *testing.T) {
	r, id := newTestRecorder(nil)
	r.left(nil, departed{was: &entry{id: 1}})
	r.add("note", map[ID]*queued{1: nil})
	r.wentBack(0, nil, &placedSummary{})
	b := r.book()
	assert.Zero(t, b.unsaved(&state{id: id, version: 5}, breaker{}))
	assert.Empty(t, r.past)
	assert.Empty(t, r.made)
	assert.Empty(t, r.notes)
}

func TestRecorder_Write(t *testing.T) {
	s := new(recordsStore)
	r, id := newTestRecorder(s)
	r.add("first", nil)
	r.left(nil, departed{was: &entry{id: 1, msg: Message{Role: RoleUser, Parts: []Part{Text("gone")}}}})
	before := r.book()
	require.NoError(t, r.writeNext(t, id, 2).err)
	assert.Zero(t, before.seq, "a copy of the logbook does not change")
	assert.Equal(t, uint64(1), r.seq)
	assert.Empty(t, r.notes, "the record holds them")
	assert.Empty(t, r.past)
	assert.True(t, s.list[0].Full)

	o := r.writeNext(t, id, 2)
	assert.NotNil(t, o.settled, "nothing has changed")
	assert.Len(t, s.list, 1)
	r.left(nil, departed{was: &entry{id: 2}})
	assert.Empty(t, r.past, "the log has it as it was appended")

	require.NoError(t, r.writeNext(t, id, 3).err)
	assert.False(t, s.list[1].Full)
	assert.Equal(t, s.list[0].ID, s.list[1].Prev)
}

func TestRecorder_WentBack(t *testing.T) {
	first, second := new(placedSummary), new(placedSummary)
	for name, c := range map[string]struct {
		last, back ID // the last ID when the record was made, and that after the rollback
		now        *placedSummary
		undone     []Range
		summaries  int
	}{
		"what no record holds": {last: 3, back: 4, now: second, summaries: 1},
		"what a record holds":  {last: 5, back: 2, now: second, undone: []Range{{3, 5}}, summaries: 1},
		"and the summary":      {last: 5, back: 4, now: nil, undone: []Range{{5, 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, id := newTestRecorder(new(recordsStore))
			require.NoError(t, r.writeNext(t, id, c.last).err)
			r.edited(&Report{left: &departure{gone: []departed{{was: &entry{id: 6}}}}}, first, second)
			r.add("", map[ID]*queued{6: nil})
			r.wentBack(c.back, second, c.now)
			assert.Equal(t, c.undone, r.undone)
			assert.Len(t, r.summaries, c.summaries)
			assert.Empty(t, r.past)
			assert.Empty(t, r.made)
		})
	}
}

// A record that may have been stored is looked for in the log before it is written again.
func TestRecorder_Doubt(t *testing.T) {
	for _, stores := range []bool{false, true} {
		t.Run(fmt.Sprint("stored: ", stores), func(t *testing.T) {
			s := &recordsStore{err: errors.New("the network is down"), stores: stores}
			r, id := newTestRecorder(s)
			o := r.writeNext(t, id, 1)
			require.Error(t, o.err)
			assert.NotNil(t, o.doubted)
			require.Len(t, r.drafts, 1)
			b := r.book()
			assert.Positive(t, b.unsaved(&state{id: id, version: 1}, breaker{}))

			o = r.writeNext(t, id, 1)
			require.NoError(t, o.err)
			assert.Equal(t, stores, o.isOlder, "the older draft was found")
			assert.Len(t, s.list, 1)
			assert.Equal(t, s.list[0].ID, r.id)
			assert.Empty(t, r.drafts)
		})
	}
}

func TestRecorder_Pruned(t *testing.T) {
	r, id := newTestRecorder(new(recordsStore))
	r.marks = []summaryMark{{seq: 1}, {seq: 2}, {seq: 3}}
	r.before = 500
	before := r.book()
	r.wrote(outcome{pruned: 2, freed: 400})
	assert.Equal(t, []summaryMark{{seq: 2}, {seq: 3}}, r.marks)
	assert.Len(t, before.marks, 3)
	assert.EqualValues(t, 100, r.before)
	r.wrote(outcome{pruned: 3, freed: 400})
	assert.Zero(t, r.before, "others have removed some")
	assert.False(t, (&logbook{}).exceeds(0))
	require.NoError(t, r.writeNext(t, id, 1).err)
	assert.False(t, r.exceeds(r.size()))
	assert.True(t, r.exceeds(r.size()-1))
	assert.Greater(t, r.size(), int64(300))
}
