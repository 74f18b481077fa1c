package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/wire"
)

// Unusual requests that the providers accept. Check finds nothing wrong with them. (The
// recorded data also has requests for embeddings by Titan, {"inputText":...}. They are
// for InvokeModel and not for Converse, so Check may report that they have no messages.)
func TestCheck_AcceptedOddities(t *testing.T) {
	const (
		call   = `{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"}]}`
		calls  = `{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"},{"functionCall":{"name":"g"}}]}`
		result = `{"functionResponse":{"name":"f","response":{}}}`
		use    = `{"role":"user","content":[{"text":"x"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]}`
		tool   = `{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	)
	gemini := func(parts string) string { return `{"contents":[{"role":"user","parts":[` + parts + `]}]}` }
	chat := func(m ...string) string { return `{"messages":[` + strings.Join(m, ",") + `]}` }
	for _, tt := range []struct {
		name string
		f    wire.Format
		body string
		want string // rules; none: it is accepted
	}{
		// https://ai.google.dev/gemini-api/docs/video-understanding
		{"video with a part of it", wire.Gemini{}, gemini(`{"fileData":{"fileUri":"https://www.youtube.com/watch?v=XEzRZ35urlk"},"videoMetadata":{"startOffset":"1250s","endOffset":"1570s"}},{"text":"Summarise it."}`), ""},
		{"video with a rate", wire.Gemini{}, gemini(`{"inline_data":{"mime_type":"video/mp4","data":"AAAA"},"video_metadata":{"fps":5}},{"text":"Summarise it."}`), ""},
		{"a rate without a video", wire.Gemini{}, gemini(`{"videoMetadata":{"fps":5}}`), "part-empty"},
		{"blank text, Gemini", wire.Gemini{}, gemini(`{"text":" \n"}`), ""},

		// Recorded with Gemini 2.5 and 3. Gemini 3.6 refuses it,
		// https://github.com/vellum-ai/vellum-assistant/pull/39495, as does 3.1,
		// https://github.com/TanStack/ai/issues/436; 2.5 refuses it next to two results,
		// https://github.com/google-gemini/gemini-cli/pull/16137.
		{"a result and a text, 2.5", wire.Gemini{Model: "gemini-2.5-pro"}, chatContents(call, result+`,{"text":"x"}`), ""},
		{"a result and a text, 3", wire.Gemini{Model: "models/gemini-3-flash-preview"}, chatContents(call, result+`,{"text":"x"}`), ""},
		{"a result and a text, by the request", wire.Gemini{}, strings.Replace(chatContents(call, result+`,{"text":"x"}`), "{", `{"model":"models/gemini-2.0-flash",`, 1), ""},
		{"a result and a text, 3.1", wire.Gemini{Model: "gemini-3.1-flash-lite-preview"}, chatContents(call, result+`,{"text":"x"}`), "mixed-results"},
		{"a result and a text, 4", wire.Gemini{Model: "gemini-4-pro"}, chatContents(call, result+`,{"text":"x"}`), "mixed-results"},
		{"a result and a text, of a model that is not known", wire.Gemini{}, chatContents(call, result+`,{"text":"x"}`), "mixed-results"},
		{"two results and a text, 2.5", wire.Gemini{Model: "gemini-2.5-pro"}, chatContents(calls, result+`,{"functionResponse":{"name":"g","response":{}}},{"text":"x"}`), "mixed-results"},

		// Bedrock checks the blocks of a message and not those of a result,
		// https://github.com/NousResearch/hermes-agent/issues/55092.
		{"blank result, Converse", wire.Converse{}, chat(use, `{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":" "}]}}]}`), ""},
		{"blank result of an error, Converse", wire.Converse{}, chat(use, `{"role":"user","content":[{"toolResult":{"toolUseId":"a","status":"error","content":[{"text":" "}]}}]}`), ""},
		{"blank text, Converse", wire.Converse{}, chat(`{"role":"user","content":[{"text":" "}]}`), "blank-text"},
		// Recorded with Claude and Qwen; https://github.com/elastic/kibana/pull/246393
		// describes other models.
		{"an assistant first, Claude", wire.Converse{Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}, chat(`{"role":"assistant","content":[{"text":"x"}]}`, `{"role":"user","content":[{"text":"x"}]}`), ""},
		{"an assistant first, Qwen", wire.Converse{}, strings.Replace(chat(`{"role":"assistant","content":[{"text":"x"}]}`, `{"role":"user","content":[{"text":"x"}]}`), "{", `{"modelId":"qwen.qwen3-32b-v1:0",`, 1), ""},
		{"an assistant first, Nova", wire.Converse{Model: "us.amazon.nova-lite-v1:0"}, chat(`{"role":"assistant","content":[{"text":"x"}]}`, `{"role":"user","content":[{"text":"x"}]}`), "user-first"},

		// https://github.com/router-for-me/CLIProxyAPI/issues/5321: only the last message must
		// not end with thinking.
		{"thinking at the end of an earlier message", wire.Anthropic{}, chat(`{"role":"user","content":"x"}`, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]}`, `{"role":"user","content":"x"}`), ""},

		// https://github.com/NousResearch/hermes-agent/pull/61318: blank text of a
		// message is refused. The text of a result may be empty.
		{"empty result, Anthropic", wire.Anthropic{}, chat(tool, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]}`), ""},
		{"blank text, Anthropic", wire.Anthropic{}, chat(`{"role":"user","content":[{"type":"text","text":"\n\n"}]}`), "blank-text"},

		// https://github.com/vercel/ai/pull/14950: empty content is accepted.
		{"blank text, chat", wire.OpenAIChat{}, chat(`{"role":"user","content":" "}`, `{"role":"assistant","content":""}`, `{"role":"user","content":[{"type":"text","text":" "}]}`), ""},
		{"blank text, DeepSeek", wire.OpenAIChat{Dialect: wire.DeepSeek}, chat(`{"role":"user","content":" "}`), ""},
		{"blank text, Mistral", wire.OpenAIChat{Dialect: wire.Mistral}, chat(`{"role":"user","content":" "}`, `{"role":"assistant","content":" "}`, `{"role":"user","content":""}`), ""},
		{"blank text, Ollama", wire.OpenAIChat{Dialect: wire.Ollama}, chat(`{"role":"user","content":" "}`), ""},
		{"blank text, templates", wire.OpenAIChat{Dialect: wire.StrictAlternation}, chat(`{"role":"user","content":" "}`), ""},
		{"blank text, Responses", wire.OpenAIResponses{}, `{"input":[{"role":"user","content":" "},{"role":"assistant","content":""},{"role":"user","content":[{"type":"input_text","text":" "}]}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := rulesOf(tt.f.Check([]byte(tt.body)))
			assert.Equal(t, tt.want, strings.Join(rules, " "))
		})
	}
}

// chatContents makes a request of Gemini with calls and the parts after them.
func chatContents(calls, parts string) string {
	return `{"contents":[{"role":"user","parts":[{"text":"x"}]},` + calls + `,{"role":"user","parts":[` + parts + `]}]}`
}
