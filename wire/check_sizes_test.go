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
	claude := func(n, size int) string {
		image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", size) + `"}}`
		return `{"role":"user","content":[` + strings.Repeat(image+",", n) + `{"type":"text","text":"q"}]}`
	}
	chat := func(n, size int) string {
		image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", size) + `"}}`
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
	assert.Equal(t, 50<<20, wire.OpenAITotal(3<<10))
	defer wire.OpenAITotal(50 << 20)
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
		{"5 MB", wire.Anthropic{}, inMessages("", claude(1, 5<<20)), "", ""},
		{"more than 5 MB", wire.Anthropic{}, inMessages("", claude(1, 5<<20+4)), "media-bytes", "messages[0].content[0]"},
		{"more than 32 MB", wire.Anthropic{}, inMessages("", claude(1, 4)+strings.Repeat(" ", 32<<20)), "request-bytes", ""},
		{"in a result", wire.Anthropic{}, inMessages("", claude(0, 0)+`,{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[`+
			strings.TrimSuffix(strings.TrimPrefix(claude(1, 5<<20+4), `{"role":"user","content":[`), "]}")+`]}]}`), "media-bytes", "messages[2].content[0].content[0]"},
		{"500 images", wire.OpenAIChat{}, inMessages("gpt-5", chat(500, 4)), "", ""},
		{"501 images", wire.OpenAIChat{}, inMessages("gpt-5", chat(501, 4)), "media-count", "messages[0].content[500]"},
		{"501 images, another host", wire.OpenAIChat{Host: "openrouter"}, inMessages("x", chat(501, 4)), "", ""},
		{"3 kB", wire.OpenAIChat{}, inMessages("gpt-5", chat(2, 2<<10)), "", ""},
		{"more than 3 kB", wire.OpenAIChat{}, inMessages("gpt-5", chat(2, 2<<10+4)), "media-total", "messages[0].content[1]"},
		{"501 images in a response", wire.OpenAIResponses{}, `{"model":"gpt-5","input":[` + strings.Replace(responses(501, 4), `{"type":"text","text":"q"}`, `{"type":"input_text","text":"q"}`, 1) + `]}`, "media-count", "input[0].content[500]"},
		{"501 images for a plain server", wire.OpenAIResponses{Plain: true}, `{"model":"m","input":[` + strings.Replace(responses(501, 4), `{"type":"text","text":"q"}`, `{"type":"input_text","text":"q"}`, 1) + `]}`, "", ""},
		{"5 documents", wire.Converse{}, `{"messages":[` + converse(5) + `]}`, "", ""},
		{"6 documents", wire.Converse{}, `{"messages":[` + converse(6) + `]}`, "media-count", "messages[0].content[5]"},
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
