package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// readStream reads a body, and returns the deltas, the Transcript, and the errors of Read
// and of Transcript.
func readStream(f wire.Format, r io.Reader) (deltas []wire.Delta, t wire.Transcript, last, err error) {
	s := f.(wire.Streamer).Stream()
	for d, e := range wire.Read(r, s) {
		if last = e; e == nil {
			deltas = append(deltas, d)
		}
	}
	t, err = s.Transcript()
	return deltas, t, last, err
}

// streamedText returns the texts of all messages.
func streamedText(t wire.Transcript) (text string) {
	for _, m := range t.Messages {
		text += m.Text()
	}
	return text
}

// streamedCalls returns the calls of all messages.
func streamedCalls(t wire.Transcript) (calls []convo.ToolCall) {
	for _, m := range t.Messages {
		calls = append(calls, m.ToolCalls()...)
	}
	return calls
}

// A quirk is a stream as some server sends it, and what the Transcript has.
type quirk struct {
	name   string
	events []event
	text   string
	calls  []string // ID, name and arguments; - for an ID that was made
	lost   []string
	stop   convo.Stop
}

func checkQuirks(t *testing.T, f wire.Format, quirks []quirk) {
	for _, tt := range quirks {
		t.Run(tt.name, func(t *testing.T) {
			got, deltas := streamed(t, f, tt.events)
			text, _, made := contentOf(got.Messages)
			var calls []string
			for _, c := range made {
				if c.Minted {
					c.ID = "-"
				}
				calls = append(calls, c.ID+" "+c.Name+" "+c.Arguments)
			}
			assert.Equal(t, tt.text, text)
			assert.Equal(t, tt.calls, calls)
			assert.Equal(t, tt.lost, listed(got.Lost))
			assert.Equal(t, tt.stop, got.Stop)
			text, _, _ = shown(deltas)
			assert.Equal(t, tt.text, text)
		})
	}
}

// An errorQuirk is an event with an error of the provider.
type errorQuirk struct {
	name     string
	e        event
	want     wire.ProviderError // without the JSON
	overflow bool
}

// checkErrorEvents gives each event to a stream after others, whose text is "so far". The
// Transcript has what was received before.
func checkErrorEvents(t *testing.T, f wire.Format, before []event, quirks []errorQuirk, check func(t *testing.T, got wire.Transcript)) {
	for _, tt := range quirks {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := feed(t, f, before)
			_, err := s.Event(tt.e.name, []byte(tt.e.data))
			e, ok := errors.AsType[*wire.ProviderError](err)
			require.True(t, ok, "%v", err)
			assert.JSONEq(t, e.JSON, e.JSON)
			got := *e
			got.JSON = ""
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.overflow, convo.IsOverflow(err))
			answer, err := s.Transcript()
			assert.ErrorIs(t, err, e)
			require.Len(t, answer.Messages, 1)
			assert.Equal(t, "so far", streamedText(answer))
			check(t, answer)
			assert.False(t, s.Done())
			_, err = s.Event("", []byte("[DONE]"))
			assert.ErrorIs(t, err, e)
		})
	}
}

// checkRefusedEvents checks that a stream refuses the last of some events, with an error that
// begins with the key, and stays with this error.
func checkRefusedEvents(t *testing.T, f wire.Format, refused map[string][]event) {
	for want, events := range refused {
		s := f.(wire.Streamer).Stream()
		var err error
		for _, e := range events {
			require.NoError(t, err)
			_, err = s.Event(e.name, []byte(e.data))
		}
		require.Error(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%s: %v", want, err)
		_, again := s.Event("", []byte(`{}`))
		assert.Equal(t, err, again, want)
		_, again = s.Transcript()
		assert.Equal(t, err, again, want)
	}
}

// textEvents are the events of an answer that is one text: the piece TEXT, and the end.
var textEvents = []struct {
	name       string
	format     wire.Format
	piece, end string
}{
	{"chat", wire.OpenAIChat{}, `{"choices":[{"delta":{"content":"TEXT"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`},
	{"chat, parts", wire.OpenAIChat{}, `{"choices":[{"delta":{"content":[{"type":"text","text":"TEXT"}]}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`},
	{"ollama", wire.OpenAIChat{Dialect: wire.Ollama}, `{"message":{"role":"assistant","content":"TEXT"},"done":false}`, `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`},
	{"responses", wire.OpenAIResponses{}, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"TEXT"}`, `{"type":"response.completed","response":{"output":[]}}`},
	{"anthropic", wire.Anthropic{}, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"TEXT"}}`, `{"type":"message_stop"}`},
	{"gemini", wire.Gemini{}, `{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
	{"converse", wire.Converse{}, `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"TEXT"}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
}

