package tiktoken_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

func TestNew_Models(t *testing.T) {
	o200k, err := tiktoken.New("o200k_base")
	require.NoError(t, err)
	cl100k, err := tiktoken.New("cl100k_base")
	require.NoError(t, err)
	require.NotEqual(t, o200k, cl100k)

	for want, models := range map[convo.Tokenizer][]string{
		o200k: {
			"o200k_harmony",
			"gpt-5", "gpt-5-mini", "gpt-5-2025-08-07", "gpt-5.1", "gpt-5.1-codex", "gpt-5-codex",
			"gpt-4.5-preview", "gpt-4.1", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06",
			"chatgpt-4o-latest", "o1", "o1-preview", "o3", "o3-mini", "o3-pro", "o4-mini", "gpt-oss-120b",
			"ft:gpt-4o-mini:org::id", "ft:gpt-4.1-2025-04-14:org:my/name:id",
			"openai/gpt-4o", "openrouter/openai/gpt-5", "openai/gpt-4o:extended", "gpt-oss:20b",
			"openai/ft:gpt-4o:org::id", "ft:openai/gpt-4o:x", "openai.gpt-oss-20b-1:0", "openai:gpt-5", "GPT-4o", "gpt-4-1-mini", "gpt-4-5-preview",
		},
		cl100k: {
			"gpt-4", "gpt-4-turbo", "gpt-4-0613", "gpt-4-32k", "gpt-4-1106-preview",
			"gpt-3.5", "gpt-3.5-turbo", "gpt-3.5-turbo-16k", "gpt-35-turbo", "azure/gpt-35-turbo",
			"text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002",
			"davinci-002", "ft:gpt-3.5-turbo:org::id", "ft:gpt-4:org::id", "ft:babbage-002:org::id",
		},
	} {
		for _, model := range models {
			got, err := tiktoken.New(model)
			if assert.NoError(t, err, model) {
				assert.Equal(t, want, got, model)
			}
		}
	}
}

func TestNew_UnknownModel(t *testing.T) {
	for _, model := range []string{
		"", "gpt", "gpt-", "gpt-2", "davinci", "text-davinci-003", "text-embedding-30", "claude-3", "anthropic/claude-sonnet-4",
		"gemini-2.5-pro", "gpt-40x", "gpt-4ox", "gpt-4.2", "gpt-50", "gpt-6", "o100", "o", "o2", "ft:", "ft:claude:org", "openai/", "p50k_base",
		"cl100k_base-2", "openai:", "ft:ft:", "openai.", "claude:gpt-4o",
	} {
		tok, err := tiktoken.New(model)
		assert.Nil(t, tok, model)
		var value *convo.ValueError
		if assert.ErrorAs(t, err, &value, model) {
			assert.Equal(t, model, value.Value)
			assert.ErrorContains(t, err, "gpt-4o")
			assert.ErrorContains(t, err, "Heuristic")
			assert.ErrorContains(t, err, "TokenizerFunc")
		}
	}
}

// The error quotes only the beginning of a long name.
func TestNew_LongName(t *testing.T) {
	_, err := tiktoken.New(strings.Repeat("é", 3<<20))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 500)
}

func TestNew_Counts(t *testing.T) {
	// Counts of OpenAI's own code.
	for _, tt := range []struct {
		text          string
		cl100k, o200k int
	}{
		{"", 0, 0},
		{"Hello, world", 3, 3},
		{"<|endoftext|>", 7, 7},
		{"don't HTTPServer", 4, 3},
	} {
		for model, want := range map[string]int{"gpt-4": tt.cl100k, "gpt-4o": tt.o200k} {
			tok, err := tiktoken.New(model)
			require.NoError(t, err)
			assert.Equal(t, want, tok.CountTokens(tt.text), "%s of %q", model, tt.text)
		}
	}
}

func TestNew_DoesNotAllocate(t *testing.T) {
	// Of words that are tokens: others need working space, which a collection
	// or the race detector may take away.
	text := strings.Repeat("The rain in Spain stays mainly in the plain, 15 of 20 times.\n", 20)
	for _, model := range []string{"gpt-4", "gpt-4o"} {
		tok, err := tiktoken.New(model)
		require.NoError(t, err)
		tok.CountTokens(text)
		assert.Zero(t, testing.AllocsPerRun(100, func() { tok.CountTokens(text) }), model)
	}
}

func TestNew_InHistory(t *testing.T) {
	tok, err := tiktoken.New("gpt-4o")
	require.NoError(t, err)
	h, err := convo.New(&convo.Options{Tokenizer: tok, Overheads: convo.Overheads{Message: -1}})
	require.NoError(t, err)
	_, err = h.Append(convo.User("Hello, world"))
	require.NoError(t, err)
	assert.Equal(t, 3, h.Tokens().Tokens)

	var counts sync.WaitGroup
	for range 4 {
		counts.Go(func() {
			for range 100 {
				assert.Equal(t, 3, tok.CountTokens("Hello, world"))
			}
		})
	}
	counts.Wait()
}

// The vocabularies are linked into programs that call New and into no
// others, in a compact form.
func TestNew_BinarySize(t *testing.T) {
	long.Only(t, "builds two programs")
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("builds two programs, and there is no go command: %v", err)
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	size := func(program string) int64 {
		dir := t.TempDir()
		write := func(name, content string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		}
		write("go.mod", "module program\n\ngo 1.26\n\nrequire github.com/seed-c1b73e60/convo v0.0.0\n\nreplace github.com/seed-c1b73e60/convo => "+filepath.ToSlash(root)+"\n")
		write("main.go", program)
		cmd := exec.CommandContext(t.Context(), goTool, "build", "-ldflags=-s -w", "-o", "program.exe", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		info, err := os.Stat(filepath.Join(dir, "program.exe"))
		require.NoError(t, err)
		return info.Size()
	}
	const head = "package main\n\nimport \"github.com/seed-c1b73e60/convo\"\n\nfunc main() {\n\th, err := convo.New(nil)\n\tprintln(h, err)\n"
	without := size(head + "}\n")
	with := size(strings.Replace(head, "import ", "import \"github.com/seed-c1b73e60/convo/tiktoken\"\nimport ", 1) + "\ttok, err := tiktoken.New(\"gpt-4o\")\n\tprintln(tok.CountTokens(\"text\"), err)\n}\n")
	t.Logf("%d bytes without, %d more with", without, with-without)
	assert.Less(t, without, int64(6<<20))
	assert.Greater(t, with-without, int64(1<<20), "so that the first figure says that they were left out")
	assert.LessOrEqual(t, with-without, int64(3<<19))
}
