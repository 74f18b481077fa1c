package session_test

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
)

// readFile is session.Read for a file.
func readFile(t *testing.T, path string, o session.Options) iter.Seq2[*session.Session, error] {
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return session.Read(f, path, o)
}

// outline returns a session as text: a line for each event.
func outline(s *session.Session) string {
	var b strings.Builder
	for _, m := range s.System {
		fmt.Fprintf(&b, "system: %s\n", m.Text())
	}
	for _, t := range s.Tools {
		fmt.Fprintf(&b, "tool: %s\n", t.Name)
	}
	for _, e := range s.Events {
		if c := e.Compaction; c != nil {
			fmt.Fprintf(&b, "compaction %q %d %d hidden=%t: %s\n", c.Trigger, c.Before, c.After, c.Hidden, c.Summary)
			for _, m := range c.View {
				fmt.Fprintf(&b, "  %s\n", outlineOf(m))
			}
			continue
		}
		for i, m := range e.Messages {
			line := outlineOf(m)
			if u := e.Usage; u != nil && i == 0 {
				line += fmt.Sprintf(" [%d in, %d read, %d written, %d out]", u.Input, u.CacheRead, u.CacheWrite, u.Output)
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func outlineOf(m convo.Message) string {
	var line strings.Builder
	line.WriteString(string(m.Role))
	if m.Meta != "" {
		line.WriteString(" (" + m.Meta + ")")
	}
	line.WriteString(":")
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			line.WriteString(" " + string(p))
		case convo.Reasoning:
			line.WriteString(" (" + p.Text + p.Encrypted + ")")
		case convo.ToolCall:
			line.WriteString(" " + p.Name + "#" + p.ID + p.Arguments)
		case convo.ToolResult:
			line.WriteString(" " + p.CallID + "=" + p.Text())
			if p.IsError {
				line.WriteString("!")
			}
		default:
			line.WriteString(fmt.Sprintf(" %T", p))
		}
	}
	return line.String()
}

// read returns the sessions of an input, each of whose messages Append must take.
func read(t testing.TB, input string, o session.Options) ([]*session.Session, error) {
	t.Helper()
	var all []*session.Session
	for s, err := range session.Read(strings.NewReader(input), "input", o) {
		if err != nil {
			require.Nil(t, s)
			return all, err
		}
		check(t, s)
		all = append(all, s)
	}
	return all, nil
}

// check reports whether Append takes the events of a session, and RecordUsage its usage.
func check(t testing.TB, s *session.Session) {
	t.Helper()
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Tokenizer: convo.Heuristic{}})
	require.NoError(t, err)
	require.NoError(t, h.SetSystem(s.System...))
	for i, e := range s.Events {
		if e.Compaction != nil {
			assert.Empty(t, e.Messages)
			assert.Nil(t, e.Usage)
			view, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Tokenizer: convo.Heuristic{}})
			require.NoError(t, err)
			if len(e.Compaction.View) > 0 {
				_, err = view.Append(e.Compaction.View...)
				require.NoError(t, err, "view of event %d", i)
			}
			continue
		}
		require.NotEmpty(t, e.Messages, "event %d", i)
		at := h.Snapshot()
		_, err := h.Append(e.Messages...)
		require.NoError(t, err, "event %d: %+v", i, e.Messages)
		if e.Usage != nil {
			require.Equal(t, convo.RoleAssistant, e.Messages[0].Role)
			require.NoError(t, h.RecordUsage(at, *e.Usage), "event %d", i)
		}
	}
	assert.Equal(t, len(s.Messages()), func() (n int) {
		for _, e := range s.Events {
			n += len(e.Messages)
		}
		return n
	}())
}

// usage returns the sum of what the requests of a session used.
func usage(s *session.Session) (sum convo.Usage) {
	for _, e := range s.Events {
		if u := e.Usage; u != nil {
			sum.Input += u.Input
			sum.CacheRead += u.CacheRead
			sum.CacheWrite += u.CacheWrite
			sum.Output += u.Output
			sum.Reasoning += u.Reasoning
		}
	}
	return sum
}

var update = flag.Bool("update", false, "write the outlines in testdata anew")

// TestRead reads the samples. Each holds, where its format can have it: a reply over several
// lines, lines written twice, a missing parent, a branch, a subagent, an open call, a
// compaction, and a torn last line. The outline of each is in a file with .want added.
func TestRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			var got strings.Builder
			for s, err := range readFile(t, file, session.Options{}) {
				require.NoError(t, err)
				check(t, s)
				fmt.Fprintf(&got, "%s version=%s id=%s title=%q parent=%s window=%d\n%s%+v\n\n", s.Format, s.Version, s.ID, s.Title, s.Parent, s.Window, outline(s), s.Counts)
			}
			if *update {
				require.NoError(t, os.WriteFile(file+".want", []byte(got.String()), 0o666))
			}
			want, err := os.ReadFile(file + ".want")
			require.NoError(t, err)
			assert.Equal(t, string(want), got.String())
		})
	}
}

// Older files of pi have no IDs. A compaction names the first entry that it kept by its line,
// counted from the head, which is line 0 and is no entry.
func TestRead_PiWithoutIDs(t *testing.T) {
	var views [][]string
	for s, err := range readFile(t, "testdata/pi-old.jsonl", session.Options{}) {
		require.NoError(t, err)
		for _, e := range s.Events {
			if e.Compaction != nil {
				var view []string
				for _, m := range e.Compaction.View {
					view = append(view, m.Text())
				}
				views = append(views, view)
			}
		}
	}
	assert.Equal(t, [][]string{
		{"There are a sheet and a halyard.", "Which one is worn?", "The halyard."},
		{"The halyard is ordered."},
	}, views)
}

