package provider_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

func TestGemini_Rules(t *testing.T) {
	const ask, said = `{"role":"user","parts":[{"text":"q"}]}`, `{"role":"model","parts":[{"text":"a"}]}`
	s := provider.New(provider.Options{})
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Call{ID: "c1", Name: "f"}, provider.Call{ID: "c2", Name: "g"}}})
	_, got := post(t, s, "/v1beta/models/gemini-3-pro:generateContent", `{"contents":[`+ask+`]}`)
	_, use, _ := strings.Cut(got, `"content":`)
	use, _, _ = strings.Cut(use, `,"finishReason"`)
	require.Contains(t, use, "thoughtSignature")
	signature := use[strings.Index(use, `,"thoughtSignature"`):]
	signature = signature[:strings.Index(signature, "}")]
	unsigned := strings.Replace(use, signature, "", 1)
	const results = `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{}}},{"function_response":{"name":"g","response":{"r":1}}}]}`
	const one = `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{}}}]}`
	body := func(contents ...string) string { return `{"contents":[` + strings.Join(contents, ",") + `]}` }
	changed := func(text, old, new string) string {
		require.Contains(t, text, old)
		return strings.Replace(text, old, new, 1)
	}
	const count = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
	const cached = "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request."
	const missing = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:f` , position 1. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
	checkRules(t, "/v1beta/models/gemini-3-pro:generateContent", []ruleTest{
		{"accepted", body(ask, said, ask), ""},
		{"accepted: cached content", `{"cachedContent":"cachedContents/c",` + body(ask)[1:], ""},
		{"cached content and system text", `{"cachedContent":"cachedContents/c","system_instruction":{"parts":[{"text":"s"}]},` + body(ask)[1:], cached},
		{"cached content and tools", `{"cached_content":"cachedContents/c","tools":[{"googleSearch":{}}],` + body(ask)[1:], cached},
		{"cached content and a tool choice", `{"cachedContent":"cachedContents/c","toolConfig":{"functionCallingConfig":{}},` + body(ask)[1:], cached},
		{"accepted: no role", body(changed(ask, `"role":"user",`, "")), ""},
		{"accepted: a round", body(ask, use, results), ""},
		{"accepted: users in a row", body(ask, ask, said, said, ask), ""},
		{"accepted: calls in two contents", body(ask, strings.Replace(use, "},{", `}],"role":"model"},{"parts":[{`, 1), results), ""},
		{"accepted: no signature in an earlier turn", body(ask, unsigned, results, said, ask), ""},
		{"accepted: a signature of no model", body(ask, changed(use, signature, `,"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="`), results), ""},
		{"no contents", `{}`, "* GenerateContentRequest.contents: contents is not specified\n"},
		{"role", body(changed(ask, "user", "tool")), "Please use a valid role: user, model."},
		{"no parts", body(`{"role":"user","parts":[]}`), "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n"},
		{"an empty part", body(`{"role":"user","parts":[{}]}`), "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field\n"},
		{"a part with two", body(`{"role":"user","parts":[{"text":"q","fileData":{}}]}`), "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set."},
		{"a field", body(`{"role":"user","parts":[{"text":"q","x":1}]}`), "Invalid JSON payload received. Unknown name \"x\" at 'contents[0].parts[0]': Cannot find field."},
		{"arguments", body(ask, changed(use, `"args":{}`, `"args":"{}"`), results), "Invalid value at 'contents[1].parts[0].function_call.args' (type.googleapis.com/google.protobuf.Struct)"},
		{"response", body(ask, use, changed(results, `{"r":1}`, `"r"`)), "Invalid value at 'contents[2].parts[1].function_response.response' (type.googleapis.com/google.protobuf.Struct)"},
		{"name", body(ask, changed(use, `"name":"f"`, `"name":""`), results), "* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.\n"},
		{"a response missing", body(ask, use, one), count},
		{"no response", body(ask, use, ask), count},
		{"calls at the end", body(ask, use), count},
		{"calls first", body(use, results), "Please ensure that function call turn comes immediately after a user turn or after a function response turn."},
		{"a response without call", body(ask, said, one), "Please ensure that function response turn comes immediately after a function call turn."},
		{"a text before a response", body(ask, use, ask, results), "Please ensure that function response turn comes immediately after a function call turn."},
		{"no signature", body(ask, unsigned, results), missing},
		{"another's signature", body(ask, changed(use, signature, `,"thoughtSignature":"c2ln"`), results), "Corrupted thought signature."},
		{"no base64", body(ask, changed(use, signature, `,"thoughtSignature":"?"`), results), "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"?\""},
		{"too long", body(changed(ask, `"q"`, `"`+strings.Repeat("x", 5000)+`"`)), "The input token count (1255) exceeds the maximum number of tokens allowed (1000)."},
	})
	checkRules(t, "/v1beta/models/gemini-2.5-pro:generateContent", []ruleTest{
		{"accepted: no signature", body(ask, unsigned, results), ""},
	})
}

// A stream that is not asked for as one of events is an array.
func TestGemini_Array(t *testing.T) {
	s := provider.New(provider.Options{})
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Text("0123456789"), provider.Raw(`{"text":"raw","thought":true}`)}})
	_, got := post(t, s, "/v1beta/models/gemini-3-pro:streamGenerateContent", `{"contents":[{"parts":[{"text":"q"}]}]}`)
	assert.True(t, strings.HasPrefix(got, "[{") && strings.HasSuffix(got, "}]"), got)
	assert.Contains(t, got, `"01234567"`)
	assert.Contains(t, got, `"thought":true`)
	_, got = post(t, s, "/v1beta/models/gemini-3-pro:generateContent", `{"contents":[]}`)
	assert.JSONEq(t, `{"error":{"code":400,"message":"* GenerateContentRequest.contents: contents is not specified\n","status":"INVALID_ARGUMENT"}}`, got)
}
