package wire_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// streams is the directory of recorded streams. They are owned by others and are not part
// of the repository; without them the tests are skipped.
const streams = "../../shared/data/streams"

// An event of a stream.
type event struct{ name, data string }

// A streamCase describes how the answers of a format are streamed.
type streamCase struct {
	format wire.Format
	// answer returns a random answer, and the events of a stream with it.
	answer func(g *streamGenerator) (whole string, events []event)
	ends   func(e event) bool // reports whether an event is the end mark
}

var streamCases = map[string]streamCase{}

// A streamGenerator makes random answers and cuts them into events.
type streamGenerator struct {
	*rand.Rand
	interleaved bool // the deltas of the answer are not in the order of its parts
	unread      bool // Decode keeps some reasoning as an opaque part
}

func newStreamGenerator(seed, kind int) *streamGenerator {
	return &streamGenerator{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(kind)))}
}

func (g *streamGenerator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *streamGenerator) text() string {
	return strings.Repeat(g.pick("hello ", "日本語", "\"quoted\" \\ \n", "a", "data: x\n\n", "é🙂 "), 1+g.IntN(6))
}

func (g *streamGenerator) arguments() string {
	return g.pick(`{}`, `{"n": 1.0, "big": 12345678901234567890}`, `{"q":"a\u0041 日本"}`, `{"nested":{"list":[1,2,{"x":null}]}}`)
}

// cut cuts a text into pieces, between any two characters of UTF-16, as some servers do.
// Some pieces may be empty. A half character has the form that jsonOf reads.
func (g *streamGenerator) cut(s string) (pieces []string) {
	var runes []rune
	for _, r := range s {
		if a, b := utf16.EncodeRune(r); a != unicode.ReplacementChar && g.IntN(3) == 0 {
			runes = append(runes, halfRunes+a, halfRunes+b)
		} else {
			runes = append(runes, r)
		}
	}
	for len(runes) > 0 {
		n := 1 + g.IntN(len(runes))
		if g.IntN(2) == 0 {
			n = min(n, 3)
		}
		if g.IntN(12) == 0 {
			n = 0
		}
		pieces, runes = append(pieces, string(runes[:n])), runes[n:]
	}
	return pieces
}

// halfRunes plus half a UTF-16 character is a character that jsonOf writes as that half.
const halfRunes = 0xF0000

// jsonOf returns v as JSON.
func jsonOf(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	var out strings.Builder
	for _, r := range strings.TrimSpace(b.String()) {
		if half := r - halfRunes; half >= 0xD800 && half < 0xE000 {
			fmt.Fprintf(&out, `\u%04x`, half)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// feed gives events to a new Stream, and returns it with all deltas. The data is
// overwritten afterwards, as by a reader that reuses its buffer.
func feed(t testing.TB, f wire.Format, events []event) (wire.Stream, []wire.Delta) {
	t.Helper()
	s := f.(wire.Streamer).Stream()
	var all []wire.Delta
	for _, e := range events {
		data := []byte(e.data)
		deltas, err := s.Event(e.name, data)
		require.NoError(t, err, "%s %s", e.name, e.data)
		for i := range data { // Event keeps nothing of it
			data[i] = '#'
		}
		all = append(all, deltas...)
	}
	return s, all
}

// streamed returns the Transcript and the deltas of a stream that ends.
func streamed(t testing.TB, f wire.Format, events []event) (wire.Transcript, []wire.Delta) {
	t.Helper()
	s, deltas := feed(t, f, events)
	got, err := s.Transcript()
	require.NoError(t, err)
	assert.True(t, s.Done())
	return got, deltas
}

// shown joins deltas as a program that shows them does.
func shown(deltas []wire.Delta) (text, reasoning string, calls []convo.ToolCall) {
	for _, d := range deltas {
		if d.Restart {
			text, reasoning, calls = "", "", nil
		}
		text, reasoning = text+d.Text, reasoning+d.Reasoning
		if c := d.Call; c != nil {
			for len(calls) <= c.Index {
				calls = append(calls, convo.ToolCall{})
			}
			own := &calls[c.Index]
			own.Name, own.Arguments = c.Name, own.Arguments+c.Arguments
			if c.ID != "" {
				own.ID = c.ID
			}
		}
	}
	return text, reasoning, calls
}

// contentOf returns the texts, the reasoning and the calls of messages, joined as shown does.
func contentOf(msgs []convo.Message) (text, reasoning string, calls []convo.ToolCall) {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Text:
				text += string(p)
			case convo.Reasoning:
				reasoning += p.Text
			case convo.ToolCall:
				calls = append(calls, p)
			}
		}
	}
	return text, reasoning, calls
}

