package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// The test binary is also the program that is tested.
func TestMain(m *testing.M) {
	if url := os.Getenv("LOOP_URL"); url != "" {
		if err := loop(url, os.Args[1] == "again", os.Args[len(os.Args)-1]); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// loop is an agent of a few lines, which keeps its list in a file.
func loop(url string, goesOn bool, task string) error {
	var list []any
	if goesOn {
		data, err := os.ReadFile("list.json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	}
	list = append(list, map[string]any{"role": "user", "content": task})
	defer func() {
		data, _ := json.Marshal(list)
		_ = os.WriteFile("list.json", data, 0o644)
	}()
	for {
		body, _ := json.Marshal(map[string]any{
			"model": "test-model", "messages": list,
			"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "cat", "parameters": map[string]any{"type": "object"}}}},
		})
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return err
		}
		var answer struct {
			Choices []struct{ Message json.RawMessage }
		}
		var message struct {
			ToolCalls []struct {
				ID       string
				Function struct{ Arguments string }
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return err
		}
		list = append(list, answer.Choices[0].Message)
		if err := json.Unmarshal(answer.Choices[0].Message, &message); err != nil || len(message.ToolCalls) == 0 {
			return err
		}
		for _, c := range message.ToolCalls {
			var args struct{ Path string }
			if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil {
				return err
			}
			text, err := os.ReadFile(args.Path)
			if err != nil {
				return err
			}
			list = append(list, map[string]any{"role": "tool", "tool_call_id": c.ID, "content": string(text)})
		}
	}
}

// install returns a folder with the program.
func install(t *testing.T) (program, string) {
	p := program{
		name: "loop", binary: "loop", format: provider.FormatOpenAIChat, window: 10_000,
		tool: "cat", arguments: `{"path":"%s"}`, env: []string{"LOOP_URL={url}"}, again: []string{"again"},
		file: "settings.json", config: `{"url":"{url}"}`,
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "loop@1"), 0o755))
	require.NoError(t, os.Symlink(exe, filepath.Join(dir, "loop@1", "loop")))
	return p, dir
}

func TestRunner(t *testing.T) {
	p, dir := install(t)
	r := runner{dir: dir, files: 20, limit: time.Minute, bodies: t.TempDir()}
	for _, way := range ways {
		got, err := r.run(t.Context(), p, "1", way)
		require.NoError(t, err)
		require.NoError(t, got.check(way, r.files), "%+v", got)
		assert.True(t, got.hasRule)
		assert.Equal(t, got.before, got.same)
		said, err := os.ReadFile(filepath.Join(r.bodies, "loop-"+way, "001-sent.json"))
		require.NoError(t, err)
		assert.Contains(t, string(said), rule)
		if way == compacted || way == restarted {
			assert.GreaterOrEqual(t, got.requests, 21)
			assert.Positive(t, got.compactions)
			assert.Positive(t, got.changed)
			continue
		}
		assert.Equal(t, 1, got.refused)
		assert.Equal(t, got.requests-2, got.steps)
		assert.Zero(t, got.changed+got.compactions)
		assert.Contains(t, got.refusal, "maximum context length is 10000 tokens")
	}
}

func TestRunner_Limit(t *testing.T) {
	p, dir := install(t)
	got, err := runner{dir: dir, files: 20, limit: time.Nanosecond}.run(t.Context(), p, "1", alone)
	require.Error(t, err)
	assert.Zero(t, got.requests)
	_, err = runner{dir: t.TempDir(), files: 1, limit: time.Minute}.run(t.Context(), p, "1", alone)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCheck(t *testing.T) {
	good := tally{steps: 9, hasRule: true}
	require.NoError(t, good.check(compacted, 9))
	for way, bad := range map[string]tally{compacted: {steps: 8, hasRule: true}, watched: {steps: 9}, alone: {refused: 1, changed: 1}} {
		require.Error(t, bad.check(way, 9), way)
	}
	require.Error(t, tally{steps: 9}.check(compacted, 9))
	require.Error(t, tally{steps: 9, hasRule: true, refused: 1}.check(compacted, 9))
}

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), nil, &out, io.Discard))
	assert.Contains(t, out.String(), "| program | version |")
	require.Error(t, run(t.Context(), []string{"none@1"}, io.Discard, io.Discard))
	require.Error(t, run(t.Context(), []string{"-files", "x"}, io.Discard, io.Discard))
}
