package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/wire"
)

// Check names what is more than a provider takes in one request, at the limit and above.
func TestCheck_Sizes(t *testing.T) {
	data := func(size int) string { return dot + strings.Repeat("A", max(size-len(dot), 0)) }
	claude := func(n, size int) string {
		image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data(size) + `"}}`
		return `{"role":"user","content":[` + strings.Repeat(image+",", n) + `{"type":"text","text":"q"}]}`
	}
	chat := func(n, size int) string {
		image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data(size) + `"}}`
		return `{"role":"user","content":[` + strings.Repeat(image+",", n) + `{"type":"text","text":"q"}]}`
	}
	responses := func(n, size int) string {
		return strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(chat(n, size), `"image_url":{"url":`, `"image_url":`), `"}},`, `"},`), `"type":"image_url"`, `"type":"input_image"`)
	}
	converse := func(n int) string {
		var all strings.Builder
		all.WriteString(`{"role":"user","content":[`)
		for i := range n {
			all.WriteString(fmt.Sprintf(`{"document":{"format":"pdf","name":"d%d","source":{"bytes":"AAAA"}}},`, i))
		}
		return all.String() + `{"text":"q"}]}`
	}
	gemini := func(n int) string {
		image := `{"inlineData":{"mimeType":"image/png","data":"` + dot + `"}}`
		return `{"contents":[{"role":"user","parts":[` + strings.Repeat(image+",", n) + `{"text":"q"}]}]}`
	}
	pdf := `{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}`
	assert.Equal(t, 512<<20, wire.OpenAIRequest(1<<20))
	defer wire.OpenAIRequest(512 << 20)
	inMessages := func(model, m string) string { return `{"model":"` + model + `","messages":[` + m + `]}` }
	for _, tt := range []struct {
		name       string
		f          wire.Format
		body       string
		want, path string
	}{
		{"100 images", wire.Anthropic{}, inMessages("claude-haiku-4-5", claude(100, 4)), "", ""},
		{"101 images", wire.Anthropic{}, inMessages("claude-haiku-4-5", claude(101, 4)), "media-count", "messages[0].content[100]"},
		{"101 images, an old model", wire.Anthropic{Model: "claude-3-5-sonnet-20241022"}, inMessages("", claude(101, 4)), "media-count", "messages[0].content[100]"},
		{"600 images", wire.Anthropic{}, inMessages("claude-opus-5", claude(600, 4)), "", ""},
		{"601 images", wire.Anthropic{}, inMessages("claude-opus-4-6", claude(601, 4)), "media-count", "messages[0].content[600]"},
		{"99 images and a document", wire.Anthropic{}, inMessages("claude-haiku-4-5", claude(99, 4)+`,{"role":"user","content":[`+pdf+`]}`), "", ""},
		{"100 images and a document", wire.Anthropic{}, inMessages("claude-haiku-4-5", claude(100, 4)+`,{"role":"user","content":[`+pdf+`]}`), "media-count", "messages[1].content[0]"},
		{"100 images and a text", wire.Anthropic{}, inMessages("claude-haiku-4-5", claude(100, 4)+`,{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}]}`), "", ""},
		{"10 MB", wire.Anthropic{}, inMessages("claude-opus-5", claude(1, 10<<20)), "", ""},
		{"more than 10 MB", wire.Anthropic{}, inMessages("", claude(1, 10<<20+4)), "media-bytes", "messages[0].content[0]"},
		{"5 MB at Google", wire.Anthropic{}, inMessages("claude-opus-4-5@20251101", claude(1, 5<<20)), "", ""},
		{"more than 5 MB at Google", wire.Anthropic{Model: "claude-opus-4-5@20251101"}, inMessages("", claude(1, 5<<20+4)), "media-bytes", "messages[0].content[0]"},
		{"more than 5 MB at Amazon", wire.Anthropic{}, inMessages("us.anthropic.claude-opus-5-v1:0", claude(1, 5<<20+4)), "media-bytes", "messages[0].content[0]"},
		{"more than 32 MB", wire.Anthropic{}, inMessages("", claude(1, 4)+strings.Repeat(" ", 32<<20)), "request-bytes", ""},
		{"in a result", wire.Anthropic{}, inMessages("", claude(0, 0)+`,{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[`+
			strings.TrimSuffix(strings.TrimPrefix(claude(1, 10<<20+4), `{"role":"user","content":[`), "]}")+`]}]}`), "media-bytes", "messages[2].content[0].content[0]"},
		{"1,500 images", wire.OpenAIChat{}, inMessages("gpt-5", chat(1500, 4)), "", ""},
		{"1,501 images", wire.OpenAIChat{}, inMessages("gpt-5", chat(1501, 4)), "media-count", "messages[0].content[1500]"},
		{"1,501 images, another host", wire.OpenAIChat{Host: "openrouter"}, inMessages("x", chat(1501, 4)), "", ""},
		{"601 images for DeepSeek", wire.OpenAIChat{Dialect: wire.DeepSeek}, inMessages("deepseek-flash", chat(601, 4)), "media-count", "messages[0].content[600]"},
		{"1 MB", wire.OpenAIChat{}, inMessages("gpt-5", chat(1, 1<<20-200)), "", ""},
		{"more than 1 MB", wire.OpenAIChat{}, inMessages("gpt-5", chat(1, 1<<20)), "request-bytes", ""},
		{"1,501 images in a response", wire.OpenAIResponses{}, `{"model":"gpt-5","input":[` + strings.Replace(responses(1501, 4), `{"type":"text","text":"q"}`, `{"type":"input_text","text":"q"}`, 1) + `]}`, "media-count", "input[0].content[1500]"},
		{"1,501 images for a plain server", wire.OpenAIResponses{Plain: true}, `{"model":"m","input":[` + strings.Replace(responses(1501, 4), `{"type":"text","text":"q"}`, `{"type":"input_text","text":"q"}`, 1) + `]}`, "", ""},
		{"3,600 images", wire.Gemini{}, gemini(3600), "", ""},
		{"3,601 images", wire.Gemini{}, gemini(3601), "media-count", "contents[0].parts[3600]"},
		{"more than 100 MB", wire.Gemini{}, strings.Repeat(" ", 100<<20) + gemini(1), "request-bytes", ""},
		{"5 documents", wire.Converse{}, `{"messages":[` + converse(5) + `]}`, "", ""},
		{"6 documents", wire.Converse{}, `{"messages":[` + converse(6) + `]}`, "document-count", "messages[0].content[5]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var found []string
			for _, f := range tt.f.Check([]byte(tt.body)) {
				found = append(found, f.Rule+" "+f.Path)
				assert.NotContains(t, f.Error+f.Problem+f.Fix, "{")
				assert.NotEmpty(t, f.Error)
			}
			if tt.want == "" {
				assert.Empty(t, found)
			} else {
				assert.Equal(t, []string{tt.want + " " + tt.path}, found)
			}
		})
	}
}
