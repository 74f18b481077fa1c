package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"trpc.group/trpc-go/trpc-agent-go/model"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// pairBudget is what a request may weigh: about a third of a talk.
const pairBudget = 2000

// A keeper keeps one conversation inside pairBudget. It is given each message
// when it comes, and asked for the request whenever a model would be called.
type keeper interface {
	add(turn) error
	request() ([]turn, error)
}

// errTooLong is a keeper's word that it has no request that fits.
var errTooLong = errors.New("ops: no request fits")

// A way is a library's way to do it.
type way struct {
	name string
	new  func() (keeper, error)
}

func ways() []way {
	trpc := func(name string, s model.TailoringStrategy) way {
		return way{"trpc-agent-go " + name, func() (keeper, error) { return &trpcKeeper{strategy: s}, nil }}
	}
	return []way{
		{ourName + ", as it comes", newOurKeeper},
		{"langchaingo token buffer", newLangchainKeeper},
		trpc("HeadOut", model.NewHeadOutStrategy(trpcCounter{})),
		trpc("MiddleOut", model.NewMiddleOutStrategy(trpcCounter{})),
		trpc("TailOut", model.NewTailOutStrategy(trpcCounter{})),
		{"eino summarization", newEinoSummaryKeeper},
		{"eino clearing", newEinoClearKeeper},
	}
}

// A tally counts the requests of many talks.
type tally struct {
	requests, trimmed                    int
	broken                               int
	unanswered, orphans, headless, stale int
	refused                              int // the library said that nothing fits
	weight                               int // of all trimmed requests
}

// play has a way keep many talks and judges every request it makes.
func (w way) play(talks int, empty bool) (t tally, err error) {
	for seed := range talks {
		k, err := w.new()
		if err != nil {
			return t, err
		}
		whole := 0
		list := talk(uint64(seed), empty)
		for i, m := range list {
			if err := k.add(m); err != nil {
				return t, fmt.Errorf("talk %d, message %d: %w", seed, i, err)
			}
			whole += weigh(m)
			asks := m.role == "user" || m.role == "tool" && list[i+1].role != "tool"
			if !asks {
				continue
			}
			t.requests++
			req, err := k.request()
			if errors.Is(err, errTooLong) {
				t.refused++
				continue
			}
			if err != nil {
				return t, fmt.Errorf("talk %d, message %d: %w", seed, i, err)
			}
			v := judge(req, m)
			t.count(v)
			weight := 0
			for _, m := range req {
				weight += weigh(m)
			}
			if weight < whole {
				t.trimmed++
				t.weight += weight
			}
		}
	}
	return t, nil
}

func (t *tally) count(v verdict) {
	for _, c := range []struct {
		is bool
		n  *int
	}{{v.isBroken(), &t.broken}, {v.unanswered, &t.unanswered}, {v.orphan, &t.orphans}, {v.headless, &t.headless}, {v.stale, &t.stale}} {
		if c.is {
			*c.n++
		}
	}
}

