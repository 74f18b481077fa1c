package convo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func assertMeta(t *testing.T, s *convo.Snapshot, title, data string) {
	t.Helper()
	gotTitle, gotData := s.Meta()
	assert.Equal(t, title, gotTitle)
	assert.Equal(t, data, gotData)
}

// What SetMeta was given outlives everything but another SetMeta, and changes
// nothing else.
func TestSetMeta_Stays(t *testing.T) {
	h := tour(t, nil)
	old := h.Snapshot()
	require.NoError(t, h.SetMeta("Rome", `{"user": 7}`))
	at := h.Snapshot()
	assertMeta(t, old, "", "")
	assertMeta(t, at, "Rome", `{"user": 7}`)
	assert.Equal(t, old.Version(), at.Version())
	assert.Equal(t, old.Messages(), at.Messages())
	require.NoError(t, h.SetMeta("Rome", `{"user": 7}`))
	assert.Same(t, at, h.Snapshot())

	require.NoError(t, h.Rollback(old))
	_, err := h.Rewind(1)
	require.NoError(t, err)
	assertMeta(t, h.Snapshot(), "Rome", `{"user": 7}`)
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	assertMeta(t, fork.Snapshot(), "Rome", `{"user": 7}`)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	again, err := convo.Restore(snapshotOf(t, string(data)), nil)
	require.NoError(t, err)
	assertMeta(t, again.Snapshot(), "Rome", `{"user": 7}`)
	checkSaved(t, h, nil)

	require.NoError(t, h.SetMeta("", ""))
	assertMeta(t, h.Snapshot(), "", "")
	assertMeta(t, fork.Snapshot(), "Rome", `{"user": 7}`)
}

func TestSetMeta_Bounds(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.SetMeta(strings.Repeat("t", 256), strings.Repeat("d", 65_536)))
	checkSaved(t, h, nil)
	before := h.Snapshot()
	for _, tt := range []struct{ title, data, want string }{
		{strings.Repeat("t", 257), "", "convo: title is \"257 bytes long\", want at most 256 bytes"},
		{"", strings.Repeat("d", 65_537), "convo: data is \"65,537 bytes long\", want at most 65,536 bytes"},
		{strings.Repeat("a\xff", 65), "", "convo: title is \"260 bytes long\", want at most 256 bytes"},
	} {
		err := h.SetMeta(tt.title, tt.data)
		require.EqualError(t, err, tt.want)
		assert.ErrorAs(t, err, new(*convo.ValueError))
		assert.Same(t, before, h.Snapshot())
	}
	require.NoError(t, h.SetMeta("a\xffb", "c\xff\xfed"))
	assertMeta(t, h.Snapshot(), "a\uFFFDb", "c\uFFFDd")
}

// The title and the data are saved, also alone, and a list shows the title.
func TestSetMeta_Saved(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	require.NoError(t, h.SetMeta("Rome", "7"))
	assert.Equal(t, 1, h.Status().Unsaved)
	save(t, h)
	checkOpened(t, s, "k", nil, h)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	require.NoError(t, h.SetMeta("Paris", ""))
	assert.Equal(t, 1, h.Status().Unsaved)
	save(t, h)
	checkOpened(t, s, "k", nil, h)
	titles := func() (titles []string) {
		for head, err := range s.List(t.Context(), convo.ListOptions{}) {
			require.NoError(t, err)
			titles = append(titles, head.Title)
		}
		return titles
	}
	assert.Equal(t, []string{"Paris"}, titles())
	for i, want := range [][2]string{{"Rome", "7"}, {"Rome", "7"}, {"Paris", ""}} {
		at, err := convo.Load(t.Context(), s, "k", uint64(i+1))
		require.NoError(t, err)
		assertMeta(t, at, want[0], want[1])
	}
	require.NoError(t, h.SetMeta("", ""))
	save(t, h)
	checkOpened(t, s, "k", nil, h)
	assert.Equal(t, []string{""}, titles())
}

// Reload takes over the title and the data, unless SetMeta has changed one of them.
func TestSetMeta_Reload(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("hello"))
	require.NoError(t, a.SetMeta("Rome", "7"))
	save(t, a)
	takeOver(t, b)
	assertMeta(t, b.Snapshot(), "Rome", "7")
	assert.Zero(t, b.Status().Unsaved)

	require.NoError(t, a.SetMeta("Paris", "8"))
	save(t, a)
	require.NoError(t, b.SetMeta("Oslo", "7"))
	takeOver(t, b)
	assertMeta(t, b.Snapshot(), "Oslo", "7")
	save(t, b)
	checkOpened(t, s, "k", nil, b)
	takeOver(t, a)
	assertMeta(t, a.Snapshot(), "Oslo", "7")
}
