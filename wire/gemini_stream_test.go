package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

func init() {
	streamCases["gemini"] = streamCase{
		format: wire.Gemini{},
		answer: geminiStreamAnswer,
		ends:   func(e event) bool { return strings.Contains(e.data, `"finishReason":"`) },
	}
}

// geminiArguments are arguments with the values that they consist of, in order.
var geminiArguments = []struct {
	whole  string
	values [][2]string // path and value
}{
	{`{"location":"San \"Francisco\" 日本"}`, [][2]string{{"$.location", `"San \"Francisco\" 日本"`}}},
	{`{"n":1.50,"yes":true,"none":null,"empty":""}`, [][2]string{{"$.n", "1.50"}, {"$.yes", "true"}, {"$['none']", "null"}, {"$.empty", `""`}}},
	{`{"a":{"list":[{"x":"one","y":2},{"x":"two"}],"z":[["p"],["q","r"]]},"last":"end"}`, [][2]string{
		{"$.a.list[0].x", `"one"`}, {"$.a.list[0].y", "2"}, {"$.a.list[1].x", `"two"`}, {"$.a.z[0][0]", `"p"`},
		{"$.a.z[1][0]", `"q"`}, {"$.a.z[1][1]", `"r"`}, {"$.last", `"end"`}}},
	{`{"list":[null,null,"third",null,5],"b":false}`, [][2]string{{"$.list[2]", `"third"`}, {"$.list[4]", "5"}, {"$.b", "false"}}},
	{`{"a.b":{"[c]":"d"}}`, [][2]string{{`$["a.b"]['[c]']`, `"d"`}}},
}

// geminiPieces returns the functionCalls that stream arguments in pieces.
func geminiPieces(g *streamGenerator, values [][2]string) (pieces []string) {
	for _, v := range values {
		path, value := jsonOf(v[0]), v[1]
		var text string
		switch {
		case json.Unmarshal([]byte(value), &text) == nil && value != "null":
			for _, piece := range g.cut(text) {
				pieces = append(pieces, fmt.Sprintf(`{"partialArgs":[{"jsonPath":%s,"stringValue":%s,"willContinue":true}],"willContinue":true}`, path, jsonOf(piece)))
			}
			pieces = append(pieces, fmt.Sprintf(`{"partialArgs":[{"jsonPath":%s,"stringValue":""}],"willContinue":true}`, path))
		case value == "null":
			pieces = append(pieces, fmt.Sprintf(`{"partialArgs":[{"jsonPath":%s,"nullValue":%s}],"willContinue":true}`, path, g.pick("null", `"NULL_VALUE"`)))
		case value == "true" || value == "false":
			pieces = append(pieces, fmt.Sprintf(`{"partial_args":[{"json_path":%s,"bool_value":%s}],"will_continue":true}`, path, value))
		default:
			pieces = append(pieces, fmt.Sprintf(`{"partialArgs":[{"jsonPath":%s,"numberValue":%s}],"willContinue":true}`, path, value))
		}
		if g.IntN(4) == 0 {
			pieces = append(pieces, `{"willContinue":true}`)
		}
	}
	return pieces
}

