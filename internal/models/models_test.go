package models

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

var (
	vendors   = regexp.MustCompile(`^([a-z]+(-[a-z]+)*\.){1,2}([a-z])`) // "us.anthropic." and the next letter
	revisions = regexp.MustCompile(`(-\d{8}|-\d{4}-\d{2}-\d{2}|-v\d+:\d+|-\d{3})$`)
)

// checkModel checks what is taken off a name, by regular expressions.
func checkModel(t *testing.T, name string) {
	t.Helper()
	if got, want := withoutVendor(name), vendors.ReplaceAllString(name, "$3"); got != want {
		t.Fatalf("%q without its vendor is %q, want %q", name, got, want)
	}
	if got, want := withoutRevision(name), revisions.ReplaceAllString(name, ""); got != want {
		t.Fatalf("%q without its revision is %q, want %q", name, got, want)
	}
}

func TestPlain(t *testing.T) {
	pieces := strings.Fields("us . - -v a gov anthropic . - 2026 08 07 -2026-09-01 -20260901 -001 -v1:0 : 1 :2 0 é A _ opus x")
	r := rand.New(rand.NewPCG(1, 1))
	for range 50_000 {
		var b strings.Builder
		for range r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		checkModel(t, b.String())
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("us.anthropic.claude-opus-4-8-20260901-v1:0")
	f.Add("-2026-09-01")
	f.Fuzz(checkModel)
}

func TestOutput(t *testing.T) {
	for model, want := range map[string]int{
		"claude-3-opus-20240229": 4_096, "claude-3-5-sonnet": 8_192, "claude-3-7-sonnet": 64_000, "claude-opus-4-1": 32_000, "claude-sonnet-4": 64_000,
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": 64_000, "claude-opus-5-5": 128_000,
		"gpt-4": 8_192, "gpt-4.1-mini": 32_768, "openai/gpt-4o-2024-08-06": 16_384, "gpt-5.5": 128_000, "o3-mini": 100_000,
		"models/gemini-2.0-flash": 8_192, "gemini-3.8-flash": 65_535, "amazon.nova-lite-v1:0": 10_000, "amazon.nova-2-lite-v1:0": 0,
		"deepseek-chat": 8_192, "qwen-max-2025-01-25": 8_192, "qwen3-max": 0, "cohere.command-r-plus-v1:0": 4_000, "command-r7b-12-2024": 0, "": 0, "mine": 0,
	} {
		if got := Output(model); got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
}

func TestLeastThinking(t *testing.T) {
	for model, want := range map[string]string{
		"claude-sonnet-4-5": Unasked, "claude-3-opus": Unasked, "claude-fable-5-1": "low", "claude-opus-5": "disabled", "claude-opus-5-5": "low",
		"us.anthropic.claude-sonnet-5-5-v1:0": "between_tools", "claude-sonnet-5": "disabled", "claude-haiku-5-5": "disabled", "claude-haiku-6": "",
		"gpt-4o": Unasked, "gpt-4.1": Unasked, "gpt-5": "minimal", "gpt-5-mini": "minimal", "gpt-5-pro": "", "gpt-5-chat-latest": Unasked, "gpt-5.1": "none",
		"gpt-5.1-codex-max": "low", "gpt-5.2-pro": "", "gpt-5.5-mini": "none", "gpt-6-astra": "low", "gpt-6-sol": "none", "gpt-6-rosalind": "", "o3-mini": "low", "o3-pro": "",
		"gemini-2.0-flash": Unasked, "gemini-2.5-flash-lite": "0", "gemini-2.5-pro": "128", "gemini-3.8-flash-lite": "MINIMAL", "gemini-3-pro-preview": "LOW", "mine": "", "": "",
	} {
		if got := LeastThinking(model); got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}

func TestImagesOf(t *testing.T) {
	old, later, deepseek := Images{100, 8000, 20, 2000}, Images{600, 8000, 20, 2000}, Images{600, 8192, 14, 4096}
	for model, want := range map[string]Images{
		"claude-3-5-sonnet-20241022": old, "claude-haiku-4-5": old, "anthropic/claude-opus-4.5": old, "claude-opus-4-6": later, "claude-next": later,
		"us.anthropic.claude-sonnet-5-v1:0": later, "Claude-Opus-5-5@20260901": later, "deepseek-flash": deepseek, "deepseek/deepseek-v4": deepseek,
		"gpt-5.5": {}, "gemini-3.8-flash": {}, "": {}, "mine": {},
	} {
		if got := ImagesOf(model); got != want {
			t.Errorf("%s: %v, want %v", model, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { ImagesOf("claude-opus-5-5") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEncoding(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-5.1": "o200k", "openai/gpt-4o-mini": "o200k", "ft:GPT-4o:org": "o200k", "openai.o3": "o200k", "o200k_base": "o200k",
		"gpt-4": "cl100k", "gpt-3.5-turbo": "cl100k", "ft:gpt-4:org/x:y": "cl100k", "cl100k_base": "cl100k",
		"": "", "claude": "", "gpt-40": "", "o1x": "", "o200k": "",
	} {
		if got := Encoding(model); got != want {
			t.Errorf("Encoding(%q) is %q, want %q", model, got, want)
		}
	}
}
