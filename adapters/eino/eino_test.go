package convoeino_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	"github.com/seed-c1b73e60/convo/adapters/eino"
	"github.com/seed-c1b73e60/convo/mirror"
)

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func all() []*schema.Message {
	data, url := "AQID", "https://example.com/a.png"
	common := schema.MessagePartCommon{Base64Data: &data, MIMEType: "image/png"}
	return []*schema.Message{
		schema.SystemMessage("Be brief."),
		{Role: schema.User, Extra: map[string]any{"trace": 7}, UserInputMultiContent: []schema.MessageInputPart{
			{Type: schema.ChatMessagePartTypeText, Text: "What is this?", Extra: map[string]any{"n": 1}},
			{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: common, Detail: "low"}},
			{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: schema.MessagePartCommon{URL: &url}}}}},
		{Role: schema.Assistant, Content: "I look.", ReasoningContent: "hm", ResponseMeta: &schema.ResponseMeta{FinishReason: "tool_calls"},
			ToolCalls: []schema.ToolCall{{ID: "c1", Type: "function", Function: schema.FunctionCall{Name: "look", Arguments: `{"at": 1.0}`}, Extra: map[string]any{"signature": "s"}}}},
		{Role: schema.Tool, Content: "a house and a tree", ToolCallID: "c1", ToolName: "look", Extra: map[string]any{"ms": 12}},
		schema.AssistantMessage("A house.", nil),
		schema.UserMessage("Thanks."),
	}
}

func TestCodec_UntouchedValuesAreTheSame(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convoeino.Codec())
	list := all()
	require.NoError(t, m.Sync(list))
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, len(list))
	for i := range list {
		assert.Same(t, list[i], view[i])
	}
	s := h.Snapshot()
	user, _ := s.At(1)
	assert.Equal(t, []convo.Part{convo.Text("What is this?"), convo.Media{MIME: "image/png", Data: "AQID"}, convo.Media{URL: "https://example.com/a.png"}}, user.Message.Parts)
	answer, _ := s.At(2)
	result, _ := s.At(3)
	user.Message.Parts[1] = convo.Text("[image]")
	_, err = h.Apply(s, convo.Edit{
		Clear:   []convo.Clear{{ID: result.ID, Text: "gone"}},
		Rewrite: []convo.Rewrite{{ID: user.ID, Parts: user.Message.Parts}, {ID: answer.ID, Parts: answer.Message.Parts[1:]}},
	})
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	want := all()
	for i := range want { // the values of the framework are as they were
		want[i].Extra = list[i].Extra
	}
	assert.Equal(t, want, list)
	want[1].UserInputMultiContent[1] = schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: "[image]"}
	want[2].ReasoningContent = ""
	want[3].Content = "gone"
	assert.Equal(t, want, view)
	for _, i := range []int{0, 4, 5} {
		assert.Same(t, list[i], view[i])
	}

	_, err = h.Append(convo.Assistant("Anything else?"), convo.User("And this?", convo.NewMedia("image/png", []byte{1})))
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, "Anything else?", view[6].Content)
	require.Len(t, view[7].UserInputMultiContent, 2)
}

// Several agents read one list. Run with the race detector, this shows that a message with an
// ID is not written to.
func TestCodec_SeveralAgents(t *testing.T) {
	list := all()
	require.NoError(t, mirror.New(newHistory(t, nil), convoeino.Codec()).Sync(list), "gives all an ID")
	var wg sync.WaitGroup
	for range 4 {
		h := newHistory(t, nil)
		wg.Go(func() {
			m := mirror.New(h, convoeino.Codec())
			assert.NoError(t, m.Sync(list))
			view, err := m.View(h.Snapshot())
			assert.NoError(t, err)
			assert.Equal(t, list, view)
		})
	}
	wg.Wait()
}

// A fake model refuses more than its window has, and calls a tool until it was asked often.
type fake struct {
	window, calls, asked, refused, largest int
	typed                                  string
	lost                                   int
}

