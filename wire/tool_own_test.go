package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

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
			h := historyOf(t, convo.User("q"))
			enc := wire.Encoder{Format: tt.f}
			encode := func(tools ...convo.Tool) wire.Request {
				require.NoError(t, h.SetTools(tools...))
				r := mustEncode(t, tt.f, h.Snapshot())
				again := mustEncode(t, &enc, h.Snapshot())
				require.Equal(t, string(r.Body()), string(again.Body()))
				require.Equal(t, r.Lost, again.Lost)
				require.True(t, len(r.Tools) == 0 || json.Valid(r.Tools), string(r.Tools))
				return r
			}
			assert.Empty(t, encode().Tools)
			assert.Equal(t, tt.want, string(encode(tt.own).Tools))

			r := encode(function, own("elsewhere", `{"type":"elsewhere"}`), tt.own)
			alone := toolsOf(t, tt.f, function)
			assert.Contains(t, string(r.Tools), `"search"`)
			assert.NotContains(t, string(r.Tools), "elsewhere")
			assert.Equal(t, []wire.Omission{{Part: 1, Inside: -1, What: "tool of another provider"}}, r.Lost)
			assert.Equal(t, "tool 1: tool of another provider", r.Lost[0].String())
			assert.Empty(t, encode(function).Lost)
			assert.Equal(t, string(alone), string(encode(function).Tools))
			assert.Empty(t, encode(own("elsewhere", "{}")).Tools)

			require.NoError(t, h.SetTools(function, function))
			_, err := enc.Encode(h.Snapshot())
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

// Two tools of one name are refused, if one of them is the provider's own.
func TestEncode_OwnToolOfOneName(t *testing.T) {
	for name, tt := range map[string]struct {
		f      wire.Format
		format string
		json   string
	}{
		"anthropic": {wire.Anthropic{}, wire.FormatAnthropic, `{"type":"web_search_20250305","name":"x"}`},
		"responses": {wire.OpenAIResponses{}, wire.FormatOpenAIResponses, `{"type":"function","name":"x"}`},
		"chat":      {wire.OpenAIChat{}, wire.FormatOpenAIChat, `{"type":"function","function":{"name":"x"}}`},
		"custom":    {wire.OpenAIChat{}, wire.FormatOpenAIChat, `{"type":"custom","custom":{"name":"x"}}`},
		"gemini":    {wire.Gemini{}, wire.FormatGemini, `{"functionDeclarations":[{"name":"x"},{"name":"y"}]}`},
		"converse":  {wire.Converse{}, wire.FormatConverse, `{"toolSpec":{"name":"x"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			own := convo.Tool{Opaque: convo.Opaque{Format: tt.format, JSON: tt.json}}
			elsewhere := convo.Tool{Opaque: convo.Opaque{Format: "elsewhere", JSON: tt.json}}
			for i, tools := range [][]convo.Tool{{own, {Name: "x"}}, {{Name: "x"}, own}, {own, own}} {
				_, err := tt.f.(wire.ToolWriter).Tools(tools...)
				var wrong *wire.ToolError
				require.ErrorAs(t, err, &wrong)
				assert.Equal(t, []int{0, 1, 1}[i], wrong.Index)
				assert.Contains(t, err.Error(), `"x": another tool has this name`)
			}
			toolsOf(t, tt.f, own, convo.Tool{Name: "z"}, elsewhere)
		})
	}
}

// The cache marks of a provider's own tools count, and what follows them has no longer
// lifetime than they have.
func TestEncode_OwnToolWithMark(t *testing.T) {
	const anthropic, anthropicHour = `{"type":"x","name":"x%d","cache_control":{"type":"ephemeral"}}`, `{"type":"x","name":"x%d","cache_control":{"type":"ephemeral","ttl":"1h"}}`
	const converse, converseHour = `{"cachePoint":{"type":"default"}}`, `{"cachePoint":{"type":"default","ttl":"1h"}}`
	for name, tt := range map[string]struct {
		f       wire.Format
		format  string
		own     []string
		hours   int // marks for an hour, apart from those of tools
		minutes int
	}{
		"anthropic":       {wire.Anthropic{}, wire.FormatAnthropic, []string{anthropic}, 0, 3},
		"with the format": {wire.Anthropic{Cache: true, CacheTools: true, CacheLifetime: time.Hour}, wire.FormatAnthropic, []string{anthropicHour}, 3, 0},
		"for an hour":     {wire.Anthropic{}, wire.FormatAnthropic, []string{anthropicHour, anthropicHour}, 2, 0},
		"five":            {wire.Anthropic{}, wire.FormatAnthropic, []string{anthropicHour, anthropicHour, anthropicHour, anthropicHour, anthropicHour}, 0, 0},
		"converse":        {wire.Converse{}, wire.FormatConverse, []string{converse}, 0, 3},
		"and one more":    {wire.Converse{CacheTools: true, CacheLifetime: time.Hour}, wire.FormatConverse, []string{converseHour}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tools := []convo.Tool{{Name: "f"}}
			for i, json := range tt.own {
				if strings.Contains(json, "%d") {
					json = fmt.Sprintf(json, i)
				}
				tools = append(tools, convo.Tool{Opaque: convo.Opaque{Format: tt.format, JSON: json}})
			}
			h := historyOf(t)
			for range 5 {
				mustAppend(t, h, convo.User("q", wire.CacheMark(time.Hour)), convo.Assistant("a"))
			}
			mustAppend(t, h, convo.User("q", wire.CacheMark(time.Hour)))
			for range 2 { // without tools there is room for all four
				r := mustEncode(t, tt.f, h.Snapshot())
				said := string(bytes.Join(append([][]byte{r.System}, toBytes(r.Messages)...), nil))
				marks, hours := strings.Count(said, `"cache_control"`)+strings.Count(said, `"cachePoint"`), strings.Count(said, `"1h"`)
				if len(h.Snapshot().Tools()) > 0 {
					assert.Equal(t, []int{tt.hours, tt.minutes}, []int{hours, marks - hours})
				}
				require.NoError(t, h.SetTools(tools...))
			}
		})
	}
}

func toBytes(list []json.RawMessage) (all [][]byte) {
	for _, raw := range list {
		all = append(all, raw)
	}
	return all
}
