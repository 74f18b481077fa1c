package answers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/answers"
)

func TestKind(t *testing.T) {
	const call, reasoning, answer = "a tool call", "nothing but reasoning", "an answer to the conversation"
	for text, want := range map[string]string{
		`<tool_call>{"name": "read"}</tool_call>`:                     call,
		`<TOOL_CALL> {"name": "read"}`:                                call,
		`<function=read>{"path": "a"}</function>`:                     call,
		`{"name": "read", "arguments": {"path": "a"}}`:                call,
		`[{"name": "read", "input": {}}, {"tool": "ls", "args": {}}]`: call,
		"```json\n{\"name\": \"read\", \"parameters\": {}}\n```":      call,
		`{"tool_calls": []}`:                                          call,
		`<think>I must read it.</think><invoke name="read">`:          call,
		`<think>The user wants a port.</think>`:                       reasoning,
		`<think>The user wants a port, and`:                           reasoning,
		"<analysis>One.</analysis>\n<think>Two.</think> ":             reasoning,
		`I'll read main.go now, and then run the tests.`:              answer,
		`I’ll read main.go now.`:                                      answer,
		`Sure! The port is 8443.`:                                     answer,
		`I'm sorry, but I can't help with that.`:                      answer,
		`The fix is in place. Would you like me to run the tests?`:    answer,
		`Should I use port 8443 or 9000?`:                             answer,
		`<think>Hm.</think>Let me look at the logs.`:                  answer,
		`The user wants a server on port 8443.`:                       "",
		`sum`:                                                         "",
		`- I'll is how the user writes.`:                              "",
		"## Goal\n- port 8443\n## Open\n- Should I use TLS for you?":  "",
		"I'll keep these facts:\n1. The port is 8443.":                "",
		`{"goal": "a server", "port": 8443}`:                          "",
		`{"name": "convo", "goal": "a library"}`:                      "",
		`The user asked whether the port is open. Is it open?`:        "",
		`<think>Short.</think>The user wants port 8443.`:              "",
		`Highly available: the user wants two servers.`:               "",
		"I need to look.\n<tool_call>{}</tool_call>":                  call,
		"The user wants X. Should I use TLS for you?":                 "",
		"I will call the user U. U wants a parser.":                   "",
		"Okay, a summary.\n</think>\n\nThe task is X.":                "",
		"Okay, a summary.\n</think>":                                  reasoning,
		"Certainly, here is the summary.\nGoal: a parser.":            "",
		`The model wrote <think> tags, and <tool_call> at its end.`:   "",
		`Letters go to Ada. The user asked why it is so.`:             "",
		`[1, 2]`: "",
		`[]`:     "",
		`{`:      "",
	} {
		assert.Equal(t, want, answers.Kind(text), "%s", text)
	}
}

func TestIsJSON(t *testing.T) {
	for text, want := range map[string]bool{
		`{"ok":true}`: true, " [1, 2] ": true, "```json\n{\"ok\":true}\n```": true, "```\n[]\n```": true, "<think>Hm.</think>{}": true, `"a text"`: true,
		"8443": true, "": false, "{": false, "{} and so on": false, "- {}": false, "```\nport\n```": false, "<think>{}": false,
	} {
		assert.Equal(t, want, answers.IsJSON(text), "%s", text)
	}
}

func TestWithoutReasoning(t *testing.T) {
	assert.Equal(t, "a", answers.WithoutReasoning("<think>b</think> <thinking>c</thinking>\n a "))
	assert.Equal(t, "a <think>b</think>", answers.WithoutReasoning("a <think>b</think>"))
	assert.Equal(t, "<thinker>a", answers.WithoutReasoning("<thinker>a"))
	assert.Empty(t, answers.WithoutReasoning("<think>a</thinking>"))
	assert.Equal(t, "a", answers.WithoutReasoning("b\n</think>\na"))
	assert.Equal(t, "a", answers.WithoutReasoning("<Think kind=\"x\">b</THINK>a"))
	assert.Equal(t, "It ends with <think>a</think> b.", answers.WithoutReasoning("It ends with <think>a</think> b."))
	assert.Equal(t, "a </analysis> b", answers.WithoutReasoning("a </analysis> b"))
}

func FuzzKind(f *testing.F) {
	f.Add(`<think>a</think>{"name": "b", "input": {}}`)
	f.Add("Sure.\n- a")
	f.Fuzz(func(t *testing.T, s string) {
		rest := answers.WithoutReasoning(s)
		assert.True(t, strings.HasSuffix(strings.TrimSpace(s), rest))
		assert.Equal(t, rest, answers.WithoutReasoning(rest))
		if rest != "" && answers.Kind(rest) != "" {
			assert.Equal(t, answers.Kind(rest), answers.Kind(s))
		}
	})
}

func TestTexts(t *testing.T) {
	texts, ok := answers.Texts(`{"type":"message","content":[{"text":"one","id":"x"},{"content":"two"},["three"]]}`)
	assert.True(t, ok)
	assert.ElementsMatch(t, []string{"one", "two"}, texts)
	_, ok = answers.Texts("{")
	assert.False(t, ok)
}

func TestFault(t *testing.T) {
	for _, tt := range []struct {
		format, model string
		items         []string
		want          string
	}{
		{"", "", nil, ""},
		{"f", "", []string{" {}", `{"a":1}`}, ""},
		{"", "m", nil, "without a format"},
		{"", "", []string{"{}"}, "without a format"},
		{"f", "m", nil, `no native items of format "f"`},
		{"f", "", []string{"{}", "[]"}, "native item 1 "},
		{"f", "", []string{"{"}, "native item 0 "},
		{"f", "", []string{"{\"a\":\"\xff\"}"}, "native item 0 "},
	} {
		err := answers.Fault(tt.format, tt.model, tt.items)
		if tt.want == "" {
			assert.NoError(t, err, "%+v", tt)
		} else {
			assert.ErrorContains(t, err, tt.want, "%+v", tt)
		}
	}
}
