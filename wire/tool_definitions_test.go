package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// One definition of a tool serves all formats, and the body is a request that lacks
// only the model.
func ExampleToolWriter() {
	search := convo.Tool{
		Name:        "search",
		Description: "Searches trains.",
		Schema:      `{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`,
	}
	h, err := convo.New(nil)
	if err != nil {
		panic(err)
	}
	if _, err = h.Append(convo.User("Which trains go to Rome?")); err != nil {
		panic(err)
	}
	for _, f := range []wire.Format{wire.Anthropic{}, wire.Gemini{}} {
		req, err := f.Encode(h.Snapshot())
		if err != nil {
			panic(err)
		}
		if req.Tools, err = f.(wire.ToolWriter).Tools(search); err != nil {
			panic(err)
		}
		fmt.Println(string(req.Body()))
	}
	// Output:
	// {"tools":[{"name":"search","description":"Searches trains.","input_schema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}],"messages":[{"role":"user","content":[{"type":"text","text":"Which trains go to Rome?"}]}]}
	// {"tools":[{"functionDeclarations":[{"name":"search","description":"Searches trains.","parametersJsonSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}]}],"contents":[{"role":"user","parts":[{"text":"Which trains go to Rome?"}]}]}
}

const citySchema = `{ "type": "object", "properties": {"city": {"type":"string"}}, "required": ["city"], "additionalProperties": false }`

var toolFormats = []struct {
	name   string
	format wire.ToolWriter
	want   string // of a tool city with citySchema and of one without a schema; S stands for that, E for an empty one, F for an empty strict one
}{
	{"chat", wire.OpenAIChat{}, `[{"type":"function","function":{"name":"city","description":"d","parameters":S}},{"type":"function","function":{"name":"now","parameters":E}}]`},
	{"strict chat", wire.OpenAIChat{StrictTools: true}, `[{"type":"function","function":{"name":"city","description":"d","parameters":S,"strict":true}},{"type":"function","function":{"name":"now","parameters":F,"strict":true}}]`},
	{"responses", wire.OpenAIResponses{}, `[{"type":"function","name":"city","description":"d","parameters":S,"strict":false},{"type":"function","name":"now","parameters":E,"strict":false}]`},
	{"strict responses", wire.OpenAIResponses{StrictTools: true}, `[{"type":"function","name":"city","description":"d","parameters":S,"strict":true},{"type":"function","name":"now","parameters":F,"strict":true}]`},
	{"anthropic", wire.Anthropic{}, `[{"name":"city","description":"d","input_schema":S},{"name":"now","input_schema":E}]`},
	{"strict anthropic", wire.Anthropic{StrictTools: true}, `[{"name":"city","description":"d","input_schema":S,"strict":true},{"name":"now","input_schema":F,"strict":true}]`},
	{"gemini", wire.Gemini{}, `[{"functionDeclarations":[{"name":"city","description":"d","parametersJsonSchema":S},{"name":"now","parametersJsonSchema":E}]}]`},
	{"converse", wire.Converse{}, `{"tools":[{"toolSpec":{"name":"city","description":"d","inputSchema":{"json":S}}},{"toolSpec":{"name":"now","inputSchema":{"json":E}}}]}`},
}

