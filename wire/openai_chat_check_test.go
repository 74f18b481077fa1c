package wire_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// partsOf are the parts of the content of messages, by their roles, with all fields that
// they must have: from https://platform.openai.com/docs/api-reference/chat/create, and
// from https://docs.mistral.ai/api for the dialect Mistral.
var partsOf = []struct {
	dialect wire.Dialect
	roles   string
	part    string
}{
	{wire.OpenAI, "system developer user assistant tool", `{"type":"text","text":""}`},
	{wire.OpenAI, "user", `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`},
	{wire.OpenAI, "user", `{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}`},
	{wire.OpenAI, "user", `{"type":"file","file":{"file_data":"data:application/pdf;base64,aGk="}}`},
	{wire.OpenAI, "user", `{"type":"file","file":{"file_id":"file-1"}}`},
	{wire.OpenAI, "assistant", `{"type":"refusal","refusal":""}`},
	{wire.DeepSeek, "system user assistant tool", `{"type":"text","text":"a"}`},
	{wire.Mistral, "system user assistant tool", `{"type":"text","text":"a"}`},
	{wire.Mistral, "user tool", `{"type":"image_url","image_url":"https://example.com/a.png"}`},
	{wire.Mistral, "user", `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`},
	{wire.Mistral, "user", `{"type":"document_url","document_url":"https://example.com/a.pdf"}`},
	{wire.Mistral, "user", `{"type":"input_audio","input_audio":"aGk="}`},
	{wire.Mistral, "user", `{"type":"input_audio","input_audio":{"data":"aGk="}}`},
	{wire.Mistral, "user", `{"type":"file","file_id":"3c6d"}`},
	{wire.Mistral, "assistant", `{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}`},
	{wire.StrictAlternation, "user", `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`},
}

// partRequest is a request with a part in a message of a role.
func partRequest(role, part string) []byte {
	content := `"content":[` + part + `]`
	msgs := []string{`{"role":"user","content":"hi"}`}
	switch role {
	case "system", "developer":
		msgs = slices.Insert(msgs, 0, `{"role":"`+role+`",`+content+`}`)
	case "user":
		msgs[0] = `{"role":"user",` + content + `}`
	case "assistant":
		msgs = append(msgs, `{"role":"assistant","prefix":true,`+content+`}`)
	case "tool":
		msgs = append(msgs, `{"role":"assistant","content":"","reasoning_content":"","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"abcdefghi",`+content+`}`)
	}
	return []byte(`{"messages":[` + strings.Join(msgs, ",") + `]}`)
}

// Check accepts each documented part, and reports a field that is missing or of another
// kind, wherever the part is.
func TestOpenAIChat_CheckLooksIntoParts(t *testing.T) {
	broken := 0
	for _, tt := range partsOf {
		f := wire.OpenAIChat{Dialect: tt.dialect, Audio: true}
		for role := range strings.FieldsSeq(tt.roles) {
			require.Empty(t, f.Check(partRequest(role, tt.part)), "%s: %s", role, tt.part)
			spoiled(t, tt.part, func(part string) {
				broken++
				found := f.Check(partRequest(role, part))
				if assert.NotEmpty(t, found, "%s: %s", role, part) {
					assert.Contains(t, []string{"shape", "result-content", "content-type"}, found[0].Rule)
					assert.Contains(t, found[0].Path, "content[0]", "%s: %s", role, part)
				}
			})
		}
	}
	t.Logf("%d broken parts", broken)
}

// spoiled calls f with a JSON object in which one field is missing or has a value of
// another kind, for each field at any depth.
func spoiled(t *testing.T, object string, f func(string)) {
	var all any
	require.NoError(t, json.Unmarshal([]byte(object), &all))
	give := func() {
		data, err := json.Marshal(all)
		require.NoError(t, err)
		f(string(data))
	}
	var each func(m map[string]any)
	each = func(m map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			value := m[key]
			for _, v := range []any{7, nil, true, []any{7}} {
				m[key] = v
				give()
			}
			delete(m, key)
			give()
			m[key] = value
			switch value := value.(type) {
			case map[string]any:
				each(value)
			case []any:
				each(value[0].(map[string]any))
			}
		}
	}
	each(all.(map[string]any))
}