// normal returns messages with neighbouring texts of one kind joined if no signature is
// between them, and without the IDs that Decode made.
func normal(msgs []convo.Message) []convo.Message {
	out := slices.Clone(msgs)
	for i, m := range out {
		var parts []convo.Part
		for _, p := range m.Parts {
			n := len(parts)
			switch p := p.(type) {
			case convo.Text:
				if n > 0 {
					if last, ok := parts[n-1].(convo.Text); ok {
						parts[n-1] = last + p
						continue
					}
				}
			case convo.Reasoning:
				if n > 0 {
					if last, ok := parts[n-1].(convo.Reasoning); ok && last.ID == p.ID && last.Signature+last.Encrypted+p.Signature+p.Encrypted == "" {
						last.Text += p.Text
						parts[n-1] = last
						continue
					}
				}
			case convo.ToolCall:
				if p.Minted {
					if n > 0 {
						if r, ok := parts[n-1].(convo.Reasoning); ok && r.ID == p.ID { // its signature
							r.ID = ""
							parts[n-1] = r
						}
					}
					p.ID = ""
				}
				parts = append(parts, p)
				continue
			}
			parts = append(parts, p)
		}
		out[i].Parts = parts
	}
	return out
}

// requireSame fails the test unless two transcripts have the same content.
func requireSame(t testing.TB, want, got wire.Transcript) {
	t.Helper()
	require.Equal(t, normal(want.Messages), normal(got.Messages))
	for _, tr := range []*wire.Transcript{&want, &got} {
		tr.Messages = nil
		if c := tr.CutOff; c != nil && c.Minted {
			tr.CutOff = new(*c)
			tr.CutOff.ID = ""
		}
	}
	require.Equal(t, want, got)
}

// The Transcript is that of the whole answer, however the answer is cut into events.
func TestStream_IsTheWhole(t *testing.T) {
	for name, c := range streamCases {
		t.Run(name, func(t *testing.T) {
			for seed := range long.Or(80, 2_000) {
				g := &streamGenerator{Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
				whole, events := c.answer(g)
				want := mustDecode(t, c.format, []byte(whole), whole)
				s, deltas := feed(t, c.format, events)
				require.True(t, s.Done(), "seed %d: %s", seed, events)
				got, err := s.Transcript()
				require.NoError(t, err)
				requireSame(t, want, got)
				again, err := s.Transcript()
				require.NoError(t, err)
				require.Equal(t, got, again, "a second time")

				text, reasoning, calls := shown(deltas)
				var all strings.Builder
				all.WriteString(text + reasoning)
				for _, c := range calls {
					all.WriteString(c.Arguments)
				}
				require.NotContains(t, all.String(), "\uFFFD", "half a character is not shown")
				said, thought, made := contentOf(got.Reply().Messages)
				if !g.interleaved {
					require.Equal(t, said, text)
					if !g.unread {
						require.Equal(t, thought, reasoning)
					}
				}
				if got.CutOff != nil {
					made = append(made, *got.CutOff)
				}
				require.Len(t, calls, len(made))
				for i, c := range calls {
					require.Equal(t, made[i].Name, c.Name)
					if !made[i].Minted {
						require.Equal(t, made[i].ID, c.ID)
					}
					if made[i].Valid() && made[i].Arguments != "" && strings.TrimSpace(c.Arguments) != "" {
						require.JSONEq(t, made[i].Arguments, c.Arguments)
					}
				}
			}
		})
	}
}

// A stream that is cut off anywhere returns an error. Its Transcript has no call that was
// not ended, and is the beginning of the whole answer.
func TestStream_CutOff(t *testing.T) {
	for name, c := range streamCases {
		t.Run(name, func(t *testing.T) {
			for seed := range long.Or(20, 100) {
				g := &streamGenerator{Rand: rand.New(rand.NewPCG(uint64(seed), 2))}
				whole, events := c.answer(g)
				want := mustDecode(t, c.format, []byte(whole), whole)
				end := slices.IndexFunc(events, func(e event) bool { // message_delta has the reason why it ended
					return c.ends(e) || strings.Contains(e.data, `"type":"message_delta"`)
				})
				require.GreaterOrEqual(t, end, 0, "%s", events)
				calls := map[string]convo.ToolCall{}
				for _, m := range want.Messages {
					for _, call := range m.ToolCalls() {
						calls[call.ID] = call
					}
				}
				for n := range end {
					s, _ := feed(t, c.format, events[:n])
					require.False(t, s.Done())
					got, err := s.Transcript()
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					for _, m := range got.Messages {
						for _, call := range m.ToolCalls() {
							if !call.Minted && (want.CutOff == nil || want.CutOff.ID != call.ID) {
								require.Equal(t, calls[call.ID], call, "%d of %s", n, events)
							}
						}
					}
				}
			}
		})
	}
}

// framings are the ways in which events are sent over a connection.
var framings = map[string]func(events []event) string{
	"server-sent events": func(events []event) string {
		var b strings.Builder
		for _, e := range events {
			if e.name != "" {
				b.WriteString("event: " + e.name + "\n")
			}
			b.WriteString("data: " + e.data + "\n\n")
		}
		return b.String()
	},
	"with CRLF, comments and pings": func(events []event) string {
		var b strings.Builder
		b.WriteString("\ufeff: hello\r\n\r\n")
		for _, e := range events {
			b.WriteString(": keep-alive\r\nid: 7\r\nretry: 100\r\n")
			if e.name != "" {
				b.WriteString("event:" + e.name + "\r\n")
			}
			b.WriteString("data:" + e.data + "\r\n\r\nevent: x\r\n\r\n")
		}
		return b.String()
	},
	"without a blank line at the end": func(events []event) string {
		var b strings.Builder
		for i, e := range events {
			if i > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString("data: " + e.data)
		}
		return b.String()
	},
	"lines": func(events []event) string {
		var b strings.Builder
		for _, e := range events {
			if e.data != "[DONE]" {
				b.WriteString(e.data + "\n")
			}
		}
		return b.String()
	},
	"an array": func(events []event) string {
		var list []string
		for _, e := range events {
			if e.data != "[DONE]" {
				list = append(list, e.data)
			}
		}
		return "[" + strings.Join(list, "\n,\r\n") + "]\n"
	},
}

func TestRead_Framings(t *testing.T) {
	for name, c := range streamCases {
		for framing, frame := range framings {
			t.Run(name+", "+framing, func(t *testing.T) {
				for seed := range long.Or(4, 30) {
					g := &streamGenerator{Rand: rand.New(rand.NewPCG(uint64(seed), 3))}
					_, events := c.answer(g)
					direct, deltas := feed(t, c.format, events)
					want, err := direct.Transcript()
					require.NoError(t, err)
					body := frame(events)
					for _, r := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.DataErrReader(strings.NewReader(body))} {
						s := c.format.(wire.Streamer).Stream()
						var read []wire.Delta
						for d, err := range wire.Read(r, s) {
							require.NoError(t, err, body)
							read = append(read, d)
						}
						got, err := s.Transcript()
						require.NoError(t, err)
						requireSame(t, want, got)
						require.Equal(t, deltas, read)
					}
				}
			})
		}
	}
}