// A reply of Claude Code counts once, also if something of the user is written between its
// blocks. Two replies with one ID, as some gateways write them, stay two.
func TestUsage_ReplyInPieces(t *testing.T) {
	line := func(uuid, parent, kind, message string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"role":%q,%s}}`+"\n", kind, uuid, parent, kind, message)
	}
	reply := func(block string, in, out int) string {
		return fmt.Sprintf(`"id":"m","content":[%s],"usage":{"input_tokens":%d,"cache_read_input_tokens":100,"output_tokens":%d}`, block, in, out)
	}
	call := func(id string) string { return `{"type":"tool_use","id":"` + id + `","name":"find","input":{}}` }
	start := line("a", "", "user", `"content":"hi"`) + line("b", "a", "assistant", reply(call("1"), 10, 1))
	between := line("c", "b", "user", `"content":[{"type":"tool_result","tool_use_id":"1","content":"x"},{"type":"text","text":"faster"}]`)
	for _, c := range []struct {
		name, input, want string
	}{
		{"one reply", start + between + line("d", "c", "assistant", reply(call("2"), 10, 7)) + line("e", "d", "user", `"content":[{"type":"tool_result","tool_use_id":"2","content":"y"}]`),
			"user: hi\nassistant: find#1{} find#2{} [110 in, 100 read, 0 written, 7 out]\ntool: 1=x\ntool: 2=y\nuser: faster\n"},
		{"one ID", start + between + line("d", "c", "assistant", reply(`{"type":"text","text":"yes"}`, 20, 7)),
			"user: hi\nassistant: find#1{} [110 in, 100 read, 0 written, 1 out]\ntool: 1=x\nuser: faster\nassistant: yes [120 in, 100 read, 0 written, 7 out]\n"},
	} {
		all, err := read(t, c.input, session.Options{})
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, c.want, outline(all[0]), c.name)
	}
}

// A message that Gemini CLI writes again, alone or in a list, keeps its usage, which counts once.
func TestUsage_MessageAgain(t *testing.T) {
	start := `{"sessionId":"s","projectHash":"h"}
{"id":"1","type":"user","content":"hi"}
{"id":"2","type":"gemini","content":"so","tokens":{"input":90,"output":5,"total":95}}
{"id":"2","type":"gemini","content":"so far","tokens":{"input":100,"output":7,"total":107}}
`
	for name, again := range map[string]string{
		"line":       `{"id":"2","type":"gemini","content":"so far"}`,
		"update":     `{"$set":{"messages":[{"id":"1","type":"user","content":"hi"},{"id":"2","type":"gemini","content":"so far"}]}}`,
		"compaction": `{"$set":{"messages":[{"id":"9","type":"user","content":"sum"},{"id":"2","type":"gemini","content":"so far"}]}}`,
	} {
		all, err := read(t, start+again+"\n", session.Options{})
		require.NoError(t, err, name)
		require.Len(t, all, 1)
		assert.Contains(t, outline(all[0]), "assistant: so far [100 in, 0 read, 0 written, 7 out]\n", name)
		assert.Equal(t, 100, usage(all[0]).Input, name)
	}
}

// TestUsage states what the requests of each sample used in all. For the formats whose input
// lacks cached tokens, they are added; a reply over several lines counts once.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		file string
		want convo.Usage
	}{
		// Summed by line, the input would be 5,692: the first reply is written three times.
		{"claude-code.jsonl", convo.Usage{Input: 910 + 970 + 980 + 500 + 512, CacheRead: 900 + 940 + 500, CacheWrite: 900 + 40 + 300, Output: 80 + 7 + 20 + 6 + 3}},
		{"claude-code-agent.jsonl", convo.Usage{Input: 5 + 11, CacheRead: 5, Output: 4}},
		// One report is written twice, and one is of an answer that was taken back.
		{"codex.jsonl", convo.Usage{Input: 1000 + 1100 + 1200 + 1300 + 400, CacheRead: 1000 + 1000 + 1200, Output: 50 + 10 + 30 + 30 + 9, Reasoning: 20}},
		{"pi.jsonl", convo.Usage{Input: 510 + 530 + 570 + 135, CacheRead: 500 + 520 + 100, CacheWrite: 500 + 10 + 20, Output: 20 + 5 + 9 + 4}},
		{"kit.jsonl", convo.Usage{}}, // none is recorded
		{"gemini-cli.jsonl", convo.Usage{Input: 700 + 800 + 820 + 40 + 120, CacheRead: 700 + 800, Output: 50 + 6 + 14 + 3, Reasoning: 30 + 5}},
		{"gemini-cli.json", convo.Usage{Input: 1500, CacheRead: 700, Output: 56, Reasoning: 30}},
		{"answers.jsonl", convo.Usage{Input: 130 + 50 + 40 + 14, CacheRead: 100 + 10 + 8 + 5, CacheWrite: 20 + 2, Output: 5 + 10 + 6 + 3, Reasoning: 6 + 2}},
		{"openai-chat.jsonl", convo.Usage{Input: 30, CacheRead: 10, Output: 5}},
	} {
		t.Run(c.file, func(t *testing.T) {
			var got convo.Usage
			for s, err := range readFile(t, "testdata/"+c.file, session.Options{}) {
				require.NoError(t, err)
				u := usage(s)
				got = convo.Usage{Input: got.Input + u.Input, CacheRead: got.CacheRead + u.CacheRead, CacheWrite: got.CacheWrite + u.CacheWrite, Output: got.Output + u.Output, Reasoning: got.Reasoning + u.Reasoning}
			}
			assert.Equal(t, c.want, got)
		})
	}
}
