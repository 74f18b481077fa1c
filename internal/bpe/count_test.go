package bpe

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpetest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

func encodings() map[string]*Encoding {
	return map[string]*Encoding{"cl100k": Cl100k(), "o200k": O200k()}
}

// slowOf returns the slow tokenizer with the same vocabulary as e.
func slowOf(t *testing.T, e *Encoding) *bpetest.Slow {
	load := bpetest.Cl100k
	if e.caseWords {
		load = bpetest.O200k
	}
	slow, err := load()
	require.NoError(t, err)
	return slow
}

// check compares the ids and the count of text with the slow tokenizer's, and
// the bytes of the tokens with text.
func check(t *testing.T, e *Encoding, slow *bpetest.Slow, text string) {
	t.Helper()
	want := slow.IDs(text)
	require.Equal(t, want, e.Append([]uint32{}, text), "%s: %q", slow.Name, text)
	for range 2 { // the second time some pieces are cached
		require.Equal(t, len(want), e.Count(text), "%s: %q", slow.Name, text)
	}
	var b strings.Builder
	for _, id := range want {
		token, ok := e.Token(id)
		require.True(t, ok)
		b.WriteString(token)
	}
	require.Equal(t, string([]rune(text)), b.String(), slow.Name)
}

func TestEncoding_Count(t *testing.T) {
	for _, e := range encodings() {
		slow := slowOf(t, e)
		rng := rand.New(rand.NewPCG(5, 6))
		token := func() string {
			s, _ := e.Token(rng.Uint32N(uint32(e.Len())))
			return s
		}
		for range long.Or(300, 5_000) {
			check(t, e, slow, hardText(rng))

			var b strings.Builder
			switch rng.IntN(4) {
			case 0: // random tokens, many of which are fragments of characters
				for range 1 + rng.IntN(12) {
					b.WriteString(token())
				}
			case 1: // long pieces of letters of one script
				first := []rune{'a', 0x430, 0x5d0, 0x620, 0x905, 0xe01, 0x10d0, 0x3041, 0x4e00, 0xac00, 0x1f600}[rng.IntN(11)]
				for range 1 + rng.IntN(30) {
					b.WriteRune(first + rng.Int32N(30))
				}
			case 2:
				for range 1 + rng.IntN(30) {
					b.WriteRune(0x4e00 + rng.Int32N(0x5000))
				}
			default: // the valid beginning of a token, and a character that may follow it
				for range 1 + rng.IntN(8) {
					s := token()
					for s != "" && !utf8.ValidString(s) {
						s = s[:len(s)-1]
					}
					b.WriteString(s)
					b.WriteRune([]rune{'о', 'р', 'ー', 'し', 'う', 'ა', '्', 'ा', '한', '国', ' '}[rng.IntN(11)])
				}
			}
			check(t, e, slow, b.String())
		}
	}
}

// Pieces of more than maxSmall tokens are merged with a queue.
func TestEncoding_CountLong(t *testing.T) {
	for _, e := range encodings() {
		slow := slowOf(t, e)
		rng := rand.New(rand.NewPCG(7, 8))
		for range long.Or(15, 150) {
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
			check(t, e, slow, text)
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
			// The bytes of a token merge to that token.
			sc.ids = e.appendParts(sc.ids[:0], token)
			if got := e.merge(sc, sc.ids); len(got) != 1 || got[0] != id {
				t.Fatalf("%s: %q merges to %d, want %d", name, token, got, id)
			}
			c := counter{e: e, sc: sc}
			if n := c.piece("xxxxxxxx"+token, 8, 8+len(token)); n != 1 {
				t.Fatalf("%s: %q is counted as %d tokens", name, token, n)
			}

			before := rune(-1)
			for _, r := range token {
				if before >= 0 && !e.maySpan(before, r) {
					t.Fatalf("%s: %q", name, token)
				}
				before = r
			}
		}
		for _, digits := range []string{"%d", "%02d", "%03d"} { // count counts each of these as one token without a lookup
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

// The working space of a very long piece is not kept.
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
