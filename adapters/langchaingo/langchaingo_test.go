package convolangchaingo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	"github.com/seed-c1b73e60/convo/adapters/langchaingo"
	"github.com/seed-c1b73e60/convo/mirror"
)

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func all() []llms.MessageContent {
	message := func(role llms.ChatMessageType, parts ...llms.ContentPart) llms.MessageContent {
		return llms.MessageContent{Role: role, Parts: parts}
	}
	return []llms.MessageContent{
		message(llms.ChatMessageTypeSystem, llms.TextContent{Text: "Be brief."}),
		message(llms.ChatMessageTypeGeneric, llms.TextContent{Text: "What is this?"}, llms.ImageURLContent{URL: "https://example.com/a.png", Detail: "low"}, llms.BinaryContent{MIMEType: "image/png", Data: []byte{1, 2}}),
		message(llms.ChatMessageTypeAI, llms.TextContent{Text: "I look."},
			llms.ToolCall{ID: "c1", Type: "custom", FunctionCall: &llms.FunctionCall{Name: "look", Arguments: `{"at": 1.0}`}},
			llms.ToolCall{ID: "c2", Type: "function", FunctionCall: &llms.FunctionCall{Name: "look", Arguments: `{}`}}),
		message(llms.ChatMessageTypeTool, llms.ToolCallResponse{ToolCallID: "c1", Name: "look", Content: "a house and a tree"}, llms.ToolCallResponse{ToolCallID: "c2", Name: "look", Content: "a cat"}),
		message(llms.ChatMessageTypeAI, llms.TextContent{Text: "A house."}),
		message(llms.ChatMessageTypeHuman, llms.TextContent{Text: "Thanks."}),
	}
}

func same(t *testing.T, want, got llms.MessageContent) {
	t.Helper()
	require.NotEmpty(t, got.Parts)
	require.Same(t, &want.Parts[0], &got.Parts[0])
	require.Equal(t, want, got)
}

func TestCodec_UntouchedValuesAreTheSame(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convolangchaingo.Codec())
	list := all()
	require.NoError(t, m.Sync(list))
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, len(list))
	for i := range list {
		same(t, list[i], view[i])
	}
	s := h.Snapshot()
	user, _ := s.At(1)
	result, _ := s.At(3)
	_, err = h.Apply(s, convo.Edit{
		Clear:   []convo.Clear{{ID: result.ID, CallID: "c1", Text: "gone"}},
		Rewrite: []convo.Rewrite{{ID: user.ID, Parts: []convo.Part{user.Message.Parts[0], convo.Text("[image]"), user.Message.Parts[2]}}},
	})
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	want := all()
	assert.Equal(t, want, list, "the values of the framework are as they were")
	want[1].Parts[1] = llms.TextContent{Text: "[image]"}
	want[3].Parts[0] = llms.ToolCallResponse{ToolCallID: "c1", Name: "look", Content: "gone"}
	assert.Equal(t, want, view)
	for _, i := range []int{0, 2, 4, 5} {
		same(t, list[i], view[i])
	}

	call := convo.ToolCall{ID: "c3", Name: "look", Arguments: "{}"}
	_, err = h.Append(convo.Assistant("Again.", call), convo.Result(call, "a dog"), convo.User("", convo.NewMedia("image/png", []byte{1})))
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, []llms.MessageContent{
		{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.TextContent{Text: "Again."}, llms.ToolCall{ID: "c3", Type: "function", FunctionCall: &llms.FunctionCall{Name: "look", Arguments: "{}"}}}},
		{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "c3", Name: "look", Content: "a dog"}}},
		{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.ImageURLContent{URL: "data:image/png;base64,AQ=="}}},
	}, view[6:])
}

type fake struct {
	window, calls, asked, refused int
	info                          func(tokens int) map[string]any
}

func (f *fake) Call(context.Context, string, ...llms.CallOption) (string, error) { return "", nil }

func (f *fake) GenerateContent(_ context.Context, list []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	n := 0
	for _, m := range list {
		n += 10 + len(fmt.Sprint(m.Parts))/4
	}
	if n > f.window {
		f.refused++
		return nil, fmt.Errorf("prompt is too long: %d tokens > %d maximum", n, f.window)
	}
	f.asked++
	c := &llms.ContentChoice{GenerationInfo: f.info(n)}
	if f.asked > f.calls {
		c.Content = "All read."
	} else {
		c.ToolCalls = []llms.ToolCall{{ID: fmt.Sprint("c", f.asked), Type: "function", FunctionCall: &llms.FunctionCall{Name: "read", Arguments: "{}"}}}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{c}}, nil
}

// The loop that users of langchaingo write.
func TestModel_LongRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		window int
		info   func(tokens int) map[string]any
	}{
		{"fits", 8000, func(n int) map[string]any { return map[string]any{"PromptTokens": n, "CompletionTokens": 10} }},
		{"Anthropic", 8000, func(n int) map[string]any {
			return map[string]any{"InputTokens": n / 2, "CacheReadInputTokens": n - n/2, "OutputTokens": 10}
		}},
		{"overflows", 16000, func(n int) map[string]any { return map[string]any{"PromptTokens": int32(n)} }},
		{"says nothing", 8000, func(int) map[string]any { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{window: 8000, calls: 60, info: c.info}
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: c.window, Reserve: 500}})
			model := convolangchaingo.New(mirror.New(h, convolangchaingo.Codec()), f)
			list := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "You read."), llms.TextParts(llms.ChatMessageTypeHuman, "Read all pages.")}
			for {
				r, err := model.GenerateContent(t.Context(), list)
				require.NoError(t, err)
				answer := llms.MessageContent{Role: llms.ChatMessageTypeAI}
				results := llms.MessageContent{Role: llms.ChatMessageTypeTool}
				for _, c := range r.Choices[0].ToolCalls {
					answer.Parts = append(answer.Parts, c)
					results.Parts = append(results.Parts, llms.ToolCallResponse{ToolCallID: c.ID, Name: "read", Content: strings.Repeat("This page says nothing. ", 75)})
				}
				if len(answer.Parts) == 0 {
					break
				}
				list = append(list, answer, results)
			}
			assert.Equal(t, 61, f.asked)
			if c.window == 8000 {
				assert.Zero(t, f.refused)
			}
			assert.LessOrEqual(t, f.refused, 3)
			if c.info(1) != nil {
				assert.NotZero(t, h.Tokens().Measured)
			}
		})
	}
}

// What no provider would say, such as a file without content or type, an empty result, or text
// that is not valid UTF-8, is the framework's own value still.
func TestCodec_OddValues(t *testing.T) {
	list := []llms.MessageContent{
		{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.BinaryContent{Data: []byte{1}}, llms.BinaryContent{}, llms.ImageURLContent{}, llms.TextContent{Text: "a\xff"}, nil}},
		{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.ToolCall{ID: "c", FunctionCall: &llms.FunctionCall{Name: "n"}}}},
		{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "c"}}},
	}
	adaptertest.Untouched(t, convolangchaingo.Codec(), list, func(want, got llms.MessageContent) bool {
		return len(got.Parts) > 0 && &want.Parts[0] == &got.Parts[0]
	})
}
