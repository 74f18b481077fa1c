package wire_test

import (
	"context"
	"encoding/json"
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
	for _, name := range []string{"openai_responses", "deepseek"} {
		t.Run(name, func(t *testing.T) {
			eachRecording(t, name, func(r recording) {
				if readJSON(t, r.Request)["input"] != nil { // otherwise it is in another format
					f(t, wire.OpenAIResponses{Plain: name == "deepseek"}, r)
				}
			})
		})
	}
}

func TestOpenAIResponses_RecordedRequestsSurviveDecodeAndEncode(t *testing.T) {
	var c replay
	lost := map[string]int{}
	eachResponses(t, func(t *testing.T, f wire.OpenAIResponses, r recording) {
		if c.refuses(t, f, r, map[string]string{
			"was provided without its required following item": "reasoning-item",
			"Invalid file data": "media-type",
		}) {
			return
		}
		for _, l := range survives(t, f, r, func(body []byte) []string { return responsesCanon(t, body) }).Lost {
			lost[l.Path[strings.LastIndexByte(l.Path, '.')+1:]+": "+l.What]++
		}
	})
	c.report(t)
	t.Log("lost:", lost)
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

func typeOf(item any) string { s, _ := item.(map[string]any)["type"].(string); return s }

func ofType(kind string) func(m map[string]any) bool {
	return func(m map[string]any) bool { return typeOf(m) == kind }
}

func isEncrypted(m map[string]any) bool {
	s, _ := m["encrypted_content"].(string)
	return typeOf(m) == "reasoning" && s != ""
}

const (
	responsesInput = list("input")
	aCall          = "function_call"
	aResult        = "function_call_output"
)

var responsesMutants = []mutant{
	{"input-empty", responsesInput.empty()},
	{"role", responsesInput.set(isRole("user"), "role", "human")},
	{"shape", func(body map[string]any) bool {
		items := body["input"].([]any)
		return typeOf(items[len(items)-1]) != "reasoning" && responsesInput.append(map[string]any{"text": "x"})(body)
	}},
	{"content-missing", responsesInput.set(isRole("user"), "content", nil)},
	{"content-type", responsesInput.set(isRole("user"), "content", []any{map[string]any{"type": "output_text", "text": "x"}})},
	{"content-type", responsesInput.set(func(m map[string]any) bool { return m["role"] == "assistant" && typeOf(m) != "reasoning" }, "content", []any{map[string]any{"type": "input_text", "text": "x"}})},
	{"media-type", responsesInput.set(isRole("user"), "content", []any{map[string]any{"type": "input_image", "image_url": "data:image/tiff;base64,eA=="}})},
	{"media-type", responsesInput.set(ofType(aResult), "output", []any{map[string]any{"type": "input_file", "file_data": "data:audio/mpeg;base64,eA=="}})},
	{"item-id", responsesInput.set(ofType(aCall), "id", "call_x")},
	{"item-id", responsesInput.set(isEncrypted, "id", strings.Repeat("rs_x", 20))},
	{"duplicate-item", responsesInput.insert(func(m map[string]any) bool {
		id, _ := m["id"].(string)
		return id != "" && (m["role"] == "assistant" || typeOf(m) == "web_search_call")
	}, nil)},
	{"id-missing", responsesInput.append(map[string]any{"type": aCall, "name": "f", "arguments": "{}"})},
	{"id-length", responsesInput.item(ofType(aCall), func(items []any, _ int, m map[string]any) []any { // also of its result
		from := m["call_id"]
		for _, it := range items {
			if it := it.(map[string]any); it["call_id"] == from {
				it["call_id"] = strings.Repeat("x", 65)
			}
		}
		return items
	})},
	{"name-pattern", responsesInput.set(ofType(aCall), "name", "odd name")},
	{"arguments", responsesInput.set(ofType(aCall), "arguments", map[string]any{})},
	{"orphan-result", responsesInput.insert(ofType(aResult), map[string]any{"type": aResult, "call_id": "nobody", "output": ""})},
	{"orphan-result", responsesInput.item(ofType(aCall), func(items []any, i int, _ map[string]any) []any { // the call is cut off
		if i > 0 && typeOf(items[i-1]) == "reasoning" {
			return nil
		}
		return slices.Delete(items, i, i+1)
	})},
	{"unanswered-call", responsesInput.remove(ofType(aResult))},
	{"duplicate-call", responsesInput.item(ofType(aCall), func(items []any, i int, m map[string]any) []any {
		return slices.Insert(items, i+1, any(map[string]any{"type": aCall, "call_id": m["call_id"], "name": "f", "arguments": "{}"}))
	})},
	{"duplicate-result", responsesInput.item(ofType(aResult), func(items []any, i int, m map[string]any) []any {
		return slices.Insert(items, i+1, any(map[string]any{"type": aResult, "call_id": m["call_id"], "output": "x"}))
	})},
	{"between-calls", func(body map[string]any) bool {
		model, _ := body["model"].(string)
		return strings.HasPrefix(model, "deepseek") && responsesInput.insert(ofType(aCall), map[string]any{"role": "assistant", "content": "x"})(body)
	}},
	{"reasoning-alone", responsesInput.insert(isEncrypted, map[string]any{"role": "user", "content": "x"})},
	{"reasoning-alone", responsesInput.item(isEncrypted, func(items []any, _ int, _ map[string]any) []any { // at the end
		return append(items, map[string]any{"type": "reasoning", "id": "rs_new", "summary": []any{}, "encrypted_content": "x"})
	})},
	{"reasoning-item", responsesInput.item(isEncrypted, func(items []any, i int, _ map[string]any) []any {
		delete(items[i+1].(map[string]any), "id")
		return items
	})},
	{"not-stored", func(body map[string]any) bool {
		return responsesInput.set(isEncrypted, "encrypted_content", nil)(body) && set(body, "store", false)
	}},
}

func TestOpenAIResponses_CheckNamesTheBrokenRule(t *testing.T) {
	checkMutants(t, responsesMutants, eachResponses, func(f wire.OpenAIResponses, _ recording, body map[string]any, rule string) (wire.OpenAIResponses, bool) {
		return f, body["conversation"] == nil || rule != "input-empty" && rule != "orphan-result"
	})
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
	id := func(id string) string {
		if id == "" {
			return ""
		}
		return `"id":"` + id + `",`
	}
	sealed := func(of, encrypted string) string {
		return `{"type":"reasoning",` + id(of) + `"summary":[],"encrypted_content":"` + encrypted + `"}`
	}
	open := func(of string) string {
		return `{"type":"reasoning",` + id(of) + `"summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`
	}
	fieldsID := func(id string) string { return `{"type":"convo_fields","id":"` + id + `"}` }
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
		{"an item of reasoning without an id", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("", "e")), call)}, sealed("", "e") + "\n" + c1 + "\n" + r1err},
		{"the same of another model", wire.OpenAIResponses{Model: "gpt-6"}, []convo.Message{own(item(sealed("", "e")), call)}, c1 + "\n" + r1err},
		{"two of them", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("", "e")), item(sealed("", "f")), call)}, sealed("", "f") + "\n" + c1 + "\n" + r1err},
		{"one with an id", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("rs_9", "e")), item(fieldsID("fc_7")), call)},
			sealed("rs_9", "e") + "\n" + strings.Replace(c1, `"call_id"`, `"id":"fc_7","call_id"`, 1) + "\n" + r1err},
		{"one with an id, before a call without one", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("rs_9", "e")), call)}, c1 + "\n" + r1err},
		{"one with an id, before a call with that of a message", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("rs_9", "e")), item(fieldsID("msg_7")), call)}, c1 + "\n" + r1err},
		{"one with the id of its call", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("fc_7", "e")), item(fieldsID("fc_7")), call)}, c1 + "\n" + r1err},
		{"two that lead to one id", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("rs_8", "e")), item(fieldsID("msg_7")), convo.Text("a")), own(item(sealed("rs_9", "e")), item(fieldsID("msg_7")), convo.Text("b"))},
			sealed("rs_8", "e") + "\n" + `{"type":"message","id":"msg_7","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}],"status":"completed"}` + "\n" + `{"role":"assistant","content":"b"}`},
		{"one twice", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("rs_9", "e")), item(fieldsID("msg_7")), convo.Text("a")), own(item(sealed("rs_9", "e")), item(fieldsID("msg_8")), convo.Text("b"))},
			sealed("rs_9", "e") + "\n" + `{"type":"message","id":"msg_7","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}],"status":"completed"}` + "\n" + `{"role":"assistant","content":"b"}`},
		{"one with an id, before another item", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("rs_9", "e")), item(search), convo.Text("a"))}, sealed("rs_9", "e") + "\n" + search + "\n" + `{"role":"assistant","content":"a"}`},
		{"one without an id, before another item", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("", "e")), item(search), convo.Text("a"))}, `{"role":"assistant","content":"a"}`},
		{"one with nothing in it", wire.OpenAIResponses{}, []convo.Message{own(item(sealed("", "")), call)}, c1 + "\n" + r1err},
		{"plain items", wire.OpenAIResponses{Plain: true}, []convo.Message{own(item(open("7-a")), item(open("")), call), own(item(sealed("rs_9", "e")), item(open("7-a")), convo.Text("a"))},
			open("7-a") + "\n" + open("") + "\n" + c1 + "\n" + r1err + "\n" + `{"role":"assistant","content":"a"}`},
		{"plain items, not sent elsewhere", wire.OpenAIResponses{}, []convo.Message{own(item(open("7-a")), call)}, c1 + "\n" + r1err},
		{"an item that is not UTF-8", wire.OpenAIResponses{}, []convo.Message{own(convo.Text("a"), item(`{"type":"web_search_call","id":"ws_2`+"\xff"+`","status":"completed"}`))}, `{"role":"assistant","content":"a"}`},
		{"a refusal", wire.OpenAIResponses{}, []convo.Message{own(item(`{"type":"refusal","refusal":"No."}`))},
			`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mustEncode(t, tt.f, convo.NewSnapshot(tt.msgs))
			assert.Equal(t, tt.want, linesOf(r))
			assert.Empty(t, faults(tt.f, r.Body()))
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
		in := mustDecode(t, wire.OpenAIResponses{}, []byte(body), body)
		assert.Equal(t, []convo.Message{want}, in.Messages)
		assert.Equal(t, convo.Usage{Input: 120, CacheRead: 64, Output: 6}, in.Usage)
		require.Len(t, in.Lost, 1)
		assert.Contains(t, in.Lost[0].Path, "output[3].caller")
	}
	in := mustDecode(t, wire.OpenAIResponses{}, []byte(response))
	r := mustEncode(t, wire.OpenAIResponses{Model: "gpt-5"}, convo.NewSnapshot(in.Messages))
	assert.Equal(t, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"e1"}`, string(r.Messages[0]))
	assert.Equal(t, `{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}],"status":"completed"}`, string(r.Messages[1]))
	assert.Equal(t, `{"type":"function_call","call_id":"c1","name":"f","namespace":"ns","arguments":"{\"n\":1.0}"}`, string(r.Messages[3]))
}

