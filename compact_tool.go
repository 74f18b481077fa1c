package convo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/text"
)

const compactSchema = `{"type":"object","properties":{` +
	`"next":{"type":"string","description":"What you do next, and what you need for it: names, paths and values, word for word. You will read it after the summary."}},` +
	`"required":["next"]}`

// CompactTool returns the definition of a tool with which the model asks for a
// compaction. Its name is "compact". [History.AnswerCompact] answers its calls:
//
//	for _, call := range reply.OpenCalls() {
//		if call.Name == convo.CompactTool().Name {
//			_, err = h.Append(h.AnswerCompact(ctx, call))
//		}
//	}
func CompactTool() Tool {
	return Tool{
		Name: "compact",
		Description: "Replaces the older messages of this conversation by a summary, which makes room. " +
			"Call it when a sub-task is done and its details are no longer needed. " +
			"Do not call it in the middle of a derivation, an edit or a search whose results you still need, nor after each step. " +
			"The newest messages stay. Say what you do next, so that you can go on from there.",
		Schema: compactSchema,
	}
}

// AnswerCompact compacts, as a call of [CompactTool] asks for, and returns the result of
// the call, to be appended. The call and its result stay in the view, after the summary,
// at least until the model has answered them, so it reads there what it wanted to do
// next. This is also the focus of the summary.
//
// It works down to the size of [History.Compact], while the call is open. Unlike Compact,
// it must free Limits.MinFree, as much must be new since the last edit, no summarizer is
// called for a while after failures, and nothing is dropped if the summarizer fails:
// there is time. The reason is ReasonTool, or ReasonHigh if the request is larger than
// Limits.High.
//
// Whatever happens, the result says so in words for the model, without the texts of
// errors. They are in the report, as for any compaction.
func (h *History) AnswerCompact(ctx context.Context, call ToolCall) Message {
	var args struct{ Next string }
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		return ResultError(call, fmt.Errorf("the arguments are not a JSON object: %w", err))
	}
	next := strings.TrimSpace(text.Valid(args.Next))
	if next == "" {
		return ResultError(call, errors.New("say what you do next"))
	}
	focus := next[:text.Floor(next, mostFocus)]
	r, _ := h.withSlot(ctx, ReasonTool, 1, func(f *flight) (Report, error) { return f.ifDue(ReasonTool, focus) })
	switch r.Outcome {
	case OutcomeApplied:
		return Result(call, "Done: older messages were removed. Go on with what you wanted to do next.")
	case OutcomeNotNeeded, OutcomeDeclined:
		return Result(call, "Nothing was removed, because it would make too little room. Go on with what you wanted to do next.")
	}
	return ResultError(call, errors.New("nothing was removed, because the compaction failed; go on with what you wanted to do next"))
}

// mostFocus is how many bytes of what the model does next the summarizer is told.
const mostFocus = 2000
