package convofantasy_test

import (
	"context"
	"errors"
	"testing"

	"charm.land/fantasy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/fantasy"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A writer is a model that gives one answer.
type writer struct {
	fake
	answer fantasy.Response
	err    error
	got    fantasy.Call
}

func (w *writer) Generate(_ context.Context, call fantasy.Call) (*fantasy.Response, error) {
	w.got = call
	return &w.answer, w.err
}

func TestSummarizer(t *testing.T) {
	texts := fantasy.ResponseContent{fantasy.ReasoningContent{Text: "hm"}, fantasy.TextContent{Text: "They read "}, fantasy.TextContent{Text: "ten pages."}}
	usage := fantasy.Usage{InputTokens: 90, CacheReadTokens: 10, OutputTokens: 5}
	for reason, want := range map[fantasy.FinishReason]convo.Stop{
		fantasy.FinishReasonStop: convo.StopDone, fantasy.FinishReasonUnknown: convo.StopDone, fantasy.FinishReasonLength: convo.StopLength,
		fantasy.FinishReasonToolCalls: convo.StopToolCall, fantasy.FinishReasonContentFilter: convo.StopRefused, fantasy.FinishReasonError: convo.StopRefused,
	} {
		w := &writer{answer: fantasy.Response{Content: texts, FinishReason: reason, Usage: usage}}
		got, err := convofantasy.Summarizer(w).Summarize(t.Context(), convo.SummaryRequest{Prompt: "Summarise this.", MaxTokens: 3000})
		require.NoError(t, err)
		assert.Equal(t, convo.Summary{Text: "They read ten pages.", Stop: want, Model: "fake-1", Usage: convo.Usage{Input: 100, CacheRead: 10, Output: 5}}, got)
		assert.Equal(t, fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("Summarise this.")}, MaxOutputTokens: new(int64(6000))}, w.got)
	}
	w := &writer{err: errors.New("no network")}
	_, err := convofantasy.Summarizer(w).Summarize(t.Context(), convo.SummaryRequest{Prompt: "Summarise this.", MaxTokens: 500})
	require.ErrorIs(t, err, w.err)
	assert.Nil(t, w.got.MaxOutputTokens, "the default of the provider")
}

// The model of an Agent also writes summaries: the request is not one of the conversation.
func TestSummarizer_OfAnAgent(t *testing.T) {
	w := &writer{answer: fantasy.Response{Content: fantasy.ResponseContent{fantasy.TextContent{Text: "They read pages 1 to 9; page 3 names the treasure."}}}}
	model := &fake{window: 8000, calls: 40}
	var a *convofantasy.Agent
	write := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		return convofantasy.Summarizer(a.Model(w)).Summarize(ctx, req)
	})
	h := newHistory(t, &convo.Options{Limits: window, Strategy: convo.Summarize{With: write}})
	a = convofantasy.New(mirror.New(h, convofantasy.Codec()))
	agent := fantasy.NewAgent(model, fantasy.WithTools(readTool()), fantasy.WithPrepareStep(a.PrepareStep))
	_, err := agent.Generate(t.Context(), fantasy.AgentCall{Prompt: question})
	require.NoError(t, err)
	s, ok := h.Snapshot().Summary()
	require.True(t, ok)
	assert.Contains(t, s.Text, "page 3 names the treasure")
	assert.Len(t, h.Snapshot().Tools(), 1)
	assert.Empty(t, w.got.Tools)
}
