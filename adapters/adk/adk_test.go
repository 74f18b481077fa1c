package convoadk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	"github.com/seed-c1b73e60/convo/adapters/adk"
	"github.com/seed-c1b73e60/convo/mirror"
)

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	if o == nil {
		o = &convo.Options{}
	}
	o.Roles = convo.Relaxed()
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

func all() []*genai.Content {
	content := func(role string, parts ...*genai.Part) *genai.Content {
		return &genai.Content{Role: role, Parts: parts}
	}
	return []*genai.Content{
		content("user", &genai.Part{Text: "What is this?"}, &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{1, 2, 3}, DisplayName: "plan"}}, &genai.Part{FileData: &genai.FileData{MIMEType: "image/png", FileURI: "gs://a/b"}}),
		content("model", &genai.Part{Text: "hm", Thought: true}, &genai.Part{ExecutableCode: &genai.ExecutableCode{Code: "1+1"}},
			&genai.Part{FunctionCall: &genai.FunctionCall{Name: "look", Args: map[string]any{"at": 1.0}}, ThoughtSignature: []byte("sig")},
			&genai.Part{FunctionCall: &genai.FunctionCall{Name: "look", Args: map[string]any{"at": 2.0}}}),
		content("user", &genai.Part{FunctionResponse: &genai.FunctionResponse{Name: "look", Scheduling: "SILENT", Response: map[string]any{"output": "a house and a tree"}}},
			&genai.Part{FunctionResponse: &genai.FunctionResponse{Name: "look", Response: map[string]any{"error": "dark"}}},
			&genai.Part{Text: "And quickly."}),
		content("model", &genai.Part{Text: "A house."}),
		content("user", &genai.Part{Text: "Thanks."}),
	}
}

func TestCodec_UntouchedValuesAreTheSame(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convoadk.Codec())
	list := all()
	require.NoError(t, m.Sync(list))
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, len(list))
	for i := range list {
		assert.Same(t, list[i], view[i])
	}
	s := h.Snapshot()
	result, _ := s.At(2)
	other, _ := s.At(3) // each result is an entry of its own
	assert.True(t, other.Message.ToolResults()[0].IsError)
	first := result.Message.ToolResults()[0].CallID
	user, _ := s.At(0)
	_, err = h.Apply(s, convo.Edit{
		Clear:   []convo.Clear{{ID: result.ID, CallID: first, Text: "gone"}},
		Rewrite: []convo.Rewrite{{ID: user.ID, Parts: []convo.Part{user.Message.Parts[0], convo.Text("[image]"), user.Message.Parts[2]}}},
	})
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	want := all()
	assert.Equal(t, want, list, "the values of the framework are as they were")
	require.Len(t, view, 6, "the results are a content of their own now")
	want[0].Parts[1] = &genai.Part{Text: "[image]"}
	assert.Equal(t, want[0], view[0])
	want[2].Parts[0].FunctionResponse.Response = map[string]any{"output": "gone"}
	assert.Equal(t, want[2].Parts[:2], view[2].Parts)
	assert.Equal(t, want[2].Parts[2:], view[3].Parts)
	assert.Same(t, list[1], view[1])
	assert.Same(t, list[3], view[4])
	assert.Same(t, list[4], view[5])

	call := convo.ToolCall{ID: "c3", Name: "look", Arguments: `{"at":3}`}
	_, err = h.Append(convo.Assistant("Again.", call), convo.Result(call, "a dog"), convo.User("", convo.NewMedia("image/png", []byte{1})))
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"at": 3.0}, view[6].Parts[1].FunctionCall.Args)
	assert.Equal(t, map[string]any{"output": "a dog"}, view[7].Parts[0].FunctionResponse.Response)
	assert.Equal(t, []byte{1}, view[8].Parts[0].InlineData.Data)
}

// A fake refuses more than its window has, and calls a tool until it was asked often.
type fake struct {
	window, calls, asked, refused int
	requests                      [][]*genai.Content
}

func (f *fake) Name() string { return "fake" }

func (f *fake) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		n := 0
		for _, c := range r.Contents {
			for _, p := range c.Parts {
				n += 10 + len(p.Text)/4
				if p.FunctionResponse != nil {
					n += len(fmt.Sprint(p.FunctionResponse.Response)) / 4
				}
			}
		}
		if n > f.window {
			f.refused++
			yield(nil, fmt.Errorf("prompt is too long: %d tokens > %d maximum", n, f.window))
			return
		}
		f.asked++
		f.requests = append(f.requests, r.Contents)
		answer := genai.NewContentFromText("All read.", genai.RoleModel)
		if f.asked <= f.calls {
			answer = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
				genai.NewPartFromFunctionCall("read", map[string]any{"page": f.asked}),
				genai.NewPartFromFunctionCall("read", map[string]any{"page": f.asked + 1000}),
			}}
		}
		yield(&model.LLMResponse{Content: answer, TurnComplete: true, UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: int32(n), CandidatesTokenCount: 10}}, nil)
	}
}

