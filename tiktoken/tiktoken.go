// Package tiktoken counts tokens exactly as OpenAI's models do, without a download.
package tiktoken

import (
	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/bpe"
	"github.com/seed-c1b73e60/convo/internal/models"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// New returns a [convo.Tokenizer] that counts exactly as OpenAI's tokenizers do, for a
// model or for an encoding (cl100k_base, o200k_base, o200k_harmony). The Tokenizer is
// safe for concurrent use and can be compared with ==.
//
// A model is recognised by its family. The families gpt-5 (including gpt-5.1 and so on),
// gpt-4.5, gpt-4.1, gpt-4o, chatgpt-4o, o1, o3, o4 and gpt-oss are counted with o200k;
// gpt-4, gpt-3.5, gpt-35, text-embedding-3, text-embedding-ada-002, davinci-002 and
// babbage-002 with cl100k. A name matches a family if it equals the family's name, or
// continues with "-" or ":". A fine-tuned model ("ft:gpt-4o:...") is counted like its
// base. A host's prefix ("openai/", "openai.") and capital letters do not matter. For any
// other name New returns a [*convo.ValueError]; use [convo.Heuristic] for models whose tokenizer
// is not public, or a [convo.TokenizerFunc].
//
// Only the text itself is counted. A text such as <|endoftext|> counts as ordinary text,
// since users may write it. A byte that is not part of valid UTF-8 counts as U+FFFD.
// Letters and numbers are those of Unicode 16, whatever the version of Go.
//
// Nothing is downloaded: the vocabularies, 1.2 MiB together, are part of each program
// that calls New. The first count with an encoding loads its vocabulary, which takes
// about 5 to 10 milliseconds and 4 MiB of memory for cl100k, and 15 to 25 milliseconds
// and 7 MiB for o200k. After that, counting takes time linear in the length of the text,
// and does not allocate. Only a single word of more than 32 KiB needs working space, about
// 45 bytes for each of its bytes.
func New(model string) (convo.Tokenizer, error) {
	switch models.Encoding(model) {
	case "o200k":
		return bpe.TokenizerOfO200k, nil
	case "cl100k":
		return bpe.TokenizerOfCl100k, nil
	}
	name := model
	if len(name) > 60 {
		name = name[:text.Floor(name, 60)] + "..."
	}
	return nil, &convo.ValueError{
		Name:  "Tiktoken model",
		Value: name,
		Want: "gpt-5, gpt-4.5, gpt-4.1, gpt-4o, chatgpt-4o, o1, o3, o4, gpt-oss, gpt-4, gpt-3.5, text-embedding-3, " +
			"text-embedding-ada-002, davinci-002 or babbage-002, or a name that begins with one of these and a hyphen, " +
			"or cl100k_base, o200k_base or o200k_harmony; for other models use Heuristic or a TokenizerFunc",
	}
}
