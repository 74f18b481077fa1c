package convo_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A compaction after the final answer, failed or not, made the model be asked
// again, and put a message of its own in the conversation.
func TestSeeds_S4_C2_FinalAnswerStaysNewest(t *testing.T) {
	for name, with := range map[string]convo.Summarizer{"applied": canned("short"), "failed": broken(new(int))} {
		t.Run(name, func(t *testing.T) {
			h := toolTurn(t, windowOf(0, convo.Summarize{With: with, MaxTokens: 100, Window: -1}), 20)
			before := h.Snapshot()
			final, _ := before.At(before.Len() - 1)
			r, err := h.Compact(t.Context(), "")
			assert.Equal(t, name, r.Outcome.String())
			assert.Equal(t, name == "failed", err != nil)
			now := h.Snapshot()
			newest, _ := now.At(now.Len() - 1)
			assert.Equal(t, final, newest)
			for _, e := range now.All() {
				_, there := before.Find(e.ID)
				assert.True(t, there, "entry %d was put in", e.ID)
			}
			_, err = h.Append(convo.Assistant("again"))
			require.Error(t, err, "it is not the model's turn")
			mustAppend(t, h, convo.User("thanks"))
		})
	}
}

// A lock was held for all conversations while a model wrote for one of them.
func TestSeeds_S4_C6_OneConversationDoesNotBlockAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		shared := convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			if first {
				first = false
				time.Sleep(time.Hour)
			}
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1}
		slow, other := toolTurn(t, windowOf(2000, shared), 20), toolTurn(t, windowOf(2000, shared), 20)
		require.True(t, slow.CompactInBackground(t.Context()))
		synctest.Wait()
		start := time.Now()
		r, err := other.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.Applied, r.Outcome)
		mustAppend(t, slow, convo.User("are you there?"), convo.Assistant("yes"))
		slow.Snapshot().Messages()
		assert.Zero(t, time.Since(start))
		_, err = slow.Wait(t.Context())
		require.NoError(t, err)
	})
}

// What was given to the summarizer had been taken out of the conversation, and
// was put back only when it answered.
func TestSeeds_S5_D1_FailedSummaryLosesNothing(t *testing.T) {
	long := strings.Repeat("x", 500)
	for _, tt := range []struct {
		name string
		with convo.SummarizerFunc
		want string
	}{
		{"503", func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{}, errors.New("503 service unavailable")
		}, "503"},
		{"an error beside a text", func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{Text: "fine"}, errors.New("connection reset")
		}, "connection reset"},
		{"panic", func(context.Context, convo.SummaryRequest) (convo.Summary, error) { panic("boom") }, "boom"},
		{"null content", func(context.Context, convo.SummaryRequest) (convo.Summary, error) { return convo.Summary{}, nil }, "it is empty"},
		{"the transcript comes back", func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{Text: req.Prompt}, nil
		}, "tokens of at most"},
		{"it never ends", func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
			<-ctx.Done()
			return convo.Summary{Text: "too late"}, nil
		}, "deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := historyOf(t, windowOf(2000, convo.Summarize{With: tt.with, MaxTokens: 100, Window: -1}), convo.System("SYS"),
					convo.User("old1"+long), convo.Assistant("a1"+long), convo.User("old2"+long), convo.Assistant("a2"+long), convo.User("NEW PROMPT"))
				unchanged(t, h, func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					s, r, err := h.Prepare(ctx)
					require.ErrorContains(t, err, tt.want)
					assert.Equal(t, convo.Failed, r.Outcome)
					assert.False(t, r.Fits, "so the request is not sent")
					assert.Equal(t, []string{"SYS", "old1" + long, "a1" + long, "old2" + long, "a2" + long, "NEW PROMPT"}, textsOf(s))
				})
			})
		})
	}
}

// More parallel results than the tail was to hold, or a call without a result
// before the new prompt: everything was summarised, the prompt too.
func TestSeeds_S5_D2_TheTailIsNeverEmpty(t *testing.T) {
	var calls []convo.ToolCall
	for i := range 12 {
		calls = append(calls, callOf("c"+itoa(i)))
	}
	for name, c := range map[string]convo.CompactionStrategy{
		"summary": convo.Summarize{With: canned("short"), MaxTokens: 100, Window: -1, KeepTokens: -1},
		"window":  convo.SlidingWindow{Keep: 1},
		"drop":    convo.Truncate{},
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(0, c)
			opts.Roles = convo.Relaxed()
			h := historyOf(t, opts, convo.System("SYS"), convo.User("old"), convo.Assistant(strings.Repeat("a", 2000)),
				convo.User("PROMPT"), convo.Assistant("", calls...))
			for _, call := range calls[:11] {
				mustAppend(t, h, convo.Result(call, strings.Repeat("r", 100)))
			}
			compact := func(newest ...string) {
				t.Helper()
				r, err := h.Compact(t.Context(), "")
				require.NoError(t, err)
				require.Equal(t, convo.Applied, r.Outcome)
				texts := textsOf(h.Snapshot())
				assert.Equal(t, newest, texts[len(texts)-len(newest):])
				checkPairs(t, h.Snapshot())
			}
			compact(append([]string{"PROMPT", ""}, slices.Repeat([]string{strings.Repeat("r", 100)}, 11)...)...)
			assert.Equal(t, 1, h.Status().OpenCalls)

			mustAppend(t, h, convo.User("NEWER PROMPT")) // the open call is answered by that
			compact("NEWER PROMPT")
		})
	}
}

// What cannot go was above the threshold by itself: each turn paid for a
// summary of nothing but the summary.
func TestSeeds_S5_D3_NoSummaryOfTheSummary(t *testing.T) {
	rec := new(recorder)
	opts := windowOf(20_000, convo.Summarize{With: rec, MaxTokens: 200, Window: -1, KeepTokens: -1})
	opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3000, 2500, 2000
	h := toolTurn(t, opts, 30)
	for i := range 24 { // 2544 of them
		require.NoError(t, h.Pin(convo.ID(3+2*i)))
	}
	for range 50 {
		mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
		_, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		h.CompactInBackground(t.Context())
		_, err = h.Wait(t.Context())
		require.NoError(t, err)
	}
	require.NotEmpty(t, rec.requests)
	assert.LessOrEqual(t, len(rec.requests), 2)
	for _, req := range rec.requests {
		assert.NotEmpty(t, req.Messages)
	}
}

// Arguments of 400 KB weighed nothing, so nothing was ever due.
func TestSeeds_S5_D6_ArgumentsWeigh(t *testing.T) {
	big := convo.ToolCall{ID: "c", Name: "write", Arguments: `{"text":"` + strings.Repeat("lorem ipsum ", 34_000) + `"}`}
	opts := &convo.Options{Limits: convo.Limits{Window: 60_000}, Strategy: convo.Truncate{}}
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", big), convo.Result(big, "ok"), convo.Assistant("done"), convo.User("next"))
	require.Greater(t, h.Status().Upper, 60_000)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, []convo.ID{5}, idsOf(h.Snapshot()))

	thought := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: strings.Repeat("hm, ", 100_000)}, convo.Text("so")}}
	h = historyOf(t, opts, convo.User("u"), thought, convo.User("next"))
	assert.Greater(t, h.Status().Upper, 60_000, "reasoning too")
}
