package session_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/heaptest"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

func TestRead_NotASession(t *testing.T) {
	utf16Of := func(order binary.AppendByteOrder, text string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(text)) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	const request = `{"messages":[{"role":"user","content":"Ahoy"}]}`
	for name, c := range map[string]struct{ input, want string }{
		"empty":               {"", "the file is empty"},
		"white space":         {" \n\r\n\t", "white space"},
		"prose":               {"Dear Ada,\nthe boat is dry.\n", "no session, request or answer"},
		"other JSON":          {`{"name":"boat","length":9}` + "\n", "no session, request or answer"},
		"compressed":          {"\x1f\x8b\x08\x00", "gunzip"},
		"a number":            {"17", "no session, request or answer"},
		"binary":              {"\x7fELF\x02\x01\x00\x00", "binary"},
		"zip":                 {"PK\x03\x04\x00\x00\x00", "binary"},
		"NULs":                {strings.Repeat("\x00", 1<<20), "binary"},
		"UTF-16 with a mark":  {utf16Of(binary.LittleEndian, "\ufeff"+request), "UTF-16"},
		"UTF-16, big endian":  {utf16Of(binary.BigEndian, "\ufeff"+request), "UTF-16"},
		"UTF-16 without mark": {utf16Of(binary.LittleEndian, request), "UTF-16"},
		"events of a stream":  {"event: message_start\ndata: {}\n\n", "server-sent events"},
		"an empty list":       {"[]", "no messages"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := read(t, c.input, session.Options{})
			assert.Empty(t, all)
			e, ok := errors.AsType[*session.UnknownError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, "input", e.Name)
			assert.Contains(t, err.Error(), c.want)
		})
	}
	_, err := read(t, request, session.Options{Format: "word"})
	_, ok := errors.AsType[*session.UnknownError](err)
	assert.True(t, ok, "%v", err)
}

