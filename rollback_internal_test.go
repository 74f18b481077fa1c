package convo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a History remembers of edits does not grow with their number, whatever
// they touch.
func TestApply_MarksOfEditsAreFew(t *testing.T) {
	for name, edit := range map[string]func(h *History, i int) Edit{
		"dropping":        func(h *History, _ int) Edit { return Edit{Drop: []ID{h.list[0].id}} },
		"a summary":       func(_ *History, i int) Edit { return Edit{Summary: &Summary{Text: fmt.Sprint("what went ", i)}} },
		"dropping newest": func(h *History, _ int) Edit { return Edit{Drop: []ID{h.list[len(h.list)-3].id}} },
		"dropping in between, newest first": func(h *History, i int) Edit {
			return Edit{Drop: []ID{h.list[len(h.list)-3-i%4].id}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := New(nil)
			require.NoError(t, err)
			for i := range 20 {
				_, err := h.Append(User(fmt.Sprint("question ", i)), Assistant("answer"))
				require.NoError(t, err)
			}
			for i := range 500 {
				_, err := h.Append(User(fmt.Sprint("question ", i)), Assistant("answer"))
				require.NoError(t, err)
				r, err := h.Apply(h.Snapshot(), edit(h, i))
				require.NoError(t, err)
				require.Equal(t, OutcomeApplied, r.Outcome)
				require.LessOrEqual(t, len(h.edits), 5)
			}
		})
	}
}

// Edits that touch ever older entries, with nothing appended in between, leave
// one mark each: no more than there are entries.
func TestApply_MarksOfEditsAreNoMoreThanEntries(t *testing.T) {
	h, err := New(nil)
	require.NoError(t, err)
	for i := range 50 {
		_, err := h.Append(User(fmt.Sprint("question ", i)), Assistant("answer"))
		require.NoError(t, err)
	}
	entries := h.Len()
	before := h.Snapshot()
	for len(h.list) > 3 {
		_, err := h.Apply(h.Snapshot(), Edit{Drop: []ID{h.list[len(h.list)-3].id}})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(h.edits), entries)
	_, err = h.Append(User("more"), Assistant("yes"), User("and?"))
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), Edit{Drop: []ID{h.list[len(h.list)-2].id}})
	require.NoError(t, err)
	require.Len(t, h.edits, 1, "the last one touched the newest entry")
	require.NoError(t, h.Rollback(before))
	require.Equal(t, entries, h.Len())
	require.Empty(t, h.edits, "all are undone")
}

// What is remembered of rollbacks is bounded, and an old snapshot that shows what
// was taken back or undone is refused all the same.
func TestRollback_ManyOfThem(t *testing.T) {
	h, err := New(nil)
	require.NoError(t, err)
	talk := func() {
		_, err := h.Append(User("u"), Assistant("a"))
		require.NoError(t, err)
	}
	for range 20 {
		talk()
	}
	dropAt := func(i int) {
		s := h.Snapshot()
		e, _ := s.At(i)
		_, err := h.Apply(s, Edit{Drop: []ID{e.ID}})
		require.NoError(t, err)
	}
	var undone, taken *Snapshot
	for i := range 3000 {
		talk()
		at := h.Snapshot()
		dropAt(at.Len() - 4)
		if i == 0 {
			undone = h.Snapshot()
			talk()
			taken = h.Snapshot()
		}
		h.mu.Lock()
		h.revertLocked(at) // undoes the edit, as Rollback does when it cannot stay
		h.mu.Unlock()
		dropAt(at.Len() - 5)
	}
	require.ErrorIs(t, h.Rollback(undone), ErrStale)
	require.ErrorIs(t, h.Rollback(taken), ErrStale)
	assert.Len(t, h.reversals, maxReversals)
}
