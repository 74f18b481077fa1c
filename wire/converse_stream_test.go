package wire_test

import (
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

func init() {
	ends := func(e event) bool { return strings.Contains(e.data, `"stopReason":`) }
	streamCases["converse"] = streamCase{
		format: wire.Converse{Model: "claude"},
		answer: func(g *streamGenerator) (string, []event) { return converseStreamAnswer(g, true) },
		ends:   ends,
	}
}

// converseStreamAnswer returns a random answer of Converse, whole and as events, which
// have their names around them or next to them.
func converseStreamAnswer(g *streamGenerator, wrapped bool) (string, []event) {
	var whole []string
	var blocks [][]event
	make := func(name, data string) event {
		if wrapped {
			return event{"", fmt.Sprintf(`{%q:%s}`, name, data)}
		}
		return event{name, data}
	}
	add := func(block, start string, deltas []string) {
		i := len(whole)
		whole = append(whole, block)
		var events []event
		if start != "" {
			events = append(events, make("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":%s}`, i, start)))
		}
		for _, d := range deltas {
			events = append(events, make("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":%s,"p":"abcde"}`, i, d)))
		}
		if g.IntN(5) > 0 || start != "" { // some servers leave out the ends of texts
			events = append(events, make("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, i)))
		}
		blocks = append(blocks, events)
	}
	deltas := func(format, text string) (list []string) {
		for _, piece := range g.cut(text) {
			list = append(list, fmt.Sprintf(format, jsonOf(piece)))
		}
		return list
	}
	stop := "end_turn"
	for i := range g.IntN(6) {
		switch g.IntN(6) {
		case 0, 1:
			text := g.text()
			list := deltas(`{"text":%s}`, text)
			if g.IntN(3) > 0 {
				add(`{"text":`+jsonOf(text)+`}`, "", list)
				break
			}
			const one, two = `{"title":"A","location":{"web":{"url":"https://a"}}}`, `{"title":"B","source":"b"}`
			list = slices.Insert(list, g.IntN(len(list)+1), `{"citation":`+one+`}`)
			add(`{"citationsContent":{"content":[{"text":`+jsonOf(text)+`}],"citations":[`+one+`,`+two+`]}}`, "", append(list, `{"citation":`+two+`}`))
		case 2:
			text, sign := g.text(), g.pick("", "c2ln", "EqQB+/==")
			block := `{"reasoningContent":{"reasoningText":{"text":` + jsonOf(text) + `,"signature":` + jsonOf(sign) + `}}}`
			add(block, "", append(deltas(`{"reasoningContent":{"text":%s}}`, text), deltas(`{"reasoningContent":{"signature":%s}}`, sign)...))
		case 3:
			list := [][]string{{`{"reasoningContent":{"redactedContent":"YWJjZGVm"}}`}, {`{"reasoningContent":{"redactedContent":"YQ=="}}`, `{"reasoningContent":{"redactedContent":"YmNkZWY="}}`}}
			add(`{"reasoningContent":{"redactedContent":"YWJjZGVm"}}`, "", list[g.IntN(2)])
		case 4:
			args := g.arguments()
			head := fmt.Sprintf(`{"toolUse":{"toolUseId":"tooluse_%d","name":%q`, i, g.pick("search", "run"))
			var list []string
			if args != "{}" || g.IntN(2) == 0 {
				list = append(deltas(`{"toolUse":{"input":%s}}`, args), `{"toolUse":{"input":""}}`)
			}
			add(head+`,"input":`+args+"}}", head+"}}", list)
			stop = "tool_use"
		case 5:
			head := fmt.Sprintf(`{"toolUse":{"toolUseId":"srv_%d","name":"search","type":"server_tool_use"`, i)
			add(head+`,"input":{"q":"a"}}}`, head+"}}", deltas(`{"toolUse":{"input":%s}}`, `{"q":"a"}`))
			head = fmt.Sprintf(`{"toolResult":{"toolUseId":"srv_%d","status":"success"`, i)
			add(head+`,"content":[{"json":{"a":1}},{"text":"b"}]}}`, head+`}}`, []string{`{"toolResult":[{"json":{"a":1}}]}`, `{"toolResult":[{"text":"b"}]}`})
		}
	}
	if g.IntN(6) == 0 {
		stop = "max_tokens"
	}
	const usage = `{"inputTokens":12,"cacheReadInputTokens":30,"outputTokens":77,"totalTokens":119}`
	body := fmt.Sprintf(`{"output":{"message":{"role":"assistant","content":[%s]}},"stopReason":%q,"usage":%s,"metrics":{"latencyMs":7}}`, strings.Join(whole, ","), stop, usage)
	out := []event{make("messageStart", `{"role":"assistant"}`)}
	if g.IntN(4) == 0 {
		out = nil // in some recordings
	}
	for _, events := range blocks {
		out = append(out, events...)
	}
	end := []event{make("messageStop", fmt.Sprintf(`{"stopReason":%q,"additionalModelResponseFields":null}`, stop)), make("metadata", `{"usage":`+usage+`,"metrics":{"latencyMs":7}}`)}
	if g.IntN(2) == 0 {
		end[0], end[1] = end[1], end[0]
	}
	return body, append(out, end...)
}

// The names of the events may be next to them.
func TestConverseStream_Names(t *testing.T) {
	f := streamCases["converse"].format
	for seed := range 300 {
		g := newStreamGenerator(seed, 1)
		_, wrapped := converseStreamAnswer(g, true)
		g = newStreamGenerator(seed, 1)
		_, named := converseStreamAnswer(g, false)
		one, deltas := feed(t, f, wrapped)
		two, others := feed(t, f, named)
		want, err := one.Transcript()
		require.NoError(t, err)
		got, err := two.Transcript()
		require.NoError(t, err)
		requireSame(t, want, got)
		require.Equal(t, deltas, others)
	}
}

func TestConverseStream_Recorded(t *testing.T) {
	// In some recordings the usage follows the end, and must not begin another answer.
	recordedEvents(t, "amazon-bedrock__", func(event) bool { return false }, func(t *testing.T, events []event) {
		got, deltas := streamed(t, wire.Converse{}, events)
		require.Len(t, got.Messages, 1)
		assert.Nil(t, got.CutOff)
		assert.Empty(t, got.Lost)
		metadata := false
		for _, e := range events {
			metadata = metadata || strings.Contains(e.data, `"metadata"`)
		}
		assert.Equal(t, metadata, got.Usage.Input > 0 && got.Usage.Output > 0)
		text, reasoning, calls := shown(deltas)
		said, thought, made := contentOf(got.Messages)
		assert.Equal(t, said, text)
		assert.Equal(t, thought, reasoning)
		assert.Equal(t, made, calls)
		for _, c := range calls {
			assert.True(t, c.Valid(), c.Arguments)
			assert.Equal(t, convo.StopToolCall, got.Stop)
		}
		if strings.Contains(t.Name(), "reasoning") {
			r, ok := got.Messages[0].Parts[0].(convo.Reasoning)
			assert.True(t, ok)
			assert.Len(t, r.Signature, 388)
		}
		historyOf(t, convo.User("x"), got.Messages[0])
	})
}

func TestConverseStream_Errors(t *testing.T) {
	for _, tt := range []struct {
		name, event, data string
		kind, message     string // of the ProviderError
		overflow          bool
	}{
		{"wrapped", "", `{"throttlingException":{"message":"Too many tokens, please wait before trying again."}}`, "throttlingException", "Too many tokens, please wait before trying again.", false},
		{"named", "modelStreamErrorException", `{"message":"broken","originalStatusCode":500,"originalMessage":"x"}`, "modelStreamErrorException", "broken", false},
		{"named and wrapped", "internalServerException", `{"internalServerException":{"message":"broken"}}`, "internalServerException", "broken", false},
		{"too long", "validationException", `{"message":"Input is too long for requested model."}`, "validationException", "Input is too long for requested model.", true},
		{"too long, wrapped", "", `{"validationException":{"message":"The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum"}}`, "validationException", "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum", true},
		{"not too long", "", `{"validationException":{"message":"The model ID is not valid."}}`, "validationException", "The model ID is not valid.", false},
		{"away", "", `{"serviceUnavailableException":{"message":"Service unavailable"}}`, "serviceUnavailableException", "Service unavailable", false},
		{"an error body", "", `{"message":"The security token is expired"}`, "", "The security token is expired", false},
		{"of a proxy", "", `{"error":{"type":"x","message":"no"}}`, "x", "no", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := feed(t, wire.Converse{}, chunks(`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"so far"}}}`))
			_, err := s.Event(tt.event, []byte(tt.data))
			e, ok := errors.AsType[*wire.ProviderError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, tt.kind, e.Type)
			assert.Equal(t, tt.message, e.Message)
			assert.Equal(t, tt.overflow, convo.IsOverflow(err))
			got, again := s.Transcript()
			assert.Equal(t, err, again)
			assert.Equal(t, "so far", got.Messages[0].Text())
		})
	}
	checkRefusedEvents(t, wire.Converse{}, map[string][]event{
		"wire: the event has no name":                                chunks(`{}`),
		"wire: want a JSON object":                                   chunks(`[]`),
		"wire: contentBlockIndex: block 1 is no call that has begun": chunks(`{"contentBlockDelta":{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{"}}}}`),
		"wire: contentBlockIndex: want a whole number, got a string": chunks(`{"contentBlockStop":{"contentBlockIndex":"a"}}`),
		"wire: delta: want a JSON object":                            chunks(`{"contentBlockDelta":{"contentBlockIndex":1}}`),
		"wire: a second answer begins":                               chunks(`{"messageStop":{"stopReason":"end_turn"}}`, `{"messageStart":{"role":"assistant"}}`),
	})
}

