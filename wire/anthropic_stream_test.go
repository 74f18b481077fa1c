package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func init() {
	streamCases["anthropic"] = streamCase{
		format: wire.Anthropic{Model: "claude"},
		answer: anthropicAnswer,
		ends:   func(e event) bool { return strings.Contains(e.data, `"type":"message_stop"`) },
	}
}

// anthropicAnswer returns a random answer of the Messages API, whole and as events.
func anthropicAnswer(g *streamGenerator) (string, []event) {
	var whole []string
	var blocks [][]string // the events of each block
	add := func(block, start string, deltas []string) {
		i := len(whole)
		whole = append(whole, block)
		events := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, start)}
		for _, d := range deltas {
			events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d))
		}
		blocks = append(blocks, append(events, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i)))
	}
	deltas := func(kind, key, text string) (list []string) {
		for _, piece := range g.cut(text) {
			list = append(list, fmt.Sprintf(`{"type":%q,%q:%s}`, kind, key, jsonOf(piece)))
		}
		return list
	}
	stop := "end_turn"
	for i := range g.IntN(6) {
		switch g.IntN(6) {
		case 0, 1:
			text := g.text()
			list := deltas("text_delta", "text", text)
			if g.IntN(3) > 0 {
				add(`{"type":"text","text":`+jsonOf(text)+`}`, `{"type":"text","text":""}`, list)
				break
			}
			var cites []string
			for n := range 1 + g.IntN(3) {
				cites = append(cites, fmt.Sprintf(`{"type":"web_search_result_location","cited_text":"c","url":"https://a/%d","title":null,"encrypted_index":"x"}`, n))
			}
			at := g.IntN(len(list) + 1)
			for _, c := range cites {
				delta := fmt.Sprintf(`{"type":"citations_delta","citation":%s}`, c)
				list = slices.Insert(list, at, delta)
				at += 1 + g.IntN(len(list)-at)
			}
			add(`{"type":"text","text":`+jsonOf(text)+`,"citations":[`+strings.Join(cites, ",")+`]}`, `{"type":"text","text":"","citations":[]}`, list)
		case 2:
			text, signature := g.text(), g.pick("c2ln", "", "EqQB+/==")
			list := deltas("thinking_delta", "thinking", text)
			list = append(list, deltas("signature_delta", "signature", signature)...)
			add(`{"type":"thinking","thinking":`+jsonOf(text)+`,"signature":`+jsonOf(signature)+`}`, `{"type":"thinking","thinking":"","signature":""}`, list)
		case 3:
			block := `{"type":"redacted_thinking","data":"` + g.pick("abc", "xyz") + `"}`
			add(block, block, nil)
		case 4:
			args := g.arguments()
			head := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":`, i, g.pick("search", "run"))
			var list []string
			if args != "{}" || g.IntN(2) == 0 {
				list = deltas("input_json_delta", "partial_json", args)
			}
			add(head+args+"}", head+"{}}", list)
			stop = "tool_use"
		case 5:
			head := fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":`, i)
			add(head+`{"query":"a"}}`, head+"{}}", deltas("input_json_delta", "partial_json", `{"query":"a"}`))
		}
	}
	if g.IntN(6) == 0 {
		stop = "max_tokens"
	}
	id := fmt.Sprint("msg_", g.IntN(1000))
	body := fmt.Sprintf(`{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":12,"cache_read_input_tokens":30,"output_tokens":77}}`,
		id, strings.Join(whole, ","), stop)

	var out []event
	push := func(data string) {
		if g.IntN(10) == 0 {
			out = append(out, event{"ping", `{"type":"ping"}`})
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
		out = append(out, event{name, data})
	}
	start := fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}`, id)
	push(start)
	if g.IntN(8) == 0 {
		push(start) // some proxies send it twice
	}
	if g.interleaved = g.IntN(3) == 0; g.interleaved { // blocks may interleave, but begin in order
		for open := 0; len(blocks) > 0; {
			i := g.IntN(min(open+1, len(blocks)))
			push(blocks[i][0])
			if i == open {
				open++
			}
			if blocks[i] = blocks[i][1:]; len(blocks[i]) == 0 {
				blocks = append(blocks[:i], blocks[i+1:]...)
				open--
			}
		}
	}
	for _, b := range blocks {
		for _, data := range b {
			push(data)
		}
	}
	push(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"input_tokens":12,"cache_read_input_tokens":30,"output_tokens":77}}`, stop))
	push(`{"type":"message_stop"}`)
	return body, out
}