// A character whose two escapes arrive in two events is whole, and half of it is never
// shown. A half without a second half is U+FFFD.
func TestStream_HalfCharacters(t *testing.T) {
	for _, tt := range textEvents {
		for _, c := range []struct {
			pieces      []string
			text, shown string
		}{
			{[]string{`a\ud83d`, `\ude00b`}, "a😀b", "a😀b"},
			{[]string{`\ud83d`, ``, `\uDE00`}, "😀", "😀"},
			{[]string{`\\ud83d`, `\\ude00`}, `\ud83d\ude00`, `\ud83d\ude00`},
			{[]string{`\\\ud83d`, `\ude00`}, `\😀`, `\😀`},
			{[]string{`\ud83d`, `b`}, "\uFFFDb", "\uFFFDb"},
			{[]string{`\ud83d`, `\ud83d`, `\ude00`}, "\uFFFD😀", "\uFFFD😀"},
			{[]string{`a\ud83d`}, "a\uFFFD", "a"},
			{[]string{`a`, `\ude00`}, "a\uFFFD", "a\uFFFD"},
		} {
			var events []event
			for _, p := range c.pieces {
				events = append(events, event{"", strings.Replace(tt.piece, "TEXT", p, 1)})
			}
			got, deltas := streamed(t, tt.format, append(events, event{"", tt.end}))
			text, _, _ := shown(deltas)
			assert.Equal(t, c.text, streamedText(got), "%s: %q", tt.name, c.pieces)
			assert.Equal(t, c.shown, text, "%s: %q", tt.name, c.pieces)
		}
	}
}

