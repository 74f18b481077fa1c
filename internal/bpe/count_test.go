package bpe

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func encodings() map[string]*Encoding {
	return map[string]*Encoding{"cl100k": Cl100k(), "o200k": O200k()}
}

// atLeast is how many rounds a test takes: fewer with -short.
func atLeast(t *testing.T, rounds int) int {
	if testing.Short() {
		return rounds / 10
	}
	return rounds
}

// A naive encoder merges the bytes of a piece as the definition says, by
// looking up the concatenation of each two neighbours.
type naive struct {
	*Encoding
	ids map[string]uint32
}

func newNaive(e *Encoding) *naive {
	n := &naive{Encoding: e, ids: make(map[string]uint32, e.Len())}
	for id := range uint32(e.Len()) {
		token, _ := e.Token(id)
		n.ids[token] = id
	}
	return n
}

func (n *naive) piece(piece string) (ids []uint32) {
	parts := strings.Split(strings.ToValidUTF8(piece, "\ufffd"), "") // of characters; cut below
	var tokens []string
	for _, part := range parts {
		for i := range len(part) {
			tokens = append(tokens, part[i:i+1])
		}
	}
	for {
		best, at := none, -1
		for i := range len(tokens) - 1 {
			if id, ok := n.ids[tokens[i]+tokens[i+1]]; ok && id < best {
				best, at = id, i
			}
		}
		if at < 0 {
			break
		}
		tokens[at] += tokens[at+1]
		tokens = append(tokens[:at+1], tokens[at+2:]...)
	}
	for _, token := range tokens {
		ids = append(ids, n.ids[token])
	}
	return ids
}

// replaced is text with U+FFFD in the place of each byte that is not valid.
func replaced(text string) string {
	return string([]rune(text))
}

func (n *naive) encode(text string) (ids []uint32) {
	for i := 0; i < len(text); {
		end := n.next(text, i)
		ids = append(ids, n.piece(replaced(text[i:end]))...)
		i = end
	}
	return ids
}

// check compares both counters with the naive one, and the tokens with text.
func (n *naive) check(t *testing.T, name, text string) {
	t.Helper()
	want := n.encode(text)
	require.Equal(t, want, n.Append(nil, text), "%s: %q", name, text)
	for range 2 { // the second time some pieces are remembered
		require.Equal(t, len(want), n.Count(text), "%s: %q", name, text)
	}
	var b strings.Builder
	for _, id := range want {
		token, ok := n.Token(id)
		require.True(t, ok)
		b.WriteString(token)
	}
	require.Equal(t, replaced(text), b.String(), name)
}

func TestEncoding_Count(t *testing.T) {
	for name, e := range encodings() {
		n := newNaive(e)
		rng := rand.New(rand.NewPCG(5, 6))
		token := func() string {
			s, _ := e.Token(rng.Uint32N(uint32(e.Len())))
			return s
		}
		for range atLeast(t, 5_000) {
			n.check(t, name, hardText(rng))

			var b strings.Builder
			switch rng.IntN(4) {
			case 0: // of tokens, often parts of characters
				for range 1 + rng.IntN(12) {
					b.WriteString(token())
				}
			case 1: // letters of one script, in pieces of some length
				first := []rune{'a', 0x430, 0x5d0, 0x620, 0x905, 0xe01, 0x10d0, 0x3041, 0x4e00, 0xac00, 0x1f600}[rng.IntN(11)]
				for range 1 + rng.IntN(30) {
					b.WriteRune(first + rng.Int32N(30))
				}
			case 2:
				for range 1 + rng.IntN(30) {
					b.WriteRune(0x4e00 + rng.Int32N(0x5000))
				}
			default: // characters that end with a part of a token, and what may follow
				for range 1 + rng.IntN(8) {
					s := token()
					for s != "" && !utf8.ValidString(s) {
						s = s[:len(s)-1]
					}
					b.WriteString(s)
					b.WriteRune([]rune{'о', 'р', 'ー', 'し', 'う', 'ა', '्', 'ा', '한', '国', ' '}[rng.IntN(11)])
				}
			}
			n.check(t, name, b.String())
		}
	}
}

