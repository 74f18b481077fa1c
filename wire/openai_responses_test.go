package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// eachResponses calls f with each recorded request of this format.
func eachResponses(t *testing.T, f func(t *testing.T, format wire.OpenAIResponses, r recording)) {
	for _, file := range []struct {
		name   string
		format wire.OpenAIResponses
	}{{"openai_responses", wire.OpenAIResponses{}}, {"deepseek", wire.OpenAIResponses{Plain: true}}} {
		t.Run(file.name, func(t *testing.T) {
			eachRecording(t, file.name, func(r recording) {
				var body struct{ Input json.RawMessage }
				require.NoError(t, json.Unmarshal(r.Request, &body))
				if body.Input != nil { // otherwise it is in another format
					f(t, file.format, r)
				}
			})
		})
	}
}

// Check finds nothing wrong with recorded requests that the provider accepted,
// and Encode writes an equivalent request from what Decode reads of them.
func TestOpenAIResponses_RecordedRequestsSurviveDecodeAndEncode(t *testing.T) {
	accepted, refused, named, lost := 0, 0, 0, map[string]int{}
	eachResponses(t, func(t *testing.T, f wire.OpenAIResponses, r recording) {
		found := f.Check(r.Request)
		if r.Status != 200 {
			refused++
			for text, rule := range map[string]string{
				"was provided without its required following item": "reasoning-item",
				"Invalid file data": "media-type",
			} {
				if strings.Contains(string(r.Error), text) {
					named++
					require.Len(t, found, 1, r.ID)
					assert.Equal(t, rule, found[0].Rule)
					assert.Contains(t, string(r.Error), found[0].Error)
					return
				}
			}
			assert.Empty(t, found, r.ID)
			t.Logf("%d %s: %.160s", r.Status, r.ID, r.Error)
			return
		}
		accepted++
		assert.Empty(t, found, r.ID)
		in, err := f.Decode(r.Request)
		require.NoError(t, err, r.ID)
		for _, l := range in.Lost {
			lost[l.Path[strings.LastIndexByte(l.Path, '.')+1:]+": "+l.What]++
		}
		_, err = convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{Roles: convo.Relaxed()})
		if late := new(convo.RoleError); !errors.As(err, &late) || late.Attempted != convo.RoleSystem {
			require.NoError(t, err, r.ID) // later system messages are refused without Repair
		}
		out, err := f.Encode(restored(t, in))
		require.NoError(t, err, r.ID)
		assert.Empty(t, f.Check(out.Body()), "%s: %s", r.ID, out.Body())
		assert.Equal(t, responsesCanon(t, r.Request), responsesCanon(t, out.Body()), r.ID)
	})
	t.Logf("%d accepted; %d refused, %d of them for what the items hold, which Check names; lost: %v", accepted, refused, named, lost)
}

// responsesCanon returns what two equivalent requests have in common. They may
// differ in the place of system messages, which move into the instructions; in
// the type of a message, and its content as a string or as an array of texts;
// in empty messages; in the ids and the status of messages, calls and results,
// except after reasoning with an id; in the place of results among other items;
// in the name of a file; in annotations; and in null fields.
func responsesCanon(t *testing.T, body []byte) []string {
	t.Helper()
	var all struct {
		Instructions string
		Input        []map[string]any
	}
	require.NoError(t, json.Unmarshal(body, &all))
	system := all.Instructions
	var out []string
	paired := false
	for _, m := range all.Input {
		kind, _ := m["type"].(string)
		role, _ := m["role"].(string)
		line := ""
		if paired {
			line = fmt.Sprint(m["id"], " ")
		}
		id, _ := m["id"].(string)
		content, _ := m["content"].([]any)
		paired = kind == "reasoning" && id != "" && len(content) == 0
		switch {
		case kind == "" || kind == "message":
			text := responsesText(m["content"])
			switch {
			case text == "":
			case role == "system" || role == "developer":
				system = strings.TrimPrefix(system+"\n\n"+text, "\n\n")
			default:
				out = append(out, fmt.Sprint(line, role, " ", m["phase"], ": ", text))
			}
		case kind == "function_call":
			out = append(out, fmt.Sprint(line, kind, " ", m["call_id"], " ", m["namespace"], " ", m["name"], " ", m["arguments"]))
		case kind == "function_call_output":
			out = append(out, fmt.Sprint(kind, " ", m["call_id"], " ", responsesText(m["output"])))
		default: // compare the whole item
			if m["encrypted_content"] == nil {
				delete(m, "encrypted_content")
			}
			data, err := json.Marshal(m)
			require.NoError(t, err)
			out = append(out, string(data))
		}
	}
	return append([]string{"system: " + system}, out...)
}