func writePairs(w io.Writer, quick bool) error {
	talks := 200
	if quick {
		talks = 6
	}
	header := []string{"library", "requests", "reduced", "**broken**", "broken, no result empty", "call without result", "result without call", "first not the user's", "newest message gone", "error: nothing fits", "mean weight when reduced"}
	var rows [][]string
	for _, way := range ways() {
		t, err := way.play(talks, true)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		full, err := way.play(talks, false)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		mean := ""
		if t.trimmed > 0 {
			mean = fmt.Sprintf("%d %%", t.weight*100/t.trimmed/pairBudget)
		}
		row := []string{way.name}
		for _, n := range []int{t.requests, t.trimmed, t.broken, full.broken, t.unanswered, t.orphans, t.headless, t.stale, t.refused} {
			row = append(row, measure.Count(n))
		}
		rows = append(rows, append(row, mean))
	}
	_, err := fmt.Fprintf(w, "### Can what is left be sent?\n\n%d generated conversations with tool calls (parallel calls, ids that come again, empty results), a budget of %s tokens by len/4; every request that a model would get is judged. Broken: a call without its result behind it, a result without its call before it (every provider refuses both), or a beginning that is not a message of the user (Anthropic and Gemini refuse it, OpenAI does not).\n\n",
		talks, measure.Count(pairBudget))
	if err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w,
		"langchaingo's SaveContext takes an input and an output. Tool rounds went in with ChatMessageHistory.AddMessage, and the token buffer ran at the next SaveContext; its users' agents mostly keep tool rounds out of the memory, and then there is nothing to break. It counts no tool calls and reduces at the end of a turn only, so requests inside a turn are over the budget.",
		"trpc-agent-go reduces by whole rounds of a user message. It takes results with empty text out and leaves their calls, also when nothing is over the budget; where one round alone is over it, it returns the request with an error.",
		"eino replaces everything by a summary, or text of results by a placeholder: there is no pair to break, and where the newest message is the question or a result, it is in the summary too. Clearing alone does not bring a request under the limit.",
		"adk-go v2.2.0 has no reduction.",
	)
}

// ourKeeper is a History with the defaults, but for len/4.
type ourKeeper struct{ h *convo.History }

func newOurKeeper() (keeper, error) {
	opts := byLenFour()
	opts.Limits = convo.Limits{Window: pairBudget, Reserve: -1}
	h, err := convo.New(&opts)
	return ourKeeper{h}, err
}

func (k ourKeeper) add(t turn) error {
	var m convo.Message
	switch t.role {
	case "user":
		m = convo.User(t.text)
	case "tool":
		m = convo.Result(convo.ToolCall{ID: t.answers, Name: t.name}, t.text)
	default:
		var calls []convo.ToolCall
		for _, c := range t.calls {
			calls = append(calls, convo.ToolCall{ID: c.id, Name: c.name, Arguments: c.args})
		}
		m = convo.Assistant(t.text, calls...)
	}
	_, err := k.h.Append(m)
	return err
}

func (k ourKeeper) request() ([]turn, error) {
	snap, r, err := k.h.Prepare(context.Background())
	if err != nil && !r.Fits {
		return nil, errors.Join(errTooLong, err)
	}
	var list []turn
	for _, m := range snap.Messages() {
		t := turn{role: string(m.Role)}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Text:
				t.text += string(p)
			case convo.ToolCall:
				t.calls = append(t.calls, call{p.ID, p.Name, p.Arguments})
			case convo.ToolResult:
				if t.answers != "" { // results of one message stand one by one
					list = append(list, t)
				}
				t = turn{role: "tool", answers: p.CallID, name: p.Name, text: resultText(p)}
			}
		}
		list = append(list, t)
	}
	return list, nil
}

func resultText(r convo.ToolResult) string {
	var b strings.Builder
	for _, p := range r.Parts {
		if text, ok := p.(convo.Text); ok {
			b.WriteString(string(text))
		}
	}
	return b.String()
}

// langchainKeeper holds the newest user message back until its answer is
// there: SaveContext takes both at once.
type langchainKeeper struct {
	buffer *memory.ConversationTokenBuffer
	user   *turn // not yet in the history
}

func newLangchainKeeper() (keeper, error) {
	return &langchainKeeper{buffer: memory.NewConversationTokenBuffer(nil, pairBudget)}, nil
}

func (k *langchainKeeper) add(t turn) error {
	ctx := context.Background()
	switch {
	case t.role == "user":
		k.user = &t
		return nil
	case k.user != nil && len(t.calls) == 0:
		in := k.user.text
		k.user = nil
		return k.buffer.SaveContext(ctx, map[string]any{"input": in}, map[string]any{"output": t.text})
	case k.user != nil:
		if err := k.buffer.ChatHistory.AddMessage(ctx, llms.HumanChatMessage{Content: k.user.text}); err != nil {
			return err
		}
		k.user = nil
	}
	if t.role == "tool" {
		return k.buffer.ChatHistory.AddMessage(ctx, llms.ToolChatMessage{ID: t.answers, Content: t.text})
	}
	m := llms.AIChatMessage{Content: t.text}
	for _, c := range t.calls {
		m.ToolCalls = append(m.ToolCalls, llms.ToolCall{ID: c.id, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.name, Arguments: c.args}})
	}
	return k.buffer.ChatHistory.AddMessage(ctx, m)
}