func TestRead_Marks(t *testing.T) {
	for name, input := range map[string]string{
		"UTF-8 with a mark": "\xef\xbb\xbf" + `{"messages":[{"role":"user","content":"Ahoy"}]}`,
		"CRLF":              "\r\n" + `{"messages":[{"role":"user","content":"Ahoy"}]}` + "\r\n\r\n",
		"duplicate keys":    `{"messages":[{"role":"assistant","role":"user","content":"Ahoy"}]}`,
		"written out":       "{\n  \"messages\": [\n    {\"role\": \"user\",\n \"content\": \"Ahoy\"}\n  ]\n}\n",
		"one for each line": `{"role":"user","content":"Ahoy"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			all, err := read(t, input, session.Options{})
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Equal(t, []string{"user: Ahoy"}, linesOf(all[0].Messages()))
			assert.Zero(t, all[0].Counts.Unknown)
		})
	}
}

func TestRead_Database(t *testing.T) {
	for _, c := range []struct{ table, program, hint string }{
		{"CREATE TABLE sessions (id TEXT, summary_message_id TEXT)", "crush", "SQLite"},
		{"CREATE TABLE session_items (session_id TEXT)", "docker-agent", "SQLite"},
		{"CREATE TABLE messages (content_json TEXT)", "goose", "goose session export"},
		{"CREATE TABLE `part` (id text)", "opencode", "opencode export"},
		{"CREATE TABLE session_message (id text)", "opencode", "opencode export"},
		{"CREATE TABLE boats (id text)", "", "SQLite"},
	} {
		_, err := read(t, "SQLite format 3\x00"+strings.Repeat("\x00", 4000)+c.table, session.Options{})
		e, ok := errors.AsType[*session.DatabaseError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, c.program, e.Program)
		assert.Contains(t, e.Hint, c.hint)
		assert.Contains(t, err.Error(), c.program)
	}
}

func TestRead_Readers(t *testing.T) {
	// A pipe of which the parts come late.
	r, w := io.Pipe()
	go func() {
		for _, part := range []string{`{"messages":[{"role":"us`, `er","content":"Ah`, `oy"}]}`} {
			_, _ = io.WriteString(w, part)
		}
		_ = w.Close()
	}()
	for s, err := range session.Read(r, "pipe", session.Options{}) {
		require.NoError(t, err)
		assert.Equal(t, []string{"user: Ahoy"}, linesOf(s.Messages()))
	}

	// A failing reader.
	for _, file := range []string{"claude-code.jsonl", "gemini-cli.json", "openai-chat.jsonl"} {
		data, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		broken := io.MultiReader(strings.NewReader(string(data)+strings.Repeat(" ", 512<<10)), iotest.ErrReader(errors.New("the disk is gone")))
		var last error
		for _, err := range session.Read(broken, "file", session.Options{}) {
			last = err
		}
		assert.ErrorContains(t, last, "file: the disk is gone", file)
	}
}

// repeated returns head, n times the text that line returns, and tail.
func repeated(head string, n int, line func(i int) string, tail string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		b.WriteString(line(i))
	}
	b.WriteString(tail)
	return b.String()
}

// Figures that no program can have counted are left out, so that no sum of figures overflows.
func TestRead_FiguresTooLarge(t *testing.T) {
	for _, n := range []string{"-1", "4294967296", "4611686018427387904", "9223372036854775807", "1e18", "1e999"} {
		for name, input := range map[string]string{
			"claude-code": `{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hi"}}
{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"yes"}],"usage":{"input_tokens":N,"cache_read_input_tokens":N,"output_tokens":N}}}
{"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,"logicalParentUuid":"b","sessionId":"s","compactMetadata":{"preTokens":N,"postTokens":N}}
{"type":"user","uuid":"d","parentUuid":"c","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"so far"}}
`,
			"codex": `{"type":"session_meta","payload":{"id":"s"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}}
{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":N,"output_tokens":N},"model_context_window":N}}}
{"type":"compacted","payload":{"message":"so far"}}
`,
			"pi": `{"type":"session","version":3,"id":"s","cwd":"/"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"yes"}],"usage":{"input":N,"cacheRead":N,"output":N}}}
{"type":"compaction","id":"c","parentId":"b","summary":"so far","firstKeptEntryId":"b","tokensBefore":N}
`,
			"gemini-cli": `{"sessionId":"s","projectHash":"h"}
{"id":"a","type":"user","content":"hi"}
{"id":"b","type":"gemini","content":"yes","tokens":{"input":N,"output":N,"tool":N}}
`,
		} {
			all, err := read(t, strings.ReplaceAll(input, "N", n), session.Options{})
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Equal(t, name, all[0].Format)
			assert.Zero(t, all[0].Window, "%s: %s", name, n)
			answers := 0
			for _, e := range all[0].Events {
				assert.Nil(t, e.Usage, "%s: %s", name, n)
				if e.Compaction != nil {
					assert.Zero(t, e.Compaction.Before, "%s: %s", name, n)
					assert.Zero(t, e.Compaction.After, "%s: %s", name, n)
				} else {
					answers++
				}
			}
			assert.NotZero(t, answers, name)
		}
	}
}

// A report without a size of the request measures nothing. It is left out, and counted.
func TestRead_UsageWithoutInput(t *testing.T) {
	for _, n := range []string{"0", "1e300", "99999999999999999999", "null"} {
		for name, input := range map[string]string{
			"claude-code": `{"type":"assistant","uuid":"b","parentUuid":null,"sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"yes"}],"usage":{"input_tokens":N,"output_tokens":5}}}`,
			"codex":       `{"type":"session_meta","payload":{"id":"s"}}` + "\n" + `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}}` + "\n" + `{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":N,"output_tokens":5}}}}`,
			"pi":          `{"type":"session","version":3,"id":"s","cwd":"/"}` + "\n" + `{"type":"message","id":"b","parentId":null,"message":{"role":"assistant","content":[{"type":"text","text":"yes"}],"usage":{"input":N,"output":5}}}`,
			"gemini-cli":  `{"sessionId":"s","projectHash":"h"}` + "\n" + `{"id":"b","type":"gemini","content":"yes","tokens":{"input":N,"output":5}}`,
			"openai-chat": `{"choices":[{"message":{"role":"assistant","content":"yes"}}],"usage":{"prompt_tokens":N,"completion_tokens":5}}`,
		} {
			all, err := read(t, strings.ReplaceAll(input, "N", n), session.Options{})
			require.NoError(t, err, "%s: %s", name, n)
			require.Len(t, all, 1)
			require.Len(t, all[0].Events, 1)
			assert.Nil(t, all[0].Events[0].Usage, "%s: %s", name, n)
			assert.Equal(t, 1, all[0].Counts.Usages, "%s: %s", name, n)
		}
	}
}

