package session_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// A writer writes a history as a program does, with what a file may hold beside it.
type writer struct {
	r     *rand.Rand
	lines []string
	n     int // for IDs
	usage int // tokens of the answers that stay, as the format reports them
}

// fields are those of a JSON object.
type fields = map[string]any

func (w *writer) id(prefix string) string { w.n++; return fmt.Sprintf("%s-%d", prefix, w.n) }

func (w *writer) chance(percent int) bool { return w.r.IntN(100) < percent }

func (w *writer) line(f any) {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	w.lines = append(w.lines, string(b))
}

// file returns what was written, sometimes with a line that is torn.
func (w *writer) file() string {
	text := strings.Join(w.lines, "\n") + "\n"
	if w.chance(50) {
		line := w.lines[len(w.lines)-1]
		text += line[:1+w.r.IntN(len(line)-1)]
	}
	if w.chance(20) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// history returns a random conversation. All calls have results, and it ends with an answer.
func history(r *rand.Rand) []convo.Message {
	var msgs []convo.Message
	words := []string{"tide", "hull", "\"quoted\"", "línea", "a\nb", "{}", "<b>"}
	n := 0
	text := func() string {
		n++
		return fmt.Sprintf("%s %d", words[r.IntN(len(words))], n)
	}
	for range 1 + r.IntN(5) {
		msgs = append(msgs, convo.User(text()))
		for range r.IntN(3) {
			m := convo.Assistant("")
			if r.IntN(2) == 0 {
				m = convo.Assistant(text())
			}
			var results []convo.Message
			for range 1 + r.IntN(3) {
				n++
				c := convo.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, n)}
				m.Parts = append(m.Parts, c)
				results = append(results, convo.Result(c, text()))
			}
			msgs = append(append(msgs, m), results...)
		}
		msgs = append(msgs, convo.Assistant(text()))
	}
	return msgs
}

// A tree writes records that have a parent.
type tree struct {
	*writer
	put  func(id, parent string, m convo.Message, side bool) // writes a message
	live []string                                            // IDs of the live branch
	last string                                              // record in the file
}

// record writes a message of the live branch, and noise around it.
func (t *tree) record(m convo.Message) {
	for t.chance(20) && len(t.live) > 0 { // a branch that was left
		parent := t.live[t.r.IntN(len(t.live))]
		for range 1 + t.r.IntN(2) {
			id := t.id("dead")
			t.put(id, parent, convo.User("left"), false)
			parent, t.last = id, id
		}
	}
	parent := ""
	if n := len(t.live); n > 0 {
		parent = t.live[n-1]
	}
	id := t.id("live")
	written := parent
	if parent != "" && parent == t.last && t.chance(10) {
		written = t.id("lost") // a parent that was never written
	}
	t.put(id, written, m, false)
	if t.chance(10) && len(t.lines) > 3 { // a line again
		t.lines = append(t.lines, t.lines[2+t.r.IntN(len(t.lines)-2)])
	}
	t.live, t.last = append(t.live, id), id
}

func blocksOf(m convo.Message) (blocks []any) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			blocks = append(blocks, fields{"type": "text", "text": string(p)})
		case convo.ToolCall:
			blocks = append(blocks, fields{"type": "tool_use", "id": p.ID, "name": p.Name, "input": json.RawMessage(p.Arguments)})
		case convo.ToolResult:
			blocks = append(blocks, fields{"type": "tool_result", "tool_use_id": p.CallID, "content": p.Text()})
		}
	}
	return blocks
}

func writeClaude(w *writer, msgs []convo.Message) {
	w.line(fields{"type": "summary", "summary": "Title", "leafUuid": "x"})
	w.line(fields{"type": "queue-operation", "operation": "enqueue", "sessionId": "s"})
	reply := ""
	put := func(id, parent string, m convo.Message, side bool) {
		f := fields{"uuid": id, "parentUuid": nil, "sessionId": "s", "isSidechain": side, "version": "2.0.1", "timestamp": "2026-02-03T04:05:06Z", "type": "user", "message": fields{"role": "user", "content": blocksOf(m)}}
		if parent != "" {
			f["parentUuid"] = parent
		}
		if m.Role == convo.RoleAssistant {
			f["type"] = "assistant"
			f["message"] = fields{"role": "assistant", "id": reply, "type": "message", "model": "claude-opus-5", "content": blocksOf(m), "usage": fields{"input_tokens": 1, "cache_read_input_tokens": 10, "output_tokens": 2}}
		}
		w.line(f)
	}
	t := &tree{writer: w, put: put}
	side := ""
	for _, m := range msgs {
		if w.chance(30) { // a subagent
			id := w.id("side")
			put(id, side, convo.User("aside"), true)
			side = id
		}
		if m.Role != convo.RoleAssistant {
			t.record(m)
			continue
		}
		reply = w.id("msg")
		w.usage += 11
		for _, p := range m.Parts {
			t.record(convo.Message{Role: m.Role, Parts: []convo.Part{p}})
		}
	}
}

