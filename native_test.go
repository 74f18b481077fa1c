package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// nativeOf returns what a provider makes of a conversation.
func nativeOf(items ...string) convo.Summary {
	return convo.Summary{Native: convo.Native{Format: "anthropic", Model: "m", Items: items}, Usage: convo.Usage{Input: 500, Output: 40}, Model: "m"}
}

// talk returns a History with a number of turns, with signed answers.
func talk(t *testing.T, opts *convo.Options, turns int) *convo.History {
	h := historyOf(t, opts, convo.System("guide"))
	for i := range turns {
		mustAppend(t, h, convo.User(fmt.Sprintf("question %d, which is not a short one, since it must count", i)))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		mustAppend(t, h, signed(fmt.Sprintf("answer %d, which is as long as the question", i)))
	}
	return h
}

func boundOf(h *convo.History) (ids []convo.ID) {
	for _, e := range h.Snapshot().All() {
		if h.Snapshot().Bound(e.ID) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// NativeSummary gives the provider the beginning up to a question. What stays begins with its
// answer, and what was made after it stays bound, again and again, in every form.
func TestNative(t *testing.T) {
	var given []string
	n := 0
	ask := convo.NativeSummary{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		given, n = textsOf(req.Sent), n+1
		return nativeOf(fmt.Sprintf(`{"type":"compaction","content":"c%d"}`, n)), nil
	})}
	opts := windowOf(1200, ask)
	opts.Limits.High, opts.Limits.Low = 1000, 400
	h := talk(t, opts, 12)
	require.Positive(t, n, "it was compacted")
	for range 3 {
		before := n
		for n == before {
			mustAppend(t, h, convo.User("another question that is not a short one"))
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			mustAppend(t, h, signed(fmt.Sprintf("an answer to it of %d", h.Len())))
		}
		s := h.Snapshot()
		first, _ := s.At(1)
		assert.Equal(t, convo.RoleAssistant, first.Message.Role)
		assert.Equal(t, "guide", given[0])
		sum, _ := s.Summary()
		assert.Equal(t, []string{fmt.Sprintf(`{"type":"compaction","content":"c%d"}`, n)}, sum.Native.Items)
		assert.NotEmpty(t, sum.Text, "for other models")
		assert.GreaterOrEqual(t, s.Breakdown().Summary, 40)
		answers := 0
		for _, e := range s.All() {
			if e.Message.Role == convo.RoleAssistant {
				answers++
			}
		}
		assert.Len(t, boundOf(h), answers, "all of them")
		assert.Equal(t, boundOf(h), boundOf(restoreOf(t, readBack(t, s))))
		sum.Native.Items[0] = "changed"
		again, _ := h.Snapshot().Summary()
		assert.NotEqual(t, "changed", again.Native.Items[0], "a copy")
	}
	require.NoError(t, h.SetSystem(convo.System("another guide")))
	assert.Empty(t, boundOf(h))
	require.NoError(t, h.SetSystem(convo.System("guide")))
	assert.NotEmpty(t, boundOf(h))
}

// What was made after a native summary is not bound without it, and what was made before it
// is bound with it and without it.
func TestNative_Undo(t *testing.T) {
	h := talk(t, bare(), 4) // IDs 2 to 9
	s := h.Snapshot()
	require.Equal(t, []convo.ID{3, 5, 7, 9}, boundOf(h))
	sum := nativeOf(`{"type":"compaction"}`)
	sum.Text, sum.Native.Compacted = "what went before", s.Before(5)
	r, err := h.Apply(s, convo.Edit{Drop: []convo.ID{2, 3, 4}, Summary: &sum})
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5, 7, 9}, boundOf(h))
	mustAppend(t, h, convo.User("q"), signed("late"))
	assert.Equal(t, []convo.ID{5, 7, 9, 11}, boundOf(h))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{3, 5, 7, 9}, boundOf(h))

	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3, 4}, Summary: &convo.Summary{Text: "what went before"}})
	require.NoError(t, err)
	assert.Empty(t, boundOf(h), "another summary ends all bonds")
}

