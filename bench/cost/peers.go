package cost

import (
	"context"
	"errors"
	"io"
	"log"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/middlewares/reduction"
	"github.com/cloudwego/eino/adk/middlewares/summarization"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
	"github.com/tmc/langchaingo/memory"
	trpc "trpc.group/trpc-go/trpc-agent-go/model"

	"github.com/seed-c1b73e60/convo"
)

// peers returns the policies of other Go libraries that run on a conversation.
// adk v2.2.0 has none: it sends everything.
func peers(cs []*Conversation) []Policy {
	all := []Policy{
		tailored("trpc-agent-go HeadOut", func(c trpc.TokenCounter) trpc.TailoringStrategy { return trpc.NewHeadOutStrategy(c) }),
		tailored("trpc-agent-go MiddleOut", func(c trpc.TokenCounter) trpc.TailoringStrategy { return trpc.NewMiddleOutStrategy(c) }),
		eino("eino summarization", false),
		eino("eino reduction, then summarization", true),
	}
	for _, c := range cs {
		for _, m := range c.Messages {
			if m.Role == convo.RoleTool {
				return all
			}
		}
	}
	return append([]Policy{tokenBuffer()}, all...)
}

// tokenBuffer is langchaingo's ConversationTokenBuffer. It holds questions and
// answers, not tool rounds, and counts neither the system message nor the
// question that is asked: so much is taken from its limit.
func tokenBuffer() Policy {
	return Policy{Name: "langchaingo ConversationTokenBuffer", Kind: Real, Start: func(c *Conversation, s Setup, _ *Meter) (Run, error) {
		longest := 0
		for i, m := range c.Messages {
			if m.Role == convo.RoleUser {
				longest = max(longest, c.plan.full[i].Tokens)
			}
		}
		return &bufferRun{c: c, buffer: memory.NewConversationTokenBuffer(nil, s.Limit()-c.plan.sys-longest)}, nil
	}}
}

type bufferRun struct {
	c      *Conversation
	buffer *memory.ConversationTokenBuffer
	saved  []Item
	next   int // message
	asked  []int
}

func (r *bufferRun) Append(m convo.Message) error {
	defer func() { r.next++ }()
	switch m.Role {
	case convo.RoleUser:
		r.asked = append(r.asked, r.next)
	case convo.RoleAssistant:
		if len(r.asked) != 1 {
			return errors.New("not a question and an answer")
		}
		defer quietLog()()
		question := r.asked[0]
		r.asked = nil
		r.saved = append(r.saved, r.c.plan.full[question], r.c.plan.full[r.next])
		return r.buffer.SaveContext(context.Background(),
			map[string]any{"input": r.c.Messages[question].Text()}, map[string]any{"output": m.Text()})
	}
	return nil
}

// quietLog keeps langchaingo's warnings, one for each count, off the global
// log until the function it returns is called.
func quietLog() func() {
	old := log.Writer()
	log.SetOutput(io.Discard)
	return func() { log.SetOutput(old) }
}

func (r *bufferRun) Request() ([]Item, error) {
	kept, err := r.buffer.ChatHistory.Messages(context.Background())
	if err != nil {
		return nil, err
	}
	view := append([]Item(nil), r.c.plan.full[:r.c.plan.system]...)
	view = append(view, r.saved[len(r.saved)-len(kept):]...) // it drops from the front
	for _, i := range r.asked {
		view = append(view, r.c.plan.full[i])
	}
	return view, nil
}

func (r *bufferRun) Sent(convo.Usage) error { return nil }
func (r *bufferRun) Close() error           { return nil }

// tailored is a strategy of trpc-agent-go, asked before each request with the
// whole conversation, counting as the simulator does. What it returns beside an
// overflow error is sent all the same.
func tailored(name string, make func(trpc.TokenCounter) trpc.TailoringStrategy) Policy {
	return Policy{Name: name, Kind: Real, Start: func(c *Conversation, s Setup, _ *Meter) (Run, error) {
		return &trpcRun{c: c, strategy: make(trpcCounter{}), limit: s.Limit()}, nil
	}}
}

type trpcRun struct {
	c        *Conversation
	strategy trpc.TailoringStrategy
	limit    int
	msgs     []trpc.Message
}

func (r *trpcRun) Append(m convo.Message) error {
	// The signature is a field that nothing here reads: it holds the number.
	t := trpc.Message{Role: trpc.Role(m.Role), Content: m.Text(), ReasoningSignature: m.Meta}
	for _, call := range m.ToolCalls() {
		t.ToolCalls = append(t.ToolCalls, trpc.ToolCall{
			Type: "function", ID: call.ID,
			Function: trpc.FunctionDefinitionParam{Name: call.Name, Arguments: []byte(call.Arguments)},
		})
	}
	results := m.ToolResults()
	for _, result := range results { // one message each
		t.ToolID, t.ToolName, t.Content = result.CallID, result.Name, result.Text()
		r.msgs = append(r.msgs, t)
	}
	if len(results) == 0 {
		r.msgs = append(r.msgs, t)
	}
	return nil
}

func (r *trpcRun) Request() ([]Item, error) {
	msgs, _ := r.strategy.TailorMessages(context.Background(), append([]trpc.Message(nil), r.msgs...), r.limit)
	view := make([]Item, len(msgs))
	for i, t := range msgs {
		view[i] = r.c.item(ofTRPC(t))
	}
	return view, nil
}