// geminiStreamAnswer returns a random answer of generateContent, whole and as chunks.
func geminiStreamAnswer(g *streamGenerator) (string, []event) {
	var whole, pieces []string // parts
	both := func(part string) { whole, pieces = append(whole, part), append(pieces, part) }
	finish := g.pick("STOP", "STOP", "STOP", "MAX_TOKENS")
	sign := func() string { return g.pick("", "", fmt.Sprintf(`,"thoughtSignature":"c2ln%d"`, g.IntN(10))) }
	for i := range g.IntN(7) {
		switch g.IntN(8) {
		case 0, 1, 2:
			text, thought := g.text(), g.pick("", `,"thought":true`)
			whole = append(whole, `{"text":`+jsonOf(text)+thought+`}`)
			for _, piece := range g.cut(text) {
				pieces = append(pieces, `{"text":`+jsonOf(piece)+thought+`}`)
			}
		case 3:
			both(`{"text":` + jsonOf(g.text()) + g.pick("", `,"thought":true`) + sign() + `}`)
		case 4:
			both(g.pick(`{"text":"","thoughtSignature":"c2ln"}`, `{"inlineData":{"mimeType":"image/png","data":"eA=="}}`, `{"executableCode":{"language":"PYTHON","code":"1"}}`))
		case 5:
			both(fmt.Sprintf(`{"functionCall":{%s"name":"search","args":%s}%s}`, g.pick("", fmt.Sprintf(`"id":"c%d",`, i)), g.arguments(), sign()))
		case 6:
			both(`{"functionCall":{"name":"now"}` + sign() + `}`)
		case 7:
			a := geminiArguments[g.IntN(len(geminiArguments))]
			id, sign := g.pick("", fmt.Sprintf(`"id":"c%d",`, i)), sign()
			whole = append(whole, fmt.Sprintf(`{"functionCall":{%s"name":"write","args":%s}%s}`, id, a.whole, sign))
			pieces = append(pieces, fmt.Sprintf(`{"functionCall":{%s"name":"write","willContinue":true}%s}`, id, sign))
			for _, p := range geminiPieces(g, a.values) {
				pieces = append(pieces, `{"functionCall":`+p+`}`)
			}
			if g.IntN(3) > 0 || finish != "STOP" {
				pieces = append(pieces, `{"functionCall":{}}`)
			}
		}
	}
	const usage = `{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":20,"thoughtsTokenCount":5,"totalTokenCount":125}`
	const names = `"modelVersion":"gemini-3-pro","responseId":"r1"`
	body := fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":%q,"index":0}],"usageMetadata":%s,%s}`, strings.Join(whole, ","), finish, usage, names)

	var out []event
	push := func(parts []string, end string) {
		if g.IntN(10) == 0 {
			out = append(out, event{"", `{"usageMetadata":{"promptTokenCount":7},` + names + `}`})
		}
		out = append(out, event{"", fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]}%s,"index":0}],"usageMetadata":{"promptTokenCount":90,"trafficType":"ON_DEMAND"},%s}`,
			strings.Join(parts, ","), end, names)})
	}
	for len(pieces) > 0 {
		n := min(1+g.IntN(2), len(pieces))
		push(pieces[:n], "")
		pieces = pieces[n:]
	}
	last := []string{`{"text":""}`}
	push(last[:g.IntN(2)], fmt.Sprintf(`,"finishReason":%q`, finish))
	out = append(out, event{"", `{"usageMetadata":` + usage + `,` + names + `}`})
	return body, out
}

func TestGeminiStream_Recorded(t *testing.T) {
	want := map[string][]string{ // the arguments of the calls in each file
		"google-stream-no-args-tool-call":                                        {"", `{"id":"A"}`, `{"id":"B"}`, `{"id":"C"}`},
		"google-stream-tool-call-arguments":                                      {`{"location":"Boston"}`, `{"location":"San Francisco"}`},
		"google-stream-tool-call-array-arguments-missing-terminal-function-call": {`{"operations":[{"action":"add","description":"Fresh red apple","itemid":"apple_001","price":0.5},{"action":"add","description":"Ripe yellow banana","itemid":"banana_001","price":0.3}]}`},
		"google-text":      nil,
		"google-tool-call": {`{"location":"San Francisco"}`},
	}
	recordedEvents(t, "google__google-", streamCases["gemini"].ends, func(t *testing.T, events []event) {
		got, deltas := streamed(t, wire.Gemini{}, events)
		require.Len(t, got.Messages, 1)
		assert.NotZero(t, got.Usage.Input)
		assert.NotZero(t, got.Usage.Output)
		assert.Equal(t, "STOP", got.StopReason)
		assert.Nil(t, got.CutOff)
		assert.Empty(t, got.Lost)
		text, reasoning, calls := shown(deltas)
		said, thought, made := contentOf(got.Messages)
		assert.Equal(t, said, text)
		assert.Equal(t, thought, reasoning)
		historyOf(t, convo.User("x"), got.Messages[0])

		_, name, _ := strings.Cut(t.Name(), "google__")
		name = strings.TrimSuffix(name, "_0")
		var arguments []string
		for i, c := range made {
			arguments = append(arguments, c.Arguments)
			assert.Equal(t, c.Arguments, calls[i].Arguments)
			assert.Equal(t, c.Name, calls[i].Name)
		}
		if strings.Contains(name, "nested") {
			require.Len(t, made, 1)
			var recipe struct {
				Recipe struct {
					Name        string
					Ingredients []struct{ Amount, Name string }
					Steps       []string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(arguments[0]), &recipe))
			assert.Equal(t, "Lasagna", recipe.Recipe.Name)
			assert.Len(t, recipe.Recipe.Ingredients, 10)
			assert.Len(t, recipe.Recipe.Steps, 10)
			return
		}
		assert.Equal(t, want[name], arguments)

		// The chunks as one array are the same answer.
		var list []string
		for _, e := range events {
			list = append(list, e.data)
		}
		whole := mustDecode(t, wire.Gemini{}, []byte("["+strings.Join(list, ",")+"]"))
		requireSame(t, got, whole)
	})
}

// chunks returns events without names.
func chunks(list ...string) (events []event) {
	for _, data := range list {
		events = append(events, event{"", data})
	}
	return events
}

// Signatures stay with the parts that they were received with.
func TestGeminiStream_Signatures(t *testing.T) {
	part := func(s string) string { return `{"candidates":[{"content":{"role":"model","parts":[` + s + `]}}]}` }
	got, _ := streamed(t, wire.Gemini{}, chunks(
		part(`{"text":"hm ","thought":true}`), part(`{"text":"so","thought":true}`),
		part(`{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"one"}`),
		part(`{"functionCall":{"id":"b","name":"f","args":{}}}`),
		part(`{"text":"x"}`), part(`{"text":"y","thoughtSignature":"two"}`), part(`{"text":"z"}`),
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"","thoughtSignature":"three"}]},"finishReason":"STOP"}]}`))
	assert.Equal(t, []convo.Part{
		convo.Reasoning{Text: "hm so"},
		convo.Reasoning{Signature: "one", ID: "a"}, convo.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, convo.ToolCall{ID: "b", Name: "f", Arguments: "{}"},
		convo.Text("x"), convo.Reasoning{Signature: "two"}, convo.Text("y"), convo.Text("z"),
		convo.Opaque{Format: "gemini", JSON: `{"text":"","thoughtSignature":"three"}`},
	}, got.Messages[0].Parts)
}

