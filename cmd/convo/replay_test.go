package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/cli"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/heaptest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// replayFiles are what the commands of testdata/replay/golden.txt read, besides its own files.
func replayFiles(t *testing.T) []goldenFile {
	claude := claudeSample(t)
	return []goldenFile{
		{"claude.jsonl", claude},
		{"claude-copy.jsonl", claude},
		{"codex.jsonl", codexSample(t)},
		{"damaged.jsonl", claude + strings.Repeat("{\"type\": \"surprise\", \"uuid\": 3}\n{\"broken\n", 3)},
	}
}

const replayGolden = "testdata/replay/golden.txt"

func TestGolden_Replay(t *testing.T) {
	path, err := filepath.Abs(replayGolden)
	require.NoError(t, err)
	g := readGolden(t, path)
	inTemp(t, append(replayFiles(t), g.files...))
	g.check(t, path, func(c goldenCommand) string { return c.do(t) })
}

// Each block of the page is a command of the golden file with what it prints.
func TestPage_Replay(t *testing.T) {
	const page = "../../docs/replay.md"
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	g := readGolden(t, replayGolden)
	shown := map[string]string{}
	for _, c := range g.commands {
		shown[c.line] = c.line + "\n" + strings.ReplaceAll(c.printed, "2> ", "")
	}
	prices := ""
	for _, f := range g.files {
		if f.name == "prices.json" {
			prices = f.text
		}
	}
	assert.Contains(t, string(data), "```json\n"+prices+"```\n", "the prices of the page are those of the golden file")
	blocks := strings.Split(string(data), "```console\n")[1:]
	require.GreaterOrEqual(t, len(blocks), 2)
	for _, b := range blocks {
		block, _, ok := strings.Cut(b, "```\n")
		require.True(t, ok)
		line, _, _ := strings.Cut(block, "\n")
		assert.Equal(t, shown[line], block, "%s: run go test -update, and copy the block from %s", page, replayGolden)
	}
}