func TestAnthropicStream_Recorded(t *testing.T) {
	restarts := 0
	recordedEvents(t, "anthropic__", streamCases["anthropic"].ends, func(t *testing.T, events []event) {
		got, deltas := streamed(t, wire.Anthropic{}, events)
		require.NotEmpty(t, got.Messages)
		if !strings.Contains(t.Name(), "programmatic") { // the answers in between report none
			assert.NotZero(t, got.Usage.Input)
			assert.NotZero(t, got.Usage.Output)
		}
		assert.Nil(t, got.CutOff)
		for _, m := range got.Messages {
			for _, c := range m.ToolCalls() {
				assert.True(t, c.Valid(), c.Arguments)
			}
		}
		historyOf(t, append([]convo.Message{convo.User("x")}, got.Messages...)...)
		text, _, _ := shown(deltas)
		assert.NotEmpty(t, got.Messages[0].Parts)
		for _, d := range deltas {
			if d.Restart {
				restarts++
			}
		}
		said, _, _ := contentOf(got.Messages[:1])
		assert.Equal(t, said, text)
	})
	assert.Equal(t, 1, restarts, "the recording with an answer spliced into another")
}

func TestAnthropicStream_Restart(t *testing.T) {
	start := func(id string) event {
		return event{"", fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"role":"assistant","model":"m","content":[],"usage":{"input_tokens":1}}}`, id)}
	}
	text := func(s string) []event {
		return []event{
			{"", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`},
			{"", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, s)},
		}
	}
	events := append([]event{start("a")}, text("one")...)
	events = append(append(events, start("b")), text("two")...)
	events = append(events, event{"", `{"type":"message_stop"}`})
	s, deltas := feed(t, wire.Anthropic{}, events)
	got, err := s.Transcript()
	require.NoError(t, err)
	assert.Equal(t, "two", got.Messages[0].Text())
	assert.Equal(t, []wire.Delta{{Text: "one"}, {Restart: true}, {Text: "two"}}, deltas)
	_, err = s.Event("", []byte(start("c").data))
	assert.ErrorAs(t, err, new(*wire.DecodeError))
	again, err := s.Transcript()
	assert.ErrorAs(t, err, new(*wire.DecodeError))
	assert.Equal(t, got.Messages, again.Messages)
}

// A call of which only the name was received is not a call without arguments. Citations
// that arrive in pieces follow those that the block began with.
func TestAnthropicStream_Citations(t *testing.T) {
	for start, want := range map[string]string{``: ``, `,"citations":null`: ``, `,"citations":[]`: ``, `,"citations":[{"cited_text":"z"}]`: `{"cited_text":"z"},`} {
		s, _ := feed(t, wire.Anthropic{}, chunks(`{"type":"message_start","message":{"role":"assistant","model":"m","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""`+start+`}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"y"}}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`))
		got, err := s.Transcript()
		require.NoError(t, err)
		assert.Empty(t, got.Lost)
		assert.Equal(t, []convo.Part{convo.Text("a"), convo.Opaque{Format: "anthropic", JSON: `{"citations":[` + want + `{"cited_text":"x"},{"cited_text":"y"}]}`}}, got.Messages[0].Parts)
	}
}

