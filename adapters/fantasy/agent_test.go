package convofantasy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/fantasy"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A fake is a model that refuses what is longer than its window, and calls the tool read
// until it was asked so many times.
type fake struct {
	window, calls int
	streams       bool // an overflow is an error in the stream
	requests      []fantasy.Call
	answers       int
	largest       int
	refused       int
	fieldsOnly    bool // only the fields of an overflow say what it is
}

func (f *fake) Provider() string { return "fake" }
func (f *fake) Model() string    { return "fake-1" }

func (f *fake) GenerateObject(context.Context, fantasy.ObjectCall) (*fantasy.ObjectResponse, error) {
	return nil, errors.ErrUnsupported
}

func (f *fake) StreamObject(context.Context, fantasy.ObjectCall) (fantasy.ObjectStreamResponse, error) {
	return nil, errors.ErrUnsupported
}

// tokens counts a request: four bytes are a token, and each part has ten more.
func tokens(call fantasy.Call) (n int) {
	for _, m := range call.Prompt {
		for _, p := range m.Content {
			n += 10 + len(said(p))/4
		}
	}
	return n
}

func said(p fantasy.MessagePart) string {
	switch p := p.(type) {
	case fantasy.TextPart:
		return p.Text
	case fantasy.ToolCallPart:
		return p.ToolName + p.Input
	case fantasy.ToolResultPart:
		switch o := p.Output.(type) {
		case fantasy.ToolResultOutputContentText:
			return o.Text
		case fantasy.ToolResultOutputContentError:
			return o.Error.Error()
		}
	}
	return ""
}

func shows(call fantasy.Call, text string) bool {
	return slices.ContainsFunc(call.Prompt, func(m fantasy.Message) bool {
		return slices.ContainsFunc(m.Content, func(p fantasy.MessagePart) bool { return strings.Contains(said(p), text) })
	})
}

func (f *fake) Generate(_ context.Context, call fantasy.Call) (*fantasy.Response, error) {
	f.requests = append(f.requests, call)
	n := tokens(call)
	if n > f.window {
		f.refused++
		err := &fantasy.ProviderError{StatusCode: 400, ContextTooLargeErr: true, ContextUsedTokens: n, ContextMaxTokens: f.window, Message: "bad request"}
		if !f.fieldsOnly {
			err.Message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, f.window)
		}
		return nil, err
	}
	f.largest = max(f.largest, n)
	f.answers++
	usage := fantasy.Usage{InputTokens: int64(n), OutputTokens: 10, TotalTokens: int64(n + 10)}
	if f.answers >= f.calls {
		return &fantasy.Response{Content: fantasy.ResponseContent{fantasy.TextContent{Text: "All read."}}, FinishReason: fantasy.FinishReasonStop, Usage: usage}, nil
	}
	return &fantasy.Response{
		Content:      fantasy.ResponseContent{fantasy.ToolCallContent{ToolCallID: fmt.Sprint("call-", f.answers), ToolName: "read", Input: fmt.Sprintf(`{"page":%d}`, f.answers)}},
		FinishReason: fantasy.FinishReasonToolCalls, Usage: usage,
	}, nil
}

func (f *fake) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	r, err := f.Generate(ctx, call)
	if err != nil && !f.streams {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		if err != nil {
			yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: err})
			return
		}
		for _, c := range r.Content {
			switch c := c.(type) {
			case fantasy.TextContent:
				if !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextStart, ID: "t"}) ||
					!yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: "t", Delta: c.Text}) ||
					!yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextEnd, ID: "t"}) {
					return
				}
			case fantasy.ToolCallContent:
				if !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputStart, ID: c.ToolCallID, ToolCallName: c.ToolName}) ||
					!yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputDelta, ID: c.ToolCallID, Delta: c.Input}) ||
					!yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolInputEnd, ID: c.ToolCallID}) ||
					!yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: c.ToolCallID, ToolCallName: c.ToolName, ToolCallInput: c.Input}) {
					return
				}
			}
		}
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, Usage: r.Usage, FinishReason: r.FinishReason})
	}, nil
}

type page struct {
	Page int `json:"page"`
}

// readTool returns a tool whose results have 1.8 kB.
func readTool() fantasy.AgentTool {
	return fantasy.NewAgentTool("read", "Reads a page.", func(_ context.Context, p page, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
		line := fmt.Sprintf("Page %d says that nothing was found here. ", p.Page)
		return fantasy.NewTextResponse(strings.Repeat(line, 1800/len(line)+1)[:1800]), nil
	})
}

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

var window = convo.Limits{Window: 8000, Reserve: 500}

const question = "Read all pages, and say where the treasure is."

