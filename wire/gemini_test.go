package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func geminiResult(id string, isError bool, parts ...convo.Part) convo.Message {
	return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: id, IsError: isError, Parts: parts}}}
}

func geminiAnswer(model string, parts ...convo.Part) convo.Message {
	return convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "gemini", Model: model}, Parts: parts}
}

func TestGemini_EncodeWritesWhatTheAPIAccepts(t *testing.T) {
	call := convo.ToolCall{ID: "c1", Name: "f", Arguments: `{"n": 1.0, "big": 12345678901234567890}`}
	png := convo.NewMedia("image/png", []byte("x"))
	const asked = `{"role":"user","parts":[{"text":"Hi"}]}` + "\n"
	const called = `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{"n": 1.0, "big": 12345678901234567890}},"thoughtSignature":"` + geminiSkip + `"}]}` + "\n"
	for _, tt := range []struct {
		name string
		f    wire.Gemini
		msgs []convo.Message
		want string
	}{
		{"system text, media and blank text", wire.Gemini{}, []convo.Message{
			convo.System("Be brief."), convo.System("Be kind."), convo.User("Hi", convo.Text(" "), png, convo.Media{URL: "gs://a/b"}),
		}, `{"parts":[{"text":"Be brief."},{"text":"Be kind."}]}
{"role":"user","parts":[{"text":"Hi"},{"inlineData":{"mimeType":"image/png","data":"eA=="}},{"fileData":{"fileUri":"gs://a/b"}}]}`},
		{"only system text", wire.Gemini{}, []convo.Message{convo.System("Be brief.")},
			`{"parts":[{"text":"Be brief."}]}` + "\n" + `{"role":"user","parts":[{"text":"[Continue.]"}]}`},
		{"neighbours of one role, the model first and last", wire.Gemini{}, []convo.Message{
			convo.Assistant("a"), convo.Assistant("b"), convo.User("c"), convo.User("d"), convo.Assistant("e"),
		}, `{"role":"user","parts":[{"text":"[The earlier part of this conversation is not shown.]"}]}
{"role":"model","parts":[{"text":"a"},{"text":"b"}]}
{"role":"user","parts":[{"text":"c"},{"text":"d"}]}
{"role":"model","parts":[{"text":"e"}]}
{"role":"user","parts":[{"text":"[Continue.]"}]}`},
		{"results apart from what follows", wire.Gemini{}, []convo.Message{
			convo.User("Hi"), convo.Assistant("", call), convo.Result(call, "1"), convo.User("And?"),
		}, asked + called + `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"1"}}}]}
{"role":"user","parts":[{"text":"And?"}]}`},
		{"empty error, and media after it", wire.Gemini{}, []convo.Message{
			convo.User("Hi"), convo.Assistant("", call), geminiResult("c1", true, png), convo.User("And?"),
		}, asked + called + `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"error":""}}}]}
{"role":"user","parts":[{"text":"[image/png of the result of f]"},{"inlineData":{"mimeType":"image/png","data":"eA=="}},{"text":"And?"}]}`},
		{"media inside, of Gemini 3", wire.Gemini{Model: "gemini-3-flash"}, []convo.Message{
			convo.User("Hi"), convo.Assistant("", call), geminiResult("c1", false, convo.Text("a"), png, convo.Text("b"), convo.NewMedia("audio/wav", []byte("y"))),
		}, asked + called + `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"a\nb"},"parts":[{"inlineData":{"mimeType":"image/png","data":"eA=="}}]}}]}
{"role":"user","parts":[{"text":"[audio/wav of the result of f]"},{"inlineData":{"mimeType":"audio/wav","data":"eQ=="}}]}`},
		{"an open call, no signature for Gemini 2", wire.Gemini{Model: "models/gemini-2.5-pro"}, []convo.Message{
			convo.User("Hi"), convo.Assistant("", convo.ToolCall{ID: "c1", Name: "1 odd.name"}),
		}, asked + `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"_31_20odd_2ename_xd25690ef","args":{}}}]}
{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"_31_20odd_2ename_xd25690ef","response":{"error":"no result"}}}]}`},
		{"ids that come again, text after a call", wire.Gemini{}, []convo.Message{
			convo.User("Hi"), {Role: convo.RoleAssistant, Parts: []convo.Part{call, convo.Text("Now.")}}, convo.Result(call, ""),
			convo.Assistant("", convo.ToolCall{ID: "c1", Name: "mcp.g"}), geminiResult("c1", false),
		}, asked + strings.Replace(called, `[{"functionCall"`, `[{"text":"Now."},{"functionCall"`, 1) +
			`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":""}}}]}
{"role":"model","parts":[{"functionCall":{"id":"call_eaibd0fSLxu2aHtXP8EHBm1j","name":"mcp.g","args":{}},"thoughtSignature":"` + geminiSkip + `"}]}
{"role":"user","parts":[{"functionResponse":{"id":"call_eaibd0fSLxu2aHtXP8EHBm1j","name":"mcp.g","response":{"output":""}}}]}`},
		{"own thoughts and opaque parts, and what others made", wire.Gemini{Model: "m"}, []convo.Message{
			convo.User("Hi", convo.Opaque{Format: "anthropic", JSON: `{}`}, convo.Opaque{Format: "gemini", JSON: `{"functionCall":{"name":"f"}}`}),
			geminiAnswer("m", convo.Reasoning{Text: "hm", Signature: "s1"}, convo.Reasoning{Signature: "s2"}, convo.Text("a"),
				convo.Opaque{Format: "gemini", JSON: `{"executableCode":{},"thoughtSignature":"s3"}`}, convo.Reasoning{Signature: "s4"}),
			convo.User("b"),
			geminiAnswer("other", convo.Reasoning{Text: "hm"}, convo.Reasoning{Signature: "s5"}, convo.Text("c"),
				convo.Opaque{Format: "gemini", JSON: `{"executableCode":{"n":1.0},"thought_signature":"s6","a":0}`}),
			convo.User("d"),
			geminiAnswer("m", convo.Reasoning{Text: "nothing said"}),
			convo.User("e"),
		}, asked + `{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"s1"},{"text":"a","thoughtSignature":"s2"},{"executableCode":{},"thoughtSignature":"s3"}]}
{"role":"user","parts":[{"text":"b"}]}
{"role":"model","parts":[{"text":"c"},{"executableCode":{"n":1.0},"a":0}]}
{"role":"user","parts":[{"text":"d"},{"text":"e"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, lines(t, tt.f, tt.msgs...)) })
	}
	for _, s := range []*convo.Snapshot{nil, convo.NewSnapshot([]convo.Message{convo.User(" ")}), convo.NewSnapshot([]convo.Message{geminiAnswer("", convo.Reasoning{Text: "x"})})} {
		_, err := wire.Gemini{}.Encode(s)
		require.ErrorIs(t, err, wire.ErrEmpty)
	}
}

// A signature is sent back with the call that it was received with.
func TestGemini_EncodeReturnsSignaturesWithTheirCalls(t *testing.T) {
	a, b, c := convo.ToolCall{ID: "a", Name: "f"}, convo.ToolCall{ID: "b", Name: "f"}, convo.ToolCall{ID: "c", Name: "f"}
	sign := func(id, s string) convo.Part { return convo.Reasoning{ID: id, Signature: s} }
	for name, tt := range map[string]struct {
		f     wire.Gemini
		parts []convo.Part
		want  string // by call
	}{
		"parallel, the first alone": {wire.Gemini{}, []convo.Part{sign("a", "sa"), a, b, c}, "sa,,"},
		"each":                      {wire.Gemini{}, []convo.Part{sign("a", "sa"), a, sign("b", "sb"), b, sign("c", "sc"), c}, "sa,sb,sc"},
		"one in the middle":         {wire.Gemini{}, []convo.Part{convo.Text("t"), a, sign("b", "sb"), b, c}, geminiSkip + ",sb,"},
		"text between":              {wire.Gemini{}, []convo.Part{sign("a", "sa"), a, convo.Text("t"), sign("", "sb"), b, c}, "sa,sb,"},
		"its call is gone":          {wire.Gemini{}, []convo.Part{sign("x", "sx"), a, b, c}, geminiSkip + ",,"},
		"of the model":              {wire.Gemini{Model: "m"}, []convo.Part{sign("a", "sa"), a, b, c}, "sa,,"},
		"of another model":          {wire.Gemini{Model: "gemini-3-pro"}, []convo.Part{sign("a", "sa"), a, b, c}, geminiSkip + ",,"},
		"for an older model":        {wire.Gemini{Model: "gemini-2.5-pro"}, []convo.Part{sign("a", "sa"), a, b, c}, ",,"},
	} {
		t.Run(name, func(t *testing.T) {
			msgs := []convo.Message{convo.User("Hi")}
			for range 2 { // the second time with the same ids
				msgs = append(msgs, geminiAnswer("m", tt.parts...), convo.Result(a, "1"), convo.Result(b, "2"), convo.Result(c, "3"))
			}
			var got []string
			r := mustEncode(t, tt.f, convo.NewSnapshot(msgs))
			for _, m := range r.Messages {
				var content map[string]any
				require.NoError(t, json.Unmarshal(m, &content))
				for _, p := range geminiPartsOf(content) {
					if geminiField(p, "functionCall") != nil {
						s, _ := p.(map[string]any)["thoughtSignature"].(string)
						got = append(got, s)
					}
				}
			}
			assert.Equal(t, tt.want+","+tt.want, strings.Join(got, ","))
		})
	}
}

// Decode returns the messages of an encoded conversation unchanged, if the
// format has a place for their parts.
func TestGemini_DecodeReturnsWhatWasEncoded(t *testing.T) {
	a, b := convo.ToolCall{ID: "a", Name: "f", Arguments: `{"n": 1.0}`}, convo.ToolCall{ID: "b", Name: "g"}
	b.Arguments = "{}"
	msgs := []convo.Message{
		convo.System("Be brief."),
		convo.User("Hi", convo.NewMedia("image/png", []byte("x")), convo.Media{MIME: "text/plain", URL: "gs://a/b"}),
		geminiAnswer("gemini-3-pro", convo.Reasoning{Text: "hm"}, convo.Text("Let me see."), convo.Reasoning{ID: "a", Signature: "sa"}, a, b),
		{Role: convo.RoleTool, Parts: []convo.Part{
			convo.ToolResult{CallID: "a", Name: "f", IsError: true, Parts: []convo.Part{convo.Text("no")}},
			convo.ToolResult{CallID: "b", Name: "g", Parts: []convo.Part{convo.Text(`{"a":1.0}`), convo.NewMedia("image/png", []byte("y"))}},
		}},
		geminiAnswer("gemini-3-pro", convo.Opaque{Format: "gemini", JSON: `{"text":"","thoughtSignature":"s"}`}, convo.Reasoning{Signature: "s2"}, convo.Text("So.")),
		convo.User("And?"),
	}
	f := wire.Gemini{Model: "gemini-3-pro"}
	r := mustEncode(t, f, convo.NewSnapshot(msgs))
	in := mustDecode(t, f, r.Body())
	assert.Equal(t, msgs, in.Messages)
	assert.Empty(t, in.Lost)
}

func TestGemini_DecodeReadsRequestsResponsesAndErrors(t *testing.T) {
	in, err := wire.Gemini{}.Decode([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Hi","thoughtSignature":"s1"},
		{"functionCall":{"name":"f","args":{"a": 1.0}},"thoughtSignature":"s2"},{"functionCall":{"id":"x","name":"g"}},{"text":"\n","thoughtSignature":"s3"},
		{"inlineData":{"mimeType":"image/png","data":"-_8"}},{"inlineData":{"mimeType":"image/png","data":"cut…"}},{}]},"finishReason":"STOP","groundingMetadata":{}},
		{"content":{"parts":[]}}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":3},"modelVersion":"gemini-3-pro"}`))
	require.NoError(t, err)
	assert.Equal(t, []convo.Message{geminiAnswer("gemini-3-pro", convo.Reasoning{Text: "hm"}, convo.Reasoning{Signature: "s1"}, convo.Text("Hi"),
		convo.Reasoning{Signature: "s2"}, convo.ToolCall{Name: "f", Arguments: `{"a": 1.0}`}, convo.ToolCall{ID: "x", Name: "g"},
		convo.Opaque{Format: "gemini", JSON: `{"text":"\n","thoughtSignature":"s3"}`}, convo.Media{MIME: "image/png", Data: "+/8="},
		convo.Opaque{Format: "gemini", JSON: `{"inlineData":{"mimeType":"image/png","data":"cut…"}}`})}, withoutMinted(t, in.Messages))
	assert.Equal(t, convo.Usage{Input: 9, CacheRead: 4, Output: 5, Reasoning: 3}, in.Usage)
	assert.Equal(t, []wire.Loss{
		{Path: "candidates[0].content.parts[7]", What: "an empty part"},
		{Path: "candidates[0].groundingMetadata", What: "no place for this field"},
		{Path: "candidates[1]", What: "a candidate after the first one"},
	}, in.Lost)

	// Keys in snake_case, no ids, single values instead of arrays, results of
	// all shapes.
	in, err = wire.Gemini{}.Decode([]byte(`{"model":"models/m","system_instruction":{"parts":{"text":"Be brief."}},"contents":[{"parts":{"text":"Hi"}},
		{"role":"model","parts":[{"text":"One."}]},{"role":"model","parts":[{"function_call":{"name":"f"}},{"function_call":{"name":"g"}},{"function_call":{"id":"i","name":"h"}}]},
		{"role":"model","parts":[{"function_call":{"id":"i","name":"k"},"thought_signature":"` + geminiSkip + `"}]},
		{"role":"function","parts":[{"function_response":{"name":"g","response":{"result":"1"}}},{"function_response":{"name":"f","response":{"a": 1.0}}},
		{"function_response":{"id":"i","name":"h","response":{"error":{"code":7}}}},{"function_response":{"id":"i","name":"k","response":"oops","parts":[{"file_data":{"mime_type":"a/b","file_uri":"u"}}]}},{"text":"So?"}]}]}`))
	require.NoError(t, err)
	object := convo.Opaque{Format: "gemini", JSON: `{"response":{}}`}
	m := geminiAnswer("m", convo.ToolCall{Name: "f"}, convo.ToolCall{Name: "g"}, convo.ToolCall{ID: "i", Name: "h"}, convo.ToolCall{Name: "k"})
	assert.Equal(t, []convo.Message{convo.System("Be brief."), convo.User("Hi"), geminiAnswer("m", convo.Text("One.")), m, {Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{Name: "g", Parts: []convo.Part{convo.Text("1")}}, convo.ToolResult{Name: "f", Parts: []convo.Part{convo.Text(`{"a":1.0}`), object}},
		convo.ToolResult{CallID: "i", Name: "h", IsError: true, Parts: []convo.Part{convo.Text(`{"error":{"code":7}}`), object}},
		convo.ToolResult{Name: "k", Parts: []convo.Part{convo.Text("oops"), convo.Media{MIME: "a/b", URL: "u"}}},
	}}, convo.User("So?")}, withoutMinted(t, in.Messages))
	assert.Len(t, in.Lost, 2)
	h := restoredOf(t, convo.NewSnapshot(in.Messages))
	assert.Zero(t, h.Status().OpenCalls)

	in, err = wire.Gemini{}.Decode([]byte(`{"content":{"parts":[{"text":"Hi"}]},"finishReason":"MAX_TOKENS"}`)) // a candidate
	require.NoError(t, err)
	assert.Equal(t, []convo.Message{geminiAnswer("", convo.Text("Hi"))}, in.Messages)
	assert.Equal(t, convo.StopLength, in.Stop)

	// Only the model has thoughts and signatures.
	in = mustDecode(t, wire.Gemini{}, []byte(`{"contents":[{"role":"user","parts":[{"text":"a","thought":true},{"text":"b","thoughtSignature":"s"}]}]}`))
	assert.Equal(t, []convo.Message{convo.User("", convo.Text("a"), convo.Text("b"))}, in.Messages)
	assert.Equal(t, []wire.Loss{
		{Path: "contents[0].parts[0]", What: "a thought or signature outside of the model's contents"},
		{Path: "contents[0].parts[1]", What: "a thought or signature outside of the model's contents"},
	}, in.Lost)

	for body, path := range map[string]string{
		`{`:                                     "",
		`{}`:                                    "",
		`{"contents":7}`:                        "contents",
		`{"contents":[7]}`:                      "contents[0]",
		`{"contents":[{"role":"x"}]}`:           "contents[0].role",
		`{"contents":[{"parts":[{"text":7}]}]}`: "contents[0].parts[0].text",
		`{"contents":[{"parts":[{"text":"a","fileData":{}}]}]}`:                       "contents[0].parts[0]",
		`{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}`:                    "contents[0].parts[0].functionCall",
		`{"contents":[{"role":"model","parts":[{"function_call":{}}]}]}`:              "contents[0].parts[0].function_call.name",
		`{"contents":[{"role":"model","parts":[{"functionResponse":{"name":"f"}}]}]}`: "contents[0].parts[0].functionResponse",
	} {
		assert.Equal(t, path, decodeError(t, wire.Gemini{}, body).Path, body)
	}
}

