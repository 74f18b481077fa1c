package session

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// Tools are the same whether the format is given or recognised.
func TestTools(t *testing.T) {
	read := convo.Tool{Name: "read", Description: "reads", Schema: `{"type":"object"}`}
	for name, c := range map[string]struct {
		format, request string
		want            []convo.Tool
	}{
		"chat":             {wire.FormatOpenAIChat, `{"tools":[{"type":"function","function":{"name":"read","description":"reads","parameters":{"type":"object"}}}]}`, []convo.Tool{read}},
		"responses":        {wire.FormatOpenAIResponses, `{"tools":[{"type":"function","name":"read","description":"reads","parameters":{"type":"object"}}]}`, []convo.Tool{read}},
		"responses, web":   {wire.FormatOpenAIResponses, `{"tools":[{"type":"web_search"}]}`, []convo.Tool{{Opaque: convo.Opaque{Format: wire.FormatOpenAIResponses, JSON: `{"type":"web_search"}`}}}},
		"anthropic":        {wire.FormatAnthropic, `{"tools":[{"name":"read","description":"reads","input_schema":{"type":"object"}}]}`, []convo.Tool{read}},
		"anthropic, typed": {wire.FormatAnthropic, `{"tools":[{"type":"memory","name":"memory","input_schema":{}}]}`, []convo.Tool{{Name: "memory", Opaque: convo.Opaque{Format: wire.FormatAnthropic, JSON: `{"type":"memory","name":"memory","input_schema":{}}`}}}},
		"gemini":           {wire.FormatGemini, `{"tools":[{"functionDeclarations":[{"name":"read","description":"reads","parameters":{"type":"OBJECT"}}]}]}`, []convo.Tool{read}},
		"gemini, more":     {wire.FormatGemini, `{"tools":[{"function_declarations":[{"name":"read"}],"googleSearch":{}}]}`, []convo.Tool{{Opaque: convo.Opaque{Format: wire.FormatGemini, JSON: `{"function_declarations":[{"name":"read"}],"googleSearch":{}}`}}}},
		"converse":         {wire.FormatConverse, `{"toolConfig":{"tools":[{"toolSpec":{"name":"read","description":"reads","inputSchema":{"json":{"type":"object"}}}}]}}`, []convo.Tool{read}},
		"none":             {wire.FormatConverse, `{"toolConfig":null}`, nil},
		"nameless":         {wire.FormatOpenAIChat, `{"tools":[{"type":"function","function":{}}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, tools := Tools(c.format, []byte(c.request))
			assert.Equal(t, c.want, tools)
			assert.Equal(t, len(c.want) > 0, list != nil)
			found, _ := toolsOf(objectOf([]byte(c.request)))
			assert.Equal(t, c.want, found)
		})
	}
}
