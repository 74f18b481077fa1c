// Package models contains what is known of models by their names.
package models

import (
	"slices"
	"strconv"
	"strings"
)

// A model has many names: the name in a request, the longer name in the answer, and the
// names of the clouds that offer it.

// Same reports whether two names mean the same model. They do if they are equal, or
// become equal without the vendor or region at the front and the date or revision at the
// end. A name that ends in -latest changes its meaning over time, and equals only itself.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	if strings.HasSuffix(a, "-latest") || strings.HasSuffix(b, "-latest") {
		return false
	}
	return Plain(a) == Plain(b)
}

// Plain returns the name of a model without its vendor, region, date and revision.
func Plain(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:] // "models/", "vendor/", the path of an ARN
	name, _, _ = strings.Cut(name, "@")
	name = withoutVendor(name)
	for {
		short := withoutRevision(name)
		if short == name || short == "" {
			return name
		}
		name = short
	}
}

// withoutVendor returns a name without up to two words with a dot at its beginning, such as
// "us.anthropic.". A letter must follow.
func withoutVendor(name string) string {
	for range 2 {
		word, rest, ok := strings.Cut(name, ".")
		for part := range strings.SplitSeq(word, "-") {
			ok = ok && part != "" && strings.Trim(part, lowerCase) == ""
		}
		if !ok || rest == "" || !strings.Contains(lowerCase, rest[:1]) {
			break
		}
		name = rest
	}
	return name
}

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	digits    = "0123456789"
)

// withoutRevision returns a name without a date or a revision at its end. In the first three
// forms each 0 stands for a digit.
func withoutRevision(name string) string {
	for _, form := range [...]string{"-00000000", "-0000-00-00", "-000"} {
		if rest := len(name) - len(form); rest >= 0 && inZeros(name[rest:]) == form {
			return name[:rest]
		}
	}
	if rest := strings.LastIndex(name, "-v"); rest >= 0 {
		version, revision, _ := strings.Cut(name[rest+len("-v"):], ":")
		if version != "" && revision != "" && strings.Trim(version+revision, digits) == "" {
			return name[:rest]
		}
	}
	return name
}

// inZeros returns s with 0 in the place of each digit.
func inZeros(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '0'
		}
		return r
	}, s)
}

// Claude returns the family and the version in the name of a Claude model, such as
// opus, 5 and 5, or zeros if it has none. Where the version comes first, as in
// claude-3-5-sonnet, family is empty.
func Claude(model string) (family string, major, minor int) {
	model = model[:min(len(model), 200)] // longer than any real name
	_, rest, ok := strings.Cut(strings.ReplaceAll(strings.ToLower(model), ".", "-"), "claude-")
	if !ok {
		return "", 0, 0
	}
	number := func() (n int) {
		word, after, _ := strings.Cut(rest, "-")
		word, _, _ = strings.Cut(word, "@")                    // a date may follow
		if strings.Trim(word, digits) != "" || len(word) > 3 { // before Atoi, whose errors are allocated
			return 0
		}
		if n, err := strconv.Atoi(word); err == nil {
			rest = after
			return n
		}
		return 0
	}
	if major = number(); major == 0 {
		family, rest, _ = strings.Cut(rest, "-")
		major = number()
	}
	if major > 0 {
		minor = number()
	}
	return family, major, minor
}

// Output returns the largest number of tokens that a model can write in one answer, or 0
// if it is not known.
func Output(model string) int {
	switch family, major, minor := Claude(model); {
	case major == 0:
	case major < 3 || major == 3 && minor < 5:
		return 4_096
	case major == 3 && minor < 7:
		return 8_192
	case major == 4 && minor < 5 && family == "opus":
		return 32_000
	case major < 4 || major == 4 && minor < 6:
		return 64_000
	default:
		return 128_000
	}
	name := dashed(model)
	for _, m := range outputs {
		if begins(name, m.name) {
			return m.tokens
		}
	}
	return 0
}

// dashed returns the plain name of a model with - in the place of dots.
func dashed(model string) string { return strings.ReplaceAll(Plain(strings.ToLower(model)), ".", "-") }

// begins reports whether a name begins with any of some words.
func begins(name string, words ...string) bool {
	return slices.ContainsFunc(words, func(s string) bool {
		rest, ok := strings.CutPrefix(name, s)
		return ok && (rest == "" || rest[0] == '-')
	})
}