func TestRead_Errors(t *testing.T) {
	broken := errors.New("connection reset")
	for _, tt := range []struct {
		name, body string
		reader     error // the error of r after the body
		want       func(error) bool
	}{
		{"nothing", "", nil, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"only comments", ": x\n\n", nil, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"broken before", "event: ping\ndata: {}\n\n", broken, func(err error) bool { return errors.Is(err, broken) }},
		{"broken in a line", "event: ping\ndata: {", broken, func(err error) bool { return errors.Is(err, broken) }},
		{"broken behind the end", "data: {\"type\":\"message_stop\"}\n\n", broken, nil},
		{"an error body", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, nil, convo.IsOverflow},
		{"an error event", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", nil, func(err error) bool {
			e, ok := errors.AsType[*wire.ProviderError](err)
			return ok && e.Type == "overloaded_error" && e.Message == "Overloaded" && !convo.IsOverflow(err)
		}},
		{"an error line among events", ": x\n{\"error\":\"no more\"}\n", nil, func(err error) bool {
			e, ok := errors.AsType[*wire.ProviderError](err)
			return ok && e.Message == "no more"
		}},
		{"no JSON", "data: oops\n\n", nil, func(err error) bool { _, ok := errors.AsType[*wire.DecodeError](err); return ok }},
		{"an array of nonsense", "[{},,]", nil, func(err error) bool { return err != nil }},
		{"a page", "<html>502</html>", nil, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r io.Reader = strings.NewReader(tt.body)
			if tt.reader != nil {
				r = io.MultiReader(r, iotest.ErrReader(tt.reader))
			}
			s := wire.Anthropic{}.Stream()
			var last error
			for _, err := range wire.Read(r, s) {
				require.NoError(t, last, "the error is the last that is yielded")
				last = err
			}
			if tt.want == nil {
				assert.NoError(t, last)
				return
			}
			assert.True(t, tt.want(last), "%v", last)
			_, err := s.Transcript()
			assert.Error(t, err)
		})
	}
}

