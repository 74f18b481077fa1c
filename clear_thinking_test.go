package convo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

// thoughtful returns an answer whose signed reasoning is long.
func thoughtful(text string) convo.Message {
	return thoughts.In(convo.Assistant(text), convo.Reasoning{Text: strings.Repeat("thinking about "+text+" ", 30), Signature: "sig of " + text})
}

// thinkers returns a History with turns that have signed reasoning. The answer to turn i
// has the ID 2i+2.
func thinkers(t *testing.T, opts *convo.Options, turns int) *convo.History {
	h := historyOf(t, opts)
	for i := range turns {
		mustAppend(t, h, convo.User(fmt.Sprint("question ", i)))
		mustAppend(t, h, thoughtful(fmt.Sprint("answer ", i)))
	}
	require.Empty(t, h.Snapshot().Unbound())
	return h
}

// sealedIn returns the IDs of the entries with signed reasoning.
func sealedIn(s *convo.Snapshot) (ids []convo.ID) {
	for _, e := range s.All() {
		for _, p := range e.Message.Parts {
			if r, ok := p.(convo.Reasoning); ok && r.Signature != "" {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids
}

func TestClearThinking(t *testing.T) {
	for name, tt := range map[string]struct {
		c    convo.ClearThinking
		pins []convo.ID
		want []convo.ID // with reasoning
	}{
		"all but the newest turn": {want: []convo.ID{10}},
		"more turns":              {c: convo.ClearThinking{KeepTurns: 3}, want: []convo.ID{6, 8, 10}},
		"negative":                {c: convo.ClearThinking{KeepTurns: -1}, want: []convo.ID{10}},
		"up to a pinned answer":   {pins: []convo.ID{6}, want: []convo.ID{6, 8, 10}},
		"another entry is pinned": {pins: []convo.ID{3}, want: []convo.ID{10}},
	} {
		t.Run(name, func(t *testing.T) {
			h := thinkers(t, &convo.Options{Strategy: tt.c}, 5)
			require.NoError(t, h.Pin(tt.pins...))
			before := h.Snapshot()
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			s := h.Snapshot()
			assert.Equal(t, tt.want, sealedIn(s))
			assert.Zero(t, r.Released)
			assert.Empty(t, s.Unbound())
			assert.Equal(t, before.Len(), s.Len())
			assert.Less(t, s.Tokens(), before.Tokens())

			mustAppend(t, h, convo.User("more"))
			id := mustAppend(t, h, thoughtful("more"))
			assert.True(t, h.Snapshot().Bound(id))
			r, err = h.Compact(t.Context(), "")
			if len(tt.pins) == 0 || tt.pins[0] != 6 {
				require.NoError(t, err)
				assert.NotEmpty(t, r.Rewritten)
			}
			assert.Empty(t, h.Snapshot().Unbound())

			data, err := json.Marshal(h.Snapshot())
			require.NoError(t, err)
			loaded := new(convo.Snapshot)
			require.NoError(t, json.Unmarshal(data, loaded))
			again, err := convo.Restore(loaded, nil)
			require.NoError(t, err)
			assert.Empty(t, again.Snapshot().Unbound(), "also when it was saved and loaded")
		})
	}
}

// Where reasoning does not count, or there is none, ClearThinking declines.
func TestClearThinking_Declines(t *testing.T) {
	h := thinkers(t, &convo.Options{Strategy: convo.ClearThinking{}, Overheads: convo.Overheads{Reasoning: convo.ReplayNone}}, 5)
	_, err := h.Compact(t.Context(), "")
	assert.ErrorIs(t, err, convo.ErrNoGain)
	h = historyOf(t, &convo.Options{Strategy: convo.ClearThinking{}}, convo.User("a"), convo.Assistant("b"), convo.User("c"), convo.Assistant("d"))
	_, err = h.Compact(t.Context(), "")
	assert.ErrorIs(t, err, convo.ErrNoGain)
}

// Reasoning that is taken out of the middle ends the bonds after it: the provider checks
// the reasoning before each block, unless none is left.
func TestClearThinking_FromTheFrontOnly(t *testing.T) {
	h := thinkers(t, nil, 5)
	bare := func(id convo.ID) convo.Edit {
		e, ok := h.Snapshot().Find(id)
		require.True(t, ok)
		return convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: e.Message.Parts[1:]}}}
	}
	r, err := h.Apply(h.Snapshot(), bare(6))
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{8, 10}, h.Snapshot().Unbound())
	require.NoError(t, h.Undo(r))
	assert.Empty(t, h.Snapshot().Unbound())
	for _, id := range []convo.ID{2, 4} {
		_, err = h.Apply(h.Snapshot(), bare(id))
		require.NoError(t, err)
		assert.Empty(t, h.Snapshot().Unbound())
	}
}

// What an Undo restores of the reasoning is bound if all answers since were made with it, and
// otherwise they are. Providers refuse an answer that was made without the reasoning that stands
// before it, or right after other reasoning.
func TestClearThinking_Undo(t *testing.T) {
	clear := func(t *testing.T, h *convo.History, drop bool) convo.Report {
		s := h.Snapshot()
		e, err := convo.ClearThinking{}.Compact(t.Context(), s, convo.Goal{})
		require.NoError(t, err)
		require.Len(t, e.Rewrite, 5)
		if drop {
			e.Drop, e.Rewrite = []convo.ID{1, 2}, e.Rewrite[1:]
		}
		r, err := h.Apply(s, e)
		require.NoError(t, err)
		return r
	}
	begin := func(t *testing.T) *convo.History {
		h := thinkers(t, nil, 5)
		mustAppend(t, h, convo.User("more"))
		return h
	}
	answer := func(t *testing.T, h *convo.History, at *convo.Snapshot) {
		_, err := h.AppendReply(at, convo.Reply{Messages: []convo.Message{thoughtful("more")}})
		require.NoError(t, err)
	}
	for name, drop := range map[string]bool{"alone": false, "and other messages leave": true} {
		t.Run(name, func(t *testing.T) {
			h := begin(t)
			sent := h.Snapshot()
			r := clear(t, h, drop)
			answer(t, h, sent)
			require.NoError(t, h.Undo(r))
			assert.Empty(t, h.Snapshot().Unbound(), "an answer that was under way")

			h = begin(t)
			r = clear(t, h, drop)
			answer(t, h, h.Snapshot())
			require.NoError(t, h.Undo(r))
			if !drop {
				assert.Equal(t, []convo.ID{2, 4, 6, 8, 10}, h.Snapshot().Unbound(), "an answer made without it")
			} else {
				assert.Equal(t, []convo.ID{12}, h.Snapshot().Unbound(), "an answer made of another view")
			}

			h = begin(t)
			r = clear(t, h, drop)
			sent = h.Snapshot()
			require.NoError(t, h.Undo(r))
			answer(t, h, sent)
			assert.Equal(t, []convo.ID{12}, h.Snapshot().Unbound(), "an answer made without it that was under way")

			h = begin(t)
			r = clear(t, h, drop)
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Undo(r))
			mustAppend(t, h, thoughtful("more"))
			assert.Equal(t, []convo.ID{12}, h.Snapshot().Unbound(), "such an answer, with Append")
		})
	}
}