func TestTools(t *testing.T) {
	tools := []convo.Tool{{Name: "city", Description: "d", Schema: citySchema}, {Name: "now"}}
	for _, tt := range toolFormats {
		t.Run(tt.name, func(t *testing.T) {
			got := toolsOf(t, tt.format, tools...)
			want := strings.NewReplacer(":S", ":"+strings.ReplaceAll(citySchema, " ", ""), ":E", `:{"type":"object","properties":{}}`,
				":F", `:{"type":"object","properties":{},"required":[],"additionalProperties":false}`).Replace(tt.want)
			assert.Equal(t, want, string(got))
			none := toolsOf(t, tt.format)
			assert.Nil(t, none)

			f := tt.format.(wire.Format)
			h := historyOf(t)
			call := convo.ToolCall{ID: "call_0001", Name: "city", Arguments: `{"city":"Rome"}`}
			mustAppend(t, h, convo.System("s"), convo.User("q"), convo.Assistant("", call), convo.Result(call, "r"))
			req := mustEncode(t, f, h.Snapshot())
			before, alone := req.Prefix(), req
			require.True(t, req.NeedsTools)
			req.Tools = got
			assert.NotEqual(t, before, req.Prefix())
			assert.True(t, json.Valid(req.Body()))
			assert.Empty(t, f.Check(req.Body()))
			assert.Equal(t, `the tool "city" is new`, wire.PrefixDiff(alone, req))

			for _, model := range []string{"gpt-5", "claude-opus-5", "gemini-3-pro"} {
				n, err := wire.ToolTokens(model, got, nil)
				require.NoError(t, err)
				whole, err := wire.ToolTokens(model, req.Body(), nil)
				require.NoError(t, err)
				assert.Equal(t, whole, n)
				assert.Positive(t, n)
			}
		})
	}
}

func TestTools_Errors(t *testing.T) {
	object := func(s string) string { return `{"type":"object",` + s + `}` }
	for _, tt := range []struct {
		name    string
		tool    convo.Tool
		path    string
		formats string // the toolFormats that refuse it; empty: all
	}{
		{"no name", convo.Tool{}, "", ""},
		{"a name taken", convo.Tool{Name: "now"}, "", ""},
		{"no JSON", convo.Tool{Name: "a", Schema: "{"}, "", ""},
		{"a list", convo.Tool{Name: "a", Schema: "[]"}, "", ""},
		{"a string", convo.Tool{Name: "a", Schema: `{"type":"string"}`}, "type", ""},
		{"no type", convo.Tool{Name: "a", Schema: `{"properties":{}}`}, "type", ""},
		{"not required", convo.Tool{Name: "a", Schema: object(`"properties":{"x":{}},"additionalProperties":false`)}, "required", "strict chat strict responses strict anthropic"},
		{"others allowed", convo.Tool{Name: "a", Schema: object(`"properties":{"x":{}},"required":["x"]`)}, "additionalProperties", "strict chat strict responses strict anthropic"},
		{"others allowed inside", convo.Tool{Name: "a", Schema: object(`"properties":{"x":{"type":"array","items":{"type":"object"}}},"required":["x"],"additionalProperties":false`)}, "properties.x.items.additionalProperties", "strict chat strict responses strict anthropic"},
		{"not UTF-8", convo.Tool{Name: "a", Schema: object("\"description\":\"\xff\"")}, "", ""},
		{"not UTF-8 in a name", convo.Tool{Name: "a", Schema: object("\"properties\":{\"\xff\":{}}")}, "", ""},
		{"a keyword", convo.Tool{Name: "a", Schema: object(`"properties":{"x":{"anyOf":[{},{"propertyNames":{}}]}},"required":["x"],"additionalProperties":false`)}, "properties.x.anyOf[1].propertyNames", "gemini"},
		{"a keyword below another", convo.Tool{Name: "a", Schema: object(`"$defs":{"d":{"items":[true,{"contains":{}}]}},"properties":{},"required":[],"additionalProperties":false`)}, "$defs.d.items[1].contains", "gemini"},

		// https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas".
		{"anyOf at the root", convo.Tool{Name: "a", Schema: object(`"anyOf":[{"type":"string"}],"properties":{},"required":[],"additionalProperties":false`)}, "anyOf", "chat strict chat responses strict responses anthropic strict anthropic"},
		{"allOf", convo.Tool{Name: "a", Schema: object(`"properties":{"x":{"allOf":[{}]}},"required":["x"],"additionalProperties":false`)}, "properties.x.allOf", "strict chat strict responses"},
		{"not", convo.Tool{Name: "a", Schema: object(`"properties":{"x":{"items":{"not":{}}}},"required":["x"],"additionalProperties":false`)}, "properties.x.items.not", "gemini strict chat strict responses"},
		{"if", convo.Tool{Name: "a", Schema: object(`"if":{},"properties":{},"required":[],"additionalProperties":false`)}, "if", "gemini strict chat strict responses"},
		{"then", convo.Tool{Name: "a", Schema: object(`"then":{},"properties":{},"required":[],"additionalProperties":false`)}, "then", "gemini strict chat strict responses"},
		{"else", convo.Tool{Name: "a", Schema: object(`"else":{},"properties":{},"required":[],"additionalProperties":false`)}, "else", "gemini strict chat strict responses"},
		{"dependentRequired", convo.Tool{Name: "a", Schema: object(`"dependentRequired":{},"properties":{},"required":[],"additionalProperties":false`)}, "dependentRequired", "gemini strict chat strict responses"},
		{"dependentSchemas", convo.Tool{Name: "a", Schema: object(`"dependentSchemas":{},"properties":{},"required":[],"additionalProperties":false`)}, "dependentSchemas", "gemini strict chat strict responses"},

		// The API answers that oneOf is not permitted: https://community.openai.com/t/932422.
		{"oneOf", convo.Tool{Name: "a", Schema: object(`"properties":{"x":{"oneOf":[{}]}},"required":["x"],"additionalProperties":false`)}, "properties.x.oneOf", "strict chat strict responses"},
	} {
		for _, f := range toolFormats {
			t.Run(tt.name+", "+f.name, func(t *testing.T) {
				got, err := f.format.Tools(convo.Tool{Name: "now"}, tt.tool)
				refuses := tt.formats == ""
				for name := range strings.SplitSeq(strings.ReplaceAll(tt.formats, "strict ", "strict_"), " ") {
					refuses = refuses || strings.ReplaceAll(name, "strict_", "strict ") == f.name
				}
				if !refuses {
					require.NoError(t, err)
					return
				}
				wrong, ok := errors.AsType[*wire.ToolError](err)
				require.True(t, ok, "%v", err)
				assert.Nil(t, got)
				assert.Equal(t, 1, wrong.Index)
				assert.Equal(t, tt.tool.Name, wrong.Name)
				assert.Equal(t, tt.path, wrong.Path)
				assert.NotEmpty(t, wrong.Problem)
				assert.NotEmpty(t, wrong.Fix)
				assert.Contains(t, err.Error(), wrong.Problem)
			})
		}
	}
}

