package convogenkit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	"github.com/seed-c1b73e60/convo/adapters/genkit"
	"github.com/seed-c1b73e60/convo/mirror"
)

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func all() []*ai.Message {
	kept := map[string]any{"kept": true}
	custom := ai.NewCustomPart(map[string]any{"x": 1})
	custom.Metadata = kept
	result := ai.NewToolResponsePart(&ai.ToolResponse{Ref: "c1", Name: "look", Output: map[string]any{"found": "a house and a tree"}})
	result.Metadata = kept
	return []*ai.Message{
		ai.NewSystemTextMessage("Be brief."),
		{Role: ai.RoleUser, Metadata: kept, Content: []*ai.Part{ai.NewTextPart("What is this?"), ai.NewMediaPart("image/png", "data:image/png;base64,AQID"), ai.NewMediaPart("image/png", "https://example.com/a.png")}},
		{Role: ai.RoleModel, Metadata: kept, Content: []*ai.Part{
			ai.NewReasoningPart("hm", []byte("sig")), ai.NewTextPart("I look."), custom,
			ai.NewToolRequestPart(&ai.ToolRequest{Ref: "c1", Name: "look", Input: map[string]any{"at": 1}}),
			ai.NewToolRequestPart(&ai.ToolRequest{Ref: "c2", Name: "look", Input: map[string]any{"at": 2}})}},
		{Role: ai.RoleTool, Metadata: kept, Content: []*ai.Part{result, ai.NewToolResponsePart(&ai.ToolResponse{Ref: "c2", Name: "look", Output: "a cat"})}},
		ai.NewModelTextMessage("A house."),
		ai.NewUserTextMessage("Thanks."),
	}
}

func TestCodec_UntouchedValuesAreTheSame(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convogenkit.Codec())
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
	answer, _ := s.At(2)
	assert.Equal(t, convo.Reasoning{Text: "hm", Signature: "sig"}, answer.Message.Parts[0])
	assert.Equal(t, convo.Media{MIME: "image/png", Data: "AQID"}, user.Message.Parts[1])
	result, _ := s.At(3)
	_, err = h.Apply(s, convo.Edit{
		Clear: []convo.Clear{{ID: result.ID, CallID: "c1", Text: "gone"}},
		Rewrite: []convo.Rewrite{
			{ID: user.ID, Parts: []convo.Part{user.Message.Parts[0], convo.Text("[image]"), user.Message.Parts[2]}},
			{ID: answer.ID, Parts: answer.Message.Parts[1:]}},
	})
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	want := all()
	assert.Equal(t, want, list, "the values of the framework are as they were")
	want[1].Content[1] = ai.NewTextPart("[image]")
	want[2].Content = want[2].Content[1:]
	want[3].Content[0].ToolResponse = &ai.ToolResponse{Ref: "c1", Name: "look", Output: "gone"}
	assert.Equal(t, want, view)
	assert.Same(t, list[2].Content[2], view[2].Content[1], "parts that stay are the same")
	for _, i := range []int{0, 4, 5} {
		assert.Same(t, list[i], view[i])
	}

	call := convo.ToolCall{ID: "c3", Name: "look", Arguments: "{}"}
	_, err = h.Append(convo.Assistant("Again.", call), convo.Result(call, "a dog"), convo.User("", convo.NewMedia("image/png", []byte{1})))
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, ai.RoleModel, view[6].Role)
	assert.Equal(t, "a dog", view[7].Content[0].ToolResponse.Output)
	assert.Equal(t, "data:image/png;base64,AQ==", view[8].Content[0].Text)
}

