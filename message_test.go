package convo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
)

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

func TestToolCall_Valid(t *testing.T) {
	for arguments, want := range map[string]bool{
		"": true, " \n": true, "{}": true, " {\"a\": 1} ": true, `{"a":{"b":[1.0,null]}}`: true,
		"null": false, "[]": false, "1": false, `"{}"`: false, "{": false, "}": false, `{"a":`: false, `{'a':1}`: false,
		"{}{}": false, "{} and more": false, "\ufeff{}": false, "oops": false,
	} {
		assert.Equal(t, want, convo.ToolCall{Arguments: arguments}.Valid(), "%q", arguments)
	}
}

func TestMessage_WithReasoning(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "search"}
	first, second := convo.Reasoning{Text: "Hm.", Signature: "s"}, convo.Reasoning{Text: "Yes."}
	plain := convo.Assistant("The 9:10.", call)
	got := plain.WithReasoning(first, second)
	assert.Equal(t, convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{first, second, convo.Text("The 9:10."), call}}, got)
	got.Parts[2] = convo.Text("changed")
	assert.Equal(t, convo.Assistant("The 9:10.", call), plain)
	assert.Equal(t, []convo.Part{first}, convo.Assistant("").WithReasoning(first).Parts)
}
