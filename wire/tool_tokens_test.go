package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// weather is the function in the example of OpenAI's Cookbook.
const weather = `{
	"name": "get_current_weather",
	"description": "Get the current weather in a given location",
	"parameters": {"type": "object", "properties": {
		"location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
		"unit": {"type": "string", "description": "The unit of temperature to return", "enum": ["celsius", "fahrenheit"]}
	}, "required": ["location"]}
}`

// counts is a tokenizer with given counts for some texts. All other texts count
// as one token.
type counts map[string]int

func (c counts) CountTokens(text string) int {
	if n, ok := c[text]; ok {
		return n
	}
	return 1
}

// weatherCounts are the counts of the example's texts, which o200k and cl100k
// agree on.
var weatherCounts = counts{
	"get_current_weather:Get the current weather in a given location": 11,
	"location:string:The city and state, e.g. San Francisco, CA":      14,
	"unit:string:The unit of temperature to return":                   8,
	"celsius":    2,
	"fahrenheit": 2,
}

// The Cookbook counts 101 tokens for its example with GPT-4o and 105 with
// GPT-4, and the API reported the same. 33 and 34 of them are for the two
// messages and the start of the answer.
func TestToolTokens_MatchTheCookbook(t *testing.T) {
	chat := `[{"type": "function", "function": ` + weather + `}]`
	responses := `[{"type": "function",` + weather[1:] + `]`
	for model, want := range map[string]int{
		"gpt-4o": 101 - 33, "gpt-4o-mini": 101 - 33, "gpt-5.6-sol": 68, "o3": 68, "openai/gpt-4.1": 68,
		"gpt-4": 105 - 34, "gpt-3.5-turbo": 105 - 34, "gpt-4-turbo-2024-04-09": 71,
	} {
		for _, tools := range []string{chat, responses, `{"model":"x","tools":` + chat + `,"tool_choice":"required"}`} {
			n, err := wire.ToolTokens(model, []byte(tools), weatherCounts)
			require.NoError(t, err)
			assert.Equal(t, want, n, model)
		}
	}
	n, err := wire.ToolTokens("gpt-4o", []byte(`[{"type":"function","function":`+weather+`},{"type":"function","function":`+weather+`}]`), weatherCounts)
	require.NoError(t, err)
	assert.Equal(t, 2*(68-12)+12, n)
}

// letters counts one token for each byte, which makes the expected sums
// obvious.
var letters = convo.TokenizerFunc(func(s string) int { return len(s) })

func TestToolTokens_CountSchemas(t *testing.T) {
	for _, tt := range []struct {
		name, function string
		want           int
	}{
		{"no parameters", `"name":"a"`, len("a:")},
		{"null parameters", `"name":"a","description":null,"parameters":null`, len("a:")},
		{"empty parameters", `"name":"a","parameters":{"type":"object","properties":{}}`, len("a:")},
		{"full stop", `"name":"a","description":"b.c."`, len("a:b.c")},
		{"one", `"name":"a","parameters":{"properties":{"x":{"type":"string"}}}`, len("a:") + 3 + 3 + len("x:string:")},
		{"two types", `"name":"a","parameters":{"properties":{"x":{"type":["string", "null"]}}}`, len("a:") + 3 + 3 + len(`x:["string","null"]:`)},
		{"numbers of an enum", `"name":"a","parameters":{"properties":{"x":{"type":"integer","enum":[10,2]}}}`, len("a:") + 3 + 3 + len("x:integer:") - 3 + 3 + 2 + 3 + 1},
		{"empty enum", `"name":"a","parameters":{"properties":{"x":{"type":"integer","enum":[]}}}`, len("a:") + 3 + 3 + len("x:integer:")},
		{"nested", `"name":"a","parameters":{"properties":{"x":{"type":"object","properties":{"y":{"type":"string","description":"d."}}}}}`, len("a:") + 2*(3+3) + len("x:object:") + len("y:string:d")},
		{"list of objects", `"name":"a","parameters":{"properties":{"x":{"type":"array","items":{"type":"object","properties":{"y":{"type":"string"}}}}}}`, len("a:") + 2*(3+3) + len("x:array:") + len("y:string:")},
		{"what the recipe does not know", `"name":"a","parameters":{"additionalProperties":false,"properties":{"x":{"type":"number","minimum": 1.0}}}`, len("a:") + 3 + 3 + len("x:number:") + len("minimum:1.0")},
		{"alternatives", `"name":"a","parameters":{"properties":{"x":{"anyOf":[ {"type":"string"} ]}}}`, len("a:") + 3 + 3 + len("x::") + len(`anyOf:[{"type":"string"}]`)},
		{"anything goes", `"name":"a","parameters":{"properties":{"x":true}}`, len("a:") + 3 + 3 + len("x:true")},
		{"odd kinds", `"name":7,"description":["b"],"parameters":{"properties":[1],"items":5,"enum":"e"}`, len("7:") + len("properties:[1]") + len("items:5") + len(`enum:"e"`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := wire.ToolTokens("gpt-4o", []byte(`[{"type":"function","function":{`+tt.function+`}}]`), letters)
			require.NoError(t, err)
			assert.Equal(t, 7+12+tt.want, n)
		})
	}
}