func TestWindow_LongRun(t *testing.T) {
	for _, window := range []int{8000, 16000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			g := genkit.Init(t.Context())
			asked, refused, lost := 0, 0, 0
			typed := "Skip the appendix."
			model := genkit.DefineModel(g, "test/fake", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true, SystemRole: true}},
				func(_ context.Context, r *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
					n, seen := 0, false
					for _, m := range r.Messages {
						for _, p := range m.Content {
							text := p.Text
							if p.ToolResponse != nil {
								text = fmt.Sprint(p.ToolResponse.Output)
							}
							n += 10 + len(text)/4
							seen = seen || text == typed
						}
					}
					if n > 8000 {
						refused++
						return nil, fmt.Errorf("prompt is too long: %d tokens > 8000 maximum", n)
					}
					if asked++; asked > 11 && !seen {
						lost++
					}
					answer := ai.NewModelTextMessage("All read.")
					if asked%31 != 0 {
						answer = ai.NewMessage(ai.RoleModel, nil,
							ai.NewToolRequestPart(&ai.ToolRequest{Ref: fmt.Sprint("a", asked), Name: "read", Input: map[string]any{"page": asked}}),
							ai.NewToolRequestPart(&ai.ToolRequest{Ref: fmt.Sprint("b", asked), Name: "read", Input: map[string]any{"page": asked}}))
					}
					return &ai.ModelResponse{Message: answer, Request: r, Usage: &ai.GenerationUsage{InputTokens: n, OutputTokens: 10}}, nil
				})
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: window, Reserve: 500}})
			m := mirror.New(h, convogenkit.Codec())
			w := convogenkit.New(m)
			type page struct {
				Page int `json:"page"`
			}
			added := false
			read := genkit.DefineTool(g, "read", "Reads a page.", func(_ *ai.ToolContext, p page) (string, error) {
				if p.Page == 10 && !added {
					added = true
					if err := m.Add(ai.NewUserTextMessage(typed)); err != nil {
						return "", err
					}
				}
				return strings.Repeat(fmt.Sprintf("Page %d says nothing. ", p.Page), 40), nil
			})
			var messages []*ai.Message
			for run := range 2 {
				options := []ai.GenerateOption{ai.WithModel(model), ai.WithTools(read), ai.WithMaxTurns(100), ai.WithUse(w.Middleware())}
				if run == 0 {
					options = append(options, ai.WithSystem("You read."), ai.WithPrompt("Read all pages."))
				} else {
					options = append(options, ai.WithMessages(append(messages, ai.NewUserTextMessage("Again."))...))
				}
				r, err := genkit.Generate(t.Context(), g, options...)
				require.NoError(t, err)
				messages = r.History()
				assert.Len(t, messages, 63+62*run, "the whole list goes on")
			}
			assert.Equal(t, 62, asked)
			assert.Zero(t, lost)
			assert.NotZero(t, h.Tokens().Measured)
			if window == 8000 {
				assert.Zero(t, refused)
			}
			assert.LessOrEqual(t, refused, 3)
		})
	}
}

// The name that the History was given says whether a model refuses reasoning that stands
// elsewhere.
func TestCodec_Seals(t *testing.T) {
	assert.True(t, convogenkit.Codec().Seals("claude-opus-5-5"))
	assert.False(t, convogenkit.Codec().Seals("gemini-3.8-flash"))
	assert.False(t, convogenkit.Codec().Seals(""))
}

// What no provider would say, such as a file without content or type, an empty result, or text
// that is not valid UTF-8, is the framework's own value still.
func TestCodec_OddValues(t *testing.T) {
	list := []*ai.Message{
		ai.NewUserMessage(ai.NewMediaPart("", "data:;base64,AQID"), ai.NewMediaPart("image/png", "data:image/png;base64,"), ai.NewMediaPart("", ""), ai.NewTextPart("a\xff"), &ai.Part{}),
		ai.NewModelMessage(ai.NewToolRequestPart(&ai.ToolRequest{Ref: "c", Name: "n"}), ai.NewToolRequestPart(&ai.ToolRequest{Ref: "d", Name: "n", Input: func() {}})),
		ai.NewMessage(ai.RoleTool, nil, ai.NewToolResponsePart(&ai.ToolResponse{Ref: "c", Name: "n"}), ai.NewToolResponsePart(&ai.ToolResponse{Ref: "d", Name: "n", Output: make(chan int)})),
	}
	adaptertest.Untouched(t, convogenkit.Codec(), list, func(want, got *ai.Message) bool { return want == got })
}
