// Package bpe counts tokens exactly as OpenAI's tokenizers cl100k_base and
// o200k_base do.
//
// A text is cut into pieces by the encoding's pattern (words, numbers, runs of
// punctuation, white space), and each piece is merged from its bytes: of all
// neighbouring tokens whose concatenation is a token, those with the lowest id
// first, leftmost first, until none is left.
//
// Three things make that fast. A piece that is a token as a whole, as most are,
// is looked up and not merged. A piece beyond ASCII is cut where no token can
// span two characters. What is left is merged on ids by a table of pairs, since
// a token is always made of the same two others; pieces of some length go
// through a queue by rank, so that hostile text costs linear time.
package bpe

import (
	_ "embed"
	"sync"
)

//go:generate go -C ../gen run ./vocab
//go:generate go -C ../gen run ./classes

// The vocabularies are OpenAI's, see NOTICE. They are strings that nothing but
// the functions below mentions, so that a program that calls neither does not
// contain them.
var (
	//go:embed cl100k.bin
	cl100kData string
	//go:embed o200k.bin
	o200kData string
)

// An Encoding is a vocabulary with its pattern. It does not change, and any
// number of goroutines may use it at once.
type Encoding struct {
	tables
	caseWords bool // words end where a lower letter is followed by an upper one: o200k
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

// Len returns how many tokens there are: their ids are below it.
func (e *Encoding) Len() int { return e.vocab.len() }

// Token returns the bytes of a token.
func (e *Encoding) Token(id uint32) (string, bool) {
	if int64(id) >= int64(e.Len()) {
		return "", false
	}
	return string(e.vocab.appendToken(nil, id)), true
}

// Append appends the ids of the tokens of text to dst. Text that spells a
// special token is ordinary text; a byte that is not part of valid UTF-8 is
// taken as U+FFFD. It is slower than Count.
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
