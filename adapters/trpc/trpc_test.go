package convotrpc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	"github.com/seed-c1b73e60/convo/adapters/trpc"
	"github.com/seed-c1b73e60/convo/mirror"
)

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func all() []model.Message {
	text := "And this?"
	return []model.Message{
		model.NewSystemMessage("Be brief."),
		{Role: model.RoleUser, Content: "What is this?", ContentParts: []model.ContentPart{
			{Type: model.ContentTypeText, Text: &text},
			{Type: model.ContentTypeImage, Image: &model.Image{Data: []byte{1, 2}, Format: "png", Detail: "low"}},
			{Type: model.ContentTypeFile, File: &model.File{Name: "plan", FileID: "f1"}},
			{Type: model.ContentTypeImage, Image: &model.Image{URL: "https://example.com/a.png"}}}},
		{Role: model.RoleAssistant, Content: "I look.", ReasoningContent: "hm", ToolCalls: []model.ToolCall{
			{ID: "c1", Type: "function", Function: model.FunctionDefinitionParam{Name: "look", Arguments: []byte(`{"at": 1.0}`)}, ExtraFields: map[string]any{"thought_signature": "s"}}}},
		model.NewToolMessage("c1", "look", "a house and a tree"),
		model.NewAssistantMessage("A house."),
		model.NewUserMessage("Thanks."),
	}
}

func TestCodec_UntouchedValuesAreTheSame(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convotrpc.Codec())
	list := all()
	require.NoError(t, m.Sync(list))
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, list, view)
	assert.Same(t, &list[1].ContentParts[0], &view[1].ContentParts[0])
	assert.Same(t, &list[2].ToolCalls[0], &view[2].ToolCalls[0])

	s := h.Snapshot()
	user, _ := s.At(1)
	answer, _ := s.At(2)
	result, _ := s.At(3)
	user.Message.Parts[2] = convo.Text("[image]")
	_, err = h.Apply(s, convo.Edit{
		Clear:   []convo.Clear{{ID: result.ID, Text: "gone"}},
		Rewrite: []convo.Rewrite{{ID: user.ID, Parts: user.Message.Parts}, {ID: answer.ID, Parts: answer.Message.Parts[1:]}},
	})
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	want := all()
	assert.Equal(t, want, list, "the values of the framework are as they were")
	image := "[image]"
	want[1].ContentParts[1] = model.ContentPart{Type: model.ContentTypeText, Text: &image}
	want[2].ReasoningContent = ""
	want[3].Content = "gone"
	assert.Equal(t, want, view)

	call := convo.ToolCall{ID: "c3", Name: "look", Arguments: `{"at":3}`}
	_, err = h.Append(convo.Assistant("Again.", call), convo.Result(call, "a dog"), convo.User("", convo.NewMedia("image/png", []byte{1})))
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, []model.Message{
		{Role: model.RoleAssistant, Content: "Again.", ToolCalls: []model.ToolCall{{ID: "c3", Type: "function", Function: model.FunctionDefinitionParam{Name: "look", Arguments: []byte(`{"at":3}`)}}}},
		model.NewToolMessage("c3", "look", "a dog"),
		{Role: model.RoleUser, ContentParts: []model.ContentPart{{Type: model.ContentTypeImage, Image: &model.Image{URL: "data:image/png;base64,AQ=="}}}},
	}, view[6:])
}

type fake struct {
	window, calls, asked, refused int
	down                          error
}

func (f *fake) Info() model.Info { return model.Info{Name: "fake"} }

func (f *fake) GenerateContent(_ context.Context, r *model.Request) (<-chan *model.Response, error) {
	if f.down != nil {
		return nil, f.down
	}
	n := 0
	for _, m := range r.Messages {
		n += 10 + len(m.Content)/4
	}
	answer := &model.Response{Done: true, Usage: &model.Usage{PromptTokens: n, CompletionTokens: 10}}
	if n > f.window {
		f.refused++
		answer = &model.Response{Error: &model.ResponseError{Message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, f.window)}, Done: true}
	} else if f.asked++; f.asked > f.calls {
		answer.Choices = []model.Choice{{Message: model.NewAssistantMessage("All read.")}}
	} else {
		answer.Choices = []model.Choice{{Message: model.Message{Role: model.RoleAssistant, ToolCalls: []model.ToolCall{{ID: fmt.Sprint("c", f.asked), Type: "function", Function: model.FunctionDefinitionParam{Name: "read", Arguments: []byte("{}")}}}}}}
	}
	c := make(chan *model.Response, 1)
	c <- answer
	close(c)
	return c, nil
}