func TestOpenAIResponses_DecodeReadsARequest(t *testing.T) {
	in, err := wire.OpenAIResponses{}.Decode([]byte(`{"previous_response_id":"resp_0","input":[
		{"role":"developer","content":"Be brief."},
		{"role":"user","content":[{"type":"input_text","text":"Hi"},{"type":"input_image","image_url":"data:image/png;base64,eA==","detail":"high"},{"type":"input_file","file_id":"file-1"},{"type":"odd"},
			{"type":"input_file","file_data":"data:application/pdf;base64,eA=="},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,eA=="}]},
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
		{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("Hi"), convo.NewMedia("image/png", []byte("x")), item(`{"type":"input_file","file_id":"file-1"}`), item(`{"type":"message","role":"user","content":[{"type":"odd"}]}`),
			convo.NewMedia("application/pdf", []byte("x")), convo.NewMedia("application/pdf", []byte("x"))}},
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
	lost := pathsOf(in.Lost)
	assert.Equal(t, []string{"previous_response_id", "input[1].content[1].detail", "input[1].content[5].filename", "input[2]"}, lost)
	_ = restoredOf(t, convo.NewSnapshot(in.Messages))
	r := mustEncode(t, wire.OpenAIResponses{}, convo.NewSnapshot(in.Messages))
	assert.Empty(t, faults(wire.OpenAIResponses{}, []byte(strings.Replace(string(r.Body()), `{"type":"odd"}`, "", 1))))
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
		in := mustDecode(t, wire.OpenAIResponses{}, []byte(body))
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
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"},7]}]}`:                                                                                                                   "input[0].content[1]",
		`{"output":[{"type":"function_call","call_id":"c"}]}`:                                                                                                                                          "output[0].name",
		`{"type":"response.completed","response":{"output":[{"type":"reasoning","summary":7}]}}`:                                                                                                       "response.output[0].summary",
		`{"input":[{"type":"function_call","call_id":"c","name":"f"},{"type":"function_call_output","call_id":"c","output":7}]}`:                                                                       "input[1].output",
		`{"input":[{"type":"function_call","call_id":"c","name":"f"},{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},{"type":"function_call_output","call_id":"c","output":7}]}`: "input[3].output",
	} {
		assert.Equal(t, path, decodeError(t, wire.OpenAIResponses{}, body).Path, body)
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
// and each is left out without the other.
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
		r := mustEncode(t, wire.OpenAIResponses{}, convo.NewSnapshot(tt.msgs))
		assert.Len(t, r.Messages, tt.items, "%s", r.Body())
	}
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
			in := mustDecode(t, wire.OpenAIResponses{}, []byte(`{"input":[`+strings.Join(tt.items, ",")+`]}`))
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

// All items of an answer come from the model and its provider. An answer that begins with
// an output, such as the output of a program, does not become a user message.
func TestResponses_AnswerThatBeginsWithAnOutput(t *testing.T) {
	const items = `[{"type":"program_output","id":"po_1","call_id":"c1","result":"3"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"three","annotations":[]}]}]`
	in := mustDecode(t, wire.OpenAIResponses{}, []byte(`{"id":"r","object":"response","status":"completed","model":"gpt-5.6","output":`+items+`}`))
	require.Len(t, in.Messages, 1)
	assert.Equal(t, convo.RoleAssistant, in.Messages[0].Role)
	assert.Equal(t, "three", in.Messages[0].Text())

	h := historyOf(t)
	call := convo.ToolCall{ID: "c2", Name: "one", Arguments: "{}"}
	program := convo.Opaque{Format: "openai-responses", JSON: `{"type":"program","id":"cm_1","call_id":"c1","code":"one() + 2"}`}
	mustAppend(t, h, convo.User("1 + 2?"), convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{program, call}}, convo.Result(call, "1"))
	_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { return in.Reply(), nil })
	require.NoError(t, err, "a paid answer is not lost")
	req := mustEncode(t, wire.OpenAIResponses{}, h.Snapshot())
	assert.Empty(t, req.Lost)
	require.Len(t, req.Messages, 6)
	assert.Contains(t, string(req.Messages[4]), `"program_output"`, "it goes back where it was")
	assert.Empty(t, wire.OpenAIResponses{}.Check(req.Body()))

	in = mustDecode(t, wire.OpenAIResponses{}, []byte(`{"input":`+items+`}`))
	require.Len(t, in.Messages, 1)
	assert.Equal(t, convo.RoleAssistant, in.Messages[0].Role)
}

