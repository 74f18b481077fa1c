package convofantasy_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"charm.land/fantasy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	"github.com/seed-c1b73e60/convo/adapters/fantasy"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A data is what a provider has put on a part, with a type of its own.
type data struct{ fields map[string]any }

func (*data) Options()                     {}
func (d *data) UnmarshalJSON([]byte) error { return errors.ErrUnsupported }
func (d *data) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"type": "test", "data": d.fields})
}

func options(provider string, fields map[string]any) fantasy.ProviderOptions {
	return fantasy.ProviderOptions{provider: &data{fields}}
}

// all returns a conversation with each kind of part.
func all() []fantasy.Message {
	parts := func(p ...fantasy.MessagePart) []fantasy.MessagePart { return p }
	cache := options("anthropic", map[string]any{"cache_control": "ephemeral"})
	return []fantasy.Message{
		{Role: fantasy.MessageRoleSystem, Content: parts(fantasy.TextPart{Text: "Be brief."}), ProviderOptions: cache},
		{Role: fantasy.MessageRoleUser, Content: parts(
			fantasy.TextPart{Text: "What is this?", ProviderOptions: cache},
			&fantasy.FilePart{Filename: "secret-plan.png", Data: []byte{1, 2, 3}, MediaType: "image/png"})},
		{Role: fantasy.MessageRoleAssistant, Content: parts(
			fantasy.ReasoningPart{Text: "hm", ProviderOptions: options("anthropic", map[string]any{"signature": "sig"})},
			fantasy.ToolCallPart{ToolCallID: "s1", ToolName: "web_search", Input: `{"query":"plan"}`, ProviderExecuted: true},
			fantasy.ToolResultPart{ToolCallID: "s1", ProviderExecuted: true, ProviderOptions: options("anthropic", map[string]any{
				"results": []map[string]any{{"url": "https://example.com", "title": "A plan", "encrypted_content": "xyz"}}})},
			fantasy.TextPart{Text: "I look."},
			fantasy.ToolCallPart{ToolCallID: "c1", ToolName: "look", Input: `{"at": 1.0}`},
			fantasy.ToolCallPart{ToolCallID: "c2", ToolName: "look", Input: `{}`},
			fantasy.ToolCallPart{ToolCallID: "c3", ToolName: "look", Input: `{}`})},
		{Role: fantasy.MessageRoleTool, Content: parts(
			fantasy.ToolResultPart{ToolCallID: "c1", Output: fantasy.ToolResultOutputContentText{Text: "a house, a tree and a long garden with many beds of flowers"}, ProviderOptions: cache},
			&fantasy.ToolResultPart{ToolCallID: "c2", Output: fantasy.ToolResultOutputContentError{Error: errors.New("not found")}},
			fantasy.ToolResultPart{ToolCallID: "c3", Output: fantasy.ToolResultOutputContentMedia{Data: "AQID", MediaType: "image/png", Text: "the house"}, ProviderOptions: cache})},
		{Role: fantasy.MessageRoleAssistant, Content: parts(
			fantasy.ToolCallPart{ToolCallID: "s2", ToolName: "code", Input: `x`, ProviderExecuted: true},
			fantasy.ToolResultPart{ToolCallID: "s2", ProviderExecuted: true, Output: fantasy.ToolResultOutputContentText{Text: "42"}},
			fantasy.TextPart{Text: "A house."})},
		{Role: fantasy.MessageRoleUser, Content: parts(fantasy.TextPart{Text: "Thanks."})},
	}
}

func same(t *testing.T, want, got fantasy.Message) {
	t.Helper()
	require.NotEmpty(t, got.Content)
	require.Same(t, &want.Content[0], &got.Content[0])
	require.Len(t, got.Content, len(want.Content))
	require.Equal(t, want, got)
}