func TestGeminiStream_Ends(t *testing.T) {
	text := `{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}],"responseId":"1"}`
	call := `{"candidates":[{"content":{"parts":[{"text":"a"},{"functionCall":{"name":"f","willContinue":true},"thoughtSignature":"s"}]}}]}`
	piece := `{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.x","stringValue":"y","willContinue":true}],"willContinue":true}}]}}]}`
	end := func(reason string) string { return `{"candidates":[{"finishReason":"` + reason + `"}]}` }
	for _, tt := range []struct {
		name   string
		events []event
		stop   convo.Stop
		reason string
		text   string
		calls  int
		cut    string // the arguments of a call that was cut off
		err    error  // of Transcript
		usage  int
	}{
		{"each chunk ends, as of old models", chunks(text, text, text), convo.StopDone, "STOP", "aaa", 0, "", nil, 0},
		{"a blocked prompt", chunks(`{"promptFeedback":{"blockReason":"OTHER"},"usageMetadata":{"promptTokenCount":7}}`), convo.StopRefused, "OTHER", "", 0, "", nil, 7},
		{"a blocked answer", chunks(`{"candidates":[{"finishReason":"SAFETY","index":0}],"usageMetadata":{"promptTokenCount":7}}`), convo.StopRefused, "SAFETY", "", 0, "", nil, 7},
		{"a malformed call", chunks(`{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}],"usageMetadata":{"promptTokenCount":7}}`), convo.StopRefused, "MALFORMED_FUNCTION_CALL", "", 0, "", nil, 7},
		{"no end", chunks(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`), convo.StopDone, "FINISH_REASON_UNSPECIFIED", "a", 0, "", io.ErrUnexpectedEOF, 0},
		{"nothing", nil, convo.StopDone, "", "", 0, "", io.ErrUnexpectedEOF, 0},
		{"only usage", chunks(`{"usageMetadata":{"promptTokenCount":7}}`), convo.StopDone, "", "", 0, "", io.ErrUnexpectedEOF, 7},
		{"a call without its end", chunks(call, piece, end("STOP")), convo.StopToolCall, "STOP", "a", 1, "", nil, 0},
		{"a call before another", chunks(call, piece, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"g"}}]}}]}`, end("MAX_TOKENS")), convo.StopLength, "MAX_TOKENS", "a", 2, "", nil, 0},
		{"a call before a thought", chunks(call, piece, `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}`, end("MAX_TOKENS")), convo.StopLength, "MAX_TOKENS", "a", 1, "", nil, 0},
		{"a call cut by the bound", chunks(call, piece, end("MAX_TOKENS")), convo.StopLength, "MAX_TOKENS", "a", 0, `{"x":"y"}`, nil, 0},
		{"a call cut by the connection", chunks(call, piece), convo.StopDone, "", "a", 0, `{"x":"y"}`, io.ErrUnexpectedEOF, 0},
		{"a call ended twice", chunks(call, piece, `{"candidates":[{"content":{"parts":[{"functionCall":{}},{"functionCall":{}}]}}]}`, end("MAX_TOKENS")), convo.StopLength, "MAX_TOKENS", "a", 1, "", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := feed(t, wire.Gemini{}, tt.events)
			got, err := s.Transcript()
			assert.ErrorIs(t, err, tt.err)
			assert.Equal(t, tt.err == nil, s.Done())
			assert.Equal(t, tt.stop, got.Stop)
			assert.Equal(t, tt.reason, got.StopReason)
			assert.Equal(t, tt.usage, got.Usage.Input)
			var text strings.Builder
			calls := 0
			for _, m := range got.Messages {
				text.WriteString(m.Text())
				calls += len(m.ToolCalls())
			}
			assert.Equal(t, tt.text, text.String())
			assert.Equal(t, tt.calls, calls)
			if tt.cut != "" {
				require.NotNil(t, got.CutOff)
				assert.Equal(t, tt.cut, got.CutOff.Arguments)
				assert.Equal(t, []convo.Part{convo.Text("a")}, got.Messages[0].Parts, "without the signature of the call")
			} else {
				assert.Nil(t, got.CutOff)
			}
		})
	}
}

