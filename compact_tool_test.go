package convo_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/callid"
	"github.com/seed-c1b73e60/convo/wire"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func askToCompact(id, next string) convo.ToolCall {
	return convo.ToolCall{ID: id, Name: new(convo.History).CompactTool().Name, Arguments: fmt.Sprintf(`{"next":%q}`, next)}
}

// answerCompact returns the result of a call of CompactTool.
func answerCompact(h *convo.History, ctx context.Context, call convo.ToolCall) convo.Message {
	parts, err := h.CompactTool().Run(ctx, call)
	if err != nil {
		return convo.ResultError(call, err)
	}
	return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: call.ID, Name: call.Name, Parts: parts}}}
}

// toldWindow is windowOf with the reports that OnCompaction is given.
func toldWindow(window int, c convo.CompactionStrategy) (*convo.Options, *[]convo.Report) {
	told := new([]convo.Report)
	opts := windowOf(window, c)
	opts.OnCompaction = func(r convo.Report) { *told = append(*told, r) }
	return opts, told
}

func answerOf(t *testing.T, m convo.Message) convo.ToolResult {
	t.Helper()
	require.Equal(t, convo.RoleTool, m.Role)
	require.Len(t, m.ToolResults(), 1)
	return m.ToolResults()[0]
}

func TestCompactTool_ProvidersTakeIt(t *testing.T) {
	for _, w := range []wire.ToolWriter{wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Anthropic{}, wire.Gemini{}, wire.Converse{}} {
		_, err := w.Tools(new(convo.History).CompactTool().Tool)
		require.NoError(t, err)
	}
}

// The compaction happens while the call and another one are open; both stay, after the
// summary, and so does the result.
func TestAnswerCompact(t *testing.T) {
	var req convo.SummaryRequest
	opts, told := toldWindow(8000, convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, r convo.SummaryRequest) (convo.Summary, error) {
		req = r
		return convo.Summary{Text: "what went before"}, nil
	})}, convo.Truncate{}))
	h := toolTurn(t, opts, 50)
	call, other := askToCompact("c", "write the report in out.md"), callOf("other")
	mustAppend(t, h, convo.User("go on"), convo.Assistant("", call, other))
	before := h.Status()
	require.LessOrEqual(t, before.Upper, before.High, "no compaction is due")

	result := answerCompact(h, t.Context(), call)
	r := answerOf(t, result)
	assert.Equal(t, "c", r.CallID)
	assert.False(t, r.IsError)
	assert.Contains(t, r.Text(), "older messages were removed")
	assert.Equal(t, "write the report in out.md", req.Focus)
	require.Len(t, *told, 1)
	assert.Equal(t, convo.OutcomeApplied, (*told)[0].Outcome)
	assert.Equal(t, convo.ReasonTool, (*told)[0].Reason)
	assert.Equal(t, "tool", (*told)[0].Reason.String())
	assert.LessOrEqual(t, h.Status().Upper, before.Upper/2)
	assert.Equal(t, 2, h.Status().OpenCalls)

	mustAppend(t, h, result, convo.Result(other, "x"))
	s, p, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, p.Outcome)
	msgs := s.Messages()
	assert.Contains(t, msgs[1].Text(), "what went before")
	n := len(msgs)
	assert.Equal(t, []convo.ToolCall{call, other}, msgs[n-3].ToolCalls())
	assert.Equal(t, r, msgs[n-2].ToolResults()[0])

	// Soon after it, too little is new.
	r = answerOf(t, answerCompact(h, t.Context(), askToCompact("d", "go on")))
	assert.False(t, r.IsError)
	assert.Contains(t, r.Text(), "Nothing was removed")
	assert.Equal(t, msgs, h.Snapshot().Messages())
}