// A pinned exchange that the provider was given is sent again, and ends the bonds after it.
func TestNative_Pinned(t *testing.T) {
	h := talk(t, bare(), 4)
	require.NoError(t, h.Pin(3))
	sum := nativeOf(`{"type":"compaction"}`)
	sum.Text, sum.Native.Compacted = "what went before", h.Snapshot().Before(5)
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 4}, Summary: &sum})
	require.NoError(t, err)
	assert.Empty(t, boundOf(h))
}

// When the provider gives nothing, Extract writes the summary, and the next link of a
// Chain runs.
func TestNative_Declines(t *testing.T) {
	fail := errors.New("529 compaction_unavailable")
	for name, with := range map[string]func() (convo.Summary, error){
		"an error":  func() (convo.Summary, error) { return convo.Summary{}, fail },
		"no native": func() (convo.Summary, error) { return convo.Summary{Text: "t"}, nil },
		"no item":   func() (convo.Summary, error) { return nativeOf(), nil },
		"no JSON":   func() (convo.Summary, error) { return nativeOf("x"), nil },
		"no object": func() (convo.Summary, error) { return nativeOf("5"), nil },
		"no usage": func() (convo.Summary, error) {
			sum := nativeOf()
			sum.Usage.Input = -1
			return sum, nil
		},
		"a panic": func() (convo.Summary, error) { panic("x") },
		"not done": func() (convo.Summary, error) {
			sum := nativeOf("{}")
			sum.Stop = convo.StopLength
			return sum, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var paid convo.Usage
			opts := windowOf(1200, convo.Chain(convo.NativeSummary{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				sum, err := with()
				if sum.Usage.Input >= 0 {
					paid = sum.Usage
				}
				return sum, err
			})}, convo.Truncate{}))
			opts.Limits.High, opts.Limits.Low = 1000, 400
			var reports []convo.Report
			opts.OnCompaction = func(r convo.Report) { reports = append(reports, r) }
			h := talk(t, opts, 12)
			require.NotEmpty(t, reports)
			assert.Equal(t, convo.OutcomeApplied, reports[0].Outcome)
			assert.Equal(t, paid, reports[0].Usage)
			sum, has := h.Snapshot().Summary()
			assert.True(t, has, "by Extract")
			assert.Empty(t, sum.Native.Items)
			if name == "an error" {
				assert.ErrorIs(t, reports[0].Links[0].Cause, fail)
			}
		})
	}
	_, err := convo.NativeSummary{}.Compact(t.Context(), talk(t, bare(), 3).Snapshot(), convo.Goal{Target: 1})
	var value *convo.ValueError
	require.ErrorAs(t, err, &value)
	asked := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		t.Error("asked")
		return convo.Summary{}, nil
	})
	_, err = convo.NativeSummary{With: asked}.Compact(t.Context(), talk(t, bare(), 1).Snapshot(), convo.Goal{Target: 1})
	assert.ErrorIs(t, err, convo.ErrNoGain, "there is no older turn")
}

// A native summary is checked when it is applied, and when it is read.
func TestNative_Faults(t *testing.T) {
	h := talk(t, bare(), 3)
	sum := nativeOf("{}")
	var wrong *convo.EditError
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &sum})
	require.ErrorAs(t, err, &wrong, "no text")
	sum.Text, sum.Native.Items = "text", []string{"[]"}
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &sum})
	require.ErrorAs(t, err, &wrong)
	sum.Native.Items = []string{"{}"}
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &sum})
	require.NoError(t, err)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	require.Contains(t, string(data), `"items":["{}"]`)
	for _, bad := range []string{`"items":[]`, `"items":["5"]`, `"items":[5]`, `"items":["{}"],"stood_for":["x"]`} {
		broken := []byte(strings.Replace(string(data), `"items":["{}"]`, bad, 1))
		assert.Error(t, json.Unmarshal(broken, new(convo.Snapshot)), bad)
	}
}