// The sum of all reports says which of them Codex has repeated. Without it all count.
func TestRead_CodexWithoutTotal(t *testing.T) {
	var input strings.Builder
	input.WriteString(`{"type":"session_meta","payload":{"id":"s"}}` + "\n")
	for n := range 3 {
		input.WriteString(`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}}` + "\n" +
			fmt.Sprintf(`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{},"last_token_usage":{"input_tokens":%d,"output_tokens":5}}}}`, n+1) + "\n")
	}
	all, err := read(t, input.String(), session.Options{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, 1+2+3, usage(all[0]).Input)
}

// TestRead_Hostile reads inputs that a careless reader takes very long for, or fails on. What
// is allocated for an input four times as long is at most five times as much.
func TestRead_Hostile(t *testing.T) {
	n := long.Or(1000, 4000)
	few := testReadHostile(t, n)
	for name, bytes := range testReadHostile(t, 4*n) {
		assert.Less(t, bytes, 5*few[name], name)
	}
}

// testReadHostile returns how many bytes were allocated for each input.
func testReadHostile(t *testing.T, n int) map[string]uint64 {
	allocated := map[string]uint64{}
	claude := func(i int, parent string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":%s,"sessionId":"s","isSidechain":false,"timestamp":"yesterday","message":{"role":"user","content":"%d"}}`+"\n", i, parent, i)
	}
	gemini := `{"sessionId":"s","projectHash":"h"}` + "\n"
	codex := `{"type":"session_meta","payload":{"id":"s"}}` + "\n"
	pi := `{"type":"session","version":3,"id":"s","cwd":"/"}` + "\n"
	said := func(i int) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"%d"}]}}`+"\n", i)
	}
	for name, c := range map[string]struct {
		input    string
		messages int // how many are read
	}{
		"each its own parent":    {repeated("", n, func(i int) string { return claude(i, fmt.Sprintf(`"u%d"`, i)) }, ""), n},
		"parents in a circle":    {repeated("", n, func(i int) string { return claude(i, fmt.Sprintf(`"u%d"`, (i+1)%n)) }, ""), 2},
		"a branch for each":      {repeated(claude(0, "null"), n, func(i int) string { return claude(i+1, `"u0"`) }, ""), 2},
		"a root for each":        {repeated("", n, func(i int) string { return claude(i, "null") }, ""), 1},
		"one line over and over": {repeated(claude(1, "null"), n, func(int) string { return claude(1, "null") }, ""), 1},
		"compactions only": {repeated(claude(0, "null"), n, func(i int) string {
			return fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","uuid":"c%d","parentUuid":null,"logicalParentUuid":"u0","compactMetadata":{"preservedSegment":{"headUuid":"u0","tailUuid":"u0"}}}`+"\n", i)
		}, ""), 1},
		"more turns taken back than there are": {repeated(codex, n, func(i int) string {
			return said(i) + `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1000000000}}` + "\n"
		}, said(n)), 1},
		"rewound to messages that are not there": {repeated(gemini, n, func(i int) string {
			return fmt.Sprintf(`{"id":"g%d","type":"user","content":"a"}`+"\n"+`{"$rewindTo":"x%d"}`+"\n", i, i)
		}, `{"id":"g","type":"user","content":"a"}`), 1},
		"one message replaced": {repeated(gemini, n, func(i int) string { return fmt.Sprintf(`{"id":"g","type":"user","content":"%d"}`+"\n", i) }, ""), 1},
		"lists set again": {repeated(gemini, n, func(i int) string {
			return fmt.Sprintf(`{"$set":{"messages":[{"id":"g%d","type":"user","content":"a"}]}}`+"\n", i)
		}, ""), 1},
		"branches of pi": {repeated(pi+`{"type":"label","id":"r","parentId":null}`+"\n", n, func(i int) string {
			return fmt.Sprintf(`{"type":"message","id":"p%d","parentId":"r","message":{"role":"user","content":"a"}}`+"\n", i)
		}, ""), 1},
		"calls with one ID": {repeated(`[`, n, func(int) string {
			return `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},`
		}, `{"role":"tool","tool_call_id":"c","content":"a"}]`), 2 * n},
		"results without calls": {repeated(`[`, n, func(int) string { return `{"role":"tool","tool_call_id":"c","content":"a"},` }, `{"role":"user","content":"a"}]`), 1},
		"tiny messages":         {repeated(`[`, n, func(int) string { return `{"role":"user","content":"a"},` }, `{"role":"user","content":"a"}]`), n + 1},
		"a deep value":          {`[{"role":"user","content":"a","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}]` + "\n" + `[{"role":"user","content":"a"}]`, 1},
		"a damaged line in two": {repeated("", 10, func(int) string {
			return `{"messages":[{"role":"user","content":"a"}]}` + "\n" + `{"messages":[{"role":"us` + "\n"
		}, ""), 10},
	} {
		messages := 0
		before, after := runtime.MemStats{}, runtime.MemStats{}
		runtime.ReadMemStats(&before)
		for s, err := range session.Read(strings.NewReader(c.input), name, session.Options{}) {
			require.NoError(t, err, name)
			messages += len(s.Messages())
			for _, e := range s.Events {
				if !e.Time.IsZero() {
					assert.Zero(t, e.Time, name)
				}
			}
		}
		runtime.ReadMemStats(&after)
		allocated[name] = after.TotalAlloc - before.TotalAlloc
		assert.Equal(t, c.messages, messages, name)
	}
	return allocated
}