// An agent that reads 120 pages with a window of 8,000 tokens.
func TestAgent_LongRun(t *testing.T) {
	alone := &fake{window: 8000, calls: 120}
	_, err := fantasy.NewAgent(alone, fantasy.WithTools(readTool())).Generate(t.Context(), fantasy.AgentCall{Prompt: question})
	require.ErrorAs(t, err, new(*fantasy.ProviderError))
	assert.Equal(t, 17, alone.answers, "steps of fantasy alone")

	for _, streams := range []bool{false, true} {
		t.Run(fmt.Sprint("streams ", streams), func(t *testing.T) {
			compactions := 0
			h := newHistory(t, &convo.Options{Limits: window, OnCompaction: func(r convo.Report) {
				if r.Outcome == convo.OutcomeApplied {
					compactions++
				}
			}})
			model := &fake{window: 8000, calls: 120}
			a := convofantasy.New(mirror.New(h, convofantasy.Codec()))
			// The host puts what was typed behind the messages of one step, as crush does.
			typed := map[int]string{20: "Skip the appendix, please.", 70: "And hurry."}
			a.Next = func(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
				r := fantasy.PrepareStepResult{Messages: o.Messages}
				if text, ok := typed[o.StepNumber]; ok {
					r.Messages = append(r.Messages, fantasy.NewUserMessage(text))
				}
				return ctx, r, nil
			}
			agent := fantasy.NewAgent(model, fantasy.WithSystemPrompt("You read."), fantasy.WithTools(readTool()), fantasy.WithPrepareStep(a.PrepareStep))
			var steps []fantasy.StepResult
			if streams {
				r, err := agent.Stream(t.Context(), fantasy.AgentStreamCall{Prompt: question})
				require.NoError(t, err)
				steps = r.Steps
			} else {
				r, err := agent.Generate(t.Context(), fantasy.AgentCall{Prompt: question})
				require.NoError(t, err)
				steps = r.Steps
			}
			assert.Len(t, steps, 120)
			assert.Zero(t, model.refused)
			assert.LessOrEqual(t, model.largest, 8000)
			assert.Positive(t, compactions)
			require.Len(t, model.requests, 120)
			for i, r := range model.requests {
				assert.Equal(t, fantasy.MessageRoleSystem, r.Prompt[0].Role)
				assert.True(t, shows(r, "treasure"), "the task is in request %d", i)
				for at, text := range typed {
					assert.Equal(t, i >= at, shows(r, text), "typed at step %d, request %d", at, i)
				}
			}
			assert.NotZero(t, h.Tokens().Measured)
			require.Len(t, h.Snapshot().Tools(), 1)
			t.Logf("%d steps, %d compactions, largest request %d", len(steps), compactions, model.largest)
		})
	}
}

// A provider with a smaller window than the limits say.
func TestAgent_Overflow(t *testing.T) {
	for _, c := range []struct{ name string }{{"error"}, {"fields only"}, {"stream"}, {"error in the stream"}} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 16000, Reserve: 500}})
			model := &fake{window: 8000, calls: 60, fieldsOnly: c.name == "fields only", streams: c.name == "error in the stream"}
			a := convofantasy.New(mirror.New(h, convofantasy.Codec()))
			agent := fantasy.NewAgent(model, fantasy.WithTools(readTool()), fantasy.WithPrepareStep(a.PrepareStep))
			if strings.Contains(c.name, "stream") {
				text := ""
				r, err := agent.Stream(t.Context(), fantasy.AgentStreamCall{Prompt: question, OnTextDelta: func(_, d string) error { text += d; return nil }})
				require.NoError(t, err)
				assert.Len(t, r.Steps, 60)
				assert.Equal(t, "All read.", text)
			} else {
				r, err := agent.Generate(t.Context(), fantasy.AgentCall{Prompt: question})
				require.NoError(t, err)
				assert.Len(t, r.Steps, 60)
			}
			assert.Positive(t, model.refused)
			assert.Less(t, model.refused, 4, "the limit was learned")
		})
	}
}

func TestAgent_ErrorsReachFantasy(t *testing.T) {
	h := newHistory(t, nil)
	model := &fake{window: 10, calls: 2}
	a := convofantasy.New(mirror.New(h, convofantasy.Codec()))
	agent := fantasy.NewAgent(model, fantasy.WithPrepareStep(a.PrepareStep))
	_, err := agent.Generate(t.Context(), fantasy.AgentCall{Prompt: question})
	var refused *fantasy.ProviderError
	require.ErrorAs(t, err, &refused, "what cannot be made smaller")
	assert.True(t, refused.IsContextTooLarge())

	_, err = agent.Generate(t.Context(), fantasy.AgentCall{Prompt: "Something else."})
	require.ErrorAs(t, err, new(*mirror.PastError))
}