func TestToolTokens_ReadToolsOfEachFormat(t *testing.T) {
	anthropic := `{"name":"a","input_schema":{"type":"object"}}`
	gemini := `{"functionDeclarations":[{"name":"a","parameters":{"type":"OBJECT"}}]}`
	converse := `{"toolSpec":{"name":"a","inputSchema":{"json":{"type":"object"}}}}`
	chat := `{"type":"function","function":{"name":"a"}}`
	for _, tt := range []struct {
		model, tools string
		want         int
	}{
		{"claude-opus-5", "[" + anthropic + "]", 286 + len(anthropic)},
		{"claude-opus-5-5", "[ " + anthropic + ",\n" + anthropic + "]", 286 + 2*len(anthropic)},
		{"claude-opus-4-8", "[" + anthropic + "]", 290 + len(anthropic)},
		{"claude-opus-4-7", "[" + anthropic + "]", 675 + len(anthropic)},
		{"claude-opus-4-20250514", "[" + anthropic + "]", 313 + len(anthropic)},
		{"claude-sonnet-4-5-20250929", "[" + anthropic + "]", 496 + len(anthropic)},
		{"claude-haiku-4-5", `{"tools":[` + anthropic + `],"tool_choice":{"type":"auto"}}`, 496 + len(anthropic)},
		{"claude-haiku-4-5", `{"tools":[` + anthropic + `],"tool_choice":{"type":"any"}}`, 588 + len(anthropic)},
		{"claude-haiku-4-5", `{"tools":[` + anthropic + `],"tool_choice":{"type":"tool","name":"a"}}`, 588 + len(anthropic)},
		{"claude-haiku-4-5", `{"tools":[` + anthropic + `],"tool_choice":{"type":"none"}}`, 496 + len(anthropic)},
		{"claude-3-5-haiku", "[" + anthropic + "]", 264 + len(anthropic)},
		{"claude-3-7-sonnet", "[" + anthropic + "]", 346 + len(anthropic)},
		{"claude-mythos-5", "[" + anthropic + "]", 354 + len(anthropic)},
		{"us.anthropic.claude-sonnet-5-v1:0", `{"toolConfig":{"tools":[` + converse + `],"toolChoice":{"any":{}}}}`, 474 + len(converse)},
		{"us.anthropic.claude-sonnet-5-v1:0", `{"tools":[` + converse + `],"toolChoice":{"tool":{"name":"a"}}}`, 474 + len(converse)},
		{"us.anthropic.claude-sonnet-5-v1:0", `{"tools":[` + converse + `],"toolChoice":{"auto":{}}}`, 354 + len(converse)},
		{"amazon.nova-pro-v1:0", `{"toolConfig":{"tools":[` + converse + `]}}`, len(converse)},
		{"gemini-3-pro", `{"tools":[` + gemini + `],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`, len(gemini)},
		{"gemini-3-pro", "[" + gemini + `,{"googleSearch":{}}]`, len(gemini) + len(`{"googleSearch":{}}`)},
		{"mistral-large", "[" + chat + "]", len(chat)},
		{"my-own-model", "[" + chat + "]", len(chat)},
		{"gpt-4o", `[{"type":"web_search"}]`, len(`{"type":"web_search"}`)},
		{"gpt-4o", `[{"type":"web_search"},` + chat + `]`, len(`{"type":"web_search"}`) + 7 + len("a:") + 12},
		{"claude-opus-5", "", 0},
		{"claude-opus-5", "  \n", 0},
		{"claude-opus-5", "null", 0},
		{"claude-opus-5", "[]", 0},
		{"claude-opus-5", "{}", 0},
		{"claude-opus-5", `{"tools":null,"toolConfig":null}`, 0},
		{"claude-opus-5", `{"tools":[],"tool_choice":{"type":"any"}}`, 0},
		{"claude-opus-5", `{"toolConfig":{}}`, 0},
	} {
		n, err := wire.ToolTokens(tt.model, []byte(tt.tools), letters)
		require.NoError(t, err, tt.tools)
		assert.Equal(t, tt.want, n, "%s: %s", tt.model, tt.tools)
	}
}

func TestToolTokens_RefuseMalformedTools(t *testing.T) {
	for tools, want := range map[string]string{
		`[`:                           "not JSON: ",
		`{"tools":[}`:                 "not JSON: ",
		`"tools"`:                     "wire: want an array of tools, got a string",
		`7`:                           "wire: want an array of tools, got a number",
		`{"tools":"a"}`:               "wire: tools: want an array of tools, got a string",
		`[{"name":"a"},7]`:            "wire: tools[1]: want a JSON object, got a number",
		`[null]`:                      "wire: tools[0]: want a JSON object, got null",
		`{"toolConfig":[]}`:           "wire: toolConfig: want a JSON object, got an array",
		`{"toolConfig":{"tools":{}}}`: "wire: toolConfig.tools: want an array of tools, got an object",
	} {
		for _, model := range []string{"gpt-4o", "claude-opus-5", ""} {
			n, err := wire.ToolTokens(model, []byte(tools), nil)
			var fault *wire.DecodeError
			require.ErrorAs(t, err, &fault, tools)
			assert.Contains(t, err.Error(), want)
			assert.Zero(t, n)
		}
	}
}