func TestOpenAIChat_CheckLooksIntoMessages(t *testing.T) {
	const (
		hi     = `{"role":"user","content":"hi"}`
		image  = `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`
		result = `{"role":"tool","tool_call_id":"c1","content":"r"}`
	)
	call := func(call string) string { return `{"role":"assistant","content":null,"tool_calls":[` + call + `]}` }
	says := func(content string) string { return `{"role":"assistant","content":` + content + `}` }
	custom := call(`{"id":"c1","type":"custom","custom":{"name":"f","input":""}}`)
	long := strings.Repeat("n", 64)
	for _, tt := range []struct {
		dialect wire.Dialect
		msgs    []string
		want    []string
	}{
		{wire.OpenAI, []string{hi, custom, result}, nil},
		{wire.OpenAI, []string{hi, call(`{"id":"c1","type":"custom","custom":{"name":"f"}}`), result}, []string{"arguments messages[1].tool_calls[0].custom.input"}},
		{wire.OpenAI, []string{hi, call(`{"id":"c1","type":"custom","custom":{"name":"f","input":{}}}`), result}, []string{"arguments messages[1].tool_calls[0].custom.input"}},
		{wire.OpenAI, []string{hi, call(`{"id":"c1","type":"custom","custom":{"name":"a b","input":""}}`), result}, []string{"name-pattern messages[1].tool_calls[0].custom.name"}},
		{wire.OpenAI, []string{hi, call(`{"id":"c1","type":"custom","function":{"name":"f","arguments":"{}"}}`), result}, []string{"shape messages[1].tool_calls[0].custom"}},
		{wire.OpenAI, []string{hi, call(`{"id":"c1","type":"function","custom":{"name":"f","input":""}}`), result}, []string{"shape messages[1].tool_calls[0].function"}},
		{wire.OpenAI, []string{hi, call(`{"id":"c1","type":"shell","function":{"name":"f","arguments":"{}"}}`), result}, []string{"shape messages[1].tool_calls[0].type"}},
		{wire.DeepSeek, []string{hi, call(`{"id":"c1","type":7,"function":{"name":"f","arguments":"{}"}}`), result}, []string{"reasoning-missing messages[1].reasoning_content", "shape messages[1].tool_calls[0].type"}},
		{wire.StrictAlternation, []string{hi, custom, result}, []string{"shape messages[1].tool_calls[0].function"}},
		{wire.OpenAI, []string{hi, custom, strings.Replace(result, `"c1"`, `7`, 1)}, []string{"shape messages[2].tool_call_id", "orphan-result messages[2]", "unanswered-call messages[1].tool_calls[0]"}},

		{wire.OpenAI, []string{says("[" + image + "]")}, []string{"content-type messages[0].content[0]"}},
		{wire.OpenAI, []string{`{"role":"system","content":[` + image + `]}`}, []string{"content-type messages[0].content[0]"}},
		{wire.OpenAI, []string{`{"role":"developer","content":[{"type":"refusal","refusal":"no"}]}`}, []string{"content-type messages[0].content[0].type"}},
		{wire.OpenAI, []string{`{"role":"user","content":[{"type":"refusal","refusal":"no"}]}`}, []string{"content-type messages[0].content[0].type"}},
		{wire.OpenAI, []string{says(`[{"type":"file","file":{"file_id":"f"}}]`)}, []string{"content-type messages[0].content[0].type"}},
		{wire.OpenAI, []string{says(`[{"type":"thinking","thinking":[]}]`)}, []string{"content-type messages[0].content[0].type"}},
		{wire.OpenAI, []string{`{"role":"user","content":[{"type":"video_url","video_url":{"url":"https://example.com"}}]}`}, nil}, // a part of other hosts
		{wire.OpenAI, []string{hi, custom, strings.Replace(result, `"r"`, "["+image+"]", 1)}, []string{"result-content messages[2].content[0]"}},
		{wire.Mistral, []string{hi, says("[" + image + "]"), hi}, nil},
		{wire.Ollama, []string{`{"role":"user","content":[{"type":"text","text":"hi"}]}`}, []string{"shape messages[0].content"}},
		{wire.Ollama, []string{`{"role":"user","content":"hi","images":["aGk=",7]}`}, []string{"shape messages[0].images[1]"}},
		{wire.Ollama, []string{`{"role":"user","content":"hi","images":"aGk="}`}, []string{"shape messages[0].images"}},

		{wire.OpenAI, []string{hi, `{"role":"assistant","content":null,"refusal":""}`}, nil},
		{wire.OpenAI, []string{hi, `{"role":"assistant","content":"a","refusal":""}`}, nil},
		{wire.OpenAI, []string{hi, `{"role":"assistant","content":"a","refusal":["no"]}`}, []string{"shape messages[1].refusal"}},
		{wire.OpenAI, []string{hi, `{"role":"assistant","audio":{"id":"audio_1"}}`}, nil},
		{wire.OpenAI, []string{hi, `{"role":"assistant","audio":{"data":"aGk="}}`}, []string{"shape messages[1].audio"}},
		{wire.OpenAI, []string{`{"role":"user","name":"` + long + `","content":"hi"}`}, nil},
		{wire.OpenAI, []string{`{"role":"user","name":"` + long + `n","content":"hi"}`}, []string{"author-pattern messages[0].name"}},
		{wire.OpenAI, []string{`{"role":"user","name":"","content":"hi"}`}, []string{"author-pattern messages[0].name"}},
		{wire.OpenAI, []string{`{"role":"user","name":7,"content":"hi"}`}, []string{"shape messages[0].name"}},
	} {
		var got []string
		for _, x := range (wire.OpenAIChat{Dialect: tt.dialect}).Check([]byte(`{"messages":[` + strings.Join(tt.msgs, ",") + `]}`)) {
			got = append(got, x.Rule+" "+x.Path)
		}
		assert.ElementsMatch(t, tt.want, got, "dialect %d: %v", tt.dialect, tt.msgs)
	}
}