func TestConverseStream_Blocks(t *testing.T) {
	delta := func(index int, d string) string {
		return fmt.Sprintf(`{"contentBlockDelta":{"contentBlockIndex":%d,"delta":%s}}`, index, d)
	}
	const stop = `{"messageStop":{"stopReason":"end_turn"}}`
	call := func(id string) string {
		return `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"` + id + `","name":"f"}}}}`
	}
	for _, tt := range []struct {
		name   string
		events []event
		want   []convo.Part
		cut    *convo.ToolCall
		lost   []wire.Loss
	}{
		{"blocks without ends", chunks(delta(0, `{"text":"a"}`), delta(1, `{"text":"b"}`), stop), []convo.Part{convo.Text("a"), convo.Text("b")}, nil, nil},
		{"one index for all", chunks(delta(0, `{"text":"a"}`), call("c"), delta(0, `{"toolUse":{"input":"{\"x\":1}"}}`), delta(0, `{"text":"b"}`), call("d"), stop),
			[]convo.Part{convo.Text("a"), convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":1}`}, convo.Text("b"), convo.ToolCall{ID: "d", Name: "f", Arguments: "{}"}}, nil, nil},
		{"one index again", chunks(delta(0, `{"text":"a"}`), `{"contentBlockStop":{"contentBlockIndex":0}}`, delta(0, `{"text":"b"}`), stop), []convo.Part{convo.Text("a"), convo.Text("b")}, nil, nil},
		{"no index", chunks(`{"contentBlockDelta":{"delta":{"text":"a"}}}`, `{"contentBlockStop":{}}`, stop), []convo.Part{convo.Text("a")}, nil, nil},
		{"a start twice", chunks(call("c"), call("c"), stop), []convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}}, nil, nil},
		{"a start twice, with another block", chunks(call("c"), `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"c"},"video":{"format":"mp4"}}}}`, stop),
			[]convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}, convo.Opaque{Format: "converse", JSON: `{"video":{"format":"mp4"}}`}}, nil, nil},
		{"a start with a null", chunks(`{"contentBlockStart":{"contentBlockIndex":0,"start":{"image":null,"toolUse":{"toolUseId":"c","name":"f"}}}}`, stop),
			[]convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}}, nil, nil},
		{"thoughts of both kinds", chunks(delta(0, `{"reasoningContent":{"redactedContent":"eA=="}}`), delta(0, `{"reasoningContent":{"text":"hm"}}`), delta(0, `{"reasoningContent":{"signature":"s"}}`), stop),
			[]convo.Part{convo.Reasoning{Encrypted: "eA=="}, convo.Reasoning{Text: "hm", Signature: "s"}}, nil, nil},
		{"thoughts that no signature parts", chunks(delta(0, `{"reasoningContent":{"text":"a"}}`), delta(1, `{"reasoningContent":{"text":"b"}}`), stop),
			[]convo.Part{convo.Reasoning{Text: "a"}, convo.Reasoning{Text: "b"}}, nil, nil},
		{"citations", chunks(delta(0, `{"text":"a"}`), delta(0, `{"citation":{"title":"t"}}`), delta(0, `{"citation":{"title":"u"}}`), stop),
			[]convo.Part{convo.Text("a"), convo.Opaque{Format: "converse", JSON: `{"citationsContent":{"citations":[{"title":"t"},{"title":"u"}]}}`}}, nil, nil},
		{"an image", chunks(`{"contentBlockStart":{"contentBlockIndex":0,"start":{"image":{"format":"png"}}}}`, delta(0, `{"image":{"source":{"bytes":"eA=="}}}`), stop),
			[]convo.Part{convo.Opaque{Format: "converse", JSON: `{"image":{"format":"png","source":{"bytes":"eA=="}}}`}}, nil, nil},
		{"a result in pieces", chunks(`{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"s","name":"g","type":"server_tool_use"}}}}`, `{"contentBlockStop":{"contentBlockIndex":0}}`,
			`{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolResult":{"toolUseId":"s"}}}}`, delta(1, `{"toolResult":[{"text":"x"}]}`), delta(1, `{"toolResult":[{"json":{}}]}`), stop),
			[]convo.Part{convo.Opaque{Format: "converse", JSON: `{"toolUse":{"toolUseId":"s","name":"g","type":"server_tool_use","input":{}}}`}, convo.Opaque{Format: "converse", JSON: `{"toolResult":{"toolUseId":"s","content":[{"text":"x"},{"json":{}}]}}`}}, nil, nil},
		{"what is not known", chunks(`{"pulse":{}}`, delta(0, `{"text":"a","mood":7}`), delta(0, `{"reasoningContent":{"depth":7}}`), stop),
			[]convo.Part{convo.Text("a")}, nil, []wire.Loss{{Path: "pulse", What: "an event of an unknown kind"}, {Path: "delta.mood", What: "no place for this field"}, {Path: "delta.reasoningContent.depth", What: "no place for this field"}}},
		{"arguments that are no object, ended", chunks(call("c"), delta(0, `{"toolUse":{"input":"{\"x\":"}}`), `{"contentBlockStop":{"contentBlockIndex":0}}`, stop),
			[]convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":`}}, nil, nil},
		{"a call cut off", chunks(delta(0, `{"text":"a"}`), call("c"), delta(0, `{"toolUse":{"input":"{\"x\":"}}`)), []convo.Part{convo.Text("a")}, &convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":`}, nil},
		{"a call right after its name", chunks(delta(0, `{"text":"a"}`), call("c")), []convo.Part{convo.Text("a")}, &convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}, nil},
		{"a call between", chunks(call("c"), `{"contentBlockStop":{"contentBlockIndex":0}}`, `{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"s","name":"g","type":"server_tool_use"}}}}`),
			[]convo.Part{convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}}, nil, []wire.Loss{{Path: "content[1]", What: "a block that the provider had not ended"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := feed(t, wire.Converse{}, tt.events)
			got, err := s.Transcript()
			assert.Equal(t, s.Done(), err == nil, "%v", err)
			require.Len(t, got.Messages, 1)
			assert.Equal(t, tt.want, got.Messages[0].Parts)
			assert.Equal(t, tt.cut, got.CutOff)
			assert.Equal(t, tt.lost, got.Lost)
		})
	}
}