func (k *langchainKeeper) request() ([]turn, error) {
	msgs, err := k.buffer.ChatHistory.Messages(context.Background())
	var list []turn
	for _, m := range msgs {
		switch m := m.(type) {
		case llms.HumanChatMessage:
			list = append(list, turn{role: "user", text: m.Content})
		case llms.ToolChatMessage:
			list = append(list, turn{role: "tool", text: m.Content, answers: m.ID})
		case llms.AIChatMessage:
			t := turn{role: "assistant", text: m.Content}
			for _, c := range m.ToolCalls {
				t.calls = append(t.calls, call{c.ID, c.FunctionCall.Name, c.FunctionCall.Arguments})
			}
			list = append(list, t)
		}
	}
	if k.user != nil {
		list = append(list, *k.user)
	}
	return list, err
}

// trpcKeeper tailors the whole conversation for each request, as its model
// layer does.
type trpcKeeper struct {
	strategy model.TailoringStrategy
	list     []model.Message
}

func (k *trpcKeeper) add(t turn) error {
	m := model.Message{Role: model.Role(t.role), Content: t.text, ToolID: t.answers, ToolName: t.name}
	for _, c := range t.calls {
		m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: c.id, Type: "function", Function: model.FunctionDefinitionParam{Name: c.name, Arguments: []byte(c.args)}})
	}
	k.list = append(k.list, m)
	return nil
}

func (k *trpcKeeper) request() ([]turn, error) {
	out, err := k.strategy.TailorMessages(context.Background(), k.list, pairBudget)
	if err != nil {
		return nil, errors.Join(errTooLong, err)
	}
	var list []turn
	for _, m := range out {
		t := turn{role: string(m.Role), text: m.Content, answers: m.ToolID, name: m.ToolName}
		for _, c := range m.ToolCalls {
			t.calls = append(t.calls, call{c.ID, c.Function.Name, string(c.Function.Arguments)})
		}
		list = append(list, t)
	}
	return list, nil
}

// einoKeeper is an agent's state that goes through a middleware before each
// request.
type einoKeeper struct {
	mw    adk.ChatModelAgentMiddleware
	state *adk.ChatModelAgentState
}

func newEinoSummaryKeeper() (keeper, error) {
	mw, _, err := einoSummaries(pairBudget)
	return &einoKeeper{mw, new(adk.ChatModelAgentState)}, err
}

func newEinoClearKeeper() (keeper, error) {
	mw, err := einoClearing(pairBudget)
	return &einoKeeper{mw, new(adk.ChatModelAgentState)}, err
}

func (k *einoKeeper) add(t turn) error {
	m := &schema.Message{Role: schema.RoleType(t.role), Content: t.text, ToolCallID: t.answers, ToolName: t.name}
	for _, c := range t.calls {
		m.ToolCalls = append(m.ToolCalls, schema.ToolCall{ID: c.id, Type: "function", Function: schema.FunctionCall{Name: c.name, Arguments: c.args}})
	}
	k.state.Messages = append(k.state.Messages, m)
	return nil
}

func (k *einoKeeper) request() ([]turn, error) {
	_, after, err := k.mw.BeforeModelRewriteState(context.Background(), k.state, nil)
	if err != nil {
		return nil, err
	}
	k.state = after
	var list []turn
	for _, m := range after.Messages {
		t := turn{role: string(m.Role), text: m.Content, answers: m.ToolCallID, name: m.ToolName}
		for _, c := range m.ToolCalls {
			t.calls = append(t.calls, call{c.ID, c.Function.Name, c.Function.Arguments})
		}
		list = append(list, t)
	}
	return list, nil
}