// A missing field is named as in the documentation of the API.
func TestGemini_CheckNamesMissingContents(t *testing.T) {
	found := wire.Gemini{}.Check([]byte(`{}`))
	require.Len(t, found, 1)
	assert.Equal(t, "contents-empty", found[0].Rule)
	assert.Equal(t, "contents", found[0].Path)
}

// Requests to which a rule does not apply.
func TestGemini_CheckFindsEachRuleAndNoOther(t *testing.T) {
	const user, call = `{"parts":[{"text":"Hi"}]},`, `{"role":"model","parts":[{"functionCall":{"name":"f"}}]},`
	const result = `{"parts":[{"functionResponse":{"name":"f","response":{}}}]}`
	for _, tt := range []struct{ model, body, rules string }{
		{"", `[]`, "json"}, {"", `{} {}`, "json"}, {"", `{"contents":{"parts":{"text":"Hi"}},"x":1e999}`, ""},
		{"", `{"systemInstruction":7,"contents":7}`, "shape shape"},
		{"", `{"contents":[` + user + call + result + `]}`, ""},
		{"gemini-3-pro", `{"contents":[` + user + call + result + `]}`, "signature-missing"},
		{"gemini-2.5-pro", `{"contents":[` + user + call + result + `]}`, ""},
		{"", `{"model":"models/gemini-3.5-flash","contents":[` + user + call + result + `]}`, "signature-missing"},
		{"gemini-3-pro", `{"contents":[` + user + call + result + `,` + user[:len(user)-1] + `]}`, ""}, // in an earlier turn
		{"", `{"contents":[` + user + call[:len(call)-1] + `]}`, "unanswered-call"},
		{"", `{"contents":[` + user + call + call + result + `]}`, "unanswered-call"},
		{"", `{"contents":[` + user + call + `{"parts":[{"text":"x"}]}]}`, "unanswered-call"},
		{"", `{"contents":[` + user + call + strings.Replace(result, `"name":"f"`, `"name":"g"`, 1) + `]}`, ""},
		{"", `{"contents":[{"parts":[{"somethingNew":1},{"thoughtSignature":"x"}]}]}`, ""},
		{"", `{"contents":[{"role":7,"parts":[{"thought":true}]}]}`, "shape part-empty"},
	} {
		rules := rulesOf((wire.Gemini{Model: tt.model}).Check([]byte(tt.body)))
		assert.Equal(t, tt.rules, strings.Join(rules, " "), tt.body)
	}
}

func geminiSeeds(f *testing.F) {
	for _, seed := range []string{
		`{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"t","thought":true},{"functionCall":{"id":"a","name":"f","args":{"n":1.0}},"thoughtSignature":"s"},{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"mimeType":"a/b","data":"eA=="}}]}},{"text":"And?"}]}]}`,
		`{"system_instruction":{"parts":{"text":"s"}},"contents":{"parts":[{"file_data":{"file_uri":"u"}},{"new":1,"thought_signature":"s"}]}}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"","thoughtSignature":"s"},{"executableCode":{}}]}}],"usageMetadata":{"promptTokenCount":1},"modelVersion":"gemini-3"}`,
		`[{"parts":[]},{"role":"model"}]`,
	} {
		f.Add([]byte(seed))
	}
}

func FuzzGemini_Decode(f *testing.F) {
	geminiSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, g := range []wire.Gemini{{}, {Model: "gemini-3-pro"}, {Model: "gemini-2.5-pro"}} {
			checkDecoded(t, g, data)
		}
	})
}

func FuzzGemini_Check(f *testing.F) {
	geminiSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) { checkFindings(t, wire.Gemini{Model: "gemini-3-pro"}, data) })
}
