package session_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/wire"
)

// fuzzFormat checks a reader with any input: it does not fail except with an error of this
// package, Append takes each session, and reading again gives the same.
func fuzzFormat(f *testing.F, format string, samples ...string) {
	for _, pattern := range samples {
		files, err := filepath.Glob("testdata/" + pattern)
		require.NoError(f, err)
		require.NotEmpty(f, files)
		for _, file := range files {
			if strings.HasSuffix(file, ".want") {
				continue
			}
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(string(data))
			lines := strings.SplitAfter(string(data), "\n")
			f.Add(strings.Join(lines[len(lines)/2:], ""))
		}
	}
	o := session.Options{Format: format, MaxSession: 64 << 20}
	f.Fuzz(func(t *testing.T, input string) {
		all, err := read(t, input, o)
		again, err2 := read(t, input, o)
		assert.Equal(t, err, err2)
		assert.True(t, reflect.DeepEqual(all, again), "reading twice gives different sessions")
		for _, s := range all {
			assert.Contains(t, session.Formats(), s.Format)
			assert.LessOrEqual(t, s.Counts.Torn, 1)
		}
	})
}

func FuzzClaudeCode(f *testing.F) { fuzzFormat(f, session.ClaudeCode, "claude-code*.jsonl") }

func FuzzCodex(f *testing.F) { fuzzFormat(f, session.Codex, "codex*.jsonl") }

func FuzzPi(f *testing.F) { fuzzFormat(f, session.Pi, "pi.jsonl", "kit.jsonl") }

func FuzzGeminiCLI(f *testing.F) { fuzzFormat(f, session.GeminiCLI, "gemini-cli.json*") }

func FuzzOpenAIChat(f *testing.F) { fuzzFormat(f, wire.FormatOpenAIChat, "openai-chat.json*") }

func FuzzOpenAIResponses(f *testing.F) {
	fuzzFormat(f, wire.FormatOpenAIResponses, "openai-responses.json", "answers.jsonl")
}

func FuzzAnthropic(f *testing.F) {
	fuzzFormat(f, wire.FormatAnthropic, "anthropic.json", "answers.jsonl")
}

func FuzzGemini(f *testing.F) { fuzzFormat(f, wire.FormatGemini, "gemini.json", "answers.jsonl") }

func FuzzConverse(f *testing.F) {
	fuzzFormat(f, wire.FormatConverse, "converse.json", "answers.jsonl")
}

// FuzzRead finds out the format.
func FuzzRead(f *testing.F) { fuzzFormat(f, "", "*.json*") }