// An output that begins what follows an input is output of the model if the provider has
// run the tool.
func TestResponses_OutputsOfServedTools(t *testing.T) {
	const shell = `{"type":"shell_call","id":"sh_1","call_id":"c","action":{"commands":["ls"]},"environment":{"type":"%s"}},{"role":"user","content":"?"},`
	for name, tt := range map[string]struct {
		items string
		want  convo.Role
	}{
		"program":              {`{"type":"program_output","call_id":"c","result":"3"}`, convo.RoleAssistant},
		"search of the server": {`{"type":"tool_search_output","execution":"server","call_id":null,"tools":[]}`, convo.RoleAssistant},
		"search of the client": {`{"type":"tool_search_output","execution":"client","call_id":"c","tools":[]}`, convo.RoleUser},
		"container":            {fmt.Sprintf(shell, "container_reference") + `{"type":"shell_call_output","call_id":"c","output":[]}`, convo.RoleAssistant},
		"own computer":         {fmt.Sprintf(shell, "local") + `{"type":"shell_call_output","call_id":"c","output":[]}`, convo.RoleUser},
		"computer":             {`{"type":"computer_call_output","call_id":"c","output":{}}`, convo.RoleUser},
	} {
		in := mustDecode(t, wire.OpenAIResponses{}, []byte(`{"input":[{"role":"user","content":"hi"},`+tt.items+`]}`), name)
		assert.Equal(t, tt.want, in.Messages[len(in.Messages)-1].Role, name)
	}
}