func writeCodex(w *writer, msgs []convo.Message) {
	line := func(kind string, payload fields) {
		w.line(fields{"timestamp": "2026-02-03T04:05:06Z", "type": kind, "payload": payload})
	}
	message := func(role, kind, text string) {
		line("response_item", fields{"type": "message", "role": role, "content": []any{fields{"type": kind, "text": text}}})
	}
	line("session_meta", fields{"id": "s", "cli_version": "0.50.0"})
	line("turn_context", fields{"model": "gpt-5.2"})
	total := 0
	count := func() {
		total += 7
		info := fields{"total_token_usage": fields{"total_tokens": total}, "last_token_usage": fields{"input_tokens": 6, "cached_input_tokens": 5, "output_tokens": 1}}
		for range 1 + w.r.IntN(2) {
			line("event_msg", fields{"type": "token_count", "info": info})
		}
	}
	for _, m := range msgs {
		switch m.Role {
		case convo.RoleUser:
			if w.chance(20) { // turns that were taken back
				turns := 1 + w.r.IntN(2)
				for range turns {
					message("user", "input_text", "taken back")
					message("assistant", "output_text", "an answer")
					count()
				}
				line("event_msg", fields{"type": "thread_rolled_back", "num_turns": turns})
			}
			message("user", "input_text", m.Text())
			line("event_msg", fields{"type": "user_message", "message": m.Text()})
		case convo.RoleAssistant:
			for _, p := range m.Parts {
				switch p := p.(type) {
				case convo.Text:
					message("assistant", "output_text", string(p))
				case convo.ToolCall:
					line("response_item", fields{"type": "function_call", "name": p.Name, "call_id": p.ID, "arguments": p.Arguments})
				}
			}
			w.usage += 6
			count()
		case convo.RoleTool:
			r := m.ToolResults()[0]
			line("response_item", fields{"type": "function_call_output", "call_id": r.CallID, "output": r.Text()})
		}
	}
}

func writePi(w *writer, msgs []convo.Message) {
	w.line(fields{"type": "session", "version": 3, "id": "s", "cwd": "/"})
	w.line(fields{"type": "model_change", "id": "m", "parentId": nil, "modelId": "claude-opus-5"})
	t := &tree{writer: w, live: []string{"m"}, last: "m"}
	t.put = func(id, parent string, m convo.Message, _ bool) {
		var blocks []any
		f := fields{"role": "user"}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Text:
				blocks = append(blocks, fields{"type": "text", "text": string(p)})
			case convo.ToolCall:
				blocks = append(blocks, fields{"type": "toolCall", "id": p.ID, "name": p.Name, "arguments": json.RawMessage(p.Arguments)})
			case convo.ToolResult:
				blocks = append(blocks, fields{"type": "text", "text": p.Text()})
				f = fields{"role": "toolResult", "toolCallId": p.CallID, "toolName": p.Name, "isError": false}
			}
		}
		if m.Role == convo.RoleAssistant {
			f = fields{"role": "assistant", "model": "claude-opus-5", "usage": fields{"input": 1, "cacheRead": 10, "cacheWrite": 3, "output": 2}}
		}
		f["content"] = blocks
		w.line(fields{"type": "message", "id": id, "parentId": parent, "timestamp": "2026-02-03T04:05:06Z", "message": f})
	}
	for _, m := range msgs {
		if m.Role == convo.RoleAssistant {
			w.usage += 14
		}
		t.record(m)
	}
}