func TestModel_LongRun(t *testing.T) {
	for _, window := range []int{8000, 16000} {
		f := &fake{window: 8000, calls: 60}
		h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: window, Reserve: 500}})
		m := convotrpc.New(mirror.New(h, convotrpc.Codec()), f)
		req := &model.Request{Messages: []model.Message{model.NewSystemMessage("You read."), model.NewUserMessage("Read all pages.")}}
		for done := false; !done; {
			answers, err := m.GenerateContent(t.Context(), req)
			require.NoError(t, err)
			for a := range answers {
				require.Nil(t, a.Error)
				answer := a.Choices[0].Message
				req.Messages = append(req.Messages, answer)
				for _, c := range answer.ToolCalls {
					req.Messages = append(req.Messages, model.NewToolMessage(c.ID, "read", strings.Repeat("This page says nothing. ", 75)))
				}
				done = len(answer.ToolCalls) == 0
			}
		}
		assert.Equal(t, 61, f.asked)
		if window == 8000 {
			assert.Zero(t, f.refused)
		}
		assert.LessOrEqual(t, f.refused, 3)
		assert.NotZero(t, h.Tokens().Measured)
	}
}

func TestModel_Errors(t *testing.T) {
	f := &fake{window: 8000, down: fmt.Errorf("down")}
	_, err := convotrpc.New(mirror.New(newHistory(t, nil), convotrpc.Codec()), f).GenerateContent(t.Context(), &model.Request{Messages: all()})
	assert.ErrorIs(t, err, f.down)
}

// What no provider would say, such as a file without content or type, an empty result, or text
// that is not valid UTF-8, is the framework's own value still.
func TestCodec_OddValues(t *testing.T) {
	list := []model.Message{
		{Role: model.RoleUser, ContentParts: []model.ContentPart{{File: &model.File{Data: []byte{1}}}, {File: &model.File{}}, {Image: &model.Image{}}, {Audio: &model.Audio{}}, {}}, Content: "a\xff"},
		{Role: model.RoleAssistant, ToolCalls: []model.ToolCall{{ID: "c", Function: model.FunctionDefinitionParam{Name: "n"}}}},
		{Role: model.RoleTool, ToolID: "c", ContentParts: []model.ContentPart{{}}},
	}
	adaptertest.Untouched(t, convotrpc.Codec(), list, func(want, got model.Message) bool {
		return len(want.ContentParts) == len(got.ContentParts) && (len(want.ContentParts) == 0 || &want.ContentParts[0] == &got.ContentParts[0])
	})
}

// A turn that the user stops leaves its question in the session, and the next one follows it,
// under every policy.
func TestNew_AfterATurnThatWasStopped(t *testing.T) {
	for name, roles := range map[string]convo.RolePolicy{"relaxed": convo.Relaxed(), "strict": convo.RolePolicy{}} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, &convo.Options{Roles: roles})
			ctx, stop := context.WithCancel(t.Context())
			f := &stopped{fake{window: 1_000}, stop}
			a := llmagent.New("reader", llmagent.WithModel(convotrpc.New(mirror.New(h, convotrpc.Codec()), f)))
			r := runner.NewRunner("test", a, runner.WithSessionService(inmemory.NewSessionService()))
			defer r.Close()
			ask := func(ctx context.Context, question string) (failed string) {
				events, err := r.Run(ctx, "user", "session", model.NewUserMessage(question))
				require.NoError(t, err)
				for e := range events {
					if e.Error != nil {
						failed = e.Error.Message
					}
				}
				return failed
			}
			ask(ctx, "First?")
			assert.Empty(t, ask(t.Context(), "Second?"))
		})
	}
}

// A stopped is a model whose first request the user stops.
type stopped struct {
	fake
	stop func()
}

func (s *stopped) GenerateContent(ctx context.Context, r *model.Request) (<-chan *model.Response, error) {
	if s.stop != nil {
		s.stop()
		s.stop = nil
		return nil, ctx.Err()
	}
	return s.fake.GenerateContent(ctx, r)
}
