package wire_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// What a provider says in place of an answer, in whatever form, is in the error.
func TestRead_Words(t *testing.T) {
	const over = "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."
	const chat = "data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Half\"}}]}\n\n"
	const claude = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"1\",\"role\":\"assistant\",\"content\":[]}}\n\n"
	const done = "data: [DONE]\n\n"
	for _, tt := range []struct {
		name   string
		format wire.Format
		body   string
	}{
		// https://openrouter.ai/docs/api-reference/errors
		{"raw", wire.OpenAIChat{}, `data: {"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"OVER","provider_name":"x"}}}` + "\n\n"},
		{"raw JSON", wire.OpenAIChat{}, `data: {"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"OVER\"}}"}}}` + "\n\n"},
		{"msg", wire.OpenAIChat{}, `data: {"code":1305,"msg":"OVER","success":false}` + "\n\n" + done},
		{"msg, anthropic", wire.Anthropic{}, `data: {"code":1305,"msg":"OVER","success":false}` + "\n\n" + done},
		{"errors", wire.OpenAIChat{}, `data: {"success":false,"errors":["OVER"]}` + "\n\n" + done},
		{"errors with an id", wire.OpenAIChat{}, `data: {"id":"06","errors":["OVER"]}` + "\n\n"},
		{"errors, anthropic", wire.Anthropic{}, `data: {"success":false,"errors":["OVER"]}` + "\n\n"},
		{"errors, responses", wire.OpenAIResponses{}, `data: {"success":false,"errors":["OVER"]}` + "\n\n"},
		{"line", wire.OpenAIChat{}, "OVER\n\n" + done},
		{"line, anthropic", wire.Anthropic{}, "OVER\n\n" + done},
		// https://platform.minimax.io/docs/api-reference/text-openai-api
		{"MiniMax", wire.OpenAIChat{}, `{"id":"06","choices":null,"created":1,"model":"m","base_resp":{"status_code":1039,"status_msg":"OVER"}}`},
		{"MiniMax, no code", wire.OpenAIChat{}, `{"id":"06","choices":null,"model":"m","base_resp":{"status_msg":"OVER"}}`},
		{"text", wire.OpenAIChat{}, "data: OVER\n\n"},
		{"text after content", wire.OpenAIChat{}, chat + "data: Error: OVER\n\n"},
		{"text in brackets", wire.OpenAIChat{}, chat + "data: [ERROR] OVER\n\n"},
		{"string", wire.OpenAIChat{}, "data: \"OVER\"\n\n" + done},
		{"text, anthropic", wire.Anthropic{}, "data: OVER\n\n"},
		{"text after the start, anthropic", wire.Anthropic{}, claude + "data: Error: OVER\n\n"},
		{"text, responses", wire.OpenAIResponses{}, "data: OVER\n\n"},
		{"text, gemini", wire.Gemini{}, "data: OVER\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, last, _ := readStream(tt.format, strings.NewReader(strings.ReplaceAll(tt.body, "OVER", over)))
			require.ErrorContains(t, last, "4096 tokens")
			assert.True(t, convo.IsOverflow(last), "%v", last)
		})
	}
}

// An empty answer without any words is one.
func TestRead_NoWords(t *testing.T) {
	for _, body := range []string{
		"data: [DONE]\n\n", ": OPENROUTER PROCESSING\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[],\"prompt_filter_results\":[]}\n\ndata: [DONE]\n\n",
		"data: {\"id\":\"1\",\"base_resp\":{\"status_code\":0,\"status_msg\":\"success\"},\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"x_trace\":1}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"base_resp\":{\"status_code\":0,\"status_msg\":\"success\"}}\n\ndata: [DONE]\n\n",
	} {
		_, _, last, err := readStream(wire.OpenAIChat{}, strings.NewReader(body))
		assert.NoError(t, last, body)
		assert.NoError(t, err, body)
	}
}

// The reason behind much else is recognised, and shown; of what is before it, only the beginning.
func TestRead_WordsFarBehind(t *testing.T) {
	const over = "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."
	for name, body := range map[string]string{
		"page":  "<html>" + strings.Repeat("<!-- x -->", 3000) + over + strings.Repeat("<!-- x -->", 3000),
		"JSON":  `{"trace":"` + strings.Repeat("x", 3000) + `","problem":"` + over + `"}`,
		"event": `data: {"trace":"` + strings.Repeat("x", 3000) + `","problem":"` + over + `"}` + "\n\n",
		"error": `{"detail":[{"input":"` + strings.Repeat("x", 3000) + `","msg":"` + over + `"}]}`,
		"lines": "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n{\n\"trace\":\"" + strings.Repeat("x", 3000) + "\",\n\"problem\":\"" + over + "\"\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, last, _ := readStream(wire.OpenAIChat{}, strings.NewReader(body))
			assert.True(t, convo.IsOverflow(last))
			assert.ErrorContains(t, last, over)
			assert.Less(t, len(last.Error()), 2000)
		})
	}
}

// An error behind the end of an answer leaves the answer, as an error of the reader does.
func TestRead_ErrorBehindTheEnd(t *testing.T) {
	for _, tt := range textEvents {
		for _, late := range []string{`{"error":{"message":"late"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"late"}}`} {
			body := "data: " + strings.Replace(tt.piece, "TEXT", "a", 1) + "\n\ndata: " + tt.end + "\n\nevent: error\ndata: " + late + "\n\n"
			_, got, last, err := readStream(tt.format, strings.NewReader(body))
			require.NoError(t, last, tt.name)
			require.NoError(t, err, tt.name)
			assert.Equal(t, "a", streamedText(got))
			assert.Contains(t, strings.Join(listed(got.Lost), "\n"), "late")
		}
	}
	_, _, last, _ := readStream(wire.OpenAIChat{}, strings.NewReader(`data: {"choices":[{"delta":{"content":"a"},"finish_reason":"error"}]}`+"\n\ndata: {\"error\":{\"message\":\"late\"}}\n\n"))
	assert.ErrorContains(t, last, "late", "the answer ended with an error")
}

// An answer of Anthropic with a reason why it ended is whole without message_stop.
func TestAnthropicStream_NoMessageStop(t *testing.T) {
	const start = `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}` + "\n\n"
	const stop, delta = `data: {"type":"content_block_stop","index":0}` + "\n\n", `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}` + "\n\n"
	for _, body := range []string{start + stop + delta, start + stop + delta + "data: [DONE]\n\n"} {
		_, got, last, err := readStream(wire.Anthropic{}, strings.NewReader(body))
		require.NoError(t, last)
		require.NoError(t, err)
		assert.Equal(t, "a", streamedText(got))
		assert.Equal(t, 4, got.Usage.Output)
	}
	for _, body := range []string{start + stop, start + delta, start + stop + strings.Replace(delta, `"end_turn"`, "null", 1), start + stop + "data: [DONE]\n\n"} {
		_, _, last, _ := readStream(wire.Anthropic{}, strings.NewReader(body))
		assert.ErrorIs(t, last, io.ErrUnexpectedEOF, body)
	}
}
