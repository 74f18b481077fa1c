package convo_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestPin_AnyMemberStandsForItsExchange(t *testing.T) {
	for _, tt := range []struct {
		name string
		ids  []convo.ID
		want []convo.ID
	}{
		{"call", []convo.ID{3}, []convo.ID{3, 4, 5}},
		{"first result", []convo.ID{4}, []convo.ID{3, 4, 5}},
		{"last result", []convo.ID{5}, []convo.ID{3, 4, 5}},
		{"two of one", []convo.ID{5, 3}, []convo.ID{3, 4, 5}},
		{"several, unordered", []convo.ID{9, 2, 4}, []convo.ID{2, 3, 4, 5, 9}},
		{"system needs none", []convo.ID{1}, nil},
		{"system and other", []convo.ID{1, 6}, []convo.ID{6}},
		{"none", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			require.NoError(t, h.Pin(tt.ids...))
			assert.Equal(t, tt.want, h.Snapshot().Pinned())
			assert.Equal(t, tt.want, h.Snapshot().Pinned())
			var marked []convo.ID
			for _, e := range h.Snapshot().All() {
				if e.Pinned {
					marked = append(marked, e.ID)
				}
			}
			assert.Equal(t, tt.want, marked)
			require.NoError(t, h.Unpin(tt.ids...))
			assert.Empty(t, h.Snapshot().Pinned())
		})
	}
}

func TestPin_AllOrNone(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(6))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}})
	require.NoError(t, err)
	for _, id := range []convo.ID{0, -1, 2, 10, 99} {
		for name, change := range map[string]func(...convo.ID) error{"Pin": h.Pin, "Unpin": h.Unpin} {
			t.Run(name, func(t *testing.T) {
				unchanged(t, h, func() {
					err := change(7, id, 6)
					require.ErrorIs(t, err, convo.ErrNotFound)
					assert.ErrorContains(t, err, fmt.Sprintf("entry %d is not in the view", id))
				})
			})
		}
	}
}

func TestPin_OpenExchangeHoldsResultsToCome(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", a, b), convo.Result(b, "1"))
	require.NoError(t, h.Pin(3))
	mustAppend(t, h, convo.Result(a, "2"), convo.Assistant("x"), convo.User("v"))
	assert.Equal(t, []convo.ID{2, 3, 4}, h.Snapshot().Pinned())
	n, err := h.SplicePrefix(h.Snapshot(), 6, "s")
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []convo.ID{2, 3, 4, 6}, idsOf(h.Snapshot()))
}

func TestPinLast(t *testing.T) {
	h := historyOf(t, nil, convo.System("s"))
	require.ErrorIs(t, h.PinLast(), convo.ErrNotFound)
	c := callOf("c")
	mustAppend(t, h, convo.User("u"), convo.Assistant("", c), convo.Result(c, "r"))
	require.NoError(t, h.PinLast())
	require.NoError(t, h.PinLast())
	assert.Equal(t, []convo.ID{3, 4}, h.Snapshot().Pinned())
}

func TestUnpin_WhatIsNotPinned(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2, 6))
	require.NoError(t, h.Unpin(7, 4, 1))
	assert.Equal(t, []convo.ID{2, 6}, h.Snapshot().Pinned())
	require.NoError(t, h.Unpin(6))
	assert.Equal(t, []convo.ID{2}, h.Snapshot().Pinned())
}

// A pinned exchange keeps bytes and order through any number of edits.
func TestPin_SurvivesEdits(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2, 4))
	before := textsOf(h.Snapshot())[1:5]
	for range 5 {
		mustAppend(t, h, convo.Assistant("a"), convo.User("u"))
		_, err := h.SplicePrefix(h.Snapshot(), h.Len(), "s")
		require.NoError(t, err)
		assert.Equal(t, []convo.ID{2, 3, 4, 5}, h.Snapshot().Pinned())
		assert.Equal(t, before, textsOf(h.Snapshot())[2:6])
	}
	require.NoError(t, h.Unpin(3))
	_, err := h.SplicePrefix(h.Snapshot(), h.Len(), "s")
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2}, h.Snapshot().Pinned())
}

