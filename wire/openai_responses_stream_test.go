package wire_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func init() {
	streamCases["responses"] = streamCase{
		format: wire.OpenAIResponses{Model: "gpt"},
		answer: responsesAnswer,
		ends:   endsResponse,
	}
}

func endsResponse(e event) bool {
	return strings.Contains(e.data, `"type":"response.completed"`) || strings.Contains(e.data, `"type":"response.incomplete"`)
}

// responsesAnswer returns a random answer of the Responses API, whole and as events.
func responsesAnswer(g *streamGenerator) (string, []event) {
	rotating := g.IntN(6) == 0
	ids := 0
	id := func(own string) string {
		if ids++; rotating {
			return fmt.Sprint("rotated_", ids)
		}
		return own
	}
	step := 1 + g.IntN(2)*g.IntN(2) // there may be gaps between the indexes
	var whole []string
	var items [][]string
	noDeltas := g.IntN(8) == 0
	for i := range g.IntN(6) {
		var item, started string
		var events []string
		index := i * step
		about := func(kind, own, format string, values ...any) {
			events = append(events, fmt.Sprintf(`{"type":%q,"item_id":%q,"output_index":%d,`, "response."+kind, id(own), index)+fmt.Sprintf(format, values...)+"}")
		}
		text := func(kind, own, place, text, key string) {
			if noDeltas {
				return
			}
			for _, p := range g.cut(text) {
				about(kind+".delta", own, `%s"delta":%s,"obfuscation":"xx"`, place, jsonOf(p))
			}
			if g.IntN(3) > 0 {
				about(kind+".done", own, `%s%q:%s`, place, key, jsonOf(text))
			}
		}
		switch g.IntN(7) {
		case 0, 1:
			own := fmt.Sprintf("msg_%d", i)
			phase := g.pick("", `,"phase":"commentary"`)
			started = fmt.Sprintf(`{"type":"message","id":%q,"status":"in_progress","role":"assistant","content":[]%s}`, own, phase)
			var parts []string
			for k := range 1 + g.IntN(2) {
				t := g.text()
				kind, key := "output_text", "text"
				part := `{"type":"output_text","text":%s,"annotations":[]}`
				if g.IntN(8) == 0 {
					kind, key, part = "refusal", "refusal", `{"type":"refusal","refusal":%s}`
				}
				place := fmt.Sprintf(`"content_index":%d,`, k)
				cited := part
				if kind == "output_text" && g.IntN(4) == 0 {
					cited = `{"type":"output_text","text":%s,"annotations":[{"type":"file_citation","file_id":"f","filename":"a.pdf","index":0},{"type":"url_citation","start_index":0,"end_index":1,"url":"https://a","title":"A"}]}`
				}
				if !noDeltas && g.IntN(4) > 0 {
					about("content_part.added", own, place+`"part":`+part, `""`)
				}
				text(kind, own, place, t, key)
				if cited != part && !noDeltas {
					about("output_text.annotation.added", own, `%s"annotation_index":0,"annotation":{"type":"file_citation","file_id":"f","filename":"a.pdf","index":0}`, place)
					about("output_text.annotation.added", own, `%s"annotation_index":1,"annotation":{"type":"url_citation","start_index":0,"end_index":1,"url":"https://a","title":"A"}`, place)
				}
				part = fmt.Sprintf(cited, jsonOf(t))
				if !noDeltas && g.IntN(3) > 0 {
					about("content_part.done", own, `%s"part":%s`, place, part)
				}
				parts = append(parts, part)
			}
			item = fmt.Sprintf(`{"type":"message","id":%q,"status":"completed","role":"assistant","content":[%s]%s}`, own, strings.Join(parts, ","), phase)
		case 2:
			own := fmt.Sprintf("rs_%d", i)
			started = fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"half"}`, own)
			var parts []string
			for k := range g.IntN(3) {
				t := strings.TrimSpace(g.text())
				place := fmt.Sprintf(`"summary_index":%d,`, k)
				part := `{"type":"summary_text","text":` + jsonOf(t) + `}`
				if g.IntN(2) == 0 {
					about("reasoning_summary_part.added", own, `%s"part":{"type":"summary_text","text":""}`, place)
				}
				text("reasoning_summary_text", own, place, t, "text")
				if !noDeltas && g.IntN(2) == 0 {
					about("reasoning_summary_part.done", own, `%s"part":%s`, place, part)
				}
				parts = append(parts, part)
			}
			item = fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[%s],"encrypted_content":"gAAA=="}`, own, strings.Join(parts, ","))
		case 3, 4:
			own, args := fmt.Sprintf("fc_%d", i), g.arguments()
			item = fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":"call_%d","name":%q,"arguments":%%s,"status":%%q}`, own, i, g.pick("search", "run"))
			started = fmt.Sprintf(item, `""`, "in_progress")
			text("function_call_arguments", own, "", args, "arguments")
			item = fmt.Sprintf(item, jsonOf(args), "completed")
		case 5:
			own, input := fmt.Sprintf("ctc_%d", i), g.pick(g.text(), g.arguments(), "")
			item = fmt.Sprintf(`{"type":"custom_tool_call","id":%q,"call_id":"call_%d","name":"sql","input":%%s,"status":%%q}`, own, i)
			started = fmt.Sprintf(item, `""`, "in_progress")
			text("custom_tool_call_input", own, "", input, "input")
			item = fmt.Sprintf(item, jsonOf(input), "completed")
		case 6:
			own := fmt.Sprintf("ws_%d", i)
			item = fmt.Sprintf(`{"type":"web_search_call","id":%q,"status":"completed","action":{"type":"search","query":"a"}}`, own)
			started = fmt.Sprintf(`{"type":"web_search_call","id":%q,"status":"in_progress"}`, own)
			about("web_search_call.searching", own, `"sequence_number":1`)
		}
		first := fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, index, started)
		last := fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
		whole = append(whole, item)
		items = append(items, append(append([]string{first}, events...), last))
	}
	status, details, end := "completed", "null", "response.completed"
	if g.IntN(6) == 0 {
		status, details, end = "incomplete", `{"reason":"max_output_tokens"}`, "response.incomplete"
	}
	response := func(status, details, output, usage string) string {
		return fmt.Sprintf(`{"id":"resp_1","object":"response","status":%q,"error":null,"incomplete_details":%s,"model":"gpt-5-2026","output":[%s],"usage":%s}`, status, details, output, usage)
	}
	const usage = `{"input_tokens":30,"input_tokens_details":{"cached_tokens":20},"output_tokens":7}`
	body := response(status, details, strings.Join(whole, ","), usage)

	var out []event
	push := func(data string) {
		if g.IntN(12) == 0 {
			out = append(out, event{"keepalive", `{"type":"keepalive","sequence_number":3}`})
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
		out = append(out, event{name, data})
	}
	created := `{"type":"response.created","response":` + response("in_progress", "null", "", "null") + "}"
	push(created)
	if g.IntN(6) == 0 {
		push(created)
	}
	push(`{"type":"response.in_progress","response":` + response("in_progress", "null", "", "null") + "}")
	if g.interleaved = g.IntN(3) == 0; g.interleaved {
		for open := 0; len(items) > 0; {
			i := g.IntN(min(open+1, len(items)))
			push(items[i][0])
			if i == open {
				open++
			}
			if items[i] = items[i][1:]; len(items[i]) == 0 {
				items = append(items[:i], items[i+1:]...)
				open--
			}
		}
	}
	for _, list := range items {
		for _, data := range list {
			push(data)
		}
	}
	kept := whole
	switch g.IntN(4) {
	case 0: // the last event has no items
		kept = nil
	case 1: // it lacks some items
		kept = nil
		for _, item := range whole {
			if g.IntN(2) == 0 {
				kept = append(kept, item)
			}
		}
	}
	push(`{"type":"` + end + `","response":` + response(status, details, strings.Join(kept, ","), usage) + "}")
	if g.IntN(3) == 0 {
		out = append(out, event{"", "[DONE]"})
	}
	return body, out
}