func TestCodec_UntouchedValuesAreTheSame(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convofantasy.Codec())
	list := all()
	require.NoError(t, m.Sync(list))
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, len(list))
	for i := range list {
		same(t, list[i], view[i])
	}

	s := h.Snapshot()
	e, _ := s.At(2)
	require.Len(t, e.Message.Parts, 7)
	assert.Equal(t, convo.Reasoning{Text: "hm", Signature: "sig"}, e.Message.Parts[0])
	assert.JSONEq(t, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"plan"}}`, e.Message.Parts[1].(convo.Opaque).JSON)
	found := e.Message.Parts[2].(convo.Opaque)
	assert.Equal(t, "anthropic", found.Format)
	assert.JSONEq(t, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://example.com","title":"A plan","encrypted_content":"xyz"}]}`, found.JSON)
	e, _ = s.At(6)
	assert.Equal(t, "fantasy", e.Message.Parts[1].(convo.Opaque).Format)

	var clear []convo.Clear
	for i := 3; i < 6; i++ { // each result is an entry of its own
		e, _ = s.At(i)
		r := e.Message.ToolResults()[0]
		assert.Equal(t, i == 4, r.IsError)
		clear = append(clear, convo.Clear{ID: e.ID, CallID: r.CallID, Text: "gone " + r.CallID})
	}
	_, err = h.Apply(s, convo.Edit{Clear: clear[:1]})
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	for i := range list {
		if i != 3 {
			same(t, list[i], view[i])
		}
	}
	got := view[3]
	cleared := got.Content[0].(fantasy.ToolResultPart)
	want := list[3].Content[0].(fantasy.ToolResultPart)
	want.Output = fantasy.ToolResultOutputContentText{Text: "gone c1"}
	assert.Equal(t, want, cleared, "the other fields stay")
	assert.Same(t, list[3].Content[1], got.Content[1])
	assert.Equal(t, list[3].Content[2], got.Content[2])
	assert.Equal(t, "a house, a tree and a long garden with many beds of flowers", said(list[3].Content[0]), "the host's own is as it was")

	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: clear[1:]})
	require.NoError(t, err)
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, "gone c2", view[3].Content[1].(fantasy.ToolResultPart).Output.(fantasy.ToolResultOutputContentError).Error.Error())
	want = list[3].Content[2].(fantasy.ToolResultPart)
	want.Output = fantasy.ToolResultOutputContentText{Text: "gone c3"}
	assert.Equal(t, want, view[3].Content[2])
}

// What a provider has run leaves together with its message, and is not cleared.
func TestCodec_ServerToolsLeaveWithTheirMessage(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convofantasy.Codec())
	list := all()
	require.NoError(t, m.Sync(list))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4, 5, 6}, Summary: &convo.Summary{Text: "They looked at a house."}})
	require.NoError(t, err)
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, 5)
	same(t, list[0], view[0])
	assert.Equal(t, fantasy.MessageRoleUser, view[1].Role)
	assert.Contains(t, said(view[1].Content[0]), "They looked at a house.")
	same(t, list[4], view[3])
}

func TestCodec_Rewritten(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convofantasy.Codec())
	list := all()
	require.NoError(t, m.Sync(list))
	s := h.Snapshot()
	user, _ := s.At(1)
	answer, _ := s.At(2)
	_, err := h.Apply(s, convo.Edit{Rewrite: []convo.Rewrite{
		{ID: user.ID, Parts: []convo.Part{convo.Text("What is this? [an image was here]")}},
		{ID: answer.ID, Parts: answer.Message.Parts[1:]}, // without the reasoning
	}})
	require.NoError(t, err)
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, []fantasy.MessagePart{fantasy.TextPart{Text: "What is this? [an image was here]"}}, view[1].Content)
	assert.Equal(t, list[2].Content[1:], view[2].Content)
}

func TestCodec_NewMessages(t *testing.T) {
	h := newHistory(t, nil)
	m := mirror.New(h, convofantasy.Codec())
	require.NoError(t, m.Sync(all()[:2]))
	call := convo.ToolCall{ID: "c", Name: "look", Arguments: "{}"}
	_, err := h.Append(convo.Assistant("Hm.", call), convo.Result(call, "a tree"), convo.Assistant("A tree."),
		convo.User("And this?", convo.NewMedia("image/png", []byte{9}), convo.Media{MIME: "image/png", URL: "https://example.com/a.png"}))
	require.NoError(t, err)
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, 6)
	assert.Equal(t, []fantasy.MessagePart{fantasy.TextPart{Text: "Hm."}, fantasy.ToolCallPart{ToolCallID: "c", ToolName: "look", Input: "{}"}}, view[2].Content)
	assert.Equal(t, []fantasy.MessagePart{fantasy.ToolResultPart{ToolCallID: "c", Output: fantasy.ToolResultOutputContentText{Text: "a tree"}}}, view[3].Content)
	assert.Equal(t, []fantasy.MessagePart{fantasy.TextPart{Text: "And this?"}, fantasy.FilePart{Data: []byte{9}, MediaType: "image/png"}, fantasy.TextPart{Text: "https://example.com/a.png"}}, view[5].Content)
}

