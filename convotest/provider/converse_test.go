package provider_test

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

func TestConverse_Rules(t *testing.T) {
	const ask, said = `{"role":"user","content":[{"text":"q"}]}`, `{"role":"assistant","content":[{"text":"a"}]}`
	const use = `{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"f","input":{}}},{"toolUse":{"toolUseId":"c2","name":"f","input":{}}}]}`
	const one = `{"toolResult":{"toolUseId":"c1","content":[{"text":"r"}]}}`
	const two = `{"toolResult":{"toolUseId":"c2","content":[{"text":"r"}]}}`
	results := func(list ...string) string { return `{"role":"user","content":[` + strings.Join(list, ",") + `]}` }
	const tools = `"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}`
	plain := func(messages ...string) string { return `{"messages":[` + strings.Join(messages, ",") + `]}` }
	with := func(messages ...string) string { return strings.Replace(plain(messages...), "{", "{"+tools+",", 1) }
	const start = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
	const alternate = "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again."
	checkRules(t, "/model/meta.llama4-maverick-v1:0/converse", []ruleTest{
		{"accepted", plain(ask, said, ask), ""},
		{"accepted: a round", with(ask, use, results(one, two)), ""},
		{"no messages", `{}`, start},
		{"the assistant first", plain(said, ask), start},
		{"users in a row", plain(ask, ask), alternate},
		{"role", plain(`{"role":"system","content":[{"text":"q"}]}`), "1 validation error detected: Value 'system' at 'messages.1.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]"},
		{"no content", plain(`{"role":"user","content":[]}`), "The content field in the Message object at messages.0 is empty. Add a ContentBlock object to the content field and try again."},
		{"blank text", plain(`{"role":"user","content":[{"text":" "}]}`), "The text field in the ContentBlock object at messages.0.content.0 is blank. Add text to the text field, and try again."},
		{"blank system", `{"system":[{"text":""}],` + plain(ask)[1:], "The text field in the SystemContentBlock object at system.0 is blank. Add text to the text field, and try again."},
		{"two in a block", plain(`{"role":"user","content":[{"text":"q","image":{}}]}`), "The value at messages.0.content.0 is not a union with one known member."},
		{"input", with(ask, strings.Replace(use, `"input":{}`, `"input":"{}"`, 1), results(one, two)), "The format of the value at messages.1.content.0.toolUse.input is invalid. Provide a json object for the field and try again."},
		{"a result missing", with(ask, use, results(one)), "Expected toolResult blocks at messages.2.content for the following Ids: c2"},
		{"calls at the end", with(ask, use), "Expected toolResult blocks at messages.2.content for the following Ids: c1, c2"},
		{"a result twice", with(ask, use, results(one, one)), "The toolResult blocks at messages.2.content contain duplicate Ids: c1"},
		{"a result without call", with(ask, said, results(one)), "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn."},
		{"a call of the user", with(strings.Replace(use, "assistant", "user", 1)), "The toolUse block at messages.0.content.0 must be in a message of the assistant."},
		{"no tools", plain(ask, use, results(one, two)), "The toolConfig field must be defined when using toolUse and toolResult content blocks."},
		{"cache marks", strings.Replace(with(results(`{"text":"q"}`+strings.Repeat(`,{"cachePoint":{"type":"default"}}`, 4))), "}}}}]}", `}}}},{"cachePoint":{"type":"default"}}]}`, 1), "The model returned the following errors: A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"an hour after five minutes", strings.Replace(with(results(`{"text":"q"},{"cachePoint":{"type":"default","ttl":"1h"}}`)), "}}}}]}", `}}}},{"cachePoint":{"type":"default"}}]}`, 1), "The model returned the following errors: messages.0.content.1.cachePoint.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."},
		{"too long", plain(strings.Replace(ask, `"q"`, `"`+strings.Repeat("x", 5000)+`"`, 1)), "The model returned the following errors: prompt is too long: 1255 tokens > 1000 maximum"},
	})
	checkRules(t, "/model/anthropic.claude-opus-5-5-v1:0/converse", []ruleTest{
		{"accepted: the assistant first", plain(said, ask), ""},
		{"the assistant last", plain(ask, said), "The model returned the following errors: This model does not support assistant message prefill. The conversation must end with a user message."},
	})
}

// Each message of a stream has a length, headers, a payload and two sums.
func TestConverse_Stream(t *testing.T) {
	s := provider.New(provider.Options{})
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Thinking("hm"), provider.Text("0123456789"), provider.Call{ID: "c1", Name: "f", Arguments: `{"a":1.0}`}}})
	_, got := post(t, s, "/model/anthropic.claude-opus-5-5-v1:0/converse-stream", `{"messages":[{"role":"user","content":[{"text":"q"}]}]}`)
	var names []string
	text, arguments := "", ""
	for rest := []byte(got); len(rest) > 0; {
		require.GreaterOrEqual(t, len(rest), 16)
		total, headers := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		require.LessOrEqual(t, int(total), len(rest))
		assert.Equal(t, crc32.ChecksumIEEE(rest[:8]), binary.BigEndian.Uint32(rest[8:]))
		assert.Equal(t, crc32.ChecksumIEEE(rest[:total-4]), binary.BigEndian.Uint32(rest[total-4:]))
		h := string(rest[12 : 12+headers])
		_, name, _ := strings.Cut(h, ":event-type")
		size := binary.BigEndian.Uint16([]byte(name)[1:])
		names = append(names, name[3:3+size])
		var data struct {
			Delta struct {
				Text    string
				ToolUse struct{ Input string }
			}
		}
		require.NoError(t, json.Unmarshal(rest[12+headers:total-4], &data))
		text += data.Delta.Text
		arguments += data.Delta.ToolUse.Input
		rest = rest[total:]
	}
	assert.Equal(t, "0123456789", text)
	assert.Equal(t, `{"a":1.0}`, arguments)
	assert.Equal(t, "messageStart", names[0])
	assert.Equal(t, []string{"messageStop", "metadata"}, names[len(names)-2:])
	assert.Contains(t, names, "contentBlockStart")
}

// Whatever a request holds, the server answers it, and what it refuses it records.
func FuzzConverse(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"messages":[{"role":"user","content":[{"text":"q"}]}]}`, `{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":{}}}]}]}`,
		`{"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[]}}]}],"toolConfig":{"tools":[{"cachePoint":{}}]},"system":[{"cachePoint":{}}]}`,
		`{"messages":[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}}]}]}`, `{"messages":[null,1]}`, `{"messages":{}}`,
	} {
		f.Add(body, true)
		f.Add(body, false)
	}
	f.Fuzz(func(t *testing.T, body string, stream bool) {
		path := "/model/anthropic.claude-opus-5-5-v1:0/converse"
		if stream {
			path += "-stream"
		}
		s := provider.New(provider.Options{})
		status, _ := post(t, s, path, body)
		if (status != 200) != (len(s.Refused()) == 1) {
			t.Errorf("status %d, and %d requests were refused", status, len(s.Refused()))
		}
	})
}
