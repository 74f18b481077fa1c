package convo_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// pngOf returns an image that says that it has these sides.
func pngOf(w, h int) convo.Media {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, uint32(w))
	b = binary.BigEndian.AppendUint32(b, uint32(h))
	return convo.NewMedia("image/png", append(b, 8, 2, 0, 0, 0))
}

// A History for a model that takes fewer images when one is large does not send more than
// that: it loses the large ones, or leaves half as many, so that the next are no edit each.
func TestClearMedia_LargeImages(t *testing.T) {
	const claude = "claude-opus-5-5"
	small, large := pngOf(100, 200), pngOf(2001, 9)
	users := func(n int, of convo.Media) (msgs []convo.Message) {
		for range n {
			msgs = append(msgs, convo.User("see", of), convo.Assistant("yes"))
		}
		return msgs
	}
	oldest := func(n int) (cleared []string) {
		for i := range n {
			cleared = append(cleared, fmt.Sprintf("%d:0", 2*i+1))
		}
		return cleared
	}
	end := []convo.Message{convo.User("and now?")}
	both := convo.User("both", small, large)
	for _, tt := range []struct {
		name  string
		model string
		msgs  []convo.Message
		want  []string // what is cleared: the ID of the entry, and the number of its media that stay
	}{
		{"20, one is large", claude, slices.Concat(users(19, small), users(1, large), end), nil},
		{"21 of the limit", claude, slices.Concat(users(21, pngOf(2000, 2000)), end), nil},
		{"21, an old one is large", claude, slices.Concat(users(5, small), users(1, large), users(15, small), end), []string{"11:0"}},
		{"40, two are large", claude, slices.Concat(users(5, small), users(2, large), users(33, small), end), []string{"11:0", "13:0"}},
		{"one of two in an entry", claude, slices.Concat(users(5, small), []convo.Message{both, convo.Assistant("yes")}, users(15, small), end), []string{"11:1"}},
		{"25, all are large", claude, slices.Concat(users(25, large), end), oldest(15)},
		{"the newest is large", claude, slices.Concat(users(20, small), users(1, large), end), oldest(11)},
		{"the large one is asked about", claude, slices.Concat(users(21, small), []convo.Message{convo.User("this?", large)}), oldest(12)},
		{"more than the model takes", "claude-haiku-4-5", slices.Concat(users(89, small), end), nil},
		{"another model", "gpt-5.5", slices.Concat(users(30, large), end), nil},
		{"no model", "", slices.Concat(users(30, large), end), nil},
		{"DeepSeek, 14", "deepseek-flash", slices.Concat(users(14, pngOf(9, 5000)), end), nil},
		{"DeepSeek, 15", "deepseek-flash", slices.Concat(users(15, pngOf(9, 5000)), end), oldest(8)},
		{"DeepSeek, smaller ones", "deepseek-flash", slices.Concat(users(30, large), end), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}}, tt.msgs...)
			require.NoError(t, h.SetModel(tt.model, convo.Limits{}))
			before := h.Status().Media
			at, r, err := h.Prepare(t.Context())
			require.NoError(t, err)
			var got []string
			left := 0
			for _, e := range at.All() {
				n := 0
				for _, p := range e.Message.Parts {
					if _, ok := p.(convo.Media); ok {
						n++
					}
				}
				if left += n; strings.Contains(e.Message.Text(), " cleared: ") {
					got = append(got, fmt.Sprintf("%d:%d", e.ID, n))
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, left, h.Status().Media)
			assert.Equal(t, len(tt.want), before-left)
			assert.Equal(t, tt.want != nil, r.Outcome == convo.OutcomeApplied)
			_, r, err = h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
		})
	}
}

// How large images are is known after a restart, a rollback and an Undo.
func TestClearMedia_LargeImagesAreCounted(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}, Strategy: convo.ClearMedia{TriggerAt: -1}})
	require.NoError(t, h.SetModel("claude-opus-5-5", convo.Limits{}))
	for range 15 {
		mustAppend(t, h, convo.User("see", pngOf(10, 10)), convo.Assistant("yes"))
	}
	assert.Equal(t, 600, h.Status().MostMedia)
	at := h.Snapshot()
	mustAppend(t, h, convo.User("see", pngOf(10, 2001)), convo.Assistant("yes"))
	assert.Equal(t, 20, h.Status().MostMedia)
	again, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	assert.Equal(t, 20, again.Status().MostMedia)
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, 600, h.Status().MostMedia)
	assert.Zero(t, historyOf(t, nil, convo.User("see", pngOf(3000, 1))).Status().MostMedia)

	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	for range 30 {
		mustAppend(t, h, convo.User("see", pngOf(5000, 1)), convo.Assistant("yes"))
	}
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "TriggerAt says never")
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Less(t, h.Status().Media, 21)
	require.NoError(t, h.Undo(r))
	assert.Equal(t, 45, h.Status().Media)
	assert.Equal(t, 20, h.Status().MostMedia)
}

// A check reads no image.
func TestClearMedia_CheckAllocates(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}})
	require.NoError(t, h.SetModel("claude-opus-5-5", convo.Limits{}))
	for range 20 {
		mustAppend(t, h, convo.User("see", pngOf(5000, 1)), convo.Assistant("yes"))
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		r, err := h.CompactIfNeeded(t.Context())
		if err != nil || r.Outcome != convo.OutcomeNotNeeded {
			t.Error(r, err)
		}
	}))
}
