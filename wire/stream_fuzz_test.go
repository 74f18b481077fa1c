package wire_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// checkStreamed reads a stream whole and byte by byte, which must give the same result. The
// Transcript stays the same, and if it has no error and holds something it can be appended.
func checkStreamed(t *testing.T, f wire.Format, body []byte) {
	read := func(r io.Reader) (s wire.Stream, deltas []wire.Delta, last error) {
		s = f.(wire.Streamer).Stream()
		for d, err := range wire.Read(r, s) {
			require.NoError(t, last, "the error is the last that is yielded")
			if last = err; err == nil {
				require.NotZero(t, d)
				deltas = append(deltas, d)
			}
		}
		return s, deltas, last
	}
	s, deltas, failed := read(bytes.NewReader(body))
	got, err := s.Transcript()
	if failed == nil {
		require.True(t, s.Done())
		if err != nil { // Decode would also refuse the whole answer
			require.ErrorAs(t, err, new(*wire.DecodeError))
		}
	}
	again, sameErr := s.Transcript()
	require.Equal(t, got, again)
	require.Equal(t, err, sameErr)
	other, sameDeltas, sameFailed := read(iotest.OneByteReader(bytes.NewReader(body)))
	require.Equal(t, failed == nil, sameFailed == nil)
	require.Equal(t, deltas, sameDeltas)
	same, _ := other.Transcript()
	requireSame(t, got, same)
	require.Equal(t, withoutMinted(t, got.Messages), withoutMinted(t, same.Messages))
	msgs := got.Reply().Messages
	if err != nil || len(msgs) == 0 {
		return
	}
	for _, m := range got.Messages {
		require.NotEmpty(t, m.Parts)
	}
	h := relaxedOf(t)
	_, err = h.Append(append([]convo.Message{convo.User("x")}, msgs...)...)
	require.NoError(t, err, "%#v", msgs)
}

// addStreams adds answers of a format in all framings to the corpus of a fuzz target.
func addStreams(f *testing.F, name string) {
	c := streamCases[name]
	for seed := range 5 {
		_, events := c.answer(newStreamGenerator(seed, 9))
		for _, framing := range framings {
			f.Add([]byte(framing(events)))
		}
	}
}

func FuzzAnthropic_Stream(f *testing.F) {
	addStreams(f, "anthropic")
	f.Add([]byte(`{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"a","b":"c","d":[1]}}{"type":"message_stop"}`))
	f.Add([]byte(`{"type":"content_block_start","index":-1,"content_block":{"type":"text","text":"a","citations":null}}{"type":"content_block_start","index":-1,"content_block":{"type":"thinking"}}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkStreamed(t, wire.Anthropic{}, body) })
}

func FuzzGemini_Stream(f *testing.F) {
	addStreams(f, "gemini")
	f.Add([]byte(`[{"promptFeedback":{"blockReason":"SAFETY"}}]`))
	f.Add([]byte(`[{"error":{"code":429}}]`))
	f.Add([]byte(`{"candidates":{"content":{"role":"user","parts":{"text":"a"}},"finishReason":"STOP"}}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkStreamed(t, wire.Gemini{}, body) })
}