func TestRead_Limits(t *testing.T) {
	line := strings.Repeat("a", 2000)
	for _, format := range session.Formats() {
		for s, err := range session.Read(strings.NewReader(`{"role":"user","content":"`+line+`"}`), "file", session.Options{Format: format, MaxLine: 1000}) {
			assert.Nil(t, s)
			e, ok := errors.AsType[*session.LimitError](err)
			require.True(t, ok, "%s: %v", format, err)
			assert.Equal(t, "line", e.What)
		}
	}
	for _, file := range []string{"claude-code.jsonl", "codex.jsonl", "pi.jsonl", "kit.jsonl", "gemini-cli.jsonl", "gemini-cli.json", "openai-chat.json", "openai-responses.json"} {
		for s, err := range readFile(t, "testdata/"+file, session.Options{MaxSession: 500}) {
			assert.Nil(t, s)
			e, ok := errors.AsType[*session.LimitError](err)
			require.True(t, ok, "%s: %v", file, err)
			assert.Equal(t, "session", e.What)
		}
	}
	assert.EqualError(t, &session.LimitError{Name: "file", What: "line", Limit: 256 << 20}, "file: a line or value of more than 256 MiB: split the file")
	assert.EqualError(t, &session.LimitError{Name: "file", What: "session", Limit: 500}, "file: the session takes more than 500 bytes of memory: split the file")
}

// TestRead_LongLine reads a line of many times the limit, which gives an error in memory that
// does not depend on the length.
func TestRead_LongLine(t *testing.T) {
	size := long.Or(96<<20, 1<<30)
	limit := int64(8 << 20)
	block := bytes.Repeat([]byte("a"), 1<<16)
	for name, head := range map[string]string{
		"session": `{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"`,
		"request": `{"messages":[{"role":"user","content":"`,
		"key":     `{"parentUuid":null,"`,
	} {
		t.Run(name, func(t *testing.T) {
			in := io.MultiReader(strings.NewReader(head), io.LimitReader(&endless{block}, int64(size)), strings.NewReader(`"}]}`))
			var last error
			most := heaptest.Peak(func() {
				for _, err := range session.Read(in, "line", session.Options{MaxLine: limit}) {
					last = err
				}
			})
			_, ok := errors.AsType[*session.LimitError](last)
			assert.True(t, ok, "%v", last)
			t.Logf("%d MB in a line, limit %d MB: peak %d MB", size>>20, limit>>20, most>>20)
			assert.Less(t, most, uint64(8*limit))
		})
	}
}