func (f *fake) Generate(_ context.Context, list []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	n, typed := 0, false
	for _, m := range list {
		n += 10 + len(m.Content)/4
		typed = typed || m.Content == f.typed
	}
	if n > f.window {
		f.refused++
		return nil, fmt.Errorf("prompt is too long: %d tokens > %d maximum", n, f.window)
	}
	if f.asked > 10 && !typed {
		f.lost++
	}
	f.largest = max(f.largest, n)
	f.asked++
	meta := &schema.ResponseMeta{Usage: &schema.TokenUsage{PromptTokens: n, CompletionTokens: 10}}
	if f.asked > f.calls {
		return &schema.Message{Role: schema.Assistant, Content: "All read.", ResponseMeta: meta}, nil
	}
	return &schema.Message{Role: schema.Assistant, ResponseMeta: meta, ToolCalls: []schema.ToolCall{{ID: fmt.Sprint("c", f.asked), Type: "function", Function: schema.FunctionCall{Name: "read", Arguments: fmt.Sprintf(`{"page":%d}`, f.asked)}}}}, nil
}

func (f *fake) Stream(ctx context.Context, list []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := f.Generate(ctx, list, o...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{m}), nil
}

func (f *fake) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return f, nil }

func TestWindow_LongRun(t *testing.T) {
	type page struct {
		Page int `json:"page"`
	}
	for _, c := range []struct {
		name    string
		window  int
		streams bool
	}{{"fits", 8000, false}, {"streams", 8000, true}, {"overflows", 16000, false}} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{window: 8000, calls: 60, typed: "Skip the appendix."}
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: c.window, Reserve: 500}})
			m := mirror.New(h, convoeino.Codec())
			w := convoeino.New(m)
			read, err := utils.InferTool("read", "Reads a page.", func(_ context.Context, p page) (string, error) {
				if p.Page == 10 {
					if err := m.Add(schema.UserMessage(f.typed)); err != nil {
						return "", err
					}
				}
				return strings.Repeat(fmt.Sprintf("Page %d says nothing. ", p.Page), 80), nil
			})
			require.NoError(t, err)
			agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
				Name: "reader", Description: "reads", Instruction: "You read.", Model: f, MaxIterations: 100,
				ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{read}}},
				Handlers:    []adk.ChatModelAgentMiddleware{w},
			})
			require.NoError(t, err)
			events := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent, EnableStreaming: c.streams}).Query(t.Context(), "Read all pages.")
			for e, ok := events.Next(); ok; e, ok = events.Next() {
				require.NoError(t, e.Err)
				if e.Output != nil && e.Output.MessageOutput != nil && e.Output.MessageOutput.MessageStream != nil {
					e.Output.MessageOutput.MessageStream.Close()
				}
			}
			assert.Equal(t, 61, f.asked)
			assert.Zero(t, f.lost, "requests without what was typed")
			if c.window == f.window {
				assert.Zero(t, f.refused)
			}
			assert.LessOrEqual(t, f.refused, 3)
			assert.NotZero(t, h.Tokens().Measured)
		})
	}
}

func TestWindow_ErrorsOfTheModel(t *testing.T) {
	h := newHistory(t, nil)
	w := convoeino.New(mirror.New(h, convoeino.Codec()))
	down := errors.New("down")
	m, err := w.WrapModel(t.Context(), broken{down}, nil)
	require.NoError(t, err)
	_, err = m.Generate(t.Context(), []*schema.Message{schema.UserMessage("Hello")})
	assert.ErrorIs(t, err, down)
}

type broken struct{ err error }

func (b broken) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	return nil, b.err
}

func (b broken) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return nil, b.err
}

// What no provider would say, such as a file without content or type, an empty result, or text
// that is not valid UTF-8, is the framework's own value still.
func TestCodec_OddValues(t *testing.T) {
	data := "AQID"
	list := []*schema.Message{
		{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{
			{Type: schema.ChatMessagePartTypeFileURL, File: &schema.MessageInputFile{MessagePartCommon: schema.MessagePartCommon{Base64Data: &data}}},
			{Type: schema.ChatMessagePartTypeImageURL}, {}, {Type: schema.ChatMessagePartTypeText, Text: "a\xff"}}},
		{Role: schema.Assistant, ToolCalls: []schema.ToolCall{{ID: "c", Function: schema.FunctionCall{Name: "n"}}, {ID: "d", Function: schema.FunctionCall{Name: "n", Arguments: "{"}}}},
		{Role: schema.Tool, ToolCallID: "c"}, {Role: schema.Tool, ToolCallID: "d", Content: "\xff"},
	}
	adaptertest.Untouched(t, convoeino.Codec(), list, func(want, got *schema.Message) bool { return want == got })
}
