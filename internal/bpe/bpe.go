// Package bpe counts tokens exactly as OpenAI's tokenizers cl100k_base and
// o200k_base do.
//
// The encoding's pattern cuts a text into pieces: words, numbers, runs of
// punctuation, white space. Each piece starts as a list of one-byte tokens. As
// long as two neighbours together are a token, the pair whose token has the
// lowest id is merged, the leftmost one if there are several.
//
// Three things make that fast. Most pieces are tokens as a whole, and a lookup
// finds them without any merging. A piece beyond ASCII is cut between two
// characters wherever no token spans them. The rest is merged by ids, with a
// table of pairs, because a token always comes from the same two others. Long
// pieces are merged with a queue ordered by id, so that the time stays linear
// in the length of any text.
//
// Two checks compare the counts with OpenAI's. The golden files in testdata,
// made by internal/gen/golden, record what OpenAI's own code returns for about
// three thousand strings and for every code point. And internal/bpetest has a
// second tokenizer, slow and simple, that shares no code with this package.
// Tests compare the two on files, on generated text of many kinds, on random
// strings, on invalid UTF-8 and on fuzzed input, and compare the slow one with
// the golden strings and with the published vocabularies and patterns. A third
// comparison, with tiktoken-go, needs that module and runs only on request
// (internal/tiktokengo).
package bpe

import (
	_ "embed"
	"sync"
)

//go:generate go -C ../gen run ./vocab
//go:generate go -C ../gen run ./classes

// The vocabularies are OpenAI's; see NOTICE. Only Cl100k and O200k refer to
// them, so the linker leaves a vocabulary out of a program that does not call
// its function.
var (
	//go:embed cl100k.bin
	cl100kData string
	//go:embed o200k.bin
	o200kData string
)

// An Encoding is a vocabulary with its pattern. It never changes, and is safe
// for concurrent use.
type Encoding struct {
	tables
	caseWords bool // o200k: a word ends where an upper-case letter follows a lower-case one
	scratches sync.Pool
}

var cl100k, o200k struct {
	once sync.Once
	e    *Encoding
}

// Cl100k returns cl100k_base, the encoding of GPT-4 and GPT-3.5. The first call
// loads it.
func Cl100k() *Encoding {
	cl100k.once.Do(func() { cl100k.e = newEncoding(cl100kData, false) })
	return cl100k.e
}

// O200k returns o200k_base, the encoding of GPT-4o and later. The first call
// loads it.
func O200k() *Encoding {
	o200k.once.Do(func() { o200k.e = newEncoding(o200kData, true) })
	return o200k.e
}

func newEncoding(data string, caseWords bool) *Encoding {
	e := &Encoding{caseWords: caseWords}
	e.load(data)
	return e
}

// Len returns the number of tokens. Their ids run from 0 to Len()-1.
func (e *Encoding) Len() int { return e.vocab.len() }

// Token returns the bytes of a token, and whether there is a token with that id.
func (e *Encoding) Token(id uint32) (string, bool) {
	if int64(id) >= int64(e.Len()) {
		return "", false
	}
	return string(e.vocab.appendToken(nil, id)), true
}

// Append appends the ids of the tokens of text to dst. Text that spells a
// special token is treated as ordinary text, and a byte that is not part of
// valid UTF-8 as U+FFFD. Append is slower than Count.
func (e *Encoding) Append(dst []uint32, text string) []uint32 {
	sc := e.scratch()
	for i := 0; i < len(text); {
		end := e.next(text, i)
		sc.ids = e.appendParts(sc.ids[:0], text[i:end])
		dst = append(dst, e.merge(sc, sc.ids)...)
		i = end
	}
	e.release(sc)
	return dst
}
