package provider_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// A judge made of what it judges would find nothing.
func TestPackage_ImportsOnlyTheStandardLibrary(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	seen := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range file.Imports {
			first, _, _ := strings.Cut(strings.Trim(i.Path.Value, `"`), "/")
			assert.NotContains(t, first, ".", "%s imports %s", e.Name(), i.Path.Value)
			seen++
		}
	}
	assert.NotZero(t, seen)
}

const (
	question = `{"role":"user","content":[{"type":"text","text":"a"}]}`
	again    = `{"role":"user","content":[{"type":"text","text":"c"}]}`
)

// answer returns the signed answer to a request that ends with "]}", as a message.
func answer(t *testing.T, request, content string) string {
	signed, err := provider.AnthropicSeals.Sign([]byte(request), []byte(`{"content":[`+content+`]}`))
	require.NoError(t, err)
	return `{"role":"assistant",` + strings.TrimPrefix(string(signed), "{")
}

func thinking(text string) string { return `{"type":"thinking","thinking":"` + text + `"}` }

func text(text string) string { return `{"type":"text","text":"` + text + `"}` }

// What the provider's documentation calls valid is valid, and what it calls broken is
// refused.
func TestSeals_Check(t *testing.T) {
	const head = `{"model":"m","tools":[{"name":"t"}],"system":"s","messages":[`
	one := head + question
	first := answer(t, one+"]}", thinking("1")+","+text("b"))
	two := one + "," + first + "," + again
	second := answer(t, two+"]}", thinking("2")+","+text("d")+","+thinking("3")+","+text("e"))
	three := two + "," + second + "," + question
	third := answer(t, three+"]}", `{"type":"redacted_thinking"},`+text("f"))
	all := three + "," + third + "," + question + "]}"

	without := func(message string) string {
		var m struct{ Content []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(message), &m))
		kept := []map[string]any{}
		for _, b := range m.Content {
			if b["type"] == "text" {
				kept = append(kept, b)
			}
		}
		data, err := json.Marshal(map[string]any{"role": "assistant", "content": kept})
		require.NoError(t, err)
		return strings.Replace(all, message, string(data), 1)
	}
	replaced := func(old, new string) string {
		require.Contains(t, all, old)
		return strings.Replace(all, old, new, 1)
	}
	const system = "The `system` prompt differs from the one this block was created with."
	const missing = "The `thinking` block that preceded this one when it was created is missing from this request."
	paths := []string{"messages.1.content.0", "messages.3.content.0", "messages.3.content.2", "messages.5.content.0"}
	from := func(n int, cause string) (list []provider.SealFault) {
		for _, p := range paths[n:] {
			list = append(list, provider.SealFault{Path: p, Cause: cause})
		}
		return list
	}
	for _, tt := range []struct {
		name, body string
		sent       int
		refused    []provider.SealFault
	}{
		{"as it was", all, 4, nil},
		{"a message more", strings.TrimSuffix(all, "]}") + "," + again + "]}", 4, nil},
		{"a cache mark", replaced(`"text":"a"`, `"text":"a","cache_control":{"type":"ephemeral"}`), 4, nil},
		{"another parameter", replaced(`"tools"`, `"max_tokens":5,"tools"`), 4, nil},
		{"a text as a string", replaced(question, `{"role":"user","content":"a"}`), 4, nil},
		{"a field that is null", replaced(`"text":"b"`, `"text":"b","citations":null`), 4, nil},
		{"the first reasoning left out", without(first), 3, nil},
		{"reasoning left out in the middle", without(second), 2, []provider.SealFault{{Path: paths[3], Cause: missing}}},
		{"another model", replaced(`"model":"m"`, `"model":"n"`), 0, nil},
		{"system", replaced(`"system":"s"`, `"system":"S"`), 4, from(0, system)},
		{"tools", replaced(`"name":"t"`, `"name":"u"`), 4, from(0, "")},
		{"the first question", replaced(`"text":"a"`, `"text":"A"`), 4, from(0, "")},
		{"an answer", replaced(`"text":"b"`, `"text":"B"`), 4, from(1, "")},
		{"a text within an answer", replaced(`"text":"d"`, `"text":"D"`), 4, from(2, "")},
		{"a text more in a turn", replaced(again, `{"role":"user","content":[`+text("c")+","+text("c2")+`]}`), 4, from(1, "")},
		{"a message less", replaced(again+",", ""), 4, []provider.SealFault{{Path: "messages.2.content.0"}, {Path: "messages.2.content.2"}, {Path: "messages.4.content.0"}}},
		{"a signature that nobody made", replaced(`"signature":"`, `"signature":"x`), 4, []provider.SealFault{{Path: paths[0]}, {Path: paths[1], Cause: missing}}},
	} {
		sent, refused, err := provider.AnthropicSeals.Check([]byte(tt.body))
		require.NoError(t, err, tt.name)
		assert.Equal(t, tt.sent, sent, tt.name)
		assert.Equal(t, tt.refused, refused, tt.name)
	}
}

func TestSeals_Converse(t *testing.T) {
	const ask = `{"role":"user","content":[{"text":"a"},{"cachePoint":{"type":"default"}}]}`
	const reasoning = `{"reasoningContent":{"reasoningText":{"text":"h"}}}`
	request := `{"system":[{"text":"s"}],"messages":[` + ask
	signed, err := provider.ConverseSeals.Sign([]byte(request+"]}"), []byte(`{"output":{"message":{"role":"assistant","content":[`+reasoning+`,{"text":"b"}]}}}`))
	require.NoError(t, err)
	var out struct {
		Output struct{ Message json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(signed, &out))
	body := strings.Replace(request+","+string(out.Output.Message)+"]}", `,{"cachePoint":{"type":"default"}}`, "", 1)
	sent, refused, err := provider.ConverseSeals.Check([]byte(body))
	require.NoError(t, err)
	assert.Equal(t, 1, sent)
	assert.Empty(t, refused)
	_, refused, err = provider.ConverseSeals.Check([]byte(strings.Replace(body, `"text":"a"`, `"text":"A"`, 1)))
	require.NoError(t, err)
	assert.Equal(t, []provider.SealFault{{Path: "messages.1.content.0"}}, refused)
}

func TestSeals_NotARequest(t *testing.T) {
	for _, body := range []string{"", "[]", "{}", `{"messages":{}}`} {
		_, _, err := provider.AnthropicSeals.Check([]byte(body))
		assert.ErrorContains(t, err, "provider: the request ", body)
		_, err = provider.AnthropicSeals.Sign([]byte(body), []byte(`{"content":[]}`))
		assert.ErrorContains(t, err, "provider: the request ", body)
	}
	for _, body := range []string{"", "[]", "{}", `{"content":{}}`} {
		_, err := provider.AnthropicSeals.Sign([]byte(`{"messages":[]}`), []byte(body))
		assert.ErrorContains(t, err, "provider: the answer ", body)
	}
	_, _, err := provider.ConverseSeals.Check([]byte(`{"messages":[null,{"content":[null,5]},{"role":5,"content":"x"}]}`))
	assert.NoError(t, err)
}
