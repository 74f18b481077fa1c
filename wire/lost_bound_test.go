package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// unknownEvents holds, for each format, the events of an answer. The events of each are
// sent many times, with a different number for # each time.
var unknownEvents = map[string]struct {
	format           wire.Streamer
	begin, each, end []event
	whole            []string // documents for Decode, in which «x» means 10,000 times x
}{
	"chat": {
		format: wire.OpenAIChat{},
		each: []event{
			{"", `{"odd#":1,"choices":[{"index":0,"odd#":1,"delta":{"content":"a","odd#":1,"tool_calls":[{"index":0,"id":"c","odd#":1,"function":{"name":"f","odd#":1}}]}}]}`},
			{"", `{"choices":[{"index":#,"delta":{"content":"a"}}],"usage":{"odd#":"1"}}`},
			{"odd#", `{"a":1}`},
		},
		end: []event{{"", `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":"odd"}`}},
		whole: []string{
			`{«"odd#":1,»"choices":[{«"odd#":1,»"message":{«"odd#":1,»"role":"assistant","content":"a"}}«,{"message":{}}»],"usage":{«"odd#":"1",»"prompt_tokens":1}}`,
			`{«"odd#":1,»"messages":[{"role":"user","content":"a"}«,{"role":"user","odd#":1,"content":"a"}»]}`,
		},
	},
	"chat, parts": {
		format: wire.OpenAIChat{},
		each:   []event{{"", `{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"a","odd#":1},{"type":"odd#"}]}}]}`}},
		end:    []event{{"", `[DONE]`}},
		whole:  []string{`{"choices":[{"message":{"role":"assistant","content":[{«"odd#":1,»"type":"text","text":"a"}«,{"type":"odd#","odd#":1}»]}}]}`},
	},
	"chat, ollama": {
		format: wire.OpenAIChat{Dialect: wire.Ollama},
		each:   []event{{"", `{"odd#":1,"message":{"role":"assistant","content":"a","odd#":1}}`}},
		end:    []event{{"", `{"done":true,"prompt_eval_count":"odd"}`}},
		whole:  []string{`{«"odd#":1,»"message":{«"odd#":1,»"role":"assistant","content":"a"},"done":true}`},
	},
	"responses": {
		format: wire.OpenAIResponses{},
		begin:  []event{{"", `{"type":"response.created","response":{"id":"r"}}`}},
		each: []event{
			{"", `{"type":"odd#"}`}, {"", `{"type":"response.odd#"}`},
			{"", `{"type":"response.output_item.added","output_index":#,"odd#":1,"item":{"type":"message","role":"assistant","odd#":1,"content":[{"type":"output_text","text":"a","odd#":1}]}}`},
			{"", `{"type":"response.output_item.done","output_index":#,"item":{"type":"message","role":"assistant","odd#":1,"content":[{"type":"output_text","text":"a","odd#":1}]}}`},
			{"", `{"type":"response.output_item.added","output_index":#,"item":{"type":"odd#"}}`},
			{"", `{"type":"response.in_progress","response":{"id":"r","odd#":1,"usage":{"odd#":"1"}}}`},
		},
		whole: []string{
			`{«"odd#":1,»"output":[{«"odd#":1,»"type":"message","role":"assistant","content":[{«"odd#":1,»"type":"output_text","text":"a"}«,{"type":"odd#"}»]}«,{"type":"odd#","odd#":1}»«,{"type":"message","role":"assistant","odd#":1,"content":[{"type":"output_text","text":"a","odd#":1}]}»],"usage":{«"odd#":"1",»"input_tokens":"odd"}}`,
			`{«"odd#":1,»"input":[{"role":"user","content":"a"}«,{"role":"user","odd#":1,"content":"a"}»]}`,
		},
	},
	"anthropic": {
		format: wire.Anthropic{},
		begin: []event{
			{"", `{"type":"message_start","message":{"role":"assistant","content":[]}}`},
			{"", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`},
		},
		each: []event{
			{"", `{"type":"odd#"}`},
			{"", `{"type":"content_block_delta","index":0,"odd#":1,"delta":{"type":"text_delta","text":"a","odd#":1}}`},
			{"", `{"type":"content_block_delta","index":0,"delta":{"type":"odd#","odd#":"a"}}`},
			{"", `{"type":"content_block_start","index":1#,"content_block":{"type":"odd#","odd#":1}}`},
			{"", `{"type":"content_block_start","index":2#,"content_block":{"odd#":1}}`},
			{"", `{"type":"content_block_start","index":3#,"content_block":{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}}`},
			{"", `{"type":"message_delta","odd#":1,"delta":{"odd#":1},"usage":{"odd#":"1"}}`},
		},
		end: []event{{"", `{"type":"message_stop"}`}},
		whole: []string{
			`{«"odd#":1,»"role":"assistant","content":[{«"odd#":1,»"type":"text","text":"a"}«,{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}»],"usage":{"iterations":[{"input_tokens":1}«,{"input_tokens":"odd"}»]}}`,
			`{«"odd#":1,»"messages":[{"role":"user","content":"a"}«,{"role":"user","odd#":1,"content":"a"}»]}`,
		},
	},
	"gemini": {
		format: wire.Gemini{},
		each: []event{
			{"", `{"odd#":1,"candidates":[{"odd#":1,"content":{"role":"model","odd#":1,"parts":[{"text":"a","odd#":1}]}}],"usageMetadata":{"odd#":"1"}}`},
			{"", `{"candidates":[{"index":#,"content":{"role":"model","parts":[{"text":"a"}]}}]}`},
			{"", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","odd#":1},"odd#":1}]}}]}`},
		},
		end: []event{{"", `{"candidates":[{"finishReason":"STOP"}]}`}},
		whole: []string{
			`{«"odd#":1,»"candidates":[{«"odd#":1,»"content":{«"odd#":1,»"role":"model","parts":[{«"odd#":1,»"text":"a"}«,{"functionCall":{"name":"f","odd#":1}}»]}}«,{}»],"usageMetadata":{«"odd#":"1",»"promptTokenCount":"odd"}}`,
			`{«"odd#":1,»"contents":[{"parts":[{"text":"a"}]}«,{"odd#":1,"parts":[{"text":"a"}]}»]}`,
		},
	},
	"converse": {
		format: wire.Converse{},
		begin:  []event{{"messageStart", `{"role":"assistant"}`}},
		each: []event{
			{"odd#", `{}`},
			{"contentBlockDelta", `{"contentBlockIndex":0,"odd#":1,"delta":{"odd#":1,"text":"a","reasoningContent":{"odd#":1}}}`},
			{"contentBlockStart", `{"contentBlockIndex":1#,"start":{"odd#":{"odd#":1}}}`},
			{"metadata", `{"odd#":1,"usage":{"odd#":"1"},"metrics":{"odd#":1}}`},
			{"metadata", `{"usage":"#"}`},
		},
		end: []event{{"messageStop", `{"stopReason":"end_turn"}`}},
		whole: []string{
			`{«"odd#":1,»"output":{«"odd#":1,»"message":{«"odd#":1,»"role":"assistant","content":[{"text":"a"}«,{"cachePoint":{"type":"default","odd#":1}}»]}},"usage":{«"odd#":"1",»"inputTokens":"odd"}}`,
			`{«"odd#":1,»"messages":[{"role":"user","content":[{"text":"a"}]}«,{"role":"user","odd#":1,"content":[{"text":"a"}]}»]}`,
		},
	},
}

// The losses are bounded, even if a server sends many new names at any level.
func TestLost_IsBounded(t *testing.T) {
	count := long.Or(300, 10_000)
	bounded := func(t *testing.T, in wire.Transcript) {
		t.Helper()
		require.LessOrEqual(t, len(in.Lost), 65)
		size, more := 0, 0
		for i, l := range in.Lost {
			size += len(l.Path) + len(l.What)
			if l.What == "more of what is lost than is listed here" {
				more++
				assert.Equal(t, 64, i, "it is the last one")
			}
		}
		assert.LessOrEqual(t, size, 65*400)
		if len(in.Lost) > 64 {
			assert.Equal(t, 1, more)
		}
	}
	for name, tt := range unknownEvents {
		send := func(t *testing.T, s wire.Stream, events []event, i string) {
			t.Helper()
			for _, e := range events {
				_, err := s.Event(strings.ReplaceAll(e.name, "#", i), []byte(strings.ReplaceAll(e.data, "#", i)))
				require.NoError(t, err)
			}
		}
		// stream sends each count times, with so many different numbers.
		stream := func(t *testing.T, each []event, count, numbers int) []wire.Loss {
			t.Helper()
			s := tt.format.Stream()
			send(t, s, tt.begin, "")
			for i := range count {
				send(t, s, each, fmt.Sprint(i%numbers+1))
			}
			in, _ := s.Transcript()
			bounded(t, in)
			send(t, s, tt.end, "")
			in, _ = s.Transcript()
			bounded(t, in)
			again, _ := s.Transcript()
			assert.Equal(t, in.Lost, again.Lost)
			return in.Lost
		}
		t.Run(name+", a stream", func(t *testing.T) {
			stream(t, tt.each, count, count)
		})
		for k, e := range tt.each {
			t.Run(fmt.Sprintf("%s, events %d", name, k), func(t *testing.T) {
				stream(t, []event{e}, 200, 200)
				if e.name == "odd#" || strings.HasPrefix(e.data, `{"type":"odd#"`) || strings.HasPrefix(e.data, `{"type":"response.odd#"`) {
					assert.Len(t, stream(t, []event{e}, 20, 2), 1+len(stream(t, []event{e}, 20, 1)), "each kind is listed once")
					many := strings.Repeat("x", 3_000) + "#"
					stream(t, []event{{strings.ReplaceAll(e.name, "#", many), strings.ReplaceAll(e.data, "#", many)}}, 200, 200)
				}
			})
		}
		for k, doc := range tt.whole {
			t.Run(fmt.Sprintf("%s, document %d", name, k), func(t *testing.T) {
				in := mustDecode(t, tt.format.(wire.Format), []byte(repeated(doc, count)))
				assert.Len(t, in.Lost, 65)
				bounded(t, in)
			})
		}
	}
}

// Lost calls are listed before lost fields, for which there may be no room.
func TestLost_CallsComeFirst(t *testing.T) {
	s := wire.OpenAIChat{}.Stream()
	for _, data := range []string{
		repeated(`{"choices":[{"delta":{«"odd#":1,»"content":"I will."}}]}`, 100),
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"delete_all"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":2,"id":"c"}]}}]}`,
	} {
		_, err := s.Event("", []byte(data))
		require.NoError(t, err)
	}
	got, err := s.Transcript()
	require.Error(t, err)
	require.Len(t, got.Lost, 65)
	assert.Equal(t, []wire.Loss{{"call 0", `the call "ls", which the provider had not ended`}, {"tool_calls[2]", "a call without a name"}}, got.Lost[:2])
}

// Long names are cut in Lost.
func TestLost_LongNames(t *testing.T) {
	odd := strings.Repeat("é", 5_000)
	for name, tt := range unknownEvents {
		for k, doc := range tt.whole {
			in := mustDecode(t, tt.format.(wire.Format), []byte(strings.ReplaceAll(repeated(doc, 1), "odd1", odd)), name)
			require.NotEmpty(t, in.Lost, "%s, document %d", name, k)
			for _, l := range in.Lost {
				assert.LessOrEqual(t, len(l.Path), 131, name)
				assert.LessOrEqual(t, len(l.What), 400, name)
				assert.True(t, strings.ToValidUTF8(l.Path, "") == l.Path)
			}
		}
	}
}

// repeated returns doc with each «x» in it replaced by n times x, with a different number
// for # each time.
func repeated(doc string, n int) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(doc, "«")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		var x string
		x, doc, _ = strings.Cut(rest, "»")
		for i := range n {
			out.WriteString(strings.ReplaceAll(x, "#", fmt.Sprint(i+1)))
		}
	}
}