// outputs are the models of other vendors. A longer name stands before its beginning.
var outputs = [...]struct {
	name   string
	tokens int
}{
	{"gpt-3-5", 4_096}, {"gpt-4-turbo", 4_096}, {"gpt-4-1106", 4_096}, {"gpt-4-0125", 4_096}, {"gpt-4-1", 32_768}, {"gpt-4-5", 16_384},
	{"gpt-4", 8_192}, {"gpt-4o", 16_384}, {"chatgpt-4o", 16_384}, {"gpt-5-chat", 16_384}, {"gpt-5", 128_000}, {"gpt-6", 128_000},
	{"o1", 100_000}, {"o3", 100_000}, {"o4", 100_000},
	{"gemini-1", 8_192}, {"gemini-2-0", 8_192}, {"gemini-1-5", 8_192}, {"gemini-2-5", 65_535}, {"gemini-3", 65_535},
	{"nova-micro", 10_000}, {"nova-lite", 10_000}, {"nova-pro", 10_000},
	{"deepseek-chat", 8_192}, {"qwen-max", 8_192}, {"command-r", 4_000},
}

// LeastThinking returns how little a model can think, in the words of its provider: an
// effort of OpenAI, a type of thinking of Claude or the effort low if it cannot be less, a
// level or a budget of Gemini. It returns Unasked for a model that thinks only if it is
// asked to, or never, and "" for a model that is not known.
func LeastThinking(model string) string {
	if family, major, minor := Claude(model); major > 0 {
		switch {
		case major < 5 && family != "fable" && family != "mythos":
			return Unasked
		case family == "fable", family == "mythos", family == "opus" && (major > 5 || minor >= 5):
			return "low"
		case family == "sonnet" && minor >= 5:
			return "between_tools"
		case major == 5:
			return "disabled"
		}
		return ""
	}
	name := dashed(model)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(s string) bool { return slices.Contains(strings.Split(name, "-"), s) })
	}
	switch {
	case begins(name, "gpt-3-5", "gpt-4", "gpt-4o", "chatgpt-4o", "gpt-5-chat", "gemini-1", "gemini-1-5", "gemini-2-0"):
		return Unasked
	case strings.HasPrefix(name, "gpt-") && has("pro", "chat"), begins(name, "o1-mini", "o1-preview", "o1-pro", "o3-pro"):
		return "" // each has its own levels
	case begins(name, "gpt-5-codex", "gpt-6-astra", "gpt-6-1-sol", "o1", "o3", "o4-mini"), begins(name, "gpt-5-1", "gpt-5-2", "gpt-5-3") && has("codex"):
		return "low"
	case begins(name, "gpt-5-1", "gpt-5-2", "gpt-5-4", "gpt-5-5", "gpt-5-6", "gpt-6-sol", "gpt-6-luna"):
		return "none"
	case name == "gpt-5", name == "gpt-5-mini", name == "gpt-5-nano":
		return "minimal"
	case begins(name, "gemini-2-5-flash"):
		return "0"
	case begins(name, "gemini-2-5-pro"):
		return "128"
	case strings.HasPrefix(name, "gemini-3") && has("flash"):
		return "MINIMAL"
	case strings.HasPrefix(name, "gemini-3") && has("pro"):
		return "LOW"
	}
	return ""
}

// Unasked is what LeastThinking returns for a model that thinks only if it is asked to.
const Unasked = "unasked"

// Encoding returns the encoding that counts the tokens of a model of OpenAI, o200k or cl100k, or
// "" if that is not known. Names of encodings, as tiktoken has them, are also known.
func Encoding(model string) string {
	switch name := baseName(model); {
	case name == "o200k_base", name == "o200k_harmony", strings.HasPrefix(name, "gpt-5."),
		begins(name, "gpt-5", "gpt-4.5", "gpt-4-5", "gpt-4.1", "gpt-4-1", "gpt-4o", "chatgpt-4o", "o1", "o3", "o4", "gpt-oss"):
		return "o200k"
	case name == "cl100k_base",
		begins(name, "gpt-4", "gpt-3.5", "gpt-35", "text-embedding-3", "text-embedding-ada-002", "davinci-002", "babbage-002"):
		return "cl100k"
	}
	return ""
}

// baseName returns a model's name in lower case, without the prefix of a host ("openai/",
// "openai.", "openai:"). For a fine-tuned model ("ft:gpt-4o:org") it returns the name of
// the base model.
func baseName(model string) string {
	name := strings.ToLower(model)
	if len(name) > 200 {
		name = name[:200]
	}
	for rest := ""; rest != name; {
		rest = name
		for _, before := range []string{"openai:", "openai.", "ft:"} {
			name = strings.TrimPrefix(name, before)
		}
		base, _, _ := strings.Cut(name, ":")
		name = name[strings.LastIndexByte(base, '/')+1:]
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}