func responsesText(v any) string {
	list, ok := v.([]any)
	if !ok {
		s, _ := v.(string)
		return s
	}
	var parts []string
	for _, p := range list {
		p := p.(map[string]any)
		if text, ok := p["text"].(string); ok {
			parts = append(parts, text)
			continue
		}
		delete(p, "filename")
		data, _ := json.Marshal(p)
		parts = append(parts, string(data))
	}
	return strings.Join(parts, "\n")
}

// A responsesMutant is a request with one thing wrong.
type responsesMutant struct {
	rule  string
	spoil func(items []any, body map[string]any) ([]any, bool) // false: the request gives no chance to
}

func typeOf(item any) string { s, _ := item.(map[string]any)["type"].(string); return s }

// withItem returns a mutant that changes the list and the first item that fits.
func withItem(fits func(m map[string]any) bool, change func(list []any, i int, m map[string]any) []any) func([]any, map[string]any) ([]any, bool) {
	return func(items []any, _ map[string]any) ([]any, bool) {
		i := slices.IndexFunc(items, func(it any) bool { return fits(it.(map[string]any)) })
		if i < 0 {
			return nil, false
		}
		return change(items, i, items[i].(map[string]any)), true
	}
}

// setItem returns a mutant that changes one field of the first item that fits.
func setItem(fits func(m map[string]any) bool, key string, value any) func([]any, map[string]any) ([]any, bool) {
	return withItem(fits, func(list []any, i int, m map[string]any) []any {
		m[key] = value
		return list
	})
}

func ofType(kind string) func(m map[string]any) bool {
	return func(m map[string]any) bool { return typeOf(m) == kind }
}

func isUser(m map[string]any) bool { return role(m) == "user" }

func isEncrypted(m map[string]any) bool {
	s, _ := m["encrypted_content"].(string)
	return typeOf(m) == "reasoning" && s != ""
}

func hasID(m map[string]any) bool { s, _ := m["id"].(string); return s != "" }

var responsesMutants = []responsesMutant{
	{"input-empty", func([]any, map[string]any) ([]any, bool) { return []any{}, true }},
	{"role", setItem(isUser, "role", "human")},
	{"shape", func(items []any, _ map[string]any) ([]any, bool) {
		return append(items, map[string]any{"text": "x"}), typeOf(items[len(items)-1]) != "reasoning"
	}},
	{"content-missing", setItem(isUser, "content", nil)},
	{"content-type", setItem(isUser, "content", []any{map[string]any{"type": "output_text", "text": "x"}})},
	{"content-type", setItem(func(m map[string]any) bool { return role(m) == "assistant" && typeOf(m) != "reasoning" }, "content", []any{map[string]any{"type": "input_text", "text": "x"}})},
	{"media-type", setItem(isUser, "content", []any{map[string]any{"type": "input_image", "image_url": "data:image/tiff;base64,eA=="}})},
	{"media-type", setItem(ofType("function_call_output"), "output", []any{map[string]any{"type": "input_file", "file_data": "data:audio/mpeg;base64,eA=="}})},
	{"item-id", func(items []any, body map[string]any) ([]any, bool) {
		return setItem(func(m map[string]any) bool { return typeOf(m) == "function_call" }, "id", "call_x")(items, body)
	}},
	{"item-id", setItem(isEncrypted, "id", strings.Repeat("rs_x", 20))},
	{"duplicate-item", withItem(func(m map[string]any) bool {
		return hasID(m) && (role(m) == "assistant" || typeOf(m) == "web_search_call")
	}, func(list []any, i int, m map[string]any) []any {
		return slices.Insert(list, i+1, any(m))
	})},
	{"id-missing", func(items []any, _ map[string]any) ([]any, bool) {
		return append(items, map[string]any{"type": "function_call", "name": "f", "arguments": "{}"}), true
	}},
	{"id-length", renamedItem(strings.Repeat("x", 65))},
	{"name-pattern", setItem(ofType("function_call"), "name", "odd name")},
	{"arguments", setItem(ofType("function_call"), "arguments", map[string]any{})},
	{"orphan-result", withItem(ofType("function_call_output"), func(list []any, i int, m map[string]any) []any {
		return slices.Insert(list, i+1, any(map[string]any{"type": "function_call_output", "call_id": "nobody", "output": ""}))
	})},
	{"orphan-result", func(items []any, body map[string]any) ([]any, bool) { // the call is cut off
		i := slices.IndexFunc(items, func(it any) bool { return typeOf(it) == "function_call" })
		if i < 0 || i > 0 && typeOf(items[i-1]) == "reasoning" {
			return nil, false
		}
		return slices.Delete(items, i, i+1), true
	}},
	{"unanswered-call", withItem(ofType("function_call_output"), func(list []any, i int, _ map[string]any) []any {
		return slices.Delete(list, i, i+1)
	})},
	{"duplicate-call", withItem(ofType("function_call"), func(list []any, i int, m map[string]any) []any {
		return slices.Insert(list, i+1, any(map[string]any{"type": "function_call", "call_id": m["call_id"], "name": "f", "arguments": "{}"}))
	})},
	{"duplicate-result", withItem(ofType("function_call_output"), func(list []any, i int, m map[string]any) []any {
		return slices.Insert(list, i+1, any(map[string]any{"type": "function_call_output", "call_id": m["call_id"], "output": "x"}))
	})},
	{"between-calls", func(items []any, body map[string]any) ([]any, bool) {
		i := slices.IndexFunc(items, func(it any) bool { return typeOf(it) == "function_call" })
		if model, _ := body["model"].(string); i < 0 || !strings.HasPrefix(model, "deepseek") {
			return nil, false
		}
		return slices.Insert(items, i+1, any(map[string]any{"role": "assistant", "content": "x"})), true
	}},
	{"reasoning-alone", withItem(isEncrypted, func(list []any, i int, _ map[string]any) []any {
		return slices.Insert(list, i+1, any(map[string]any{"role": "user", "content": "x"}))
	})},
	{"reasoning-alone", withItem(isEncrypted, func(list []any, i int, _ map[string]any) []any { // at the end
		return append(list, map[string]any{"type": "reasoning", "id": "rs_new", "summary": []any{}, "encrypted_content": "x"})
	})},
	{"reasoning-item", withItem(isEncrypted, func(list []any, i int, _ map[string]any) []any {
		delete(list[i+1].(map[string]any), "id")
		return list
	})},
	{"not-stored", func(items []any, body map[string]any) ([]any, bool) {
		i := slices.IndexFunc(items, func(it any) bool { return isEncrypted(it.(map[string]any)) })
		if i < 0 {
			return nil, false
		}
		delete(items[i].(map[string]any), "encrypted_content")
		body["store"] = false
		return items, true
	}},
}