func TestGeminiStream_Errors(t *testing.T) {
	parts := func(s string) string { return `{"candidates":[{"content":{"parts":[` + s + `]}}]}` }
	begin := parts(`{"functionCall":{"name":"f","willContinue":true}}`)
	path := func(s string) string {
		return parts(`{"functionCall":{"partialArgs":[{"jsonPath":` + jsonOf(s) + `,"numberValue":1}],"willContinue":true}}`)
	}
	checkRefusedEvents(t, wire.Gemini{}, map[string][]event{
		"wire: want a JSON object, got an array":                                                                               chunks("[]"),
		"wire: candidates: want an array of candidates":                                                                        chunks(`{"candidates":7}`),
		"wire: candidates[0].content.parts[0].functionCall.name: the call has no function name":                                chunks(path("$.a")),
		"wire: candidates[0].content.parts[0].text: want a string":                                                             chunks(parts(`{"text":7}`)),
		`wire: candidates[0].content.parts[0].functionCall.partialArgs[0]: no path of an argument: "a"`:                        chunks(begin, path("a")),
		`wire: candidates[0].content.parts[0].functionCall.partialArgs[0]: no path of an argument: "$..a"`:                     chunks(begin, path("$..a")),
		`wire: candidates[0].content.parts[0].functionCall.partialArgs[0]: no path of an argument: "$[-1]"`:                    chunks(begin, path("$[-1]")),
		"wire: candidates[0].content.parts[0].functionCall.partialArgs[0]: element 1000000 is far behind the end of the array": chunks(begin, path("$.a[1000000]")),
		`wire: candidates[0].content.parts[0].functionCall.partialArgs[0]: no path of an argument: "$[0][0]`:                   chunks(begin, path("$"+strings.Repeat("[0]", 2000))),
		"wire: a second answer begins":                                  chunks(`{"candidates":[{"finishReason":"STOP"}],"responseId":"1"}`, `{"responseId":"2"}`),
		"wire: the provider reports RESOURCE_EXHAUSTED, 429: slow down": chunks(`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`),
	})
	s := wire.Gemini{}.Stream()
	_, err := s.Event("", []byte("oops"))
	require.ErrorAs(t, err, new(*wire.DecodeError))
	assert.ErrorContains(t, err, "oops")
	_, again := s.Event("", []byte(`{}`))
	assert.Equal(t, err, again)
	_, again = s.Transcript()
	assert.Equal(t, err, again)
	s = wire.Gemini{}.Stream()
	_, err = s.Event("", []byte(`{"error":{"code":400,"message":"The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`))
	assert.True(t, convo.IsOverflow(err))
}