// What the providers refuse and take in the schema of a tool, by their own words.
//
//   - OpenAI, errors of the API: "schema must have type 'object' and not have
//     'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level" (langchain-ai/langchainjs
//     issue 9804; with const: goruck/home-generative-agent pull request 545), "In context=(),
//     object schema missing properties" (spring-projects/spring-ai issue 4776), "In
//     context=('properties', 'paths'), array schema missing items" (sigoden/aichat pull request
//     1049; in a list of types: tidewave-ai/tidewave_phoenix pull request 224); "schema must
//     have a 'type' key" for items {} in strict mode, which is taken otherwise
//     (pydantic/pydantic-ai issue 4425); strict mode wants properties, required and
//     additionalProperties of each object (google/adk-go pull request 1614).
//   - Anthropic, errors of the API: "input_schema does not support oneOf, allOf, or anyOf at
//     the top level" (anthropics/claude-code issue 27337), "Property keys should match pattern
//     '^[a-zA-Z0-9_.-]{1,64}$'", at the top only (decocms/studio pull request 6874). A schema
//     without properties was taken (recorded, status 200).
//   - Gemini: parametersJsonSchema is "in JSON Schema format" (reference of
//     FunctionDeclaration); an array without items and an object without properties were taken
//     (recorded, status 200).
//   - Bedrock hands the schema to the model: Claude answers as Anthropic does (aaif-goose/goose
//     issue 2150; names of properties: aws-solutions-library-samples/accelerated-intelligent-
//     document-processing-on-aws issue 709), a root with oneOf and a type is taken elsewhere
//     (earendil-works/pi issue 8279). Nova 1: "Only three fields are supported in top-level
//     Object: type, properties, and required" (docs.aws.amazon.com/nova/latest/userguide/
//     prompting-tool-troubleshooting.html).
func TestTools_SchemasByProvider(t *testing.T) {
	formats := map[string]wire.ToolWriter{
		"chat": wire.OpenAIChat{}, "responses": wire.OpenAIResponses{},
		"strict chat": wire.OpenAIChat{StrictTools: true}, "strict responses": wire.OpenAIResponses{StrictTools: true},
		"openrouter": wire.OpenAIChat{Host: "openrouter"}, "deepseek": wire.OpenAIChat{Dialect: wire.DeepSeek}, "ollama": wire.OpenAIChat{Dialect: wire.Ollama},
		"anthropic": wire.Anthropic{}, "gemini": wire.Gemini{}, "converse": wire.Converse{},
		"claude": wire.Converse{Model: "us.anthropic.claude-sonnet-5-20260901-v1:0"}, "nova": wire.Converse{Model: "us.amazon.nova-pro-v1:0"},
		"nova 2": wire.Converse{Model: "us.amazon.nova-2-lite-v1:0"},
	}
	const mended = "openrouter chat responses"
	all := slices.Sorted(maps.Keys(formats))
	lax := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return strings.HasPrefix(s, "strict") })
	for _, tt := range []struct {
		name    string
		schema  string
		formats []string
		mended  map[string]string // by the names of formats; the others send the schema unchanged
		refused map[string]string // the path of the fault, by the names of formats
	}{
		{"of a tool without arguments", `{"type":"object"}`, lax, map[string]string{mended: `{"type":"object","properties":{}}`}, nil},
		{"with null properties", `{"type":"object","properties":null,"required":null}`, lax, map[string]string{
			mended: `{"type":"object","properties":{}}`, "deepseek ollama anthropic gemini converse claude nova nova_2": `{"type":"object"}`}, nil},
		{"with properties that are a list", `{"type":"object","properties":[]}`, all, nil, map[string]string{strings.Join(all, ","): "properties"}},
		{"with oneOf", `{"type":"object","properties":{},"oneOf":[{"required":["a"]}]}`, lax, nil, map[string]string{"chat,responses,anthropic,claude,nova": "oneOf"}},
		{"with anyOf", `{"type":"object","properties":{},"anyOf":[{"required":["a"]}]}`, lax, nil, map[string]string{"chat,responses,anthropic,claude,nova": "anyOf"}},
		{"with allOf", `{"type":"object","properties":{},"allOf":[{"required":["a"]}]}`, lax, nil, map[string]string{"chat,responses,anthropic,claude,nova": "allOf"}},
		{"with enum", `{"type":"object","properties":{},"enum":[{}]}`, lax, nil, map[string]string{"chat,responses,nova": "enum"}},
		{"with const", `{"type":"object","properties":{},"const":{}}`, lax, nil, map[string]string{"chat,responses,nova": "const"}},
		{"with not", `{"type":"object","properties":{},"not":{"required":["a"]}}`, lax, nil, map[string]string{"chat,responses,nova,gemini": "not"}},
		{"with these inside", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"}]},"b":{"oneOf":[{"const":1}]},"c":{"allOf":[{"enum":[1]}]}}}`, lax, nil, nil},
		{"with an array without items", `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"],"items":null},"c":{"anyOf":[{"type":"array","items":{"type":"array"}}]}}}`, lax, map[string]string{
			mended: `{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":["array","null"],"items":{}},"c":{"anyOf":[{"type":"array","items":{"type":"array","items":{}}}]}}}`,
			"deepseek ollama anthropic gemini converse claude nova nova_2": `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"]},"c":{"anyOf":[{"type":"array","items":{"type":"array"}}]}}}`}, nil},
		{"with a tuple", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"array"}]}},"$defs":{"d":{"type":"array"}}}`, []string{"chat", "responses", "openrouter", "anthropic", "gemini", "converse"}, map[string]string{
			mended: `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"array","items":{}}],"items":{}}},"$defs":{"d":{"type":"array","items":{}}}}`}, nil},
		{"with an object inside without properties", `{"type":"object","properties":{"a":{"type":"object"}}}`, lax, nil, nil},
		{"with a name of a property", `{"type":"object","properties":{"filter[id]":{}}}`, lax, nil, map[string]string{"anthropic,claude": "properties.filter[id]"}},
		{"with a long name of a property", `{"type":"object","properties":{"` + strings.Repeat("a", 65) + `":{}}}`, lax, nil, map[string]string{"anthropic,claude": "properties." + strings.Repeat("a", 65)}},
		{"with that name inside", `{"type":"object","properties":{"a":{"type":"object","properties":{"filter[id]":{}}}}}`, lax, nil, nil},
		{"of zod", `{"$schema":"http://json-schema.org/draft-07/schema#","title":"a","type":"object","properties":{}}`, lax, map[string]string{"nova": `{"type":"object","properties":{}}`}, nil},
		{"of zod that allows no others", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{},"additionalProperties":false}`, lax, nil, map[string]string{"nova": "additionalProperties"}},
		{"of strict mode", `{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}},"required":["a"],"additionalProperties":false}`, all, map[string]string{
			"strict_chat strict_responses": `{"type":"object","properties":{"a":{"type":"object","additionalProperties":false,"properties":{},"required":[]}},"required":["a"],"additionalProperties":false}`}, map[string]string{"nova": "additionalProperties"}},
		{"of strict mode without properties", `{"type":"object","additionalProperties":false}`, all, map[string]string{
			"strict_chat strict_responses": `{"type":"object","additionalProperties":false,"properties":{},"required":[]}`, mended: `{"type":"object","additionalProperties":false,"properties":{}}`}, map[string]string{"nova": "additionalProperties"}},
		{"of strict mode with any items", `{"type":"object","properties":{"a":{"type":"array","items":{}}},"required":["a"],"additionalProperties":false}`, []string{"strict chat", "strict responses", "chat"}, nil,
			map[string]string{"strict chat,strict responses": "properties.a.items"}},
		{"with escapes, spaces and a key twice", `{"type":"object","properties":{"\u0061":{"enum":["\u0062",1.0]},"b":{},"b":{}}}`, lax, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range tt.formats {
				want, where := tt.schema, ""
				for names, schema := range tt.mended {
					if slices.Contains(strings.Fields(names), strings.ReplaceAll(name, " ", "_")) {
						want = schema
					}
				}
				for names, path := range tt.refused {
					if slices.Contains(strings.Split(names, ","), name) {
						where = path
					}
				}
				got, err := formats[name].Tools(convo.Tool{Name: "a", Schema: tt.schema})
				if where != "" {
					wrong, ok := errors.AsType[*wire.ToolError](err)
					require.True(t, ok, "%s: %v", name, err)
					assert.Equal(t, where, wrong.Path, name)
					assert.Nil(t, got)
					continue
				}
				require.NoError(t, err, name)
				assert.True(t, json.Valid(got))
				assert.Contains(t, string(got), ":"+want, name)
				again := toolsOf(t, formats[name], convo.Tool{Name: "a", Schema: want})
				assert.Equal(t, got, again, "%s: what is mended stays as it is", name)
			}
		})
	}
}