// renamedItem returns a mutant that gives another id to the first call and to
// its result.
func renamedItem(to string) func([]any, map[string]any) ([]any, bool) {
	return withItem(ofType("function_call"), func(list []any, _ int, m map[string]any) []any {
		from := m["call_id"]
		for _, it := range list {
			if it := it.(map[string]any); it["call_id"] == from {
				it["call_id"] = to
			}
		}
		return list
	})
}

// If one rule is broken in a recorded request, Check names that rule, and
// hardly ever another one.
func TestOpenAIResponses_CheckNamesTheBrokenRule(t *testing.T) {
	c := tally{}
	eachResponses(t, func(t *testing.T, f wire.OpenAIResponses, r recording) {
		for _, m := range responsesMutants {
			var body map[string]any
			require.NoError(t, json.Unmarshal(r.Request, &body))
			items, ok := m.spoil(body["input"].([]any), body)
			if r.Status != 200 || !ok || body["conversation"] != nil && (m.rule == "input-empty" || m.rule == "orphan-result") {
				continue
			}
			body["input"] = items
			c.look(t, f, m.rule, r.ID, body)
		}
	})
	var rules []string
	for _, m := range responsesMutants {
		rules = append(rules, m.rule)
	}
	c.verdict(t, rules...)
}

func own(parts ...convo.Part) convo.Message {
	return convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "openai-responses", Model: "gpt-5"}, Parts: parts}
}

func item(json string) convo.Part { return convo.Opaque{Format: "openai-responses", JSON: json} }