// The result of a recorded stream is the response of its last event, which may lack the
// items.
func TestResponsesStream_Recorded(t *testing.T) {
	n := 0
	for _, prefix := range []string{"openai__responses__", "xai__responses__"} {
		recordedEvents(t, prefix, endsResponse, func(t *testing.T, events []event) {
			if strings.Contains(t.Name(), "parallel-tool-call-wrapper") { // made by hand, two lines lack the last brace
				for i, e := range events {
					if !json.Valid([]byte(e.data)) {
						events[i].data = e.data + "}"
					}
				}
			}
			n++
			f := wire.OpenAIResponses{Model: "gpt"}
			s, deltas := feed(t, f, events)
			got, err := s.Transcript()
			require.NoError(t, err)

			var last struct{ Response map[string]json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(events[len(events)-1].data), &last))
			if string(last.Response["output"]) == "[]" {
				var items []json.RawMessage
				for _, e := range events {
					var done struct {
						Type string
						Item json.RawMessage
					}
					require.NoError(t, json.Unmarshal([]byte(e.data), &done))
					if done.Type == "response.output_item.done" {
						items = append(items, done.Item)
					}
				}
				last.Response["output"] = json.RawMessage(jsonOf(items))
			}
			want := mustDecode(t, f, []byte(jsonOf(last.Response)))
			require.Equal(t, want, got)

			before := []convo.Message{convo.User("x")}
			if got.Messages[0].Role == convo.RoleUser { // the output of a program that the model wrote in the previous answer
				before = append(before, convo.Assistant("y"))
			}
			historyOf(t, append(before, got.Messages...)...)
			text, reasoning, calls := shown(deltas)
			said, thought, made := contentOf(got.Messages)
			if !strings.Contains(t.Name(), "shell-container.1") { // made by hand, with other text in the deltas than in the item
				assert.Equal(t, said, text)
			}
			if !slices.ContainsFunc(got.Messages, func(m convo.Message) bool { return slices.ContainsFunc(m.Parts, isReasoningItem) }) {
				assert.Equal(t, thought, reasoning)
			}
			assert.Equal(t, made, calls)

			// Without its last event, the stream has the same items.
			s, _ = feed(t, f, events[:len(events)-1])
			cut, err := s.Transcript()
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			if !strings.Contains(t.Name(), "id-rotation") && !strings.Contains(t.Name(), "programmatic-tool-calling.1") { // the items of the last event have other IDs, or are encrypted anew
				assert.Equal(t, want.Messages, withModel(cut.Messages, want.Messages))
			}
		})
	}
	t.Logf("%d answers", n)
}