// All formats refuse what JSON Schema itself forbids, and report its path.
func TestTools_NoSchema(t *testing.T) {
	for _, tt := range []struct {
		inside string // of a schema
		path   string // empty: it is a schema
	}{
		{`"required":"a"`, "required"},
		{`"required":true`, "required"},
		{`"required":{"a":true}`, "required"},
		{`"required":[1]`, "required"},
		{`"required":["a",null]`, "required"},
		{`"required":["a","a"]`, "required"},
		{`"properties":{"a":null}`, "properties.a"},
		{`"properties":{"a":"string"}`, "properties.a"},
		{`"properties":{"a":[]}`, "properties.a"},
		{`"properties":{"a":1}`, "properties.a"},
		{`"properties":["a"]`, "properties"},
		{`"properties":"a"`, "properties"},
		{`"properties":{"a":{"type":"strin"}}`, "properties.a.type"},
		{`"properties":{"a":{"type":"STRING"}}`, "properties.a.type"},
		{`"properties":{"a":{"type":""}}`, "properties.a.type"},
		{`"properties":{"a":{"type":null}}`, "properties.a.type"},
		{`"properties":{"a":{"type":{"type":"string"}}}`, "properties.a.type"},
		{`"properties":{"a":{"type":[]}}`, "properties.a.type"},
		{`"properties":{"a":{"type":["string","nil"]}}`, "properties.a.type"},
		{`"properties":{"a":{"type":["string",null]}}`, "properties.a.type"},
		{`"properties":{"a":{"type":["string","string"]}}`, "properties.a.type"},
		{`"properties":{"a":{"enum":[]}}`, "properties.a.enum"},
		{`"properties":{"a":{"enum":null}}`, "properties.a.enum"},
		{`"properties":{"a":{"enum":"b"}}`, "properties.a.enum"},
		{`"properties":{"a":{"enum":{"b":1}}}`, "properties.a.enum"},
		{`"properties":{"a":{"items":"string"}}`, "properties.a.items"},
		{`"properties":{"a":{"items":[]}}`, "properties.a.items"},
		{`"properties":{"a":{"items":[{},null]}}`, "properties.a.items[1]"},
		{`"properties":{"a":{"items":{"type":"int"}}}`, "properties.a.items.type"},
		{`"properties":{"a":{"prefixItems":{}}}`, "properties.a.prefixItems"},
		{`"properties":{"a":{"prefixItems":[]}}`, "properties.a.prefixItems"},
		{`"properties":{"a":{"anyOf":{}}}`, "properties.a.anyOf"},
		{`"properties":{"a":{"anyOf":[]}}`, "properties.a.anyOf"},
		{`"properties":{"a":{"anyOf":null}}`, "properties.a.anyOf"},
		{`"properties":{"a":{"anyOf":[{"type":"string"},"null"]}}`, "properties.a.anyOf[1]"},
		{`"properties":{"a":{"anyOf":[{"type":"none"}]}}`, "properties.a.anyOf[0].type"},
		{`"properties":{"a":{"oneOf":[]}}`, "properties.a.oneOf"},
		{`"properties":{"a":{"allOf":[[]]}}`, "properties.a.allOf[0]"},
		{`"additionalProperties":null`, "additionalProperties"},
		{`"additionalProperties":"no"`, "additionalProperties"},
		{`"additionalProperties":[{}]`, "additionalProperties"},
		{`"additionalProperties":{"required":"a"}`, "additionalProperties.required"},
		{`"$defs":{"d":null}`, "$defs.d"},
		{`"$defs":[]`, "$defs"},
		{`"definitions":{"d":{"enum":[]}}`, "definitions.d.enum"},
		{`"properties":{"a":{"description":1}}`, "properties.a.description"},
		{`"properties":{"a":{"minimum":"0"}}`, "properties.a.minimum"},
		{`"properties":{"a":{"maxLength":true}}`, "properties.a.maxLength"},
		{`"properties":{"a":{"uniqueItems":"yes"}}`, "properties.a.uniqueItems"},
		{`"properties":{"a":{"$ref":{}}}`, "properties.a.$ref"},

		{`"properties":{},"required":[]`, ""},
		{`"properties":null,"required":null`, ""},
		{`"properties":{"a":true,"b":false,"c":{}}`, ""},
		{`"properties":{"type":{"type":"string"},"enum":{"enum":[null]},"required":{"type":"boolean"},"properties":{"type":"object"}}`, ""},
		{`"properties":{"a":{"type":["string","null","number","integer","boolean","array","object"]}}`, ""},
		{`"properties":{"a":{"items":[{},true]},"b":{"items":true},"c":{"items":null}}`, ""},
		{`"properties":{"a":{"const":{"type":"strin"},"default":{"enum":[]},"examples":[{"required":"a"}],"enum":[{"type":"strin"}]}}`, ""},
		{`"properties":{"a":{"exclusiveMinimum":true,"exclusiveMaximum":5,"minimum":-1.5e3,"x-enum":[],"nullable":true,"description":null}}`, ""},
		{`"$defs":{"d":{"$ref":"#/$defs/e","title":"t","format":"date","pattern":"a"}},"definitions":{}`, ""},
	} {
		for _, f := range toolFormats {
			if strings.HasPrefix(f.name, "strict") && tt.path == "" {
				continue
			}
			t.Run(f.name+", "+tt.inside, func(t *testing.T) {
				got, err := f.format.Tools(convo.Tool{Name: "a", Schema: `{"type":"object",` + tt.inside + `}`})
				if tt.path == "" {
					require.NoError(t, err)
					return
				}
				wrong, ok := errors.AsType[*wire.ToolError](err)
				require.True(t, ok, "%v", err)
				assert.Nil(t, got)
				if !strings.HasPrefix(f.name, "strict") { // strict formats may find another fault first
					assert.Equal(t, tt.path, wrong.Path)
					assert.Contains(t, wrong.Problem, "JSON Schema wants ")
					assert.NotEmpty(t, wrong.Fix)
				}
			})
		}
	}
	_, err := wire.OpenAIChat{StrictTools: true}.Tools(convo.Tool{Name: "a", Schema: `{"type":"object","properties":{"a":{"type":"strin"}},"required":["a"],"additionalProperties":false}`})
	assert.ErrorContains(t, err, `properties.a.type of its schema: JSON Schema wants a type here, or an array of types, each once`)
}

