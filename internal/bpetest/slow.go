package bpetest

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"sync"
)

// A Slow is a tokenizer that follows the definition step by step, without any
// regard for speed.
type Slow struct {
	Name      string // tiktoken's name for the encoding
	Size      int    // number of tokens, not counting special ones
	Published string // SHA-256 of the rank file that OpenAI published
	Pattern   string // the regular expression that OpenAI published

	tokens  []string // by id
	ranks   map[string]uint32
	pattern matcher
}

// The two encodings. An error means that a file of package bpe does not agree
// with what OpenAI published.
var (
	Cl100k = sync.OnceValues(func() (*Slow, error) {
		s := &Slow{
			Name:      "cl100k_base",
			Size:      100256,
			Published: "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
			Pattern:   `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		}
		return s, s.load("cl100k.bin")
	})
	O200k = sync.OnceValues(func() (*Slow, error) {
		s := &Slow{
			Name:      "o200k_base",
			Size:      199998,
			Published: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
			Pattern: `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
				`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
				`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		}
		return s, s.load("o200k.bin")
	})
)

func (s *Slow) load(file string) error {
	data, err := os.ReadFile(bpeFile(file))
	if err != nil {
		return err
	}
	if s.tokens, err = readTokens(data); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	s.ranks = make(map[string]uint32, len(s.tokens))
	sum := sha256.New()
	w := bufio.NewWriter(sum)
	for id, token := range s.tokens {
		s.ranks[token] = uint32(id)
		fmt.Fprintf(w, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), id)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != s.Published {
		return fmt.Errorf("%s: the rank file made from this vocabulary has SHA-256 %s, want %s", file, got, s.Published)
	}
	classes, err := Classes()
	if err != nil {
		return err
	}
	s.pattern, err = compile(s.Pattern, classes)
	return err
}

// readTokens reads a vocabulary file bit by bit. The documentation of
// internal/gen/vocab describes the layout.
func readTokens(data []byte) ([]string, error) {
	const head = 4 + 256
	if len(data) < head {
		return nil, fmt.Errorf("%d bytes, want at least %d", len(data), head)
	}
	tokens := make([]string, binary.LittleEndian.Uint32(data))
	at := head * 8
	number := func(width int) (n int) {
		for bit := range width {
			n |= int(data[at/8]>>(at%8)&1) << bit
			at++
		}
		return n
	}
	for id := range tokens {
		if id < 256 {
			tokens[id] = string(data[4+id : 5+id])
			continue
		}
		width := bits.Len(uint(id - 1)) // the ids of both parts are lower
		if at+2*width > 8*len(data) {
			return nil, fmt.Errorf("file ends at token %d", id)
		}
		left, right := number(width), number(width)
		if left >= id || right >= id {
			return nil, fmt.Errorf("token %d has the parts %d and %d, want lower ids", id, left, right)
		}
		tokens[id] = tokens[left] + tokens[right]
	}
	return tokens, nil
}

// Tokens returns the bytes of all tokens by id. The caller must not change the
// slice.
func (s *Slow) Tokens() []string { return s.tokens }

// IDs returns the ids of the tokens of text. A byte that is not part of valid
// UTF-8 counts as U+FFFD.
func (s *Slow) IDs(text string) []uint32 {
	ids := []uint32{}
	runes := []rune(text)
	for i := 0; i < len(runes); {
		end := s.next(runes, i)
		ids = append(ids, s.Merge(string(runes[i:end]))...)
		i = end
	}
	return ids
}

// Pieces returns the pieces that the pattern cuts text into.
func (s *Slow) Pieces(text string) []string {
	var runes []rune
	var starts []int
	for i, r := range text {
		runes, starts = append(runes, r), append(starts, i)
	}
	starts = append(starts, len(text))
	var pieces []string
	for i := 0; i < len(runes); {
		end := s.next(runes, i)
		pieces = append(pieces, text[starts[i]:starts[end]])
		i = end
	}
	return pieces
}

// next returns the end of the piece that begins at text[i].
func (s *Slow) next(text []rune, i int) int {
	end := i
	s.pattern(text, i, func(at int) bool { end = at; return true })
	if end == i {
		panic(fmt.Sprintf("the pattern of %s does not match at %q", s.Name, text[i])) // cannot happen: it matches any character
	}
	return end
}

// Merge merges the bytes of a piece into tokens. As long as two neighbours
// together are a token, it merges the pair whose token has the lowest id, the
// leftmost one if there are several.
func (s *Slow) Merge(piece string) []uint32 {
	const none = math.MaxUint32
	cuts := make([]int, len(piece)+1) // token i is piece[cuts[i]:cuts[i+1]]
	for i := range cuts {
		cuts[i] = i
	}
	joined := func(i int) uint32 { // the token that tokens i and i+1 merge to
		if i < 0 || i+2 >= len(cuts) {
			return none
		}
		if id, ok := s.ranks[piece[cuts[i]:cuts[i+2]]]; ok {
			return id
		}
		return none
	}
	pairs := make([]uint32, len(piece))
	for i := range pairs {
		pairs[i] = joined(i)
	}
	for len(pairs) > 1 {
		lowest := slices.Min(pairs)
		if lowest == none {
			break
		}
		i := slices.Index(pairs, lowest)
		cuts = slices.Delete(cuts, i+1, i+2)
		pairs = slices.Delete(pairs, i, i+1)
		pairs[i] = joined(i)
		if i > 0 {
			pairs[i-1] = joined(i - 1)
		}
	}
	ids := make([]uint32, len(pairs))
	for i := range ids {
		ids[i] = s.ranks[piece[cuts[i]:cuts[i+1]]]
	}
	return ids
}