// responsesItems returns the items of a request as their types or roles, with their ids.
func responsesItems(t testing.TB, request []byte) string {
	var list []string
	for _, it := range readJSON(t, request)["input"].([]any) {
		it := it.(map[string]any)
		kind, _ := it["type"].(string)
		if kind == "" || kind == "message" {
			kind, _ = it["role"].(string)
		}
		if id, ok := it["id"].(string); ok {
			kind += ":" + id
		}
		list = append(list, kind)
	}
	return strings.Join(list, " ")
}

// Calls and outputs of tools that the provider runs are sent in pairs, and reasoning that
// cannot be sent takes with it what must follow it.
func TestResponses_ServedToolsArePaired(t *testing.T) {
	const (
		user   = `{"role":"user","content":"hi"}`
		ran    = `{"type":"program","id":"cm_1","call_id":"p","code":"f()"}`
		call   = `{"type":"function_call","id":"fc_1","call_id":"d","name":"f","arguments":"{}"}`
		out    = `{"type":"function_call_output","call_id":"d","output":"1"}`
		result = `{"type":"program_output","id":"cmo_1","call_id":"p","result":"x","status":"completed"}`
		answer = `{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"hi","annotations":[]}]}`
		stored = `{"type":"reasoning","id":"rs_1","summary":[]}`
		sent   = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"E"}`
		empty  = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":""}`
		null   = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}`
		odd    = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"","new":1}`
		odd2   = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null,"new":1}`
		search = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
		files  = `{"type":"file_search_call","id":"fs_1","status":"completed","queries":[]}`
	)
	for _, tt := range []struct {
		name  string
		items []string
		want  string
		lost  string
	}{
		{"a program", []string{user, ran, call, out, result, answer, user}, "user program:cm_1 function_call function_call_output program_output:cmo_1 assistant user", ""},
		{"a program with its reasoning", []string{user, sent, ran, call, out}, "user reasoning:rs_2 program:cm_1 function_call function_call_output", ""},
		{"a program under way", []string{user, ran, call, out}, "user program:cm_1 function_call function_call_output", ""},
		{"a user after a program", []string{user, ran, call, out, user}, "user function_call function_call_output user", "entry 2, part 0: block"},
		{"an answer without the output", []string{user, ran, call, out, answer}, "user function_call function_call_output assistant", "entry 2, part 0: block"},
		{"a program at the end", []string{user, ran}, "user", "entry 2, part 0: block"},
		{"an output without its program", []string{user, result, answer}, "user assistant", "entry 2, part 0: block"},
		{"reasoning that the server stores", []string{user, stored, search, answer, user}, "user assistant user", "entry 2, part 0: reasoning; entry 2, part 1: block"},
		{"null", []string{user, null, search, answer, user}, "user assistant user", "entry 2, part 0: reasoning; entry 2, part 1: block"},
		{"an empty text", []string{user, empty, search, answer, user}, "user assistant user", "entry 2, part 0: reasoning; entry 2, part 1: block"},
		{"an empty text in an item with more", []string{user, odd, search, answer, user}, "user assistant user", "entry 2, part 0: block; entry 2, part 1: block"},
		{"null in an item with more", []string{user, odd2, search, answer, user}, "user assistant user", "entry 2, part 0: block; entry 2, part 1: block"},
		{"null in an item with more, before a text", []string{user, odd2, answer, user}, "user assistant user", "entry 2, part 0: block"},
		{"two searches", []string{user, stored, search, files, answer, user}, "user assistant user", "entry 2, part 0: reasoning; entry 2, part 1: block; entry 2, part 2: block"},
		{"a search after the answer", []string{user, stored, answer, search, user}, "user assistant web_search_call:ws_1 user", "entry 2, part 0: reasoning"},
		{"other reasoning", []string{user, stored, search, sent, files, answer, user}, "user reasoning:rs_2 file_search_call:fs_1 assistant user", "entry 2, part 0: reasoning; entry 2, part 1: block"},
		{"a program after stored reasoning", []string{user, stored, ran, call, out, result, answer, user}, "user function_call function_call_output assistant user",
			"entry 2, part 0: reasoning; entry 2, part 1: block; entry 4, part 0: block"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := wire.OpenAIResponses{}
			in := mustDecode(t, f, []byte(`{"input":[`+strings.Join(tt.items, ",")+`]}`))
			r := mustEncode(t, f, relaxed(t, convo.Overheads{}, in.Messages...).Snapshot())
			assert.Equal(t, tt.want, responsesItems(t, r.Body()))
			lost := listed(r.Lost)
			assert.Equal(t, tt.lost, strings.Join(lost, "; "))
			assert.Empty(t, f.Check(r.Body()), "%s", r.Body())
		})
	}
	for items, want := range map[string]string{
		user + "," + ran + "," + call + "," + out + "," + user: "unanswered-call",
		user + "," + ran:                          "unanswered-call",
		user + "," + result:                       "orphan-result",
		user + "," + ran + "," + call + "," + out: "",
	} {
		got := rulesOf((wire.OpenAIResponses{}).Check([]byte(`{"input":[` + items + `]}`)))
		assert.Equal(t, want, strings.Join(got, " "), items)
	}
}

// unservedItems returns the items of a request of Responses that the provider would refuse
// for what is missing beside them: a call without its output, unless it is a program in a
// turn that the request ends in, an output without its call, and an item that an answer
// had right after reasoning and that has lost it. led says which.
func unservedItems(t testing.TB, request []byte, led map[string]string) (bad []string) {
	t.Helper()
	items := readJSON(t, request)["input"].([]any)
	open, before := map[string]string{}, ""
	for i, it := range items {
		it := it.(map[string]any)
		kind, _ := it["type"].(string)
		id, _ := it["id"].(string)
		callID, _ := it["call_id"].(string)
		if lead := led[id]; id != "" && lead != "" && lead != before {
			bad = append(bad, kind+" without reasoning")
		}
		before = id
		switch kind {
		case "function_call", "custom_tool_call", "shell_call", "apply_patch_call":
			open[callID] = kind
		case "program":
			open[callID] = kind
			for _, later := range items[i+1:] {
				if later := later.(map[string]any); later["type"] == nil || later["type"] == "message" {
					break
				}
				if later := later.(map[string]any)["type"]; later == "function_call_output" {
					delete(open, callID)
				}
			}
		case "program_output":
			if open[callID] != "" {
				delete(open, callID)
			}
		case "function_call_output", "custom_tool_call_output", "shell_call_output", "apply_patch_call_output":
			if open[callID] == "" {
				bad = append(bad, kind)
			}
			delete(open, callID)
		case "web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "image_generation_call":
			if it["status"] != "completed" && it["status"] != "failed" {
				bad = append(bad, kind+" that has not ended")
			}
		}
	}
	for _, kind := range open {
		bad = append(bad, kind+" without an output")
	}
	return bad
}