func TestUsage(t *testing.T) {
	u := fantasy.Usage{InputTokens: 100, CacheReadTokens: 50, CacheCreationTokens: 25, OutputTokens: 10, ReasoningTokens: 4}
	assert.Equal(t, convo.Usage{Input: 175, CacheRead: 50, CacheWrite: 25, Output: 10, Reasoning: 4}, convofantasy.Usage("anthropic", u))
	u.CacheCreationTokens = 0
	assert.Equal(t, 100, convofantasy.Usage("google", u).Input)
}

// What no provider would say, such as a file without content or type, an empty result, or text
// that is not valid UTF-8, is the framework's own value still.
func TestCodec_OddValues(t *testing.T) {
	list := []fantasy.Message{
		{Role: fantasy.MessageRoleUser, Content: []fantasy.MessagePart{fantasy.FilePart{Data: []byte{1}}, fantasy.FilePart{}, fantasy.TextPart{Text: "a\xff"}, fantasy.TextPart{}}},
		{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{fantasy.ToolCallPart{ToolCallID: "c", ToolName: "n"}, fantasy.ToolCallPart{ToolCallID: "d", ToolName: "n", Input: "{"}}},
		{Role: fantasy.MessageRoleTool, Content: []fantasy.MessagePart{fantasy.ToolResultPart{ToolCallID: "c"}, fantasy.ToolResultPart{ToolCallID: "d", Output: fantasy.ToolResultOutputContentMedia{}}}},
	}
	adaptertest.Untouched(t, convofantasy.Codec(), list, func(want, got fantasy.Message) bool {
		return len(got.Content) > 0 && &want.Content[0] == &got.Content[0]
	})
}

// The module never imports fantasy's provider kronk.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range syntax.Imports {
			assert.NotContains(t, i.Path.Value, "providers/kronk", name)
		}
	}
}

// A sketch is a part, and the output of a tool, that fantasy does not have.
type sketch struct{ Lines int }

func (sketch) GetType() fantasy.ContentType     { return "sketch" }
func (sketch) Options() fantasy.ProviderOptions { return nil }

type sketchOutput struct{ Lines int }

func (sketchOutput) GetType() fantasy.ToolResultContentType { return "sketch" }

// What the codec does not know stays in the History, and in the values.
func TestCodec_UnknownParts(t *testing.T) {
	list := []fantasy.Message{
		{Role: fantasy.MessageRoleUser, Content: []fantasy.MessagePart{sketch{3}}},
		{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{fantasy.ToolCallPart{ToolCallID: "c", ToolName: "draw", Input: "{}"}}},
		{Role: fantasy.MessageRoleTool, Content: []fantasy.MessagePart{fantasy.ToolResultPart{ToolCallID: "c", Output: sketchOutput{4}}}},
	}
	var parts []convo.Part
	for _, m := range list {
		msgs, err := convofantasy.Codec().Decode(m)
		require.NoError(t, err)
		parts = append(parts, msgs[0].Parts...)
	}
	assert.Equal(t, convo.Opaque{Format: "fantasy", JSON: `{"part":{"Lines":3},"type":"sketch"}`}, parts[0])
	assert.Equal(t, []convo.Part{convo.Opaque{Format: "fantasy", JSON: `{"output":{"Lines":4},"type":"sketch"}`}}, parts[2].(convo.ToolResult).Parts)
	adaptertest.Untouched(t, convofantasy.Codec(), list, func(want, got fantasy.Message) bool { return assert.ObjectsAreEqual(want, got) })
}