// A half is kept for the rest of the text, in any form that it arrives in.
func TestStream_HalfCharactersElsewhere(t *testing.T) {
	for _, tt := range []struct {
		format wire.Format
		events []event
	}{
		{wire.OpenAIResponses{}, chunks(`{"type":"response.output_text.delta","output_index":0,"delta":"a\ud83d"}`, `{"type":"response.output_text.done","output_index":0,"text":"a😀"}`, `{"type":"response.completed","response":{"output":[]}}`)},
		{wire.OpenAIChat{}, chunks(`{"choices":[{"delta":{"content":"a\ud83d"}}]}`, `{"choices":[{"delta":{"content":[{"type":"text","text":"\ude00"}]},"finish_reason":"stop"}]}`)},
		{wire.OpenAIChat{}, chunks(`{"choices":[{"delta":{"content":[{"type":"text","text":"a\ud83d"}]}}]}`, `{"choices":[{"delta":{"content":"\ude00"},"finish_reason":"stop"}]}`)},
		{wire.Anthropic{}, chunks(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a\ud83d"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00"}}`, `{"type":"message_stop"}`)},
	} {
		got, deltas := streamed(t, tt.format, tt.events)
		assert.Equal(t, "a😀", streamedText(got), "%s", tt.events)
		assert.Equal(t, []wire.Delta{{Text: "a"}, {Text: "😀"}}, deltas, "%s", tt.events)
	}
}

// A clean end of r within an event is an error before the end of the answer, and none
// after it. A whole event at the end of r is read.
func TestRead_LastLine(t *testing.T) {
	for _, tt := range textEvents {
		piece := "data: " + strings.Replace(tt.piece, "TEXT", "a", 1)
		body := piece + "\n\n"
		for n := len(body) + 1; n < 2*len(body); n++ {
			_, got, last, err := readStream(tt.format, strings.NewReader(body+body[:n-len(body)]))
			require.ErrorIs(t, last, io.ErrUnexpectedEOF, "%s: %s", tt.name, body[:n-len(body)])
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			want := "a"
			if n >= len(body)+len(piece) {
				want = "aa"
			}
			require.Equal(t, want, streamedText(got), "%s: %s", tt.name, body[:n-len(body)])
		}
		done := body + "data: " + tt.end + "\n\n"
		for _, rest := range []string{"data: [DO", "data: [DONE]", "data: {\"usa", "da", "event: x", "data: {\"a\":\n", ": x", "data"} {
			_, got, last, err := readStream(tt.format, strings.NewReader(done+rest))
			assert.NoError(t, last, "%s, then %q", tt.name, rest)
			assert.NoError(t, err)
			assert.Equal(t, "a", streamedText(got))
		}
		if strings.HasPrefix(tt.name, "chat") {
			_, _, last, _ := readStream(tt.format, strings.NewReader(body+"data: [DONE]"))
			assert.NoError(t, last)
		}
		_, _, last, _ := readStream(tt.format, strings.NewReader(body+"event: error\ndata: overloaded\n"))
		assert.ErrorAs(t, last, new(*wire.ProviderError), "%s: the line of the error is whole", tt.name)
	}
}

// An error of r anywhere before the end of the answer is reported unchanged.
func TestRead_ReaderErrors(t *testing.T) {
	for _, tt := range textEvents {
		one := strings.Replace(tt.piece, "TEXT", "a", 1)
		for _, body := range []string{"", "[", "[" + one, "[" + one + ",", "[ " + one + " , " + one[:9], one, one[:9], "data: " + one + "\n\n", "data: " + one[:9], ": x"} {
			for _, broken := range []error{context.Canceled, io.ErrClosedPipe, io.ErrUnexpectedEOF} {
				once := io.MultiReader(strings.NewReader(body), &errorOnce{broken})
				_, _, last, err := readStream(tt.format, once)
				assert.ErrorIs(t, last, broken, "%s: behind %q", tt.name, body)
				assert.Error(t, err)
			}
		}
		_, _, last, err := readStream(tt.format, io.MultiReader(strings.NewReader("["+one+","+tt.end+"]"), iotest.ErrReader(context.Canceled)))
		assert.NoError(t, last, "%s: behind the end", tt.name)
		assert.NoError(t, err)
	}
}

// An errorOnce returns its error, and then io.EOF.
type errorOnce struct{ err error }

func (e *errorOnce) Read([]byte) (n int, err error) {
	err, e.err = e.err, io.EOF
	return 0, err
}

// An event with the name error is the provider's error, for any data, as is a field error
// that is not empty, and the body of an error without a type.
func TestStream_ErrorEvents(t *testing.T) {
	const tooLong = `{"type":"invalid_request_error","code":"context_length_exceeded","message":"prompt is too long"}`
	for _, tt := range textEvents {
		so := "data: " + strings.Replace(tt.piece, "TEXT", "so far", 1) + "\n\n"
		for _, c := range []struct {
			body, message string
			overflow      bool
		}{
			{"event: error\ndata: " + tooLong + "\n\n", "prompt is too long", true},
			{"event: error\ndata: {\"error\":" + tooLong + "}\n\n", "prompt is too long", true},
			{"event: error\ndata: {\"type\":\"ping\"}\n\n", "", false},
			{"event: error\ndata: {\"code\":429,\"message\":\"too many\",\"status\":\"RESOURCE_EXHAUSTED\"}\n\n", "too many", false},
			{"event: error\ndata: overloaded\n\n", "overloaded", false},
			{"event: error\ndata: \"overloaded\"\n\n", "overloaded", false},
			{"event: error\ndata: {\"half\n\n", `{"half`, false},
			{"event: error\ndata: [1]\n\n", "", false},
			{"data: {\"type\":\"invalid_request_error\",\"error\":" + tooLong + "}\n\n", "prompt is too long", true},
			{"data: {\"type\":\"error\",\"error\":" + tooLong + "}\n\n", "prompt is too long", true},
			{"data: {\"error\":\"prompt is too long\"}\n\n", "prompt is too long", true},
			{"data: {\"message\":\"Forbidden\"}\n\n", "Forbidden", false},
			{"data: {\"detail\":\"Not Found\"}\n\n", "Not Found", false},
		} {
			_, got, last, err := readStream(tt.format, strings.NewReader(so+c.body))
			e, ok := errors.AsType[*wire.ProviderError](last)
			require.True(t, ok, "%s: %s: %v", tt.name, c.body, last)
			assert.Equal(t, c.message, e.Message, "%s: %s", tt.name, c.body)
			assert.NotEqual(t, "error", e.Type)
			assert.Equal(t, c.overflow, convo.IsOverflow(last), "%s: %s", tt.name, c.body)
			assert.Equal(t, last, err)
			assert.Equal(t, "so far", streamedText(got))
		}
		for _, nothing := range []string{`{}`, `{ }`, `""`, `false`, `null`} {
			events := []event{{"", strings.Replace(strings.Replace(tt.piece, "TEXT", "a", 1), "{", `{"error":`+nothing+`,`, 1)}, {"", tt.end}}
			got, _ := streamed(t, tt.format, events)
			assert.Equal(t, "a", streamedText(got), "%s: an error that is %s", tt.name, nothing)
		}
	}
}