// Long pieces are merged in another way than short ones.
func TestEncoding_CountLong(t *testing.T) {
	for name, e := range encodings() {
		n := newNaive(e)
		rng := rand.New(rand.NewPCG(7, 8))
		for range atLeast(t, 150) {
			size := maxSmall - 4 + rng.IntN(300)
			var b strings.Builder
			alphabet := []rune([]string{"a", "ab", "aab", "etaoin", " ", "\n", " \t", "=", "=-", "中", "中国", "оа", "ー", "\u0301", "😀", "_/"}[rng.IntN(16)])
			for range size {
				b.WriteRune(alphabet[rng.IntN(len(alphabet))])
			}
			text := b.String()
			if rng.IntN(4) == 0 {
				text += strings.Repeat("\xff", size)
			}
			n.check(t, name, text)
		}
	}
}

func TestEncoding_Token(t *testing.T) {
	for name, e := range encodings() {
		_, ok := e.Token(uint32(e.Len()))
		assert.False(t, ok, name)
		_, ok = e.Token(none)
		assert.False(t, ok, name)

		sc := e.scratch()
		for id := range uint32(e.Len()) {
			token, ok := e.Token(id)
			require.True(t, ok)
			if !utf8.ValidString(token) {
				continue
			}
			// What merging makes of the bytes of a token is the token.
			sc.ids = e.appendParts(sc.ids[:0], token)
			require.Equal(t, []uint32{id}, e.merge(sc, sc.ids), "%s: %q", name, token)
			c := counter{e: e, sc: sc}
			require.Equal(t, 1, c.piece("xxxxxxxx"+token, 8, 8+len(token)), "%s: %q", name, token)

			before := rune(-1)
			for _, r := range token {
				require.True(t, before < 0 || e.maySpan(before, r), "%s: %q", name, token)
				before = r
			}
		}
		for _, digits := range []string{"%d", "%02d", "%03d"} { // counted without a look
			for number := range 1000 {
				text := fmt.Sprintf(digits, number)
				require.Len(t, e.Append(nil, text), 1, "%s: %s", name, text)
			}
		}
	}
}

func TestEncoding_ShortTexts(t *testing.T) {
	for name, e := range encodings() {
		assert.Zero(t, e.Count(""), name)
		assert.Empty(t, e.Append(nil, ""), name)
		assert.Equal(t, []uint32{7, 9}, e.Append([]uint32{7, 9}, ""), name)
		for b := range 256 {
			assert.Len(t, e.Append(nil, string([]byte{byte(b)})), e.Count(string([]byte{byte(b)})), name)
			if b < utf8.RuneSelf {
				assert.Equal(t, 1, e.Count(string(rune(b))), "%s: %q", name, rune(b))
			}
		}
	}
}

// Working space for a very long piece is not kept.
func TestEncoding_ReleasesSpace(t *testing.T) {
	e := Cl100k()
	sc := new(scratch)
	c := counter{e: e, sc: sc}
	c.count(strings.Repeat("z", 2*maxKept))
	require.Greater(t, cap(sc.ids), maxKept)
	e.release(sc)
	assert.LessOrEqual(t, cap(sc.ids), maxKept)
	assert.LessOrEqual(t, cap(sc.links), maxKept)
}

func TestEncoding_Concurrent(t *testing.T) {
	var counts sync.WaitGroup
	for range 8 {
		counts.Go(func() {
			for _, e := range []*Encoding{Cl100k(), O200k()} {
				for range 200 {
					assert.Equal(t, len(e.Append(nil, "It's 15 o'clock")), e.Count("It's 15 o'clock"))
					assert.Equal(t, len(e.Append(nil, "слово, 中文 xyzzyx")), e.Count("слово, 中文 xyzzyx"))
				}
			}
		})
	}
	counts.Wait()
	assert.Same(t, Cl100k(), Cl100k())
	assert.Same(t, O200k(), O200k())
}