func writeKit(w *writer, msgs []convo.Message) {
	w.line(fields{"type": "session", "version": 3, "id": "s", "cwd": "/", "parent_session_id": "p"})
	w.line(fields{"type": "model_change", "id": "m", "model_id": "gpt-5.2"})
	t := &tree{writer: w, live: []string{"m"}, last: "m"}
	t.put = func(id, parent string, m convo.Message, _ bool) {
		var parts []any
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Text:
				parts = append(parts, fields{"type": "text", "data": fields{"text": string(p)}})
			case convo.ToolCall:
				parts = append(parts, fields{"type": "tool_call", "data": fields{"id": p.ID, "name": p.Name, "input": p.Arguments}})
			case convo.ToolResult:
				parts = append(parts, fields{"type": "tool_result", "data": fields{"tool_call_id": p.CallID, "name": p.Name, "content": p.Text()}})
			}
		}
		w.line(fields{"type": "message", "id": id, "parent_id": parent, "timestamp": "2026-02-03T04:05:06Z", "role": m.Role, "parts": parts})
	}
	for _, m := range msgs {
		t.record(m)
	}
}

func writeGeminiCLI(w *writer, msgs []convo.Message) {
	w.line(fields{"sessionId": "s", "projectHash": "h", "startTime": "2026-02-03T04:05:06Z"})
	message := func(id, kind string, content any, more fields) {
		f := fields{"id": id, "type": kind, "timestamp": "2026-02-03T04:05:06Z", "content": content}
		maps.Copy(f, more)
		w.line(f)
	}
	for i := 0; i < len(msgs); i++ {
		m := msgs[i]
		if w.chance(20) {
			from := w.id("left")
			message(from, "user", "taken back", nil)
			message(w.id("left"), "gemini", "an answer", fields{"tokens": fields{"input": 99}})
			w.line(fields{"$rewindTo": from})
		}
		if w.chance(20) {
			w.line(fields{"$set": fields{"lastUpdated": "2026-02-03T04:05:06Z"}})
			message(w.id("info"), "info", "news", nil)
		}
		id := w.id("g")
		if m.Role == convo.RoleUser {
			message(id, "user", []any{fields{"text": m.Text()}}, nil)
			continue
		}
		var calls []any
		for _, c := range m.ToolCalls() {
			i++
			result := []any{fields{"functionResponse": fields{"id": c.ID, "name": c.Name, "response": fields{"output": msgs[i].Text()}}}}
			calls = append(calls, fields{"id": c.ID, "name": c.Name, "args": json.RawMessage(c.Arguments), "status": "success", "result": result})
		}
		if len(calls) > 0 { // written when the calls begin, and again when they end
			message(id, "gemini", "", fields{"toolCalls": calls[:1]})
		}
		w.usage += 9
		message(id, "gemini", m.Text(), fields{"model": "gemini-3-pro", "toolCalls": calls, "tokens": fields{"input": 9, "cached": 8, "output": 1, "thoughts": 2}})
	}
}

// lines returns a line for each part of messages. Results that follow each other may be in
// one message or in several.
func linesOf(msgs []convo.Message) (lines []string) {
	for _, m := range msgs {
		if m.Role != convo.RoleTool {
			lines = append(lines, outlineOf(m))
			continue
		}
		for _, r := range m.ToolResults() {
			lines = append(lines, outlineOf(convo.Message{Role: m.Role, Parts: []convo.Part{r}}))
		}
	}
	return lines
}

// TestProperty_LiveBranch writes random histories in each format, with branches that were
// left, subagents, lines written twice, lost parents and torn ends, and reads them back.
func TestProperty_LiveBranch(t *testing.T) {
	for format, write := range map[string]func(*writer, []convo.Message){
		session.ClaudeCode: writeClaude, session.Codex: writeCodex, session.Pi: writePi, session.Kit: writeKit, session.GeminiCLI: writeGeminiCLI,
	} {
		t.Run(format, func(t *testing.T) {
			for seed := range long.Or[uint64](60, 300) {
				w := &writer{r: rand.New(rand.NewPCG(seed, 1))}
				msgs := history(w.r)
				write(w, msgs)
				file := w.file()
				all, err := read(t, file, session.Options{})
				require.NoError(t, err, "seed %d", seed)
				require.Len(t, all, 1)
				s := all[0]
				require.Equal(t, format, s.Format, "seed %d", seed)
				require.Equal(t, linesOf(msgs), linesOf(s.Messages()), "seed %d:\n%s", seed, file)
				assert.Zero(t, s.Counts.Unknown, "seed %d", seed)
				assert.Equal(t, w.usage, usage(s).Input, "seed %d", seed)
			}
		})
	}
}