// A whole response that failed keeps its content.
func TestResponsesStream_WholeThatFailed(t *testing.T) {
	_, got, last, _ := readStream(wire.OpenAIResponses{}, strings.NewReader(`{"id":"r","status":"failed","error":{"code":"server_error","message":"broken"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so far"}]}]}`))
	e, ok := errors.AsType[*wire.ProviderError](last)
	require.True(t, ok, "%v", last)
	assert.Equal(t, "broken", e.Message)
	assert.Equal(t, "so far", streamedText(got))
}

// The error for input that has nothing of the format shows only its beginning.
func TestRead_NothingOfTheFormat(t *testing.T) {
	page := "<html><head><title>502 Bad Gateway</title></head><body>" + strings.Repeat("x", 300)
	for _, tt := range textEvents {
		_, _, last, err := readStream(tt.format, strings.NewReader(page))
		assert.EqualError(t, last, `wire: the stream holds nothing of an answer, and begins with "`+page[:256]+`"…: unexpected EOF`)
		assert.ErrorIs(t, last, io.ErrUnexpectedEOF)
		assert.EqualError(t, err, "wire: the stream ended before the answer did: unexpected EOF")
		_, _, last, _ = readStream(tt.format, strings.NewReader(""))
		assert.EqualError(t, last, "wire: the stream ended before the answer did: unexpected EOF")
		_, _, last, _ = readStream(tt.format, strings.NewReader("data: "+strings.Replace(tt.piece, "TEXT", "secret", 1)+"\n\n"))
		assert.EqualError(t, last, "wire: the stream ended before the answer did: unexpected EOF", "%s: content is not shown", tt.name)
	}
	_, _, last, _ := readStream(wire.OpenAIChat{}, strings.NewReader(textEvents[3].piece))
	assert.ErrorContains(t, last, `begins with "{\"type\":\"response.output_text.delta\"`, "the stream of another format")
}