func (r *trpcRun) Sent(convo.Usage) error { return nil }
func (r *trpcRun) Close() error           { return nil }

func ofTRPC(t trpc.Message) convo.Message {
	var calls []convo.ToolCall
	for _, c := range t.ToolCalls {
		calls = append(calls, convo.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
	}
	return chat(string(t.Role), t.Content, calls, t.ToolID, t.ToolName, t.ReasoningSignature)
}

// chat makes a message of the fields that other libraries have.
func chat(role, text string, calls []convo.ToolCall, callID, name, meta string) convo.Message {
	var m convo.Message
	switch role {
	case "tool":
		m = convo.Result(convo.ToolCall{ID: callID, Name: name}, text)
	case "assistant":
		m = convo.Assistant(text, calls...)
	case "system":
		m = convo.System(text)
	default:
		m = convo.User(text)
	}
	m.Meta = meta
	return m
}

type trpcCounter struct{}

func (trpcCounter) CountTokens(_ context.Context, m trpc.Message) (int, error) {
	return CountBytes(ofTRPC(m)), nil
}

func (c trpcCounter) CountTokensRange(ctx context.Context, msgs []trpc.Message, start, end int) (int, error) {
	n := 0
	for _, m := range msgs[max(start, 0):min(end, len(msgs))] {
		one, _ := c.CountTokens(ctx, m)
		n += one
	}
	return n, nil
}

// eino is its middlewares, called as its agent calls them before the model,
// triggered at the limit and otherwise with their defaults, counting as the
// simulator does. Its request for a summary has a system message of its own,
// so it is billed apart.
func eino(name string, reduce bool) Policy {
	return Policy{Name: name, Kind: Real, Start: func(c *Conversation, s Setup, m *Meter) (Run, error) {
		ctx := context.Background()
		r := &einoRun{c: c}
		if reduce {
			mw, err := reduction.New(ctx, &reduction.Config{
				SkipTruncation:    true,
				MaxTokensForClear: int64(s.Limit()),
				TokenCounter: func(_ context.Context, msgs []*schema.Message, _ []*schema.ToolInfo) (int64, error) {
					return int64(countEino(msgs)), nil
				},
			})
			if err != nil {
				return nil, err
			}
			r.before = append(r.before, mw)
		}
		mw, err := summarization.New(ctx, &summarization.Config{
			Model:   &einoModel{m: m},
			Trigger: &summarization.TriggerCondition{ContextTokens: s.Limit()},
			TokenCounter: func(_ context.Context, in *summarization.TokenCounterInput) (int, error) {
				return countEino(in.Messages), nil
			},
		})
		r.before = append(r.before, mw)
		return r, err
	}}
}

func countEino(msgs []*schema.Message) int {
	n := 0
	for _, m := range msgs {
		n += CountBytes(ofEino(m))
	}
	return n
}

type einoModel struct{ m *Meter }

func (e *einoModel) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	text := summaryText(summaryTokens, convo.Heuristic{}.CountTokens)
	e.m.Apart(countEino(in), CountBytes(convo.Assistant(text)))
	return schema.AssistantMessage(text, nil), nil
}

func (e *einoModel) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return nil, errors.New("not streamed")
}

type einoRun struct {
	c      *Conversation
	before []adk.ChatModelAgentMiddleware
	state  adk.ChatModelAgentState
}

const einoNumber = "number"

func (r *einoRun) Append(m convo.Message) error {
	e := &schema.Message{Role: schema.RoleType(m.Role), Content: m.Text(), Extra: map[string]any{einoNumber: m.Meta}}
	for _, call := range m.ToolCalls() {
		e.ToolCalls = append(e.ToolCalls, schema.ToolCall{ID: call.ID, Function: schema.FunctionCall{Name: call.Name, Arguments: call.Arguments}})
	}
	results := m.ToolResults()
	for _, result := range results {
		one := *e
		one.ToolCallID, one.ToolName, one.Content = result.CallID, result.Name, result.Text()
		one.Extra = map[string]any{einoNumber: m.Meta}
		r.state.Messages = append(r.state.Messages, &one)
	}
	if len(results) == 0 {
		r.state.Messages = append(r.state.Messages, e)
	}
	return nil
}

func (r *einoRun) Request() ([]Item, error) {
	ctx := context.Background()
	for _, mw := range r.before {
		_, state, err := mw.BeforeModelRewriteState(ctx, &r.state, &adk.ModelContext{})
		if err != nil {
			return nil, err
		}
		r.state = *state
	}
	view := make([]Item, len(r.state.Messages))
	for i, m := range r.state.Messages {
		view[i] = r.c.item(ofEino(m))
	}
	return view, nil
}

func (r *einoRun) Sent(convo.Usage) error { return nil }
func (r *einoRun) Close() error           { return nil }

func ofEino(m *schema.Message) convo.Message {
	var calls []convo.ToolCall
	for _, c := range m.ToolCalls {
		calls = append(calls, convo.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	number, _ := m.Extra[einoNumber].(string)
	text := []string{m.Content}
	for _, p := range m.UserInputMultiContent {
		text = append(text, p.Text)
	}
	return chat(string(m.Role), strings.Join(text, ""), calls, m.ToolCallID, m.ToolName, number)
}