func TestModel_LongRun(t *testing.T) {
	type page struct {
		Page int `json:"page"`
	}
	type said struct {
		Text string `json:"text"`
	}
	for _, window := range []int{8000, 16000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			f := &fake{window: 8000, calls: 30}
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: window, Reserve: 500}})
			kept := mirror.New(h, convoadk.Codec())
			m := convoadk.New(kept, f)
			read, err := functiontool.New(functiontool.Config{Name: "read", Description: "Reads a page."}, func(_ agent.Context, p page) (said, error) {
				if p.Page == 10 {
					if err := kept.Add(genai.NewContentFromText("Skip the appendix.", genai.RoleUser)); err != nil {
						return said{}, err
					}
				}
				return said{strings.Repeat(fmt.Sprintf("Page %d says nothing. ", p.Page), 40)}, nil
			})
			require.NoError(t, err)
			a, err := llmagent.New(llmagent.Config{Name: "reader", Model: m, Instruction: "You read.", Tools: []tool.Tool{read}})
			require.NoError(t, err)
			r, err := runner.New(runner.Config{AppName: "test", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
			require.NoError(t, err)
			for _, text := range []string{"Read all pages.", "Thanks."} {
				for _, err := range r.Run(t.Context(), "user", "session", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
					require.NoError(t, err)
				}
			}
			assert.Equal(t, 32, f.asked)
			for i, contents := range f.requests {
				seen := false
				for _, c := range contents {
					for _, p := range c.Parts {
						seen = seen || strings.Contains(p.Text, "Skip the appendix.")
					}
				}
				assert.Equal(t, i >= 10, seen, "request %d", i)
			}
			if window == 8000 {
				assert.Zero(t, f.refused)
			}
			assert.LessOrEqual(t, f.refused, 3)
			assert.NotZero(t, h.Tokens().Measured)
		})
	}
}

// ADK moves the later result of a tool that runs long to the earlier one.
func TestModel_MovedResults(t *testing.T) {
	text := genai.NewContentFromText
	call := &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{genai.NewPartFromFunctionCall("run", nil), genai.NewPartFromFunctionCall("read", nil)}}
	result := func(run string) *genai.Content {
		return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
			genai.NewPartFromFunctionResponse("run", map[string]any{"state": run}), genai.NewPartFromFunctionResponse("read", map[string]any{"text": "x"})}}
	}
	f := &fake{window: 8000}
	h := newHistory(t, nil)
	m := convoadk.New(mirror.New(h, convoadk.Codec()), f)
	var followed []mirror.Followed
	m.OnFollow = func(f mirror.Followed) { followed = append(followed, f) }
	waiting := []*genai.Content{text("Go.", genai.RoleUser), call, result("pending"), text("It runs.", genai.RoleModel),
		text("Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are needed.", genai.RoleUser)}
	done := []*genai.Content{waiting[0], call, result("done")}
	for _, list := range [][]*genai.Content{waiting, done} {
		for _, err := range m.GenerateContent(t.Context(), &model.LLMRequest{Contents: list}, false) {
			require.NoError(t, err)
		}
		require.Len(t, f.requests[len(f.requests)-1], len(list))
		for i, c := range f.requests[len(f.requests)-1] {
			assert.Same(t, list[i], c)
		}
	}
	require.Len(t, followed, 1)
	assert.False(t, followed[0].Anew)
}

func TestModel_Errors(t *testing.T) {
	h := newHistory(t, nil)
	m := convoadk.New(mirror.New(h, convoadk.Codec()), &fake{})
	n := 0
	for _, err := range m.GenerateContent(t.Context(), &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("Hello", genai.RoleUser)}}, false) {
		n++
		require.Error(t, err)
		assert.False(t, errors.As(err, new(*mirror.PastError)))
	}
	assert.Equal(t, 1, n)
}

// What no provider would say, such as a file without content or type, an empty result, or text
// that is not valid UTF-8, is the framework's own value still.
func TestCodec_OddValues(t *testing.T) {
	list := []*genai.Content{
		{Role: genai.RoleUser, Parts: []*genai.Part{{InlineData: &genai.Blob{Data: []byte{1}}}, {InlineData: &genai.Blob{}}, {FileData: &genai.FileData{}}, {Text: "a\xff"}, {}}},
		{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: "c", Name: "n"}}}},
		{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: "c", Name: "n"}}}},
	}
	adaptertest.Untouched(t, convoadk.Codec(), list, func(want, got *genai.Content) bool { return want == got })
}

// What a result shows beside its text, and a thought that is no text, are counted.
func TestCodec_PartsBesideTexts(t *testing.T) {
	image := &genai.Blob{MIMEType: "image/png", Data: []byte{1, 2, 3}}
	for _, c := range []struct {
		part *genai.Part
		want []convo.Part
	}{
		{&genai.Part{Thought: true, InlineData: image}, []convo.Part{convo.NewMedia("image/png", image.Data)}},
		{&genai.Part{Thought: true, ThoughtSignature: []byte("s")}, []convo.Part{convo.Reasoning{Signature: "s"}}},
		{&genai.Part{Thought: true, ExecutableCode: &genai.ExecutableCode{Code: "1+1"}}, []convo.Part{convo.Opaque{Format: "gemini", JSON: `{"executableCode":{"code":"1+1"},"thought":true}`}}},
		{&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "c", Name: "look", Response: map[string]any{"output": "here"}, Parts: []*genai.FunctionResponsePart{
			{InlineData: &genai.FunctionResponseBlob{MIMEType: "image/png", Data: image.Data}},
			{FileData: &genai.FunctionResponseFileData{MIMEType: "image/png", FileURI: "gs://a"}},
		}}}, []convo.Part{convo.ToolResult{CallID: "c", Name: "look", Parts: []convo.Part{convo.Text(`{"output":"here"}`), convo.NewMedia("image/png", image.Data), convo.Media{MIME: "image/png", URL: "gs://a"}}}}},
	} {
		msgs, err := convoadk.Codec().Decode(&genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{c.part}})
		require.NoError(t, err)
		require.Len(t, msgs, 1)
		assert.Equal(t, c.want, msgs[0].Parts)
	}
}