// The Transcript has everything that Event has read. Lost lists what cannot be read.
func TestStream_KeepsTheRest(t *testing.T) {
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	const (
		hello    = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hello"}}`
		chat     = `{"choices":[{"delta":{"content":"hello"}}]}`
		converse = `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"hello"}}}`
		gemini   = `{"candidates":[{"content":{"parts":[{"text":"hello"}]}}]}`
		response = `{"type":"response.output_text.delta","output_index":0,"delta":"hello"}`
	)
	for _, tt := range []struct {
		name   string
		format wire.Format
		body   string
		text   string
		lost   string // the path of what is lost
		fails  bool   // an event is refused
	}{
		{"a block without a type", wire.Anthropic{}, hello + `{"type":"content_block_start","index":1,"content_block":{}}{"type":"message_stop"}`, "hello", "content[1]", false},
		{"a block that a delta gives a type", wire.Anthropic{}, hello + `{"type":"content_block_start","index":1,"content_block":{}}{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" world"}}{"type":"message_stop"}`, "hello\n world", "", false},
		{"a text that is none", wire.Anthropic{}, hello + `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":7}}{"type":"message_stop"}`, "hello", "content[1]", false},
		{"a text without a text", wire.Anthropic{}, hello + `{"type":"content_block_start","index":1,"content_block":{"type":"text"}}{"type":"message_stop"}`, "hello", "", false},
		{"a call without a name", wire.Anthropic{}, hello + `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","input":{}}}`, "hello", "content[1]", false},
		{"an error in the answer", wire.Anthropic{}, `{"type":"message_start","message":{"role":"assistant","error":{"message":"oops"}}}` + hello + `{"type":"message_stop"}`, "hello", "", false},
		{"deep", wire.Anthropic{}, hello + `{"type":"content_block_delta","index":0,"delta":{"type":"x","y":` + deep + `}}{"type":"message_stop"}`, "hello", "", true},
		{"deep arguments", wire.Anthropic{}, hello + `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":` +
			strings.Repeat("[", 9_998) + strings.Repeat("]", 9_998) + `}"}}{"type":"message_stop"}`, "hello", "content[1]", false},
		{"a call without a name", wire.Converse{}, converse + `{"contentBlockStart":{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"x"}}}}`, "hello", "content[1]", false},
		{"reasoning that is none", wire.Converse{}, converse + `{"contentBlockStart":{"contentBlockIndex":1,"start":{"reasoningContent":{"reasoningText":7}}}}{"messageStop":{}}`, "hello", "content[1]", false},
		{"deep", wire.Converse{}, converse + `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"x":` + deep + `}}}`, "hello", "", true},
		{"a part without a type", wire.OpenAIChat{}, chat + `{"choices":[{"delta":{"content":[{"text":"a"}]}}]}`, "hello", "content[1]", false},
		{"a name that is none", wire.OpenAIChat{}, chat + `{"choices":[{"delta":{"name":7}}]}`, "hello", "name", false},
		{"pictures that are none", wire.OpenAIChat{Dialect: wire.Ollama}, `{"message":{"content":"hello","images":7}}{"done":true}`, "hello", "images", false},
		{"deep", wire.OpenAIChat{}, chat + `{"choices":[{"delta":{"x":` + deep + `}}]}`, "hello", "", true},
		{"an item that is none", wire.OpenAIResponses{}, response + `{"type":"response.completed","response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]},7]}}`, "hello", "output[1]", false},
		{"a call without a name", wire.OpenAIResponses{}, response + `{"type":"response.completed","response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]},{"type":"function_call","call_id":"c"}]}}`, "hello", "output[1]", false},
		{"deep", wire.OpenAIResponses{}, response + `{"type":"response.completed","response":{"output":` + deep + `}}`, "hello", "", true},
		{"a role that is none", wire.Gemini{}, gemini + `{"candidates":[{"content":{"role":7},"finishReason":"STOP"}]}`, "hello", "", false},
		{"data that is none", wire.Gemini{}, gemini + `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","id":7}}]},"finishReason":"STOP"}]}`, "hello", "candidates[0].content.parts[1]", false},
		{"deep", wire.Gemini{}, gemini + `{"candidates":[{"content":{"parts":[{"x":` + deep + `}]}}]}`, "hello", "", true},
	} {
		_, got, last, _ := readStream(tt.format, strings.NewReader(tt.body))
		name := fmt.Sprintf("%T: %s: %.200v", tt.format, tt.name, got.Lost)
		assert.Equal(t, tt.text, streamedText(got), name)
		assert.Equal(t, tt.fails, errors.As(last, new(*wire.DecodeError)), "%s: %v", name, last)
		assert.Empty(t, streamedCalls(got), name)
		if tt.lost != "" {
			require.Len(t, got.Lost, 1, name)
			assert.Equal(t, tt.lost, got.Lost[0].Path, name)
			assert.NotEmpty(t, got.Lost[0].What)
		}
	}
}