// isReasoningItem reports whether a part is reasoning with more than a convo.Reasoning holds.
func isReasoningItem(p convo.Part) bool {
	o, _ := p.(convo.Opaque)
	return strings.Contains(o.JSON, `"type":"reasoning"`)
}

// withModel returns messages with the origins of others.
func withModel(msgs, others []convo.Message) []convo.Message {
	for i := range msgs {
		if i < len(others) {
			msgs[i].Origin = others[i].Origin
		}
	}
	return msgs
}

// responsesHead begins a stream.
const responsesHead = `{"type":"response.created","response":{"id":"r1","model":"m","output":[]}}`

func TestResponsesStream_CutOff(t *testing.T) {
	s, deltas := feed(t, wire.OpenAIResponses{}, chunks(responsesHead,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"half"}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"So"}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"then"}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"I will"}`,
		`{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation":{"type":"url_citation"}}`,
		`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"c1","name":"ls","arguments":""}}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c1","name":"ls","arguments":"oops"}}`,
		`{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","call_id":"c2","name":"delete_all","arguments":""}}`,
		`{"type":"response.output_item.added","output_index":4,"item":{"type":"custom_tool_call","call_id":"c3","name":"sql","input":""}}`,
		`{"type":"response.custom_tool_call_input.delta","output_index":4,"delta":"DROP"}`,
		`{"type":"response.output_item.added","output_index":5,"item":{"type":"function_call","call_id":"c4","name":"rm","arguments":""}}`,
		`{"type":"response.function_call_arguments.delta","output_index":5,"delta":"{\"path\":\"/\""}`,
		`{"type":"response.output_item.done","output_index":6,"item":{"type":"function_call","call_id":"c5","name":"rm","arguments":"{","status":"incomplete"}}`,
		`{"type":"response.output_item.added","output_index":7,"item":{"type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.output_item.done","output_index":8,"item":{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"whole"}}`,
	))
	got, err := s.Transcript()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Len(t, got.Messages, 1)
	assert.Equal(t, []convo.Part{
		convo.Reasoning{ID: "rs_1", Text: "So\n\n\nthen"}, convo.Text("I will"), item(`{"annotations":[{"type":"url_citation"}]}`), convo.ToolCall{ID: "c1", Name: "ls", Arguments: "oops"},
		convo.Reasoning{ID: "rs_2", Encrypted: "whole"},
	}, got.Messages[0].Parts)
	assert.Equal(t, &convo.ToolCall{ID: "c5", Name: "rm", Arguments: "{"}, got.CutOff)
	lost := listed(got.Lost)
	assert.Equal(t, []string{
		`call 1: the call "delete_all", which the provider had not ended`,
		`call 2: the call "sql", which the provider had not ended`,
		`call 3: the call "rm", which the provider had not ended`,
	}, lost)
	text, reasoning, calls := shown(deltas)
	assert.Equal(t, "I will", text)
	assert.Equal(t, "So\n\n\nthen", reasoning)
	assert.Len(t, calls, 5)
	assert.Equal(t, "DROP", calls[2].Arguments)
	assert.Equal(t, "m", got.Model)
	assert.Equal(t, "r1", got.ID)

	s, _ = feed(t, wire.OpenAIResponses{}, chunks(responsesHead,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","role":"assistant","content":[]}}`))
	got, err = s.Transcript()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Empty(t, got.Messages, "of items that only began")

	s, _ = feed(t, wire.OpenAIResponses{}, chunks(responsesHead,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"refusal","refusal":""}}`,
		`{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No"}`))
	got, err = s.Transcript()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Len(t, got.Messages, 1)
	assert.Equal(t, []convo.Part{item(`{"type":"refusal","refusal":"No"}`)}, got.Messages[0].Parts, "half a refusal")
}

func TestResponsesStream_Quirks(t *testing.T) {
	const end = `{"type":"response.completed","response":{"id":"r1","status":"completed","output":[]}}`
	added := func(index, item string) string {
		return `{"type":"response.output_item.added",` + index + `"item":` + item + `}`
	}
	const message = `{"type":"message","role":"assistant","content":[]}`
	checkQuirks(t, wire.OpenAIResponses{}, []quirk{
		{"only the last event", chunks(`{"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}`), "a", []string{"c f {}"}, nil, convo.StopToolCall},
		{"a whole response", chunks(`{"id":"r1","object":"response","status":"completed","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`), "a", nil, nil, convo.StopDone},
		{"no item is ended", chunks(responsesHead, added(`"output_index":0,`, message), `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, added(`"output_index":1,`, `{"type":"function_call","call_id":"c","name":"f","arguments":""}`), `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}`, end), "a", []string{"c f {}"}, nil, convo.StopToolCall},
		{"no item is begun", chunks(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a"}`, end), "a", nil, nil, convo.StopDone},
		{"no indexes", chunks(responsesHead, added("", message), `{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.output_text.done","text":"ab"}`, `{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ab"}]}}`, added("", message), `{"type":"response.output_text.delta","delta":"c"}`, end), "abc", nil, nil, convo.StopDone},
		{"one index for all", chunks(responsesHead, added(`"output_index":0,`, `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`), `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}`,
			added(`"output_index":0,`, `{"type":"function_call","call_id":"d","name":"g","arguments":""}`), `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`, added(`"output_index":0,`, message), `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, end), "a", []string{"c f {}", "d g {}"}, nil, convo.StopToolCall},
		{"an item begins twice", chunks(responsesHead, added(`"output_index":0,`, message), `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, added(`"output_index":0,`, message), `{"type":"response.output_text.delta","output_index":0,"delta":"b"}`, end, end), "ab", nil, nil, convo.StopDone},
		{"the response is created twice", chunks(responsesHead, `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, responsesHead, `{"type":"response.output_text.delta","output_index":0,"delta":"b"}`, end), "ab", nil, nil, convo.StopDone},
		{"a call without a name", chunks(responsesHead, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`, added(`"output_index":1,`, message), `{"type":"response.output_text.delta","output_index":1,"delta":"a"}`, end), "a", nil, []string{"output[0]: a call without a name"}, convo.StopDone},
		{"a name that comes late", chunks(responsesHead, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}`, added(`"output_index":0,`, `{"type":"function_call","call_id":"c","name":"f","arguments":""}`), `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"}"}`, end), "", []string{"c f {}"}, nil, convo.StopToolCall},
		{"one ID for two calls", chunks(responsesHead, `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}`, `{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"g","arguments":"{}"}}`, end),
			"", []string{"c f {}", "- g {}"}, []string{"output[1].call_id: an id that another call of the message has, too"}, convo.StopToolCall},
		{"an event of another kind", chunks(responsesHead, `{"type":"codex.rate_limits","plan":"x"}`, end), "", nil, []string{"codex.rate_limits: an event of an unknown kind"}, convo.StopDone},
		{"events behind the end", chunks(responsesHead, end, `{"type":"response.in_progress","response":{"id":"r1"}}`, `{"type":"response.output_text.done","text":"x"}`, "[DONE]"), "", nil, nil, convo.StopDone},
		{"refusals are not shown", chunks(responsesHead, `{"type":"response.refusal.delta","output_index":0,"delta":"No"}`, `{"type":"response.refusal.done","output_index":0,"refusal":"No."}`, end), "", nil, nil, convo.StopDone},
	})
}

func TestResponsesStream_Restart(t *testing.T) {
	s, deltas := feed(t, wire.OpenAIResponses{}, chunks(responsesHead,
		`{"type":"response.output_text.delta","output_index":0,"delta":"one"}`,
		`{"type":"response.created","response":{"id":"r2","output":[]}}`,
		`{"type":"response.output_text.delta","output_index":0,"delta":"two"}`,
		`{"type":"response.completed","response":{"id":"r2","status":"completed","output":[]}}`))
	got, err := s.Transcript()
	require.NoError(t, err)
	assert.Equal(t, "two", got.Messages[0].Text())
	assert.Equal(t, []wire.Delta{{Text: "one"}, {Restart: true}, {Text: "two"}}, deltas)
	for _, data := range []string{
		responsesHead,
		`{"type":"response.completed","response":{"id":"r3"}}`,
		`{"type":"response.output_text.delta","output_index":0,"delta":"x"}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`,
	} {
		s, _ := feed(t, wire.OpenAIResponses{}, chunks(`{"type":"response.completed","response":{"id":"r2","status":"completed","output":[]}}`))
		_, err := s.Event("", []byte(data))
		assert.ErrorAs(t, err, new(*wire.DecodeError), data)
	}
}

func TestResponsesStream_Errors(t *testing.T) {
	before := chunks(responsesHead,
		`{"type":"response.output_text.delta","output_index":0,"delta":"so far"}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c1","name":"f","arguments":""}}`)
	checkErrorEvents(t, wire.OpenAIResponses{}, before, []errorQuirk{
		{"flat", event{"", `{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again.","param":"input","sequence_number":2}`},
			wire.ProviderError{Code: "context_length_exceeded", Message: "Your input exceeds the context window of this model. Please adjust your input and try again."}, true},
		{"nested", event{"", `{"type":"error","error":{"type":"server_error","code":null,"message":"busy"}}`}, wire.ProviderError{Type: "server_error", Message: "busy"}, false},
		{"without a type", event{"", `{"error":{"message":"busy"}}`}, wire.ProviderError{Message: "busy"}, false},
		{"failed", event{"", `{"type":"response.failed","response":{"id":"r1","status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."},"output":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{","status":"incomplete"},{"type":"function_call","call_id":"c9","name":"f","arguments":"{}","status":"completed"}]}}`},
			wire.ProviderError{Code: "context_length_exceeded", Message: "Your input exceeds the context window of this model."}, true},
		{"failed without a reason", event{"", `{"type":"response.failed","response":{"id":"r1","error":null}}`}, wire.ProviderError{Message: "the response failed"}, false},
		{"a failed response", event{"", `{"id":"r1","status":"failed","error":{"code":"server_error","message":"no"},"output":[]}`}, wire.ProviderError{Code: "server_error", Message: "no"}, false},
	}, func(t *testing.T, got wire.Transcript) {
		require.NotNil(t, got.CutOff)
		assert.Equal(t, "c1", got.CutOff.ID)
		assert.Empty(t, got.Lost)
		for _, c := range streamedCalls(got) {
			assert.Equal(t, "c9", c.ID)
		}
	})
	for _, data := range []string{`{"type":"response.created"}`, `{"x":1}`, `[]`, `{"type":"response.output_item.added","output_index":"x","item":{}}`, `{"type":"response.output_item.added","output_index":0}`, `{"type":"response.completed","response":{"output":7}}`, `{"type":"response.content_part.added","output_index":0}`} {
		_, err := wire.OpenAIResponses{}.Stream().Event("", []byte(data))
		assert.ErrorAs(t, err, new(*wire.DecodeError), data)
	}
}

func FuzzResponsesStream(f *testing.F) {
	for seed := range 30 {
		g := &streamGenerator{Rand: rand.New(rand.NewPCG(uint64(seed), 5))}
		_, events := responsesAnswer(g)
		f.Add([]byte(framings["server-sent events"](events)))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkStreamed(t, wire.OpenAIResponses{}, data) })
}

// A server that cuts a character between two deltas may send U+FFFD for each half. The text
// that the event at the end repeats is whole.
func TestResponsesStream_RepeatedText(t *testing.T) {
	for _, pieces := range [][]string{{`a\ufffd`, `\ufffdb`}, {`a\ud83d`, `\ufffdb`}, {`a\ud83d`, `\ude00b`}, {`a\ufffd`}} {
		s := wire.OpenAIResponses{}.Stream()
		events := []string{
			`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"read","arguments":""}}`,
		}
		for _, piece := range pieces {
			events = append(events, `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"`+piece+`"}`)
			events = append(events, `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"`+piece+`"}`)
		}
		events = append(events,
			`{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"a😀b"}`,
			`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":"a\ud83d\ude00b"}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`)
		for _, e := range events {
			_, err := s.Event("", []byte(e))
			require.NoError(t, err)
		}
		got, err := s.Transcript()
		require.NoError(t, err)
		assert.Equal(t, "a😀b", got.Reply().Text(), pieces)
		assert.Equal(t, "a😀b", got.Reply().OpenCalls()[0].Arguments, pieces)
	}
}