// A loop that ends early reads no further.
func TestRead_StopsEarly(t *testing.T) {
	body := "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n"
	s := wire.Anthropic{}.Stream()
	n := 0
	for d, err := range wire.Read(strings.NewReader(strings.Repeat(body, 10)), s) {
		require.NoError(t, err)
		assert.Equal(t, "a", d.Text)
		if n++; n == 3 {
			break
		}
	}
	got, err := s.Transcript()
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, "aaa", got.Messages[0].Text())
}

// recordedEvents calls f with the events of each recorded stream whose name begins with
// prefix. A file with several streams is split after each end.
func recordedEvents(t *testing.T, prefix string, ends func(event) bool, f func(t *testing.T, events []event)) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(streams, prefix+"*"))
	if len(names) == 0 {
		t.Skipf("no recorded streams in %s", streams)
	}
	for _, name := range names {
		file, err := os.Open(name)
		require.NoError(t, err)
		var all [][]event
		ended := true
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			line := strings.TrimSpace(lines.Text())
			if line == "" {
				continue
			}
			e := event{data: line}
			if ended {
				all = append(all, nil)
			}
			all[len(all)-1], ended = append(all[len(all)-1], e), ends(e)
		}
		require.NoError(t, lines.Err())
		file.Close()
		for i, events := range all {
			t.Run(fmt.Sprint(strings.TrimSuffix(filepath.Base(name), ".chunks.txt"), " ", i), func(t *testing.T) { f(t, events) })
		}
	}
}

// Reasoning that was cut off keeps its text, and no signature that may be incomplete.
func TestStream_HalfASignature(t *testing.T) {
	for name, tt := range map[string]struct {
		format wire.Format
		events []event
		end    event // of the block
	}{
		"anthropic": {wire.Anthropic{}, []event{
			{"", `{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"model":"x"}}`},
			{"", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`},
			{"", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`},
			{"", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"aaaa"}}`},
		}, event{"", `{"type":"content_block_stop","index":0}`}},
		"converse": {wire.Converse{}, []event{
			{"messageStart", `{"role":"assistant"}`},
			{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}`},
			{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"aaaa"}}}`},
		}, event{"contentBlockStop", `{"contentBlockIndex":0}`}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, whole := range []bool{false, true} {
				events, want := tt.events, convo.Reasoning{Text: "hm"}
				if whole {
					events, want.Signature = append(events[:len(events):len(events)], tt.end), "aaaa"
				}
				s, _ := feed(t, tt.format, events)
				in, err := s.Transcript()
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.Len(t, in.Messages, 1)
				assert.Equal(t, []convo.Part{want}, in.Messages[0].Parts)
			}
		})
	}
}

// An answer that is not streamed is read as one event.
func TestStream_WholeAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		format interface {
			wire.Format
			wire.Streamer
		}
		answer string
	}{
		"anthropic": {wire.Anthropic{}, `{"id":"m","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Both."},{"type":"tool_use","id":"t1","name":"read","input":{"n":1.0}}],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":3}}`},
		"chat":      {wire.OpenAIChat{}, `{"id":"c","object":"chat.completion","model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":"Both.","reasoning_content":"hm","tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{\"n\":1.0}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`},
		"responses": {wire.OpenAIResponses{}, `{"id":"r","object":"response","model":"gpt","status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Both.","annotations":[]}]},{"type":"function_call","id":"fc_1","call_id":"t1","name":"read","arguments":"{\"n\":1.0}","status":"completed"}],"usage":{"input_tokens":7,"output_tokens":3}}`},
		"gemini":    {wire.Gemini{}, `{"responseId":"g","modelVersion":"gemini","candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Both."},{"functionCall":{"id":"t1","name":"read","args":{"n":1.0}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3}}`},
		"converse":  {wire.Converse{}, `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"c2ln"}}},{"text":"Both."},{"toolUse":{"toolUseId":"t1","name":"read","input":{"n":1.0}}}]}},"stopReason":"tool_use","usage":{"inputTokens":7,"outputTokens":3}}`},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := tt.format.Decode([]byte(tt.answer))
			require.NoError(t, err)
			require.Len(t, want.Messages[len(want.Messages)-1].ToolCalls(), 1)
			s := tt.format.Stream()
			deltas, err := s.Event("", []byte(tt.answer))
			require.NoError(t, err)
			assert.True(t, s.Done())
			got, err := s.Transcript()
			require.NoError(t, err)
			assert.Equal(t, want, got)
			var text, reasoning, name, arguments string
			for _, d := range deltas {
				text, reasoning = text+d.Text, reasoning+d.Reasoning
				if d.Call != nil {
					name = d.Call.Name + d.Call.ID
					arguments += d.Call.Arguments
				}
			}
			assert.Equal(t, "Both. hm readt1{\"n\":1.0}", text+" "+reasoning+" "+name+arguments)
		})
	}
}