func FuzzConverse_Stream(f *testing.F) {
	addStreams(f, "converse")
	f.Add([]byte(`{"throttlingException":{"message":"a"}}`))
	f.Add([]byte(`{"contentBlockStart":{"start":{"toolUse":{"toolUseId":"a","name":"b"},"image":{}}}}{"messageStop":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkStreamed(t, wire.Converse{}, body) })
}

// The allocations of a stream for an event do not grow with the number of earlier events.
func TestStream_Linear(t *testing.T) {
	chat := func(delta string) string { return `{"id":"c","choices":[{"index":0,"delta":` + delta + `}]}` }
	for _, tt := range []struct {
		name        string
		format      wire.Format
		begin, each string // # in each is the number of the event, and ~ a tenth of it
		end         string // if not empty, the answer is as many times "a"
	}{
		{"chat text", wire.OpenAIChat{}, "", chat(`{"content":"a"}`), `[DONE]`},
		{"chat reasoning", wire.OpenAIChat{}, "", chat(`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}`), `[DONE]`},
		{"chat parts", wire.OpenAIChat{}, "", chat(`{"content":[{"type":"text","text":"a"}]}`), `[DONE]`},
		{"chat arguments", wire.OpenAIChat{}, "", chat(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"a"}}]}`), `[DONE]`},
		{"chat name", wire.OpenAIChat{}, "", chat(`{"tool_calls":[{"index":0,"function":{"name":"f"}}]}`), ""},
		{"chat calls", wire.OpenAIChat{}, "", chat(`{"tool_calls":[{"index":#,"id":"c#","function":{"name":"f"}}]}`), ""},
		{"chat details", wire.OpenAIChat{}, "", chat(`{"reasoning_details":[{"type":"x","data":"a","index":#}]}`), ""},
		{"responses text", wire.OpenAIResponses{}, responsesHead, `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, `{"type":"response.completed","response":{}}`},
		{"responses reasoning", wire.OpenAIResponses{}, responsesHead, `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":~,"delta":"a"}`, ""},
		{"responses arguments", wire.OpenAIResponses{}, responsesHead, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"a"}`, ""},
		{"responses items", wire.OpenAIResponses{}, responsesHead, `{"type":"response.output_item.added","output_index":#,"item":{"type":"function_call","call_id":"c#","name":"f"}}`, ""},
		{"anthropic text", wire.Anthropic{}, "", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, `{"type":"message_stop"}`},
		{"anthropic thought", wire.Anthropic{}, "", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}`, `{"type":"message_stop"}`},
		{"anthropic arguments", wire.Anthropic{}, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"b","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"a"}}`, `{"type":"message_stop"}`},
		{"gemini text", wire.Gemini{}, "", `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
		{"gemini thought", wire.Gemini{}, "", `{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
		{"gemini arguments", wire.Gemini{}, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0].b","stringValue":"a","willContinue":true}],"willContinue":true}}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
		{"converse text", wire.Converse{}, "", `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
		{"converse reasoning", wire.Converse{}, "", `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
		{"converse arguments", wire.Converse{}, `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"b"}}}}`,
			`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"a"}}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			half := long.Or(800, 50_000)
			events := make([][]byte, 2*half)
			for i := range events {
				events[i] = []byte(strings.NewReplacer("#", fmt.Sprint(i), "~", fmt.Sprint(i/10)).Replace(tt.each))
			}
			s := tt.format.(wire.Streamer).Stream()
			give := func(list ...[]byte) {
				for _, data := range list {
					if _, err := s.Event("", data); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tt.begin != "" {
				give([]byte(tt.begin))
			}
			var at [3]runtime.MemStats
			runtime.ReadMemStats(&at[0])
			give(events[:half]...)
			runtime.ReadMemStats(&at[1])
			give(events[half:]...)
			runtime.ReadMemStats(&at[2])
			counts, sizes := [2]uint64{}, [2]uint64{}
			for i := range 2 {
				counts[i], sizes[i] = at[i+1].Mallocs-at[i].Mallocs, at[i+1].TotalAlloc-at[i].TotalAlloc
			}
			n := uint64(half)
			t.Logf("an event: %d allocations and %d bytes, then %d and %d", counts[0]/n, sizes[0]/n, counts[1]/n, sizes[1]/n)
			assert.Less(t, counts[1], counts[0]+counts[0]/5)
			assert.Less(t, sizes[1], sizes[0]+sizes[0]/2)
			assert.Less(t, counts[1]/n, uint64(150))
			assert.Less(t, sizes[1]/n, uint64(10_000))
			if tt.end != "" {
				give([]byte(tt.end))
				got, err := s.Transcript()
				require.NoError(t, err)
				text, reasoning, calls := contentOf(got.Messages) // a Transcript prints no content
				if got.CutOff != nil {
					calls = append(calls, *got.CutOff)
				}
				for _, c := range calls {
					text += c.Arguments
				}
				assert.True(t, strings.Contains(text+reasoning, strings.Repeat("a", 2*half)))
			}
		})
	}
}