func TestOpenAIResponses_EncodeWritesWhatTheAPIAccepts(t *testing.T) {
	thought := convo.Reasoning{ID: "rs_1", Text: "**A**\n\na\n\n\n**B**", Encrypted: "e1", Signature: "msg_1"}
	bare := convo.Reasoning{ID: "rs_2", Encrypted: "e2"}
	plain := convo.Reasoning{ID: "7-a", Text: "hm"}
	call := convo.ToolCall{ID: "c1", Name: "odd name", Arguments: `{"n": 1.0}`}
	long := convo.ToolCall{ID: strings.Repeat("x", 65), Name: "f"}
	const (
		sent   = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**A**\n\na"},{"type":"summary_text","text":"**B**"}],"encrypted_content":"e1"}`
		noID   = `{"type":"reasoning","summary":[],"encrypted_content":"e2"}`
		c1     = `{"type":"function_call","call_id":"c1","name":"odd_20name_xef5bac77","arguments":"{\"n\": 1.0}"}`
		r1     = `{"type":"function_call_output","call_id":"c1","output":"no result"}`
		r1err  = `{"type":"function_call_output","call_id":"c1","output":"Error: no result"}`
		search = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
	)
	png := convo.NewMedia("image/png", []byte("x"))
	result := func(parts ...convo.Part) convo.Message {
		return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c1", Parts: parts}}}
	}
	for _, tt := range []struct {
		name string
		f    wire.OpenAIResponses
		msgs []convo.Message
		want string
	}{
		{"system text", wire.OpenAIResponses{}, []convo.Message{convo.System("Be brief."), convo.System("Be kind."), convo.User("Hi")},
			`"Be brief.\n\nBe kind."` + "\n" + `{"role":"user","content":"Hi"}`},
		{"developer messages", wire.OpenAIResponses{Developer: true}, []convo.Message{convo.System("Be brief."), convo.System("Be kind."), convo.User("Hi")},
			`{"role":"developer","content":"Be brief."}` + "\n" + `{"role":"developer","content":"Be kind."}` + "\n" + `{"role":"user","content":"Hi"}`},
		{"only system text", wire.OpenAIResponses{}, []convo.Message{convo.System("Be brief.")},
			`"Be brief."` + "\n" + `{"role":"user","content":"[Continue.]"}`},
		{"media", wire.OpenAIResponses{}, []convo.Message{convo.User("Hi", convo.Text(" "), png, convo.NewMedia("application/pdf", []byte("y")), convo.NewMedia("audio/wav", []byte("z")),
			convo.Media{URL: "https://x/a.png"}, convo.Media{MIME: "application/pdf", URL: "https://x/a.pdf"})},
			`{"role":"user","content":[{"type":"input_text","text":"Hi"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,eA=="},` +
				`{"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,eQ=="},{"type":"input_text","text":"[audio/wav, not shown]"},` +
				`{"type":"input_image","detail":"auto","image_url":"https://x/a.png"},{"type":"input_file","file_url":"https://x/a.pdf"}]}`},
		{"files of text", wire.OpenAIResponses{}, []convo.Message{convo.User("", convo.NewMedia("text/plain", []byte("a")), convo.NewMedia("text/markdown", []byte("b")), convo.NewMedia("text/x-c++", []byte("c")))},
			`{"role":"user","content":[{"type":"input_file","filename":"file.txt","file_data":"data:text/plain;base64,YQ=="},` +
				`{"type":"input_file","filename":"file.md","file_data":"data:text/markdown;base64,Yg=="},{"type":"input_file","filename":"file.x-c","file_data":"data:text/x-c++;base64,Yw=="}]}`},
		{"results with media", wire.OpenAIResponses{}, []convo.Message{own(call), result(convo.Text("see"), png, item(`{"type":"input_image","file_id":"file-1"}`), item(`{"type":"thing"}`))},
			c1 + "\n" + `{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"see"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,eA=="},{"type":"input_image","file_id":"file-1"}]}`},
		{"an id too long; calls before results", wire.OpenAIResponses{}, []convo.Message{own(call, long), result(convo.Text("no result"))},
			c1 + "\n" + `{"type":"function_call","call_id":"call_INgQ7dxJkjO1H8HByO6r7HY3","name":"f","arguments":"{}"}` + "\n" + r1 + "\n" + `{"type":"function_call_output","call_id":"call_INgQ7dxJkjO1H8HByO6r7HY3","output":"Error: no result"}`},
		{"reasoning with the item it led to", wire.OpenAIResponses{Model: "gpt-5"}, []convo.Message{convo.User("Hi"), own(thought, convo.Text("Hm."), bare, call)},
			`{"role":"user","content":"Hi"}` + "\n" + sent + "\n" + `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hm.","annotations":[]}],"status":"completed"}` + "\n" + noID + "\n" + c1 + "\n" + r1err},
		{"reasoning of a model that is not asked", wire.OpenAIResponses{Model: "gpt-6"}, []convo.Message{own(thought, convo.Text("Hm."), bare, call)},
			`{"role":"assistant","content":"Hm."}` + "\n" + c1 + "\n" + r1err},
		{"reasoning that leads to nothing", wire.OpenAIResponses{}, []convo.Message{own(convo.Text("Hm."), bare), own(bare, thought, convo.Text("\n")), own(convo.Text("So."))},
			`{"role":"assistant","content":"Hm."}` + "\n" + `{"role":"assistant","content":"So."}`},
		{"reasoning that led to reasoning", wire.OpenAIResponses{}, []convo.Message{own(thought, bare, call)},
			noID + "\n" + c1 + "\n" + r1err},
		{"reasoning twice", wire.OpenAIResponses{}, []convo.Message{own(thought, convo.Text("a")), own(thought, convo.Text("b"))},
			sent + "\n" + `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}],"status":"completed"}` + "\n" + strings.Replace(sent, `"id":"rs_1",`, "", 1) + "\n" + `{"role":"assistant","content":"b"}`},
		{"text behind a call", wire.OpenAIResponses{}, []convo.Message{own(bare, call, convo.Text("a"), convo.Text("b"))},
			`{"role":"assistant","content":"a\nb"}` + "\n" + noID + "\n" + c1 + "\n" + r1err},
		{"plain reasoning", wire.OpenAIResponses{Plain: true}, []convo.Message{own(plain, call)},
			`{"type":"reasoning","id":"7-a","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}` + "\n" + c1 + "\n" + r1err},
		{"plain reasoning, not sent elsewhere", wire.OpenAIResponses{}, []convo.Message{own(plain, call)}, c1 + "\n" + r1err},
		{"other items", wire.OpenAIResponses{}, []convo.Message{own(convo.Reasoning{ID: "rs_1", Encrypted: "e1"}, item(search), convo.Text("Found.")), {Role: convo.RoleUser, Parts: []convo.Part{item(`{"type":"additional_tools","role":"developer","tools":[]}`)}}},
			`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e1"}` + "\n" + search + "\n" + `{"role":"assistant","content":"Found."}` + "\n" + `{"type":"additional_tools","role":"developer","tools":[]}`},
		{"items whose reasoning is gone, outputs without calls, and the other way round", wire.OpenAIResponses{Model: "gpt-6"}, []convo.Message{
			own(convo.Reasoning{ID: "rs_1", Encrypted: "e1"}, item(search), convo.Text("Found."), item(`{"type":"custom_tool_call","call_id":"k1","name":"f","input":""}`)),
			{Role: convo.RoleUser, Parts: []convo.Part{item(`{"type":"custom_tool_call_output","call_id":"k2","output":""}`), item(`{"type":"function_call_output","call_id":"k3","output":""}`), item(`[1]`), item(`{"type":"reasoning","summary":[],"encrypted_content":"e"}`)}}},
			`{"role":"assistant","content":"Found."}`},
		{"fields that no part has", wire.OpenAIResponses{}, []convo.Message{own(item(`{"type":"convo_fields","phase":"commentary"}`), convo.Text("I look."), item(`{"type":"convo_fields","namespace":"ns"}`), call)},
			`{"role":"assistant","phase":"commentary","content":"I look."}` + "\n" + strings.Replace(c1, `"arguments"`, `"namespace":"ns","arguments"`, 1) + "\n" + r1err},
		{"a refusal", wire.OpenAIResponses{}, []convo.Message{own(item(`{"type":"refusal","refusal":"No."}`))},
			`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.f.Encode(convo.NewSnapshot(tt.msgs))
			require.NoError(t, err)
			var lines []string
			if r.System != nil {
				lines = append(lines, string(r.System))
			}
			for _, m := range r.Messages {
				lines = append(lines, string(m))
			}
			assert.Equal(t, tt.want, strings.Join(lines, "\n"))
			assert.Empty(t, tt.f.Check(r.Body()))
			assert.Equal(t, strings.Contains(tt.want, `"function_call"`), r.NeedsTools)
		})
	}
	_, err := wire.OpenAIResponses{}.Encode(nil)
	require.ErrorIs(t, err, wire.ErrEmpty)
	_, err = wire.OpenAIResponses{}.Encode(convo.NewSnapshot([]convo.Message{own(convo.Reasoning{Text: "hm"})}))
	require.ErrorIs(t, err, wire.ErrEmpty)
}

func TestOpenAIResponses_DecodeReadsAResponse(t *testing.T) {
	const response = `{"id":"resp_1","object":"response","model":"gpt-5","instructions":["x"],"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":64},"output_tokens":6},"output":[
		{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"e1","status":null},
		{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[{"type":"url_citation"}]}]},
		{"type":"web_search_call","id":"ws_1","action": {"n": 1.0}},
		{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","namespace":"ns","arguments":"{\"n\":1.0}","caller":{"x":1}}]}`
	want := own(
		convo.Reasoning{ID: "rs_1", Text: "a\n\n\nb", Encrypted: "e1", Signature: "msg_1"},
		item(`{"type":"convo_fields","phase":"commentary"}`), convo.Text("I look."), item(`{"annotations":[{"type":"url_citation"}]}`),
		item(`{"type":"web_search_call","id":"ws_1","action":{"n":1.0}}`),
		item(`{"type":"convo_fields","namespace":"ns"}`), convo.ToolCall{ID: "c1", Name: "f", Arguments: `{"n":1.0}`})
	for _, body := range []string{response, `{"type":"response.completed","response":` + response + `}`} {
		in, err := wire.OpenAIResponses{}.Decode([]byte(body))
		require.NoError(t, err)
		assert.Equal(t, []convo.Message{want}, in.Messages)
		assert.Equal(t, convo.Usage{Input: 120, CacheRead: 64, Output: 6}, in.Usage)
		require.Len(t, in.Lost, 1)
		assert.Contains(t, in.Lost[0].Path, "output[3].caller")
	}
	in, err := wire.OpenAIResponses{}.Decode([]byte(response))
	require.NoError(t, err)
	r, err := wire.OpenAIResponses{Model: "gpt-5"}.Encode(convo.NewSnapshot(in.Messages))
	require.NoError(t, err)
	assert.Equal(t, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"e1"}`, string(r.Messages[0]))
	assert.Equal(t, `{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}],"status":"completed"}`, string(r.Messages[1]))
	assert.Equal(t, `{"type":"function_call","call_id":"c1","name":"f","namespace":"ns","arguments":"{\"n\":1.0}"}`, string(r.Messages[3]))
}

