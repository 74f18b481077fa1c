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
	"github.com/seed-c1b73e60/convo/wire"
)

// checkStreamed reads a stream whole and byte by byte, which must give the same result. A
// Transcript without an error can be appended, unless it holds nothing.
func checkStreamed(t *testing.T, f wire.Format, body []byte) {
	read := func(r io.Reader) (wire.Stream, bool) {
		s := f.(wire.Streamer).Stream()
		var last error
		for d, err := range wire.Read(r, s) {
			require.NoError(t, last, "the error is the last that is yielded")
			if last = err; err == nil {
				require.NotZero(t, d)
			}
		}
		return s, last == nil
	}
	s, ok := read(bytes.NewReader(body))
	got, err := s.Transcript()
	if ok {
		require.True(t, s.Done())
	}
	again, sameErr := s.Transcript()
	require.Equal(t, got, again)
	require.Equal(t, err, sameErr)
	other, sameOK := read(iotest.OneByteReader(bytes.NewReader(body)))
	require.Equal(t, ok, sameOK)
	same, _ := other.Transcript()
	requireSame(t, got, same)
	if err != nil {
		return
	}
	for _, m := range got.Messages {
		require.NotEmpty(t, m.Parts)
	}
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	_, err = h.Append(append([]convo.Message{convo.User("x")}, got.Messages...)...)
	require.NoError(t, err, "%#v", got.Messages)
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
func TestStream_LinearMemory(t *testing.T) {
	for _, tt := range []struct {
		name            string
		format          wire.Format
		begin, one, end string
	}{
		{"anthropic text", wire.Anthropic{}, ``, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, `{"type":"message_stop"}`},
		{"anthropic thought", wire.Anthropic{}, ``, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}`, `{"type":"message_stop"}`},
		{"anthropic arguments", wire.Anthropic{}, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"b","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"a"}}`, `{"type":"message_stop"}`},
		{"gemini text", wire.Gemini{}, ``, `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
		{"gemini thought", wire.Gemini{}, ``, `{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
		{"gemini arguments", wire.Gemini{}, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0].b","stringValue":"a","willContinue":true}],"willContinue":true}}]}}]}`, `{"candidates":[{"finishReason":"STOP"}]}`},
		{"converse text", wire.Converse{}, ``, `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
		{"converse reasoning", wire.Converse{}, ``, `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
		{"converse arguments", wire.Converse{}, `{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"b"}}}}`,
			`{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"a"}}}}`, `{"messageStop":{"stopReason":"end_turn"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 100_000
			if testing.Short() {
				n = 20_000
			}
			s := tt.format.(wire.Streamer).Stream()
			give := func(data string) {
				if data != "" {
					_, err := s.Event("", []byte(data))
					require.NoError(t, err)
				}
			}
			give(tt.begin)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range n {
				give(tt.one)
			}
			runtime.ReadMemStats(&after)
			assert.Less(t, (after.TotalAlloc-before.TotalAlloc)/uint64(n), uint64(10_000), "bytes for each event")
			assert.Less(t, (after.Mallocs-before.Mallocs)/uint64(n), uint64(150), "allocations for each event")
			give(tt.end)
			got, err := s.Transcript()
			require.NoError(t, err)
			assert.Contains(t, fmt.Sprintf("%#v", contentOf(got)), strings.Repeat("a", n))
		})
	}
}

// contentOf returns the texts of a transcript, because a Transcript prints no content.
func contentOf(t wire.Transcript) (texts []string) {
	for _, m := range t.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Text:
				texts = append(texts, string(p))
			case convo.Reasoning:
				texts = append(texts, p.Text)
			case convo.ToolCall:
				texts = append(texts, p.Arguments)
			}
		}
	}
	if t.CutOff != nil {
		texts = append(texts, t.CutOff.Arguments)
	}
	return texts
}