// A block that the provider would refuse in its place is left out, as is a message that
// holds nothing else.
func TestOpenAIChat_EncodeLeavesOutBlocksThatAreRefused(t *testing.T) {
	for _, dialect := range []wire.Dialect{wire.OpenAI, wire.DeepSeek, wire.Mistral, wire.Ollama, wire.StrictAlternation} {
		f := wire.OpenAIChat{Dialect: dialect}
		in := mustDecode(t, f, []byte(`{"role":"user","content":"x"}`))
		format := map[wire.Dialect]string{wire.DeepSeek: "deepseek", wire.Mistral: "mistral", wire.Ollama: "ollama"}[dialect]
		if format == "" {
			format = "openai-chat"
		}
		sent := 0
		for _, part := range []string{`{"type":"text","text":"a"}`, `{"type":"text"}`, `{"type":"image_url"}`, `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`,
			`{"type":"refusal","refusal":"no"}`, `{"type":"refusal","refusal":7}`, `{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}`, `{"type":"file","file":{}}`,
			`{"type":"file","file":{"file_id":"f"}}`, `{"type":"thinking","thinking":"hm"}`, `{"type":"convo_fields"}`, `{"type":7}`, `[]`} {
			for _, role := range []convo.Role{convo.RoleSystem, convo.RoleUser, convo.RoleAssistant} {
				block := convo.Message{Role: role, Parts: []convo.Part{convo.Opaque{Format: format, JSON: part}}}
				r := mustEncode(t, f, convo.NewSnapshot(append([]convo.Message{block}, in.Messages...)))
				assert.Empty(t, f.Check(r.Body()), "dialect %d: %s", dialect, r.Body())
				if strings.Contains(string(r.Body()), part) {
					sent++
				}
			}
		}
		t.Logf("dialect %d: %d sent", dialect, sent)
		if dialect == wire.OpenAI {
			assert.Equal(t, 3+1+1+1, sent) // texts everywhere, an image and a file of a user, a refusal of the model
		}
	}
}

// A finding about the shape of a request can be read as a sentence.
func TestOpenAIChat_CheckSaysWhatIsWanted(t *testing.T) {
	got := wire.OpenAIChat{Audio: true}.Check([]byte(`{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"","format":"wav"}}]}]}`))
	require.Len(t, got, 1)
	assert.Equal(t, "shape at messages[0].content[0].input_audio.data: the value is not a non-empty string; send a non-empty string", got[0].String())
}