// TestProperty_Requests writes random histories as requests, one for each line, and reads
// them back.
func TestProperty_Requests(t *testing.T) {
	for name, f := range map[string]wire.Format{
		wire.FormatOpenAIChat: wire.OpenAIChat{}, wire.FormatOpenAIResponses: wire.OpenAIResponses{}, wire.FormatAnthropic: wire.Anthropic{},
		wire.FormatGemini: wire.Gemini{}, wire.FormatConverse: wire.Converse{},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 1))
			var file strings.Builder
			var want [][]string
			for range 100 {
				msgs := append(history(r), convo.User("the end"))
				h, err := convo.New(nil)
				require.NoError(t, err)
				_, err = h.Append(msgs...)
				require.NoError(t, err)
				req, err := f.Encode(h.Snapshot())
				require.NoError(t, err)
				file.Write(append(req.Body(), '\n'))
				want = append(want, linesOf(msgs))
			}
			all, err := read(t, file.String(), session.Options{})
			require.NoError(t, err)
			require.Len(t, all, len(want))
			for i, s := range all {
				require.Equal(t, want[i], linesOf(s.Messages()), "request %d", i)
				assert.Zero(t, s.Counts.Unknown)
			}
			assert.True(t, slices.ContainsFunc(all, func(s *session.Session) bool { return s.Format == name }))
		})
	}
}

// TestCompaction_Claude keeps a reply of several lines in a compaction, whose view must hold
// each of its parts once, in both of the ways in which the file can name what was kept.
func TestCompaction_Claude(t *testing.T) {
	for _, kept := range []string{
		`"preservedSegment":{"headUuid":"a1","anchorUuid":"k","tailUuid":"r"}`,
		`"preservedMessages":{"anchorUuid":"k","uuids":["a1","a2","r"]}`,
		`"preservedMessages":["a1","a2","r"]`,
		`"preservedMessages":[{"uuid":"a1"},{"uuid":"a2"},{"uuid":"r"}]`,
	} {
		for _, next := range []string{"k", "r"} { // the parent of the message after it
			all, err := read(t, strings.Join([]string{
				`{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Go."}}`,
				`{"type":"assistant","uuid":"a1","parentUuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"I look."}]}}`,
				`{"type":"assistant","uuid":"a2","parentUuid":"a1","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"c","name":"look","input":{}}]}}`,
				`{"type":"user","uuid":"r","parentUuid":"a2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"a boat"}]}}`,
				`{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"r","compactMetadata":{"trigger":"manual","preTokens":70,"postTokens":7,` + kept + `}}`,
				`{"type":"attachment","uuid":"x","parentUuid":"b"}`,
				`{"type":"user","uuid":"k","parentUuid":"x","isCompactSummary":true,"message":{"role":"user","content":"So far: a boat."}}`,
				`{"type":"user","uuid":"v","parentUuid":"` + next + `","message":{"role":"user","content":"And now?"}}`,
			}, "\n"), session.Options{})
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Equal(t, `user: Go.
assistant: I look. look#c{}
tool: c=a boat
compaction "manual" 70 7 hidden=false: So far: a boat.
  user: So far: a boat.
  assistant: I look. look#c{}
  tool: c=a boat
user: And now?
`, outline(all[0]), "%s, next %s", kept, next)
			assert.Zero(t, all[0].Counts.Dropped)
		}
	}
}

// TestCompaction_NoSummary reads a compaction whose summary was not written, and a summary
// without the mark of a compaction.
func TestCompaction_NoSummary(t *testing.T) {
	const user = `{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Go."}}` + "\n"
	all, err := read(t, user+`{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"u","compactMetadata":{"trigger":"auto"}}`+"\n"+
		`{"type":"user","uuid":"v","parentUuid":"b","message":{"role":"user","content":"And now?"}}`, session.Options{})
	require.NoError(t, err)
	assert.Equal(t, "user: Go.\ncompaction \"auto\" 0 0 hidden=true: \nuser: And now?\n", outline(all[0]))

	all, err = read(t, user+`{"type":"user","uuid":"k","parentUuid":null,"isCompactSummary":true,"message":{"role":"user","content":"So far."}}`+"\n"+
		`{"type":"user","uuid":"v","parentUuid":"k","message":{"role":"user","content":"And now?"}}`, session.Options{})
	require.NoError(t, err)
	assert.Equal(t, "user: Go.\ncompaction \"\" 0 0 hidden=false: So far.\n  user: So far.\nuser: And now?\n", outline(all[0]))
}

func TestCounts_Doubtful(t *testing.T) {
	assert.False(t, session.Counts{}.Doubtful())
	assert.False(t, session.Counts{Records: 100, Unknown: 1}.Doubtful())
	assert.True(t, session.Counts{Records: 99, Unknown: 1}.Doubtful())
}