// Strict mode refuses keywords only where they are keywords: a property may have the same
// name, and an anyOf may be below the root.
func TestTools_StrictNames(t *testing.T) {
	schema := `{"type":"object","properties":{"not":{"type":"string","enum":["allOf"]},"if":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["not","if"],"additionalProperties":false}`
	for _, f := range toolFormats {
		toolsOf(t, f.format, convo.Tool{Name: "a", Schema: schema})
	}
}

// Tools reads the schemas in all keywords that hold schemas, and in no others.
func TestTools_LookIntoAllSchemas(t *testing.T) {
	f := wire.OpenAIResponses{StrictTools: true}
	for value, keywords := range map[string]string{
		`{"not":{}}`:       "items additionalItems unevaluatedItems contains unevaluatedProperties propertyNames",
		`[{},{"not":{}}]`:  "items prefixItems anyOf",
		`{"x":{"not":{}}}`: "properties patternProperties $defs definitions",
	} {
		for key := range strings.SplitSeq(keywords, " ") {
			_, err := f.Tools(convo.Tool{Name: "a", Schema: `{"type":"object","properties":{"p":{"` + key + `":` + value + `,"required":["x"],"additionalProperties":false}},"required":["p"],"additionalProperties":false}`})
			wrong, ok := errors.AsType[*wire.ToolError](err)
			require.True(t, ok, key)
			assert.True(t, strings.HasPrefix(wrong.Path, "properties.p."+key) && strings.HasSuffix(wrong.Path, ".not"), wrong.Path)
		}
	}
	toolsOf(t, f, convo.Tool{Name: "a", Schema: `{"type":"object","properties":{"p":{"const":{"not":{}},"enum":[{"not":{}}],"default":{"not":{}},"examples":[{"not":{}}]}},"required":["p"],"additionalProperties":false}`})
	_, err := wire.Gemini{}.Tools(convo.Tool{Name: "a", Schema: `{"type":"object","additionalProperties":{"not":{}}}`})
	assert.ErrorContains(t, err, "additionalProperties.not")
}