func TestPin_GoneWithRollback(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2))
	at := h.Snapshot()
	mustAppend(t, h, convo.Assistant("a"), convo.User("u"))
	require.NoError(t, h.Pin(6, 10, 11))
	held := h.Snapshot()
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []convo.ID{2, 6}, h.Snapshot().Pinned(), "a pin of what remains stays, also a newer one")
	mustAppend(t, h, convo.Assistant("b"))
	require.NoError(t, h.PinLast())
	assert.Equal(t, []convo.ID{2, 6, 12}, h.Snapshot().Pinned())
	assert.Equal(t, []convo.ID{2, 6, 10, 11}, held.Pinned(), "the snapshot stays")
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, new(convo.Snapshot)), "no pin is left behind of what went")

	_, err = h.Rewind(1)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2, 6}, h.Snapshot().Pinned(), "a pin does not hold a turn against Rewind")
}

func TestPin_DoesNotChangeSnapshots(t *testing.T) {
	h := tour(t, nil)
	var held []*convo.Snapshot
	var pinned [][]convo.ID
	for _, id := range []convo.ID{2, 6, 8, 4, 9, 7} {
		require.NoError(t, h.Pin(id))
		held, pinned = append(held, h.Snapshot()), append(pinned, h.Snapshot().Pinned())
	}
	for _, id := range []convo.ID{9, 2, 4} {
		require.NoError(t, h.Unpin(id))
		require.NoError(t, h.Pin(8))
	}
	for i, s := range held {
		assert.Equal(t, pinned[i], s.Pinned())
	}
}

func TestPin_OnAppend(t *testing.T) {
	c := callOf("c")
	opts := &convo.Options{Pin: func(m convo.Message) bool {
		pin := m.Text() == "keep"
		if len(m.Parts) > 0 {
			m.Parts[0] = convo.Text("changed")
		}
		return pin
	}}
	h := historyOf(t, opts, convo.User("keep"), convo.Assistant("", c), convo.Result(c, "keep"), convo.Assistant("x"))
	assert.Equal(t, []convo.ID{1, 2, 3}, h.Snapshot().Pinned(), "a result pins its exchange")
	assert.Equal(t, []string{"keep", "", "keep", "x"}, textsOf(h.Snapshot()), "it is given a copy")
	unchanged(t, h, func() {
		_, err := h.Append(convo.User("keep"), convo.User("keep"))
		require.Error(t, err)
	})
}

func TestPinFirstUser(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts convo.Options
		msgs []convo.Message
		want []convo.ID
	}{
		{"first", convo.Options{}, []convo.Message{convo.System("s"), convo.User("u"), convo.Assistant("a"), convo.User("v")}, []convo.ID{2}},
		{"first of a run", convo.Options{Roles: convo.Relaxed()}, []convo.Message{convo.Assistant("x"), convo.User("u"), convo.User("v"), convo.Assistant("a"), convo.User("w")}, []convo.ID{2}},
		{"with Pin", convo.Options{Pin: func(m convo.Message) bool { return m.Role == convo.RoleAssistant }}, []convo.Message{convo.User("u"), convo.Assistant("a"), convo.User("v")}, []convo.ID{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.PinFirstUser = true
			h := historyOf(t, &tt.opts)
			for _, m := range tt.msgs {
				mustAppend(t, h, m)
			}
			assert.Equal(t, tt.want, h.Snapshot().Pinned())
			batch := historyOf(t, &tt.opts, tt.msgs...)
			assert.Equal(t, tt.want, batch.Snapshot().Pinned())
		})
	}
}

// A provider may give each round the same call id. A pin holds one exchange, not all
// with that id.
func TestPin_OfAReusedCallID(t *testing.T) {
	h := historyOf(t, bare(), convo.User("u"))
	c := callOf("call_0")
	for range 5 {
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, "r"))
	}
	require.NoError(t, h.Pin(7))
	assert.Equal(t, []convo.ID{6, 7}, h.Snapshot().Pinned())
	_, err := h.SplicePrefix(h.Snapshot(), 100, "s")
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{1, 6, 7, 10, 11}, idsOf(h.Snapshot()))
}