// A second beginning without an ID, or a first beginning after other events, belongs to
// the same answer.
func TestStream_BeginningsOfOne(t *testing.T) {
	anthropic := func(id string) string {
		return `{"type":"message_start","message":{` + id + `"role":"assistant","model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":9}}}`
	}
	hi := `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`
	created := func(id string) string { return `{"type":"response.created","response":{` + id + `"model":"m"}}` }
	said := `{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`
	for _, tt := range []struct {
		format   wire.Format
		body, id string
	}{
		{wire.Anthropic{}, anthropic(`"id":"a",`) + hi + anthropic(``) + `{"type":"message_stop"}`, "a"},
		{wire.Anthropic{}, anthropic(``) + hi + anthropic(``) + `{"type":"message_stop"}`, ""},
		{wire.Anthropic{}, anthropic(``) + hi + anthropic(`"id":"a",`) + `{"type":"message_stop"}`, ""},
		{wire.Anthropic{}, hi + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}` + anthropic(`"id":"a",`) + `{"type":"message_stop"}`, "a"},
		{wire.OpenAIResponses{}, created(`"id":"a",`) + said + created(``) + `{"type":"response.completed","response":{"id":"a","output":[]}}`, "a"},
		{wire.OpenAIResponses{}, said + created(`"id":"a",`) + `{"type":"response.completed","response":{"id":"a","output":[]}}`, "a"},
	} {
		deltas, got, last, err := readStream(tt.format, strings.NewReader(tt.body))
		require.NoError(t, last, tt.body)
		require.NoError(t, err)
		assert.Equal(t, "hi", streamedText(got), tt.body)
		assert.Equal(t, []wire.Delta{{Text: "hi"}}, deltas)
		assert.Equal(t, tt.id, got.ID, tt.body)
		if strings.Contains(tt.body, "message_delta") {
			assert.Equal(t, convo.Usage{Input: 5, Output: 1}, got.Usage, "the usage of message_delta counts")
			assert.Equal(t, "end_turn", got.StopReason)
			assert.Equal(t, "m", got.Model)
		}
	}
}

// Content after the end that is marked as another answer is refused. Some servers send
// more of the same answer, or repeat the end.
func TestStream_SecondAnswer(t *testing.T) {
	const (
		first  = `{"choices":[{"delta":{"role":"assistant","content":"one"}}]}`
		end    = `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
		whole  = `{"choices":[{"delta":{"role":"assistant","content":"one"},"finish_reason":"stop"}]}`
		plain  = `{"choices":[{"delta":{"content":"two"}}]}`
		ollama = `{"message":{"role":"assistant","content":"one"},"done":true,"done_reason":"stop"}`
		gone   = `{"candidates":[{"content":{"parts":[{"text":"one"}]}}]}`
		goEnd  = `{"candidates":[{"content":{"parts":[{"text":"one"}]},"finishReason":"STOP"}]}`
	)
	for _, tt := range []struct {
		name   string
		format wire.Format
		body   string
		second bool
		text   string
	}{
		{"a role", wire.OpenAIChat{}, first + end + first, true, "one"},
		{"in one chunk each", wire.OpenAIChat{}, whole + whole, true, "one"},
		{"behind [DONE]", wire.OpenAIChat{}, "data: " + first + "\n\ndata: [DONE]\n\ndata: " + plain + "\n\n", true, "one"},
		{"Ollama", wire.OpenAIChat{Dialect: wire.Ollama}, ollama + ollama, true, "one"},
		{"Ollama, behind several lines", wire.OpenAIChat{Dialect: wire.Ollama}, strings.Replace(ollama, "true", "false", 1) + ollama + ollama, true, "oneone"},
		{"the end again", wire.OpenAIChat{}, first + end + end, false, "one"},
		{"the end again, with a role", wire.OpenAIChat{}, first + end + `{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, false, "one"},
		{"content without a role", wire.OpenAIChat{}, first + end + plain, false, "onetwo"},
		{"a role in each chunk", wire.OpenAIChat{}, first + first + end + first, false, "oneoneone"},
		{"Ollama, the end again", wire.OpenAIChat{Dialect: wire.Ollama}, ollama + `{"message":{"role":"assistant","content":""},"done":true}`, false, "one"},
		{"Gemini", wire.Gemini{}, gone + goEnd + gone, true, "oneone"},
		{"Gemini, a call", wire.Gemini{}, gone + goEnd + `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`, true, "oneone"},
		{"Gemini, STOP in each chunk", wire.Gemini{}, goEnd + goEnd, false, "oneone"},
		{"Gemini, the end again", wire.Gemini{}, gone + goEnd + `{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`, false, "oneone"},
	} {
		_, got, last, err := readStream(tt.format, strings.NewReader(tt.body))
		assert.Equal(t, tt.second, errors.As(last, new(*wire.DecodeError)), "%s: %v", tt.name, last)
		assert.Equal(t, last, err, tt.name)
		assert.Equal(t, tt.text, streamedText(got), tt.name)
	}
}

// A call keeps the ID that it got, even if an item that precedes it arrives later.
func TestStream_MintedIDs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		format wire.Format
		call   string // of INDEX and NAME
	}{
		{"responses", wire.OpenAIResponses{}, `{"type":"response.output_item.done","output_index":INDEX,"item":{"type":"function_call","name":"NAME","arguments":"{}"}}`},
		{"anthropic", wire.Anthropic{}, `{"type":"content_block_start","index":INDEX,"content_block":{"type":"tool_use","name":"NAME","input":{}}}`},
		{"converse", wire.Converse{}, `{"contentBlockStart":{"contentBlockIndex":INDEX,"start":{"toolUse":{"name":"NAME"}}}}`},
		{"chat", wire.OpenAIChat{}, `{"choices":[{"delta":{"tool_calls":[{"index":INDEX,"function":{"name":"NAME","arguments":"{}"}}]}}]}`},
	} {
		rng := rand.New(rand.NewPCG(1, 1))
		for range 50 {
			s := tt.format.(wire.Streamer).Stream()
			was := map[string]string{}
			for i, index := range rng.Perm(6) {
				data := strings.NewReplacer("INDEX", fmt.Sprint(index), "NAME", fmt.Sprint("f", index)).Replace(tt.call)
				deltas, err := s.Event("", []byte(data))
				require.NoError(t, err)
				require.Equal(t, i, deltas[0].Call.Index, "the calls are counted as they begin")
				got, _ := s.Transcript()
				calls := streamedCalls(got)
				if got.CutOff != nil {
					calls = append(calls, *got.CutOff)
				}
				for _, c := range calls {
					require.True(t, c.Minted)
					if id, ok := was[c.Name]; ok {
						require.Equal(t, id, c.ID, tt.name)
					}
					was[c.Name] = c.ID
				}
				if tt.name == "responses" {
					require.True(t, slices.IsSortedFunc(calls, func(a, b convo.ToolCall) int { return strings.Compare(a.Name, b.Name) }), "by their index")
				}
			}
			ids := map[string]bool{}
			for _, id := range was {
				ids[id] = true
			}
			require.Len(t, ids, len(was))
		}
	}
}

// indexedEvents are events with an index %d, which each begin a block or an item.
var indexedEvents = []struct {
	name   string
	format wire.Format
	event  string
}{
	{"anthropic", wire.Anthropic{}, `{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"%[1]d;"}}`},
	{"converse", wire.Converse{}, `{"contentBlockDelta":{"contentBlockIndex":%d,"delta":{"text":"%[1]d;"}}}`},
	{"responses", wire.OpenAIResponses{}, `{"type":"response.output_text.delta","output_index":%d,"delta":"%[1]d;"}`},
	{"responses, content", wire.OpenAIResponses{}, `{"type":"response.output_text.delta","output_index":0,"content_index":%d,"delta":"%[1]d;"}`},
}

// Blocks and items are in the order of their indexes, in any order of arrival.
func TestStream_IndexesInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, tt := range indexedEvents {
		for range 20 {
			s := tt.format.(wire.Streamer).Stream()
			n := 1 + rng.IntN(40)
			var want strings.Builder
			for i := range n {
				want.WriteString(fmt.Sprint(3*i-10, ";"))
			}
			for _, i := range rng.Perm(n) {
				_, err := s.Event("", fmt.Appendf(nil, tt.event, 3*i-10))
				require.NoError(t, err)
				if rng.IntN(8) == 0 {
					_, _ = s.Transcript() // changes nothing
				}
			}
			got, _ := s.Transcript()
			text, _, _ := contentOf(got.Messages)
			require.Equal(t, want.String(), text, tt.name)
		}
	}
}

// Falling indexes take no more memory than rising ones.
func TestStream_FallingIndexes(t *testing.T) {
	for _, tt := range indexedEvents {
		allocated := func(n, step int) uint64 {
			s := tt.format.(wire.Streamer).Stream()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range n {
				_, err := s.Event("", fmt.Appendf(nil, tt.event, i*step))
				require.NoError(t, err)
			}
			_, _ = s.Transcript()
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		rising, falling, twice := allocated(500, 1), allocated(500, -1), allocated(1_000, -1)
		assert.Less(t, falling, rising*5/4, tt.name)
		assert.Less(t, twice, falling*5/2, tt.name)
	}
}

// The time for each event must not grow with their number.
func BenchmarkStream_FallingIndexes(b *testing.B) {
	for _, tt := range indexedEvents {
		for _, n := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprint(tt.name, "/", n), func(b *testing.B) {
				for b.Loop() {
					s := tt.format.(wire.Streamer).Stream()
					for i := range n {
						if _, err := s.Event("", fmt.Appendf(nil, tt.event, -i)); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
			})
		}
	}
}

// Text between the events of a stream that breaks off is shown, since some servers report
// errors in this form. It is no error if the answer ends.
func TestRead_TextAmongEvents(t *testing.T) {
	const said = "Error: prompt is too long: 3000 tokens > 2000 maximum"
	for _, tt := range textEvents {
		for name, text := range map[string]string{"line": said + "\n\n", "no end": said, "JSON": "{\n \"message\": \"" + said + "\"\n}\n\n", "comment": ": " + said + "\n", "id": "id: " + said + "\nretry: 1\n", "cut off": "dat"} {
			body := "data: " + strings.Replace(tt.piece, "TEXT", "a", 1) + "\n\n"
			_, got, last, _ := readStream(tt.format, strings.NewReader(body+text))
			require.ErrorIs(t, last, io.ErrUnexpectedEOF, "%s, %s", tt.name, name)
			shown := name == "line" || name == "no end" || name == "JSON"
			assert.Equal(t, shown, convo.IsOverflow(last), "%s, %s: %v", tt.name, name, last)
			assert.Equal(t, shown, strings.Contains(last.Error(), said), "%s, %s: %v", tt.name, name, last)
			assert.Equal(t, "a", streamedText(got))
			_, got, last, _ = readStream(tt.format, strings.NewReader(body+text+"\n\ndata: "+tt.end+"\n\n"))
			require.NoError(t, last, "%s, %s", tt.name, name)
			assert.Equal(t, "a", streamedText(got))
		}
	}
}
