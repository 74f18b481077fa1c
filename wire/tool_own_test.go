package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// Encode writes the tools of the snapshot as Tools does, a provider's own ones as they
// stand, and says which it leaves out.
func TestEncode_Tools(t *testing.T) {
	function := convo.Tool{Name: "search", Schema: `{"type":"object","properties":{"q":{"type":"string"}}}`}
	own := func(format, json string) convo.Tool {
		return convo.Tool{Opaque: convo.Opaque{Format: format, JSON: json}}
	}
	for name, tt := range map[string]struct {
		f    wire.Format
		own  convo.Tool
		want string // the own tool alone
	}{
		"anthropic": {wire.Anthropic{}, own(wire.FormatAnthropic, `{"type": "web_search_20250305","name":"web_search"}`), `[{"type":"web_search_20250305","name":"web_search"}]`},
		"marked":    {wire.Anthropic{CacheTools: true}, own(wire.FormatAnthropic, `{"type":"x","cache_control":{"type":"ephemeral"}}`), `[{"type":"x","cache_control":{"type":"ephemeral"}}]`},
		"responses": {wire.OpenAIResponses{}, own(wire.FormatOpenAIResponses, `{"type":"web_search"}`), `[{"type":"web_search"}]`},
		"chat":      {wire.OpenAIChat{}, own(wire.FormatOpenAIChat, `{"type":"custom","custom":{"name":"x"}}`), `[{"type":"custom","custom":{"name":"x"}}]`},
		"gemini":    {wire.Gemini{}, own(wire.FormatGemini, `{"googleSearch":{}}`), `[{"googleSearch":{}}]`},
		"converse":  {wire.Converse{}, own(wire.FormatConverse, `{"systemTool":{"name":"nova_grounding"}}`), `{"tools":[{"systemTool":{"name":"nova_grounding"}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(nil)
			require.NoError(t, err)
			_, err = h.Append(convo.User("q"))
			require.NoError(t, err)
			enc := wire.Encoder{Format: tt.f}
			encode := func(tools ...convo.Tool) wire.Request {
				require.NoError(t, h.SetTools(tools...))
				r, err := tt.f.Encode(h.Snapshot())
				require.NoError(t, err)
				again, err := enc.Encode(h.Snapshot())
				require.NoError(t, err)
				require.Equal(t, string(r.Body()), string(again.Body()))
				require.Equal(t, r.Lost, again.Lost)
				require.True(t, len(r.Tools) == 0 || json.Valid(r.Tools), string(r.Tools))
				return r
			}
			assert.Empty(t, encode().Tools)
			assert.Equal(t, tt.want, string(encode(tt.own).Tools))

			r := encode(function, own("elsewhere", `{"type":"elsewhere"}`), tt.own)
			alone, err := tt.f.(wire.ToolWriter).Tools(function)
			require.NoError(t, err)
			assert.Contains(t, string(r.Tools), `"search"`)
			assert.NotContains(t, string(r.Tools), "elsewhere")
			assert.Equal(t, []wire.Omission{{Part: 1, Inside: -1, What: "tool of another provider"}}, r.Lost)
			assert.Equal(t, "tool 1: tool of another provider", r.Lost[0].String())
			assert.Empty(t, encode(function).Lost)
			assert.Equal(t, string(alone), string(encode(function).Tools))
			assert.Empty(t, encode(own("elsewhere", "{}")).Tools)

			require.NoError(t, h.SetTools(function, function))
			_, err = enc.Encode(h.Snapshot())
			var wrong *wire.ToolError
			require.ErrorAs(t, err, &wrong)
			require.NoError(t, h.SetTools(convo.Tool{Opaque: convo.Opaque{Format: tt.own.Opaque.Format, JSON: "5"}}))
			_, err = enc.Encode(h.Snapshot())
			require.ErrorAs(t, err, &wrong)
			assert.Contains(t, err.Error(), "no JSON object")
			assert.Equal(t, string(alone), string(encode(function).Tools), "after an error")
		})
	}
}