func TestAnthropicStream_HalfCall(t *testing.T) {
	events := []event{
		{"", `{"type":"message_start","message":{"id":"a","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1}}}`},
		{"", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`},
		{"", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I will."}}`},
		{"", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"delete_all","input":{}}}`},
		{"", `{"type":"content_block_stop","index":1}`},
		{"", `{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t2","name":"delete_all","input":{}}}`},
		{"", `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"dir\":\"/\""}}`},
	}
	s, _ := feed(t, wire.Anthropic{}, events)
	got, err := s.Transcript()
	require.Error(t, err)
	assert.Equal(t, "wire: the stream ended before the answer did: unexpected EOF", err.Error())
	require.Len(t, got.Messages[0].ToolCalls(), 1)
	assert.Equal(t, "t1", got.Messages[0].ToolCalls()[0].ID)
	require.NotNil(t, got.CutOff)
	assert.Equal(t, convo.ToolCall{ID: "t2", Name: "delete_all", Arguments: `{"dir":"/"`}, *got.CutOff)
}

// Blocks with a repeated index, or without an index, are separate blocks.
func TestAnthropicStream_Indexes(t *testing.T) {
	start := func(index, block string) string {
		return `{"type":"content_block_start",` + index + `"content_block":` + block + `}`
	}
	call := func(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"f","input":{}}` }
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	delta := func(index, s string) string {
		return `{"type":"content_block_delta",` + index + `"delta":{"type":"text_delta","text":"` + s + `"}}`
	}
	args := func(index, s string) string {
		return `{"type":"content_block_delta",` + index + `"delta":{"type":"input_json_delta","partial_json":` + jsonOf(s) + `}}`
	}
	stop := func(index string) string {
		return `{"type":"content_block_stop",` + strings.TrimSuffix(index, ",") + `}`
	}
	const zero, one, two, none = `"index":0,`, `"index":1,`, `"index":2,`, `"x":0,`
	const end = `{"type":"message_stop"}`
	of := func(id string) convo.ToolCall { return convo.ToolCall{ID: id, Name: "f", Arguments: "{}"} }
	for _, tt := range []struct {
		name   string
		events []event
		want   []convo.Part
	}{
		{"always 0", chunks(start(zero, text("")), delta(zero, "hi"), stop(zero), start(zero, call("a")), stop(zero), start(zero, call("b")), args(zero, `{"x":1}`), stop(zero), end),
			[]convo.Part{convo.Text("hi"), of("a"), convo.ToolCall{ID: "b", Name: "f", Arguments: `{"x":1}`}}},
		{"always 0, without ends", chunks(start(zero, text("hi")), start(zero, call("a")), start(zero, call("b")), args(zero, `{"x":1}`), end),
			[]convo.Part{convo.Text("hi"), of("a"), convo.ToolCall{ID: "b", Name: "f", Arguments: `{"x":1}`}}},
		{"from 0 again", chunks(start(zero, text("a")), stop(zero), start(one, text("b")), stop(one), start(zero, text("c")), stop(zero), start(one, text("d")), stop(one), start(two, text("e")), stop(two), end),
			[]convo.Part{convo.Text("a"), convo.Text("b"), convo.Text("c"), convo.Text("d"), convo.Text("e")}},
		{"falling", chunks(start(two, text("c")), start(zero, text("a")), start(one, text("b")), delta(two, "!"), end), []convo.Part{convo.Text("a"), convo.Text("b"), convo.Text("c!")}},
		{"none", chunks(start(none, text("a")), delta(none, "b"), stop(none), start(none, call("a")), args(none, `{"x":1}`), stop(none), start(none, text("c")), end),
			[]convo.Part{convo.Text("ab"), convo.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}, convo.Text("c")}},
		{"none, and no start", chunks(delta(none, "a"), delta(none, "b"), stop(none), end), []convo.Part{convo.Text("ab")}},
		{"a start twice", chunks(start(zero, text("")), start(zero, text("")), delta(zero, "a"), start(one, call("a")), start(one, call("a")), args(one, `{}`), stop(one), end), []convo.Part{convo.Text("a"), of("a")}},
		{"a start twice, of a call that has begun", chunks(start(one, call("a")), args(one, `{"x":`), start(one, call("a")), args(one, `1}`), stop(one), end), []convo.Part{convo.ToolCall{ID: "a", Name: "f", Arguments: `{"x":1}`}}},
		{"the same block twice", chunks(start(zero, text("a")), stop(zero), start(zero, text("a")), stop(zero), end), []convo.Part{convo.Text("a"), convo.Text("a")}},
		{"a start again behind text", chunks(start(zero, text("")), delta(zero, "a"), start(zero, text("")), delta(zero, "b"), end), []convo.Part{convo.Text("a"), convo.Text("b")}},
		{"a text at the index of a thought", chunks(start(zero, `{"type":"thinking","thinking":"hm"}`), delta(zero, "a"), end), []convo.Part{convo.Reasoning{Text: "hm"}, convo.Text("a")}},
		{"in the start of the message", chunks(`{"type":"message_start","message":{"role":"assistant","content":[`+text("a")+`]}}`, start(zero, text("b")), end), []convo.Part{convo.Text("a"), convo.Text("b")}},
	} {
		got, deltas := streamed(t, wire.Anthropic{}, tt.events)
		require.Len(t, got.Messages, 1, tt.name)
		assert.Equal(t, tt.want, got.Messages[0].Parts, tt.name)
		assert.Empty(t, got.Lost, tt.name)
		_, _, calls := shown(deltas)
		assert.Len(t, calls, len(got.Messages[0].ToolCalls()), tt.name)
	}
	for want, data := range map[string]string{
		"wire: index: block 1 has not begun":             stop(one),
		"wire: index: block 0 has not begun":             stop(none),
		"wire: index: want a whole number, got a string": stop(`"index":"x",`),
		"wire: content_block: want a JSON":               start(zero, "7"),
		"wire: message.content[0]: want a JSON":          `{"type":"message_start","message":{"content":[7]}}`,
	} {
		_, err := wire.Anthropic{}.Stream().Event("", []byte(data))
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%v", err)
	}
}

// A call whose block has ended is whole, even if the end of the answer states no reason.
// If the reason is that the answer was cut off, the call was cut off.
func TestStream_EndedCalls(t *testing.T) {
	for _, args := range []string{`{}`, `{"x":`, ``} {
		anthropic := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + jsonOf(args) + `}}`
		converse := `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"b","name":"g"}}}}{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":` + jsonOf(args) + `}}}}`
		for _, tt := range []struct {
			format wire.Format
			body   string
			whole  bool
		}{
			{wire.Anthropic{}, anthropic + `{"type":"content_block_stop","index":0}`, true},
			{wire.Anthropic{}, anthropic + `{"type":"content_block_stop","index":0}{"type":"message_stop"}`, true},
			{wire.Anthropic{}, anthropic + `{"type":"message_stop"}`, false},
			{wire.Anthropic{}, anthropic + `{"type":"content_block_stop","index":0}{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}{"type":"message_stop"}`, false},
			{wire.Converse{}, converse + `{"contentBlockStop":{"contentBlockIndex":0}}`, true},
			{wire.Converse{}, converse + `{"contentBlockStop":{"contentBlockIndex":0}}{"messageStop":{}}`, true},
			{wire.Converse{}, converse + `{"messageStop":{}}`, false},
			{wire.Converse{}, converse + `{"contentBlockStop":{"contentBlockIndex":0}}{"messageStop":{"stopReason":"max_tokens"}}`, false},
		} {
			_, got, _, _ := readStream(tt.format, strings.NewReader(tt.body))
			assert.Equal(t, tt.whole, len(streamedCalls(got)) == 1, tt.body)
			assert.Equal(t, tt.whole, got.CutOff == nil, tt.body)
		}
	}
}
