package convo_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A part of a type that Append refuses prints as that type.
func TestPrinting_ForeignParts(t *testing.T) {
	m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{foreignPart{}, nil}}
	assert.Equal(t, "user: convo_test.foreignPart <nil>", m.String())
	assert.Contains(t, m.LogValue().String(), "convo_test.foreignPart, <nil>")
}

// The String methods and log values are short, however long the message is.
func TestPrinting_IsShort(t *testing.T) {
	big := strings.Repeat("A", 4<<20)
	parts := []convo.Part{
		convo.Text(big), convo.Reasoning{Text: big, Signature: big}, convo.ToolCall{ID: big, Name: big, Arguments: big},
		convo.ToolResult{Name: big, Parts: []convo.Part{convo.Text(big)}}, convo.Media{MIME: "image/png", Data: big}, convo.Opaque{Format: "f", JSON: big},
	}
	m := convo.Message{Role: convo.RoleAssistant, Author: big, Parts: parts}
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User(big, convo.Media{MIME: "image/png", Data: big}))
	require.NoError(t, err)
	e, _ := h.Snapshot().At(0)
	values := []any{m, e, h.Snapshot(), h}
	for _, p := range parts[1:] {
		values = append(values, p)
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if _, ok := v.(*convo.History); ok && verb == "%#v" {
				continue // shows pointers
			}
			if _, ok := v.(*convo.Snapshot); ok && verb == "%#v" {
				continue
			}
			assert.Less(t, len(fmt.Sprintf(verb, v)), 2048, "%T %s", v, verb)
		}
		var out strings.Builder
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		assert.Less(t, out.Len(), 4096, "%T", v)
	}
	loop := []convo.Part{nil}
	loop[0] = convo.ToolResult{Parts: loop}
	assert.NotPanics(t, func() { _ = convo.Message{Role: convo.RoleTool, Parts: loop}.String() })
	_, err = json.Marshal(convo.Message{Role: convo.RoleTool, Parts: loop})
	assert.Error(t, err)
}

func TestMessage_Constructors(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "f"}
	assert.Empty(t, convo.User("").Parts)
	assert.Empty(t, convo.System("").Parts)
	assert.Equal(t, []convo.Part{call}, convo.Assistant("", call).Parts, "no empty text beside calls")
	assert.Equal(t, []convo.Part{convo.ToolResult{CallID: "c", Name: "f"}}, convo.Result(call, "").Parts)
	assert.Equal(t, "unknown error", convo.ResultError(call, nil).Text())
	assert.True(t, convo.ResultError(call, assert.AnError).ToolResults()[0].IsError)
	assert.Equal(t, convo.Media{MIME: "a/b", Data: "AQI="}, convo.NewMedia("a/b", []byte{1, 2}))
}

func TestMessage_Accessors(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "f"}
	m := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{
		convo.Reasoning{Text: "r1"}, convo.Text("a"), call, convo.Reasoning{Signature: "s"}, convo.Text("b"), convo.Reasoning{Text: "r2"},
	}}
	assert.Equal(t, "a\nb", m.Text())
	assert.Equal(t, "r1\nr2", m.Reasoning())
	assert.Equal(t, []convo.ToolCall{call}, m.ToolCalls())
	assert.Empty(t, m.ToolResults())
	two := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{Parts: []convo.Part{convo.Text("x"), convo.NewMedia("a/b", nil), convo.Text("y")}}, convo.ToolResult{}, convo.ToolResult{Parts: []convo.Part{convo.Text("z")}},
	}}
	assert.Equal(t, "x\ny\nz", two.Text())
	assert.Len(t, two.ToolResults(), 3)
}

// Each part prints in short, and shows its size alone in a log.
func TestPrinting_EachPart(t *testing.T) {
	for _, tt := range []struct {
		part       convo.Part
		text, size string
	}{
		{convo.Text("hello"), "hello", "text 5"},
		{convo.Reasoning{Text: "abc", Signature: "de", Encrypted: "f"}, "reasoning(abc)", "reasoning 6"},
		{convo.ToolCall{ID: "1", Name: "run", Arguments: `{"x":1}`}, `call run({"x":1})`, "call run 7"},
		{convo.ToolResult{Name: "run", Parts: []convo.Part{convo.Text("one"), convo.Text("two")}}, "result of run(one two)", "result of run 6"},
		{convo.ToolResult{Name: "run", IsError: true, Parts: []convo.Part{convo.ToolResult{}}}, "error of run()", "result of run 0"},
		{convo.Media{MIME: "image/png", Data: "AAAAAAAA"}, "media(image/png, 6 bytes)", "image/png 6"},
		{convo.Media{MIME: "image/png", URL: "https://x"}, "media(image/png https://x)", "image/png 0"},
		{convo.Opaque{Format: "f", JSON: "{}"}, "opaque(f, 2 bytes)", "opaque 2"},
	} {
		m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{tt.part, convo.Text("t")}}
		assert.Equal(t, "user: "+tt.text+" t", m.String())
		assert.Equal(t, "[role=user author= parts="+tt.size+", text 1]", m.LogValue().String())
	}
}

func TestToolCall_Valid(t *testing.T) {
	for arguments, want := range map[string]bool{
		"": true, " \n": true, "{}": true, " {\"a\": 1} ": true, `{"a":{"b":[1.0,null]}}`: true,
		"null": false, "[]": false, "1": false, `"{}"`: false, "{": false, "}": false, `{"a":`: false, `{'a':1}`: false,
		"{}{}": false, "{} and more": false, "\ufeff{}": false, "oops": false,
	} {
		assert.Equal(t, want, convo.ToolCall{Arguments: arguments}.Valid(), "%q", arguments)
	}
}