// With another System, fantasy would overwrite the first message, whatever it is.
func TestAgent_System(t *testing.T) {
	for _, first := range []string{"", "You read."} {
		h := newHistory(t, nil)
		model := &fake{window: 8000, calls: 3}
		a := convofantasy.New(mirror.New(h, convofantasy.Codec()))
		a.Next = func(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
			system := "You read slowly."
			return ctx, fantasy.PrepareStepResult{System: &system}, nil
		}
		agent := fantasy.NewAgent(model, fantasy.WithSystemPrompt(first), fantasy.WithTools(readTool()), fantasy.WithPrepareStep(a.PrepareStep))
		_, err := agent.Generate(t.Context(), fantasy.AgentCall{Prompt: question})
		require.NoError(t, err)
		for _, r := range model.requests {
			assert.Equal(t, "You read slowly.", said(r.Prompt[0].Content[0]))
			assert.Equal(t, question, said(r.Prompt[1].Content[0]))
		}
	}
}

// A second run of the same conversation, whose list has what was typed in the first one.
func TestAgent_NextRun(t *testing.T) {
	h := newHistory(t, &convo.Options{Limits: window})
	kept := mirror.New(h, convofantasy.Codec())
	a := convofantasy.New(kept)
	model := &fake{window: 8000, calls: 30}
	agent := fantasy.NewAgent(model, fantasy.WithTools(readTool()), fantasy.WithPrepareStep(a.PrepareStep))
	typed := fantasy.NewUserMessage("Skip the appendix, please.")
	stored := []fantasy.Message{fantasy.NewUserMessage(question)}
	r, err := agent.Stream(t.Context(), fantasy.AgentStreamCall{Prompt: question, OnStepFinish: func(s fantasy.StepResult) error {
		if len(model.requests) == 10 {
			return kept.Add(typed)
		}
		return nil
	}})
	require.NoError(t, err)
	for i, s := range r.Steps {
		for _, c := range s.Content {
			switch c := c.(type) {
			case fantasy.TextContent:
				stored = append(stored, fantasy.Message{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{fantasy.TextPart{Text: c.Text}}})
			case fantasy.ToolCallContent:
				stored = append(stored, fantasy.Message{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{fantasy.ToolCallPart{ToolCallID: c.ToolCallID, ToolName: c.ToolName, Input: c.Input}}})
			case fantasy.ToolResultContent:
				stored = append(stored, fantasy.Message{Role: fantasy.MessageRoleTool, Content: []fantasy.MessagePart{fantasy.ToolResultPart{ToolCallID: c.ToolCallID, Output: c.Result}}})
			}
		}
		if i == 9 {
			stored = append(stored, typed)
		}
	}
	before := h.Len()
	model.calls = 31
	_, err = agent.Generate(t.Context(), fantasy.AgentCall{Messages: stored, Prompt: "Thanks."})
	require.NoError(t, err)
	assert.Equal(t, before+2, h.Len(), "the last answer and the question")
}

// If the host's own model is called, as with a ModelProvider, Logger gets one line. Steps
// that failed, and the last one of a run, do not count.
func TestAgent_LogsStepsThatAreNotRecorded(t *testing.T) {
	const line = "level=WARN msg=\"convo: two steps in a row were not recorded: let ModelProvider return what Agent.Model returns\"\n"
	for _, c := range []struct {
		name string
		host bool // the host's own model is called
		want string
	}{{"the model of PrepareStep", false, ""}, {"the host's own", true, line}} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			a := convofantasy.New(mirror.New(newHistory(t, nil), convofantasy.Codec()))
			a.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
			prepare := func(ctx context.Context, o fantasy.PrepareStepFunctionOptions) (context.Context, fantasy.PrepareStepResult, error) {
				ctx, r, err := a.PrepareStep(ctx, o)
				if c.host {
					r.Model = o.Model
				}
				return ctx, r, err
			}
			model := &fake{window: 8000, calls: 2}
			agent := fantasy.NewAgent(model, fantasy.WithTools(readTool()), fantasy.WithPrepareStep(prepare))
			list := []fantasy.Message{}
			run := func(window, calls int) {
				model.window, model.answers, model.calls = window, 0, calls
				r, err := agent.Generate(t.Context(), fantasy.AgentCall{Messages: list, Prompt: question})
				list = append(list, fantasy.NewUserMessage(question))
				if err == nil {
					for _, s := range r.Steps {
						list = append(list, s.Messages...)
					}
				}
			}
			run(8000, 2)
			run(1, 1) // fails
			assert.Empty(t, out.String(), "one step is known to have finished")
			run(8000, 8)
			run(8000, 8)
			assert.Equal(t, c.want, out.String())
		})
	}
}