// Schemas are read to a depth of 32 levels, for any keywords, and refused if they are
// deeper.
func TestTools_DeepSchema(t *testing.T) {
	inner := `{"type":"object","properties":{},"required":[],"additionalProperties":false%s}`
	for _, step := range []string{
		`{"type":"object","properties":{"x":%s},"required":["x"],"additionalProperties":false}`,
		`{"items":%s}`, `{"items":[%s]}`, `{"prefixItems":[%s]}`, `{"anyOf":[{},%s]}`, `{"$defs":{"d":%s}}`, `{"definitions":{"d":%s}}`,
	} {
		nest := func(depth int, schema string) convo.Tool {
			for range depth - 1 {
				schema = strings.ReplaceAll(step, "%s", schema)
			}
			return convo.Tool{Name: "a", Schema: strings.ReplaceAll(`{"type":"object","properties":{"r":%s},"required":["r"],"additionalProperties":false}`, "%s", schema)}
		}
		for _, f := range toolFormats {
			fine := strings.ReplaceAll(inner, "%s", "")
			toolsOf(t, f.format, nest(32, fine))
			for _, depth := range []int{33, long.Or(200, 2000)} {
				_, err := f.format.Tools(nest(depth, fine))
				wrong, ok := errors.AsType[*wire.ToolError](err)
				require.True(t, ok, "%s: %s", f.name, step)
				assert.Contains(t, wrong.Problem, "nested too deep")
			}
			_, err := f.format.Tools(nest(32, strings.ReplaceAll(inner, "%s", `,"not":true`)))
			_, refused := errors.AsType[*wire.ToolError](err)
			assert.Equal(t, f.name == "gemini" || strings.HasPrefix(f.name, "strict") && f.name != "strict anthropic", refused, "%s: %s", f.name, step)
		}
	}
}