// An endless reader repeats a block.
type endless struct{ block []byte }

func (e *endless) Read(p []byte) (int, error) { return copy(p, e.block), nil }

// longHistory returns a conversation of about size bytes with texts as long as those of real
// sessions: results of 2 kB on average.
func longHistory(size int) []convo.Message {
	r := rand.New(rand.NewPCG(3, 1))
	letters := make([]byte, 1<<16)
	for i := range letters {
		letters[i] = "abcdefghij klmnop\nqrstuv"[r.IntN(24)]
	}
	text := func(most int) string {
		at, n := r.IntN(len(letters)-most), 1+r.IntN(most)
		return string(letters[at : at+n])
	}
	var msgs []convo.Message
	for n := 0; size > 0; n++ {
		call := convo.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: "read", Arguments: `{"path":"` + strings.ReplaceAll(text(200), "\n", " ") + `"}`}
		step := []convo.Message{convo.Assistant(text(400), call), convo.Result(call, text(4000))}
		if n%10 == 0 {
			step = append([]convo.Message{convo.User(text(300))}, step...)
		}
		for _, m := range step {
			for _, p := range m.Parts {
				if t, ok := p.(convo.ToolResult); ok {
					size -= len(t.Text())
				}
			}
			size -= len(m.Text()) + 400
		}
		msgs = append(msgs, step...)
	}
	return msgs
}

// longFile returns a file in a format.
func longFile(tb testing.TB, format string, size int) string {
	msgs := longHistory(size)
	w := &writer{r: rand.New(rand.NewPCG(4, 1))}
	switch format {
	case session.ClaudeCode:
		writeClaude(w, msgs)
	case session.Codex:
		writeCodex(w, msgs)
	case session.Pi:
		writePi(w, msgs)
	case session.Kit:
		writeKit(w, msgs)
	case session.GeminiCLI:
		writeGeminiCLI(w, msgs)
	default:
		h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Tokenizer: convo.Heuristic{}})
		require.NoError(tb, err)
		_, err = h.Append(msgs...)
		require.NoError(tb, err)
		req, err := map[string]wire.Format{
			wire.FormatOpenAIChat: wire.OpenAIChat{}, wire.FormatOpenAIResponses: wire.OpenAIResponses{}, wire.FormatAnthropic: wire.Anthropic{},
			wire.FormatGemini: wire.Gemini{}, wire.FormatConverse: wire.Converse{},
		}[format].Encode(h.Snapshot())
		require.NoError(tb, err)
		return string(req.Body())
	}
	return strings.Join(w.lines, "\n") + "\n"
}

// TestRead_Memory reads a long session in each format in at most three times its size.
func TestRead_Memory(t *testing.T) {
	size := long.Or(5<<20, 24<<20)
	for _, format := range session.Formats() {
		t.Run(format, func(t *testing.T) {
			if !slices.Contains([]string{session.ClaudeCode, session.Codex, session.GeminiCLI, wire.FormatOpenAIChat, wire.FormatConverse}, format) {
				long.Only(t, "reads a format much like one of the short form")
			}
			path := filepath.Join(t.TempDir(), "session")
			require.NoError(t, os.WriteFile(path, []byte(longFile(t, format, size)), 0o666))
			info, err := os.Stat(path)
			require.NoError(t, err)
			events := 0
			most := heaptest.Peak(func() {
				for s, err := range readFile(t, path, session.Options{}) {
					require.NoError(t, err)
					events += len(s.Events)
				}
			})
			t.Logf("%.1f MB, %d events: peak %.2f times the file", float64(info.Size())/1e6, events, float64(most)/float64(info.Size()))
			const least = 4 << 20 // a heap of this size is not collected
			assert.Less(t, most, 3*uint64(info.Size())+least)
		})
	}
}

// BenchmarkRead reads a session of 20 MB.
func BenchmarkRead(b *testing.B) {
	for _, format := range session.Formats() {
		b.Run(format, func(b *testing.B) {
			file := longFile(b, format, 20<<20)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range session.Read(strings.NewReader(file), "file", session.Options{}) {
					require.NoError(b, err)
				}
			}
		})
	}
}