func TestGeminiStream_Restart(t *testing.T) {
	chunk := func(id, text string) string {
		return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%q}]}}],"responseId":%q}`, text, id)
	}
	got, deltas := streamed(t, wire.Gemini{}, chunks(chunk("a", "one"), chunk("b", "two"), `{"candidates":[{"finishReason":"STOP"}]}`))
	assert.Equal(t, "two", got.Messages[0].Text())
	assert.Equal(t, "b", got.ID)
	assert.Equal(t, []wire.Delta{{Text: "one"}, {Restart: true}, {Text: "two"}}, deltas)
}

// Arguments are assembled from values in any order, even if later values replace earlier
// ones. The text in the deltas is a prefix of the arguments, or it stops.
func TestGeminiStream_Arguments(t *testing.T) {
	for _, tt := range []struct{ name, args, want, shown string }{
		{"back to a closed object", `{"jsonPath":"$.a.x","numberValue":1},{"jsonPath":"$.b","numberValue":2},{"jsonPath":"$.a.y","numberValue":3}`, `{"a":{"x":1,"y":3},"b":2}`, `{"a":{"x":1},"b":2`},
		{"back in an array", `{"jsonPath":"$.a[2]","numberValue":1},{"jsonPath":"$.a[0]","numberValue":2}`, `{"a":[2,null,1]}`, `{"a":[null,null,1`},
		{"an object for a number", `{"jsonPath":"$.a","numberValue":1},{"jsonPath":"$.a.b","numberValue":2}`, `{"a":{"b":2}}`, `{"a":1`},
		{"a number for an object", `{"jsonPath":"$.a.b","numberValue":1},{"jsonPath":"$.a","numberValue":2}`, `{"a":2}`, `{"a":{"b":1`},
		{"a number twice", `{"jsonPath":"$.a","numberValue":1},{"jsonPath":"$.a","numberValue":2}`, `{"a":2}`, `{"a":1`},
		{"a string that is whole and goes on", `{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}`, `{"a":"xy"}`, `{"a":"xy"}`},
		{"a string that goes on later", `{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.b","boolValue":true},{"jsonPath":"$.a","stringValue":"y"}`, `{"a":"xy","b":true}`, `{"a":"x","b":true`},
		{"no object", `{"jsonPath":"$","stringValue":"x"}`, `"x"`, `"x"`},
		{"no value", `{"jsonPath":"$.a","willContinue":true}`, ``, ``},
		{"an array", `{"jsonPath":"$[0]","stringValue":"x"}`, `["x"]`, `["x"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, deltas := streamed(t, wire.Gemini{}, chunks(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[`+tt.args+`]}}]},"finishReason":"STOP"}]}`))
			assert.Equal(t, tt.want, got.Messages[0].ToolCalls()[0].Arguments)
			_, _, calls := shown(deltas)
			assert.Equal(t, tt.shown, calls[0].Arguments)
		})
	}
}

// A call that was received whole is shown with its arguments, if it has any.
func TestGeminiStream_WholeArguments(t *testing.T) {
	_, deltas := feed(t, wire.Gemini{}, chunks(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n": 1.0}}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"h","args":null}}]},"finishReason":"STOP"}]}`))
	_, _, calls := shown(deltas)
	assert.Equal(t, []convo.ToolCall{{Name: "f", Arguments: `{"n": 1.0}`}, {Name: "g"}, {Name: "h"}}, calls)
}

// Decode reads an array of chunks as one answer.
func TestGemini_DecodeChunks(t *testing.T) {
	for seed := range 200 {
		g := newStreamGenerator(seed, 5)
		whole, events := geminiStreamAnswer(g)
		var list []string
		for _, e := range events {
			list = append(list, e.data)
		}
		want := mustDecode(t, wire.Gemini{}, []byte(whole))
		got := mustDecode(t, wire.Gemini{}, []byte("["+strings.Join(list, ",")+"]"))
		requireSame(t, want, got)
	}
	for input, want := range map[string]string{
		`[{"candidates":[]},7]`:                                  "wire: [1]: want a JSON object, got a number",
		`[{"usageMetadata":{}},{"candidates":7}]`:                "wire: [1].candidates: want an array of candidates",
		`[{"error":{"code":400,"message":"API key not valid"}}]`: "wire: [0]: the provider reports 400: API key not valid",
	} {
		_, err := wire.Gemini{}.Decode([]byte(input))
		_, ok := errors.AsType[*wire.DecodeError](err)
		assert.True(t, ok, "%v", err)
		require.Error(t, err)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%v", err)
	}
}

// unreadStreams are the recordings that no format reads, by prefix of their names, with
// the reason.
var unreadStreams = map[string]string{
	"google__interactions__":       "the Interactions API is another protocol than generateContent",
	"google__speech-translation__": "the Live API is a session of sound and text in both directions, not an answer",
	"cohere__":                     "the Chat API of Cohere; its endpoint for Chat Completions is read",
}

// Each recording is read by a format, or is listed in unreadStreams with the reason.
func TestStreams_Unread(t *testing.T) {
	names, _ := filepath.Glob(filepath.Join(streams, "*.txt"))
	if len(names) == 0 {
		t.Skipf("no recorded streams in %s", streams)
	}
	begins := func(name string, list ...string) bool {
		return slices.ContainsFunc(list, func(prefix string) bool { return strings.HasPrefix(filepath.Base(name), prefix) })
	}
	unread := slices.Collect(maps.Keys(unreadStreams))
	for _, name := range names {
		assert.NotEqual(t, begins(name, unread...), begins(name, "anthropic__", "google__google-", "amazon-bedrock__", "openai__", "xai__responses__", "alibaba__",
			"cerebras__", "deepseek__", "groq__", "mistral__", "moonshotai__", "openai-compatible__"), name)
		if !begins(name, "google__", "cohere__") {
			continue
		}
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		s := wire.Gemini{}.Stream()
		for range wire.Read(bytes.NewReader(body), s) {
		}
		assert.Equal(t, !begins(name, unread...), s.Done(), name)
	}
}

// The memory and the deltas for arguments are linear in the bytes read, for any paths.
func TestGeminiStream_ArgumentPaths(t *testing.T) {
	for _, step := range []string{"[99]", "[1]", "[0]", "['a']", "[100]"} {
		begin := `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}`
		s, _ := feed(t, wire.Gemini{}, chunks(begin))
		in, out := len(begin), 0
		for i := range long.Or(40, 200) {
			data := fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"functionCall":{"willContinue":true,"partialArgs":[{"jsonPath":"$.k%d%s","stringValue":"a"}]}}]}}]}`, i, strings.Repeat(step, 900))
			in += len(data)
			deltas, err := s.Event("", []byte(data))
			for _, d := range deltas {
				out += len(d.Call.Arguments)
			}
			if err != nil {
				require.ErrorAs(t, err, new(*wire.DecodeError))
				assert.Contains(t, err.Error(), "far behind the end of the array")
				break
			}
		}
		got, _ := s.Transcript()
		require.NotNil(t, got.CutOff, step)
		assert.Less(t, out, 6*in, step)
		assert.Less(t, len(got.CutOff.Arguments), 6*in, step)
	}
	// Single elements may be left out.
	got, _ := streamed(t, wire.Gemini{}, chunks(
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[120]","numberValue":1}],"willContinue":true}}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{}}]},"finishReason":"STOP"}]}`))
	assert.Equal(t, `{"a":[`+strings.Repeat("null,", 120)+`1]}`, got.Messages[0].ToolCalls()[0].Arguments)
}