// A tokenizer with wrong counts causes no overflow and no negative result.
func TestToolTokens_SurviveAWrongTokenizer(t *testing.T) {
	tools := []byte(`[{"type":"function","function":` + weather + `}]`)
	for _, lie := range []int{math.MaxInt, math.MinInt, -1} {
		n, err := wire.ToolTokens("gpt-4o", tools, convo.TokenizerFunc(func(string) int { return lie }))
		require.NoError(t, err)
		if lie > 0 {
			assert.Equal(t, math.MaxInt32, n)
		} else {
			assert.Equal(t, 7+3+3+3-3+3+3+12, n)
		}
	}
	own, err := wire.ToolTokens("gpt-4o", tools, nil)
	require.NoError(t, err)
	heuristic, err := wire.ToolTokens("gpt-4o", tools, convo.Heuristic{})
	require.NoError(t, err)
	assert.Equal(t, heuristic, own)
	assert.InDelta(t, 68, own, 15)
}

// Parameters nested as deep as JSON allows are counted, in a time that does not
// grow with the product of depth and size.
func TestToolTokens_CountDeepSchemasInTime(t *testing.T) {
	for _, step := range []string{`{"items":`, `{"properties":{"x":`, `{"anyOf":[`} {
		const depth = 3000
		closing := strings.NewReplacer("{", "}", "[", "]", `"items":`, "", `"properties":`, "", `"x":`, "", `"anyOf":`, "").Replace(step)
		if len(closing) == 2 {
			closing = closing[1:] + closing[:1]
		}
		schema := strings.Repeat(step, depth) + "{}" + strings.Repeat(closing, depth)
		tools := `[{"type":"function","function":{"name":"a","parameters":` + schema + `}}]`
		require.True(t, json.Valid([]byte(tools)))
		read := 0
		n, err := wire.ToolTokens("gpt-4o", []byte(tools), convo.TokenizerFunc(func(s string) int { read += len(s); return len(s) }))
		require.NoError(t, err)
		assert.Greater(t, n, 5*depth, "what is too deep is counted as a text")
		assert.LessOrEqual(t, read, len(tools))
	}
}

func FuzzToolTokens(f *testing.F) {
	f.Add("gpt-4o", `[{"type":"function","function":`+weather+`}]`)
	f.Add("gpt-4", `[{"type":"function",`+weather[1:]+`]`)
	f.Add("claude-opus-5", `{"tools":[{"name":"a","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}}`)
	f.Add("gemini-3-pro", `[{"functionDeclarations":[{"name":"a"}]}]`)
	f.Add("us.anthropic.claude-sonnet-5", `{"toolConfig":{"tools":[{"toolSpec":{"name":"a"}},{"cachePoint":{}}],"toolChoice":{"any":{}}}}`)
	f.Add("gpt-4o", `[{"type":"function","function":{"name":"\ud800","parameters":{"properties":{"\u0000":{"enum":["\"",1e9,null]}}}}}]`)
	f.Fuzz(func(t *testing.T, model, tools string) {
		n, err := wire.ToolTokens(model, []byte(tools), nil)
		if err != nil {
			if _, ok := err.(*wire.DecodeError); !ok || n != 0 {
				t.Fatalf("%d, %T", n, err)
			}
			return
		}
		if n < 0 {
			t.Fatal(n)
		}
		var b bytes.Buffer
		if json.Compact(&b, []byte(tools)) != nil {
			if strings.TrimSpace(tools) != "" {
				t.Fatal("not JSON, and no error")
			}
			return
		}
		if m, err := wire.ToolTokens(model, b.Bytes(), nil); m != n || err != nil {
			t.Fatalf("%d, without white space %d, %v", n, m, err)
		}
	})
}

// The tokens of the tools are a first estimate of the tokens of a request in
// addition to its messages.
func ExampleToolTokens() {
	tools := []byte(`[{"type": "function", "function": {
		"name": "search",
		"description": "Search for flights.",
		"parameters": {"type": "object", "properties": {
			"to": {"type": "string", "description": "A city"},
			"class": {"type": "string", "enum": ["economy", "business"]}
		}}
	}}]`)
	words := convo.TokenizerFunc(func(text string) int { return len(strings.Fields(text)) }) // in real use, the tokenizer of the model
	n, err := wire.ToolTokens("gpt-4o", tools, words)
	fmt.Println(n, err)

	_, err = convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000, Tools: n}})
	fmt.Println(err)
	// Output:
	// 39 <nil>
	// <nil>
}