// A call that cannot be carried out gets a result that says so, and changes nothing.
func TestAnswerCompact_Refuses(t *testing.T) {
	full := func(t *testing.T, c convo.CompactionStrategy) (*convo.History, *[]convo.Report) {
		opts, told := toldWindow(8000, c)
		return toolTurn(t, opts, 50), told
	}
	const secret = "https://key@host"
	down := convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New("503 of " + secret)
	})}, convo.Truncate{})
	unchanged := func(t *testing.T, h *convo.History, ctx context.Context, call convo.ToolCall) convo.ToolResult {
		t.Helper()
		before := h.Snapshot()
		r := answerOf(t, answerCompact(h, ctx, call))
		assert.Same(t, before, h.Snapshot())
		assert.NotContains(t, r.Text(), secret)
		return r
	}

	for args, want := range map[string]string{
		"": "not a JSON object", "x": "not a JSON object", "[]": "not a JSON object", `{"next":1}`: "not a JSON object",
		"{}": "say what you do next", `{"next":" \n"}`: "say what you do next",
	} {
		h, told := full(t, convo.Truncate{})
		r := unchanged(t, h, t.Context(), convo.ToolCall{ID: "c", Name: "compact", Arguments: args})
		assert.True(t, r.IsError, args)
		assert.Contains(t, r.Text(), want, args)
		assert.Empty(t, *told, args)
	}

	t.Run("a summarizer that fails", func(t *testing.T) {
		h, told := full(t, down)
		r := unchanged(t, h, t.Context(), askToCompact("c", "go on"))
		assert.True(t, r.IsError)
		require.Len(t, *told, 1)
		assert.Equal(t, convo.OutcomeFailed, (*told)[0].Outcome)
		assert.ErrorContains(t, (*told)[0].Cause, secret)
		r = unchanged(t, h, t.Context(), askToCompact("c", "go on"))
		assert.Contains(t, r.Text(), "Nothing was removed")
		assert.Zero(t, (*told)[1].Calls, "the breaker is open")
	})
	t.Run("too little to free", func(t *testing.T) {
		opts, _ := toldWindow(8000, convo.Truncate{})
		h := toolTurn(t, opts, 10)
		assert.False(t, unchanged(t, h, t.Context(), askToCompact("c", "go on")).IsError)
		_, err := h.Compact(t.Context(), "")
		require.NoError(t, err, "by hand it would free something")
	})
	t.Run("ctx has ended", func(t *testing.T) {
		h, _ := full(t, convo.Truncate{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.True(t, unchanged(t, h, ctx, askToCompact("c", "go on")).IsError)
	})
	t.Run("closed", func(t *testing.T) {
		h, _ := full(t, convo.Truncate{})
		require.NoError(t, h.Close())
		assert.True(t, unchanged(t, h, t.Context(), askToCompact("c", "go on")).IsError)
		answerOf(t, answerCompact(new(convo.History), t.Context(), askToCompact("c", "go on")))
	})
	t.Run("within a compaction", func(t *testing.T) {
		var h *convo.History
		opts, _ := toldWindow(8000, convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			assert.True(t, answerOf(t, answerCompact(h, ctx, askToCompact("c", "go on"))).IsError)
			return convo.Edit{}, convo.ErrNoGain
		}))
		h = toolTurn(t, opts, 50)
		_, err := h.Compact(t.Context(), "")
		require.ErrorIs(t, err, convo.ErrNoGain)
	})
}

// Above high it is the compaction that Prepare would make, with all links of the chain.
func TestAnswerCompact_WhenDue(t *testing.T) {
	calls := 0
	opts, told := toldWindow(4000, convo.Chain(convo.Summarize{With: broken(&calls)}, convo.Truncate{}))
	h := toolTurn(t, opts, 50)
	mustAppend(t, h, convo.User("go on"), convo.Assistant("", askToCompact("c", "go on")))
	require.Greater(t, h.Status().Upper, h.Status().High)
	//lint:ignore SA1012 a nil ctx never ends
	r := answerOf(t, answerCompact(h, nil, askToCompact("c", strings.Repeat("é", 5000))))
	assert.False(t, r.IsError)
	assert.Equal(t, convo.ReasonHigh, (*told)[0].Reason)
	assert.Equal(t, convo.OutcomeApplied, (*told)[0].Outcome)
}

// The model asks for a compaction when a part of its work is done.
func ExampleHistory_CompactTool() {
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 6000},
		Strategy: convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{Text: "The user wants a train to Rome. The timetables were read."}, nil
		})},
		OnCompaction: func(r convo.Report) { fmt.Println(r.Outcome, "by", r.Reason) },
	})
	if err != nil {
		log.Fatal(err)
	}
	h.Append(convo.System("You are a travel agent."), convo.User("Find a train to Rome, then book it."))
	for i := range 8 {
		read := convo.ToolCall{ID: callid.New(), Name: "timetable", Arguments: fmt.Sprintf(`{"page":%d}`, i)}
		h.Append(convo.Assistant("", read), convo.Result(read, strings.Repeat("09:10 Rome, 10:10 Bari. ", 30)))
	}

	tool := h.CompactTool() // for RunOptions.Tools; in a loop of your own, for SetTools
	// The model answers:
	call := convo.ToolCall{ID: "c1", Name: "compact", Arguments: `{"next":"Book the 09:10 to Rome."}`}
	h.Append(convo.Assistant("", call))
	result, _ := tool.Run(context.Background(), call)
	h.Append(convo.Result(call, string(result[0].(convo.Text))))

	summary, _ := h.Snapshot().Summary()
	fmt.Println(summary.Text)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// applied by tool
	// The user wants a train to Rome. The timetables were read.
	// 1 system: You are a travel agent.
	// 2 user: Find a train to Rome, then book it.
	// 15 assistant: call timetable({"page":6})
	// 16 tool: result of timetable(09:10 Rome, 10:10 Bari. 09:10 Rome, 10:10 Bari. 09:10 Rome, 10:1… (720 bytes))
	// 17 assistant: call timetable({"page":7})
	// 18 tool: result of timetable(09:10 Rome, 10:10 Bari. 09:10 Rome, 10:10 Bari. 09:10 Rome, 10:1… (720 bytes))
	// 19 assistant: call compact({"next":"Book the 09:10 to Rome."})
	// 20 tool: result of compact(Done: older messages were removed. Go on with what you wanted to… (73 bytes))
}