func TestPrefixDiff(t *testing.T) {
	tools := func(names ...string) json.RawMessage {
		var list []convo.Tool
		for _, n := range names {
			name, description, _ := strings.Cut(n, ":")
			list = append(list, convo.Tool{Name: name, Description: description})
		}
		data := toolsOf(t, wire.Anthropic{}, list...)
		return data
	}
	request := func(system string, texts ...string) wire.Request {
		var msgs []convo.Message
		if system != "" {
			msgs = append(msgs, convo.System(system))
		}
		for i, text := range texts {
			if i%2 == 0 {
				msgs = append(msgs, convo.User(text))
			} else {
				msgs = append(msgs, convo.Assistant(text))
			}
		}
		req := mustEncode(t, wire.Anthropic{Cache: true}, convo.NewSnapshot(msgs))
		return req
	}
	with := func(r wire.Request, tools json.RawMessage) wire.Request { r.Tools = tools; return r }
	base := request("s", "1", "2", "3")
	for _, tt := range []struct {
		name string
		a, b wire.Request
		want string
	}{
		{"the same", base, base, ""},
		{"grown", base, request("s", "1", "2", "3", "4", "5"), ""},
		{"nothing first", wire.Request{}, base, "block 0 of the system text is new"},
		{"a shorter one", request("s", "1", "2", "3", "4", "5"), base, "message 3 is gone"},
		{"other system text", base, request("t", "1", "2", "3"), "block 0 of the system text has changed"},
		{"no system text", base, request("", "1", "2", "3"), "block 0 of the system text is gone"},
		{"an earlier message", base, request("s", "1", "x", "3"), "block 0 of message 1 has changed"},
		{"no tools", with(base, tools("a")), base, `the tool "a" is gone`},
		{"another tool", with(base, tools("a")), with(base, tools("a", "b")), `the tool "b" is new`},
		{"a changed tool", with(base, tools("a", "b")), with(base, tools("a", "b:new")), `the tool "b" has changed`},
		{"another order", with(base, tools("a", "b")), with(base, tools("b", "a")), `the tool "a" stands in another place`},
		{"no JSON", with(base, json.RawMessage("x")), with(base, json.RawMessage("y")), "the tools have changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, wire.PrefixDiff(tt.a, tt.b))
			if len(tt.a.Messages) > 0 {
				assert.Equal(t, tt.want == "", wire.PrefixShare(tt.a, tt.b) == 1)
			}
			if strings.Contains(tt.want, "tool") || strings.Contains(tt.want, "system") {
				assert.NotEqual(t, tt.a.Prefix(), tt.b.Prefix())
			} else {
				assert.Equal(t, tt.a.Prefix(), tt.b.Prefix())
			}
		})
	}
}
