package convo

import (
	"strings"

	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// Tiktoken returns a [Tokenizer] that counts exactly as OpenAI's tokenizers
// do, for a model or for an encoding (cl100k_base, o200k_base, o200k_harmony).
//
// A model's name begins with that of its family: gpt-5 (gpt-5.1 and so on
// too), gpt-4.5, gpt-4.1, gpt-4o, chatgpt-4o, o1, o3, o4, gpt-oss are counted
// with o200k; gpt-4, gpt-3.5, gpt-35, text-embedding-3, text-embedding-ada-002,
// davinci-002 and babbage-002 with cl100k. What follows begins with "-" or ":".
// A fine-tuned model ("ft:gpt-4o:...") goes by its base; a host's prefix
// ("openai/", "openai.") and capitals do not matter. Any other name is a
// [*ValueError]: [Heuristic] is for models whose tokenizer is not public,
// [TokenizerFunc] for a counter of your own.
//
// Counts are of the text alone. What spells a special token is ordinary text,
// as it must be in what users write. A byte that is not part of valid UTF-8 is
// taken as U+FFFD. Letters and numbers are those of Unicode 16, whatever the
// version of Go.
//
// The vocabularies are in the program, 1.2 MiB together, when it calls
// Tiktoken, and only then; nothing is downloaded. Tiktoken itself returns at
// once. The first count with an encoding loads it, which takes some 5 to 10
// milliseconds (cl100k) or 15 to 25 (o200k) and 4 or 7 MiB that stay. After
// that a count does not allocate, unless a single word is above 32 KiB, which
// takes some 45 bytes of working space for each of its own, and time is linear
// in the text, whatever stands in it. The Tokenizer is safe for concurrent use
// and comparable with ==.
func Tiktoken(model string) (Tokenizer, error) {
	name := baseName(model)
	switch {
	case name == "o200k_base", name == "o200k_harmony",
		isModel(name, "gpt-5", "gpt-4.5", "gpt-4-5", "gpt-4.1", "gpt-4-1", "gpt-4o", "chatgpt-4o", "o1", "o3", "o4", "gpt-oss"),
		strings.HasPrefix(name, "gpt-5."):
		return o200k, nil
	case name == "cl100k_base",
		isModel(name, "gpt-4", "gpt-3.5", "gpt-35", "text-embedding-3", "text-embedding-ada-002", "davinci-002", "babbage-002"):
		return cl100k, nil
	}
	return nil, &ValueError{
		Name:  "model of Tiktoken",
		Value: shortened(model),
		Want: "gpt-5, gpt-4.5, gpt-4.1, gpt-4o, chatgpt-4o, o1, o3, o4, gpt-oss, gpt-4, gpt-3.5, text-embedding-3, " +
			"text-embedding-ada-002, davinci-002 or babbage-002, or one that begins so, or cl100k_base, o200k_base or o200k_harmony; " +
			"for others use Heuristic, or TokenizerFunc with a counter of your own",
	}
}

// baseName is what a model's name says of its family: without what hosts put
// before it ("openai/", "openai.", "openai:") and without the frame of a
// fine-tuned one ("ft:gpt-4o:org").
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

// shortened is a name as an error quotes it.
func shortened(name string) string {
	if len(name) <= 60 {
		return name
	}
	return strings.ToValidUTF8(name[:60], "") + "..."
}

// isModel reports whether name is one of the families or begins with one and a
// hyphen.
func isModel(name string, families ...string) bool {
	for _, family := range families {
		if rest, ok := strings.CutPrefix(name, family); ok && (rest == "" || rest[0] == '-') {
			return true
		}
	}
	return false
}

// A tiktoken is an encoding of package bpe. It holds none, so that nothing is
// loaded before it counts.
type tiktoken uint8

const (
	cl100k tiktoken = iota
	o200k
)

// CountTokens counts the tokens of text.
func (t tiktoken) CountTokens(text string) int {
	if t == o200k {
		return bpe.O200k().Count(text)
	}
	return bpe.Cl100k().Count(text)
}