func TestOpenAIResponses_DecodeReadsARequest(t *testing.T) {
	in, err := wire.OpenAIResponses{}.Decode([]byte(`{"previous_response_id":"resp_0","input":[
		{"role":"developer","content":"Be brief."},
		{"role":"user","content":[{"type":"input_text","text":"Hi"},{"type":"input_image","image_url":"data:image/png;base64,eA==","detail":"high"},{"type":"input_file","file_id":"file-1"},{"type":"odd"}]},
		{"type":"function_call_output","call_id":"c0","output":"of before"},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"oops"},
		{"type":"custom_tool_call","call_id":"k1","name":"g","input":"x"},
		{"type":"custom_tool_call_output","call_id":"k1","output":"y"},
		{"type":"function_call","call_id":"c2","name":"g","arguments":""},
		{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"two"},{"type":"input_image","file_id":"file-1"}]},
		{"role":"user","content":"And?"},
		{"type":"function_call_output","call_id":"c1","output":"one"},
		{"type":"item_reference","id":"msg_7"},
		{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a\n\n\nb"}],"encrypted_content":"e"},
		{"type":"message","id":"msg_8","role":"assistant","content":[{"type":"output_text","text":"1"}]},
		{"role":"assistant","content":"2"}]}`))
	require.NoError(t, err)
	origin := convo.Origin{Format: "openai-responses"}
	want := []convo.Message{
		convo.System("Be brief."),
		{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("Hi"), convo.NewMedia("image/png", []byte("x")), item(`{"type":"input_file","file_id":"file-1"}`), item(`{"type":"message","role":"user","content":[{"type":"odd"}]}`)}},
		{Role: convo.RoleAssistant, Origin: origin, Parts: []convo.Part{convo.ToolCall{ID: "c1", Name: "f", Arguments: "oops"},
			item(`{"type":"convo_fields","call":"custom"}`), convo.ToolCall{ID: "k1", Name: "g", Arguments: "x"}}},
		{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c1", Name: "f", Parts: []convo.Part{convo.Text("one")}}}},
		{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "k1", Name: "g", Parts: []convo.Part{convo.Text("y")}}}},
		{Role: convo.RoleAssistant, Origin: origin, Parts: []convo.Part{convo.ToolCall{ID: "c2", Name: "g"}}},
		{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c2", Name: "g", Parts: []convo.Part{convo.Text("two"), item(`{"type":"input_image","file_id":"file-1"}`)}}}},
		convo.User("And?"),
		{Role: convo.RoleAssistant, Origin: origin, Parts: []convo.Part{item(`{"type":"item_reference","id":"msg_7"}`),
			item(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a\n\n\nb"}],"encrypted_content":"e"}`), item(`{"type":"convo_fields","id":"msg_8"}`), convo.Text("1")}},
		{Role: convo.RoleAssistant, Origin: origin, Parts: []convo.Part{convo.Text("2")}},
	}
	assert.Equal(t, want, in.Messages)
	var lost []string
	for _, l := range in.Lost {
		lost = append(lost, l.Path)
	}
	assert.Equal(t, []string{"previous_response_id", "input[1].content[1].detail", "input[2]"}, lost)
	_, err = convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	r, err := wire.OpenAIResponses{}.Encode(convo.NewSnapshot(in.Messages))
	require.NoError(t, err)
	assert.Empty(t, wire.OpenAIResponses{}.Check([]byte(strings.Replace(string(r.Body()), `{"type":"odd"}`, "", 1))))
}

func TestOpenAIResponses_DecodeReadsItemsAndErrors(t *testing.T) {
	for body, want := range map[string]convo.Message{
		`{"input":"Hi"}`:                                       convo.User("Hi"),
		`[{"role":"user","content":"Hi"}]`:                     convo.User("Hi"),
		`{"type":"message","role":"user","content":"Hi"}`:      convo.User("Hi"),
		`{"role":"user","content":"Hi"}`:                       convo.User("Hi"),
		`{"instructions":"Hi","input":[]}`:                     convo.System("Hi"),
		`{"type":"additional_tools","role":"developer","n":1}`: {Role: convo.RoleUser, Parts: []convo.Part{item(`{"type":"additional_tools","role":"developer","n":1}`)}},
		`{"type":"reasoning","id":"7","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null}`: {Role: convo.RoleAssistant, Origin: convo.Origin{Format: "openai-responses"}, Parts: []convo.Part{convo.Reasoning{ID: "7", Text: "hm"}}},
	} {
		in, err := wire.OpenAIResponses{}.Decode([]byte(body))
		require.NoError(t, err, body)
		assert.Equal(t, []convo.Message{want}, in.Messages, body)
		assert.Empty(t, in.Lost, body)
	}
	for body, path := range map[string]string{
		`{`:                           "",
		`{}`:                          "",
		`7`:                           "",
		`{"input":7}`:                 "input",
		`{"input":[7]}`:               "input[0]",
		`{"input":[{"role":"tool"}]}`: "input[0].role",
		`{"input":[{"type":7}]}`:      "input[0].type",
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"},7]}]}`:                                             "input[0].content[1]",
		`{"output":[{"type":"function_call","call_id":"c"}]}`:                                                                    "output[0].name",
		`{"type":"response.completed","response":{"output":[{"type":"reasoning","summary":7}]}}`:                                 "response.output[0].summary",
		`{"input":[{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call_output","call_id":"c","output":7}]}`: "input[1].output",
	} {
		in, err := wire.OpenAIResponses{}.Decode([]byte(body))
		var wrong *wire.DecodeError
		require.ErrorAs(t, err, &wrong, body)
		assert.Equal(t, path, wrong.Path, body)
		assert.Empty(t, in, body)
	}
}

// A request that continues a stored response may hold results without their
// calls.
func TestOpenAIResponses_CheckAllowsResultsOfStoredCalls(t *testing.T) {
	const input = `"input":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`
	for _, body := range []string{`{"previous_response_id":"r",` + input, `{"conversation":"c",` + input, `{"conversation":{"id":"c"},"input":[]}`, `{"input":"Hi"}`,
		`{"input":[{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"c1","output":"x"}]}`,
		`{"input":[{"type":"local_shell_call","call_id":"c1","id":"lsh_1"},{"type":"function_call_output","call_id":"c1","output":"x"}]}`,
		`{"store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},{"role":"assistant","content":"x"}]}`} {
		assert.Empty(t, wire.OpenAIResponses{}.Check([]byte(body)), body)
	}
	found := wire.OpenAIResponses{}.Check([]byte("{" + input))
	require.Len(t, found, 1)
	assert.Equal(t, "No tool call found for function call output with call_id c1.", found[0].Error)
	for body, rule := range map[string]string{
		`[]`: "json", `{`: "json", `{}`: "input-empty", `{"input":7}`: "shape", `{"input":[7]}`: "shape",
		`{"store":false,"input":[{"type":"item_reference","id":"msg_1"}]}`:                                                                           "not-stored",
		`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":""}]}`:                                                                "unanswered-call",
		`{"input":[{"type":"custom_tool_call_output","call_id":"c","output":""}]}`:                                                                   "orphan-result",
		`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f"},{"type":"custom_tool_call_output","call_id":"c","output":""}]}`:              "arguments",
		`{"input":[{"type":"custom_tool_call","call_id":"c","name":"a b","input":""},{"type":"custom_tool_call_output","call_id":"c","output":""}]}`: "name-pattern",
		// https://github.com/can1357/oh-my-pi/issues/977
		`{"input":[{"type":"custom_tool_call","id":"fc_1","call_id":"c","name":"f","input":""},{"type":"custom_tool_call_output","call_id":"c","output":""}]}`: "item-id",
		`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":""},{"type":"custom_tool_call_output","call_id":"c","output":7}]}`:              "shape",
		`{"input":[{"type":"reasoning","id":"x","summary":[],"encrypted_content":"e"}]}`:                                                                       "item-id",
		`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`:                                                                                       "shape",
		`{"input":[{"role":"user","content":[{"type":"input_file"}]}]}`:                                                                                        "shape",
	} {
		found := wire.OpenAIResponses{}.Check([]byte(body))
		require.NotEmpty(t, found, body)
		assert.Equal(t, rule, found[0].Rule, body)
	}
}

// A call of a custom tool and its output stay together, though they are in two messages,
// and either is left out without the other.
func TestOpenAIResponses_PairsItemsOfTwoMessages(t *testing.T) {
	item := func(role convo.Role, raw string) convo.Message {
		return convo.Message{Role: role, Parts: []convo.Part{convo.Text("so"), convo.Opaque{Format: "openai-responses", JSON: raw}}}
	}
	call := item(convo.RoleAssistant, `{"type":"custom_tool_call","call_id":"ct_1","name":"f","input":"x"}`)
	output := item(convo.RoleUser, `{"type":"custom_tool_call_output","call_id":"ct_1","output":"y"}`)
	for _, tt := range []struct {
		msgs  []convo.Message
		items int
	}{
		{[]convo.Message{convo.User("q"), call, output}, 5},
		{[]convo.Message{convo.User("q"), call, convo.User("r")}, 3},
		{[]convo.Message{convo.User("q"), output, call}, 3},
	} {
		r, err := wire.OpenAIResponses{}.Encode(convo.NewSnapshot(tt.msgs))
		require.NoError(t, err)
		assert.Len(t, r.Messages, tt.items, "%s", r.Body())
	}
}

// All items of an answer come from the model and its provider. Where one begins with an
// output, as those of programs do, no user has said it.
// A block that a result may hold is sent, and not reported as lost.
func TestResponses_BlockInAResult(t *testing.T) {
	call := convo.ToolCall{ID: "a", Name: "f"}
	r, err := wire.OpenAIResponses{}.Encode(convo.NewSnapshot([]convo.Message{convo.User("q"), convo.Assistant("", call),
		results(convo.ToolResult{CallID: "a", Parts: []convo.Part{convo.Text("see"), item(`{"type":"input_image","file_id":"file-1"}`), item(`{"type":"thing"}`)}})}))
	require.NoError(t, err)
	assert.Contains(t, string(r.Messages[2]), `"file-1"`)
	require.Len(t, r.Lost, 1)
	assert.NotContains(t, r.Lost[0].String(), "file-1")
}

// A result answers one call, before it in the input.
func TestResponses_ResultsInOddPlaces(t *testing.T) {
	const call, output = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"a","output":"r"}`
	said := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	for _, tt := range []struct {
		name  string
		items []string
		want  string // the roles
		lost  []string
	}{
		{"before its call", []string{said("q"), output, call, said("p")}, "user assistant user", []string{"input[1]"}},
		{"before and after its call", []string{said("q"), output, call, output, said("p")}, "user assistant tool user", []string{"input[1]"}},
		{"after another message", []string{said("q"), call, said("p"), output}, "user assistant tool user", nil},
		{"after two calls", []string{said("q"), call, said("p"), call, output}, "user assistant tool user assistant", nil},
		{"two after two calls", []string{said("q"), call, said("p"), call, output, output}, "user assistant tool user assistant tool", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := wire.OpenAIResponses{}.Decode([]byte(`{"input":[` + strings.Join(tt.items, ",") + `]}`))
			require.NoError(t, err)
			var roles, lost []string
			for _, m := range in.Messages {
				roles = append(roles, string(m.Role))
			}
			assert.Equal(t, tt.want, strings.Join(roles, " "))
			for _, l := range in.Lost {
				lost = append(lost, l.Path)
			}
			assert.Equal(t, tt.lost, lost)
		})
	}
}

func TestResponses_AnswerThatBeginsWithAnOutput(t *testing.T) {
	const items = `[{"type":"program_output","id":"po_1","call_id":"c1","result":"3"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"three","annotations":[]}]}]`
	in, err := wire.OpenAIResponses{}.Decode([]byte(`{"id":"r","object":"response","status":"completed","model":"gpt-5.6","output":` + items + `}`))
	require.NoError(t, err)
	require.Len(t, in.Messages, 1)
	assert.Equal(t, convo.RoleAssistant, in.Messages[0].Role)
	assert.Equal(t, "three", in.Messages[0].Text())

	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("1 + 2?"))
	require.NoError(t, err)
	_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { return in.Reply(), nil })
	require.NoError(t, err, "a paid answer is not lost")
	req, err := wire.OpenAIResponses{}.Encode(h.Snapshot())
	require.NoError(t, err)
	assert.Empty(t, req.Lost)
	require.Len(t, req.Messages, 3)
	assert.Contains(t, string(req.Messages[1]), `"program_output"`, "it goes back where it was")

	in, err = wire.OpenAIResponses{}.Decode([]byte(`{"input":` + items + `}`))
	require.NoError(t, err)
	assert.Equal(t, convo.RoleUser, in.Messages[0].Role, "in a request, the caller has sent it")
}