func TestReplay_JSON(t *testing.T) {
	inTemp(t, replayFiles(t))
	var out, errs bytes.Buffer
	code := runIn(t.Context(), cli.NewEnv(strings.NewReader(""), &out, &errs), []string{"replay", "-json", "-window", "24000", "-html", "page.html", "claude.jsonl", "codex.jsonl"})
	require.Equal(t, cli.OK, code, errs.String())
	var got struct {
		Notes []string
		Total struct {
			Sessions, Requests int
			Policies           map[string]struct{ Input, New, Cached, Written int64 }
		}
		Sessions []struct {
			Format   string
			Requests int
			Sizes    map[string][]int
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.Equal(t, 2, got.Total.Sessions)
	assert.Equal(t, 60, got.Total.Requests)
	require.Len(t, got.Sessions, 2)
	assert.NotEmpty(t, got.Notes)
	for policy, bill := range got.Total.Policies {
		assert.Equal(t, bill.Input, bill.New+bill.Cached+bill.Written, policy)
		sum := int64(0)
		for _, s := range got.Sessions {
			require.Len(t, s.Sizes[policy], s.Requests)
			for _, n := range s.Sizes[policy] {
				sum += int64(n)
			}
		}
		assert.Equal(t, bill.Input, sum, policy)
	}
	page, err := os.ReadFile("page.html")
	require.NoError(t, err)
	assert.Equal(t, 4, strings.Count(string(page), "<svg "))
}

// If the file of -html is forgotten, the name of a session follows it.
func TestPage_ReplacesNoOtherFile(t *testing.T) {
	inTemp(t, replayFiles(t))
	require.NoError(t, os.WriteFile("empty.html", nil, 0o600))
	for _, command := range []string{"show", "replay"} {
		do := func(page string) (int, string) {
			code, _, errs := runs(strings.NewReader(""), command, "-window", "24000", "-html", page, "claude.jsonl")
			return code, errs
		}
		for _, name := range []string{"claude.jsonl", "codex.jsonl"} {
			before, err := os.ReadFile(name)
			require.NoError(t, err)
			code, errs := do(name)
			assert.Equal(t, cli.Usage, code)
			assert.Contains(t, errs, "-html "+name+": the file is there and is no page")
			after, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.Equal(t, before, after)
		}
		for _, name := range []string{"page.html", "page.html", "empty.html"} {
			code, errs := do(name)
			assert.Equal(t, cli.OK, code, errs)
		}
	}
}

// For a terminal, the characters that it acts on are escaped in the JSON.
func TestReplay_JSONForTerminal(t *testing.T) {
	inTemp(t, []goldenFile{{"a\u202e\u009b31m.jsonl", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"}]}` + "\n"}})
	var out, errs bytes.Buffer
	env := cli.NewEnv(strings.NewReader(""), &out, &errs)
	env.StdoutTerminal = true
	require.Equal(t, cli.OK, runIn(t.Context(), env, []string{"replay", "-json", "-window", "1000", "a\u202e\u009b31m.jsonl"}), errs.String())
	assert.NotContains(t, out.String(), "\u202e")
	assert.NotContains(t, out.String(), "\u009b")
	var got struct{ Total struct{ Name string } }
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.Equal(t, "a\u202e\u009b31m.jsonl", got.Total.Name)
}

// A file of which too much was not understood is named, however much the other files hold.
func TestReplay_DoubtfulFile(t *testing.T) {
	dir := t.TempDir()
	line := func(n int) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"%d","sessionId":"s","message":{"role":"assistant","content":"yes"}}`+"\n", n)
	}
	var long strings.Builder
	for n := range 500 {
		long.WriteString(line(n))
	}
	whole, damaged := filepath.Join(dir, "whole.jsonl"), filepath.Join(dir, "damaged.jsonl")
	require.NoError(t, os.WriteFile(whole, []byte(long.String()), 0o600))
	require.NoError(t, os.WriteFile(damaged, []byte(strings.ReplaceAll(line(1)+"{]\n"+line(2), `"s"`, `"d"`)), 0o600))
	for _, names := range [][]string{{whole, damaged}, {damaged, whole}} {
		code, stdout, stderr := runs(nil, append([]string{"replay", "-window", "8000"}, names...)...)
		assert.Equal(t, cli.Findings, code)
		assert.Equal(t, damaged+": 1 of 3 records was not understood, so much may be missing\n", stderr)
		assert.Contains(t, stdout, "2 sessions")
	}
	code, _, stderr := runs(nil, "replay", "-window", "8000", whole)
	assert.Equal(t, cli.OK, code)
	assert.Empty(t, stderr)
	code, stdout, stderr := runs(nil, "replay", "-window", "8000", damaged)
	assert.Equal(t, cli.Findings, code)
	assert.Empty(t, stderr)
	assert.True(t, strings.HasPrefix(stdout, "1 of 3 records (33.3 %) was not understood"), stdout)
}

func lastLine(text string) string {
	return text[strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1:]
}

// A log of the requests of one conversation, each of which repeats the one before, is one
// session. What the provider has counted for each answer is kept.
func TestReplay_Log(t *testing.T) {
	const n = 5
	message := func(role, text string, i int) string {
		return fmt.Sprintf(`{"role":%q,"content":"%s %d"}`, role, text, i)
	}
	said := []string{message("system", "You help", 0)}
	var requests, both strings.Builder
	for i := range n {
		said = append(said, message("user", "question", i))
		request := `{"model":"gpt-5","messages":[` + strings.Join(said, ",") + `]}`
		said = append(said, message("assistant", "answer", i))
		requests.WriteString(request + "\n")
		fmt.Fprintf(&both, `{"request":%s,"response":{"choices":[{"message":%s}],"usage":{"prompt_tokens":%d,"completion_tokens":3}}}`+"\n", request, message("assistant", "answer", i), 50+i)
	}
	type figures struct{ Sessions, Requests int }
	for _, c := range []struct {
		name, input string
		want        figures
		measured    int64
	}{
		{"requests", requests.String(), figures{1, n - 1}, 0},
		{"requests and answers", both.String(), figures{1, n}, 50 + 51 + 52 + 53 + 54},
		{"sent twice", both.String() + lastLine(both.String()), figures{2, 2 * n}, 50 + 51 + 52 + 53 + 54 + 54},
		{"logged twice", requests.String() + lastLine(requests.String()), figures{1, n - 1}, 0},
		{"two conversations", both.String() + strings.ReplaceAll(both.String(), "question 0", "another"), figures{2, 2 * n}, 2 * (50 + 51 + 52 + 53 + 54)},
	} {
		code, stdout, stderr := runs(strings.NewReader(c.input), "replay", "-window", "8000", "-json")
		require.Equal(t, cli.OK, code, stderr)
		var got struct {
			Total struct {
				Sessions, Requests int
				Measured           struct{ Input int64 }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		assert.Equal(t, c.want.Sessions, got.Total.Sessions, c.name)
		assert.Equal(t, c.want.Requests, got.Total.Requests, c.name)
		assert.Equal(t, c.measured, got.Total.Measured.Input, c.name)
		assert.Contains(t, stderr, "that the next one repeats, as in a log of requests, counted once\n", c.name)
	}
}

// longClaudeFile writes a session of Claude Code of about size bytes with compactions, and
// returns its path. Many of its words are in one place only.
func longClaudeFile(t *testing.T, size int) string {
	r := rand.New(rand.NewPCG(5, 1))
	text := func(most int) string {
		var b strings.Builder
		for n := 1 + r.IntN(most); b.Len() < n; {
			fmt.Fprintf(&b, "return handle%d(order, part_%x)\n", r.IntN(3000), r.IntN(100_000))
		}
		return b.String()
	}
	var b bytes.Buffer
	parent, n, left := any(nil), 0, 0
	add := func(kind string, more object) {
		n++
		record := object{"type": kind, "uuid": fmt.Sprintf("00000000-0000-4000-8000-%012d", n), "parentUuid": parent, "sessionId": "s", "timestamp": "2026-02-03T04:05:06Z", "version": "2.1.0", "isSidechain": false}
		maps.Copy(record, more)
		parent = record["uuid"]
		data, err := json.Marshal(record)
		require.NoError(t, err)
		b.Write(append(data, '\n'))
	}
	for i := 0; b.Len() < size; i++ {
		if b.Len()-left > 700_000 {
			left = b.Len()
			before := parent
			parent = nil
			add("system", object{"subtype": "compact_boundary", "logicalParentUuid": before, "compactMetadata": object{"trigger": "auto", "preTokens": 180_000}})
			add("user", object{"isCompactSummary": true, "message": object{"role": "user", "content": "So far: " + text(8000)}})
		}
		if i%10 == 0 {
			add("user", object{"message": object{"role": "user", "content": "Do " + text(300)}})
		}
		id := fmt.Sprintf("toolu_%05d", i)
		usage := object{"input_tokens": 4, "cache_read_input_tokens": 20_000 + (b.Len()-left)/4, "output_tokens": 60}
		for _, block := range []object{{"type": "text", "text": "I read " + text(400)}, {"type": "tool_use", "id": id, "name": "Read", "input": object{"file_path": text(100)}}} {
			add("assistant", object{"message": object{"id": id, "role": "assistant", "model": "claude-sonnet-4-5", "content": []object{block}, "usage": usage}})
		}
		add("user", object{"message": object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": id, "content": text(4000)}}}})
	}
	path := filepath.Join(t.TempDir(), "claude.jsonl")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
	return path
}

// TestReplay_Memory bounds what a replay with compactions keeps in memory to twice the file
// and 4 MB.
func TestReplay_Memory(t *testing.T) {
	if !heaptest.Alone(t) {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	size := long.Or(3<<20, 10<<20)
	path := longClaudeFile(t, size)
	most := heaptest.Live(func() {
		code, out, stderr := runs(nil, "replay", "-window", "200000", path)
		require.Equal(t, cli.OK, code, stderr)
		assert.Regexp(t, fmt.Sprintf(`(?m)^compactions +%d `, long.Or(4, 14)), out)
	})
	t.Logf("peak %.2f times the file", float64(most)/float64(size))
	assert.Less(t, most, uint64(2*size+4<<20))
}
