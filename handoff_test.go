package convo_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHandoff(t *testing.T) {
	rec := new(recorder)
	h := toolTurn(t, windowOf(50_000, nil), 20)
	unchanged(t, h, func() {
		sum, err := h.Handoff(t.Context(), rec, "hand it over")
		require.NoError(t, err)
		assert.Equal(t, "summary 1", sum.Text)
		assert.Equal(t, []convo.Range{{First: 2, Last: 43}}, sum.Covers)
	})
	assert.Equal(t, "hand it over", rec.requests[0].Focus)
	assert.Len(t, rec.requests[0].Messages, 42)

	rec.answer = func(convo.SummaryRequest) (convo.Summary, error) { return convo.Summary{}, errors.New("down") }
	_, err := h.Handoff(t.Context(), rec, "")
	require.ErrorContains(t, err, "down")
	rec.answer = func(convo.SummaryRequest) (convo.Summary, error) { panic("boom") }
	_, err = h.Handoff(t.Context(), rec, "")
	var p *convo.PanicError
	require.ErrorAs(t, err, &p)

	sum, err := h.Handoff(t.Context(), nil, "")
	require.NoError(t, err)
	assert.Contains(t, sum.Text, "the task")

	_, err = historyOf(t, nil).Handoff(t.Context(), nil, "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	require.NoError(t, h.Close())
	_, err = h.Handoff(t.Context(), nil, "")
	require.NoError(t, err, "a closed history can still be read")
}

// The agent that takes over has nothing but the summary, so pinned entries are
// in it.
func TestHandoff_PinsAreInIt(t *testing.T) {
	rec := new(recorder)
	h := toolTurn(t, windowOf(50_000, nil), 3)
	require.NoError(t, h.Pin(2))
	_, err := h.Handoff(t.Context(), rec, "")
	require.NoError(t, err)
	assert.Empty(t, rec.requests[0].Pinned)
	assert.NotContains(t, rec.requests[0].Prompt, "<pinned")
	assert.Contains(t, rec.requests[0].Prompt, "the task")
}

// Updates counts the summaries that came before: a handoff of a view with a summary
// is one update of it.
func TestHandoff_Updates(t *testing.T) {
	h := toolTurn(t, windowOf(50_000, nil), 20)
	for i := range 4 {
		sum, err := h.Handoff(t.Context(), new(recorder), "")
		require.NoError(t, err)
		assert.Equal(t, i, sum.Updates)
		first := convo.ID(3 + 2*i)
		apply(t, h, convo.Edit{Drop: []convo.ID{first, first + 1}, Summary: &convo.Summary{Text: "so far"}})
		own, _ := h.Snapshot().Summary()
		assert.Equal(t, i, own.Updates, "the handoff has not changed it")
	}
}

func TestHandoff_ErrorTexts(t *testing.T) {
	_, err := historyOf(t, nil).Handoff(t.Context(), nil, "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	require.EqualError(t, err, "convo: the conversation is empty, so there is nothing to summarise; append to it first")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tour(t, nil).Handoff(ctx, nil, "")
	require.EqualError(t, err, "convo: handoff stopped: context canceled")
}

func TestHandoff_LongResults(t *testing.T) {
	rec := new(recorder)
	c := callOf("c")
	h := historyOf(t, windowOf(16_000, nil), convo.User("Look."), convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 3900)), convo.Assistant("Done."))
	_, err := h.Handoff(t.Context(), rec, "")
	require.NoError(t, err)
	require.Len(t, rec.requests, 1)
	shown := strings.Count(rec.requests[0].Prompt, "xxxxxxxxxx") * 10
	assert.LessOrEqual(t, shown, 2000)
	assert.Greater(t, shown, 1900)
}
