package bpe

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpetest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// hard are strings that the patterns treat in different ways.
var hard = []string{
	"a", "b", "Z", "Q", "s", "S", "ſ", "é", "É", "ǅ", "ʰ", "中", "の", "\u0301", "\u200d", "ß",
	"'", "'s", "'S", "'ſ", "'ll", "'Ll", "'lL", "'re", "'ve", "'m", "'d", "'t", "'r", "'v", "'l",
	" ", "  ", "\t", "\n", "\r", "\r\n", "\v", "\u0085", "\u00a0", "\u2028", "\u3000",
	"1", "23", "4567", "٣", "²", "Ⅷ", "/", "//", ".", ",", "=", "_", "(", "\x00", "\x7f", "€", "😀",
	"\x80", "\xff", "\xe4\xb8", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\ufffd",
	"abcdefg", "abcdefgh", "ABCDEFGH", "ABCDEFGHabcdefgh", "abcdefghABCDEFGH", "        ",
}

func hardText(rng *rand.Rand) string {
	var b strings.Builder
	few := hard
	if rng.IntN(3) == 0 { // repeat a few of them
		few = []string{hard[rng.IntN(len(hard))], hard[rng.IntN(len(hard))], hard[rng.IntN(len(hard))]}
	}
	for range 1 + rng.IntN(14) {
		b.WriteString(few[rng.IntN(len(few))])
	}
	return b.String()
}

func TestEncoding_next(t *testing.T) {
	for name, e := range encodings() {
		slow := slowOf(t, e)
		rng := rand.New(rand.NewPCG(1, 2))
		for range long.Or(1_000, 10_000) {
			text := hardText(rng)
			want := slow.Pieces(text)
			var got []string
			for i := 0; i < len(text); {
				end := e.next(text, i)
				if w := loadTail(text, i); kinds[byte(w)] != kindLetter {
					// asciiEnd may return 0, but no other end than next.
					fast := asciiEnd(text, i, w, e.caseWords)
					isWord := kinds[byte(w)] <= kindSpace && kinds[byte(w>>8)] == kindLetter
					if fast != 0 && !isWord {
						require.Equal(t, end, fast, "%s: %q at %d", name, text, i)
					}
				}
				got = append(got, text[i:end])
				i = end
			}
			require.Equal(t, want, got, "%s: %q", name, text)
		}
	}
}

func Test_contraction(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "'": 0, "s": 0, "'s": 2, "'S": 2, "'ſ": 3, "'t": 2, "'M": 2, "'d": 2, "'re": 3, "'vE": 3, "'LL": 3,
		"'r": 0, "'l": 0, "'la": 0, "'a": 0, "'\xc5": 0, "'å": 0, "' s": 0,
	} {
		assert.Equal(t, want, contraction(text, 0), "%q", text)
		assert.Equal(t, want, contraction("x"+text, 1), "%q", text)
	}
}

// The classes are those of OpenAI's tokenizer, as recorded in classes.txt.
func Test_classOf(t *testing.T) {
	want, err := bpetest.Classes()
	require.NoError(t, err)
	classes := map[byte]class{0: 0, 'U': letter | front, 'l': letter | back, 'L': letter | front | back, 'M': front | back, 'N': number, 's': space}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		class := classes[want[r]]
		if r == '\r' || r == '\n' {
			class |= newline
		}
		if got := classOf(r); got != class {
			t.Fatalf("%U is of class %b, want %b", r, got, class)
		}
	}
}

func Test_decode(t *testing.T) {
	check := func(s string) {
		r, size := utf8.DecodeRuneInString(s)
		gotRune, gotSize := decode("xy"+s, 2)
		if gotRune != r || gotSize != size {
			t.Fatalf("%q: want %q and %d bytes, got %q and %d", s, r, size, gotRune, gotSize)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		check(string(r))
		check(string(r) + "ab")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	edges := []byte{0, 'a', 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF}
	for range long.Or(20_000, 100_000) {
		b := make([]byte, 1+rng.IntN(5))
		for i := range b {
			b[i] = edges[rng.IntN(len(edges))]
		}
		check(string(b))
	}
}
