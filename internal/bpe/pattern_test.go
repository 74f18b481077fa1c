package bpe

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A matcher is a regular expression as its definition has it: it tries what it
// may match at s[i], in order of preference, until then is content with one.
type matcher func(s []rune, i int, then func(end int) bool) bool

func one(is func(r rune) bool) matcher {
	return func(s []rune, i int, then func(int) bool) bool { return i < len(s) && is(s[i]) && then(i+1) }
}

func word1(text string) matcher { // in any case
	var parts []matcher
	for _, want := range text {
		parts = append(parts, one(func(r rune) bool {
			for fold := unicode.SimpleFold(r); ; fold = unicode.SimpleFold(fold) {
				if fold == want {
					return true
				} else if fold == r {
					return r == want
				}
			}
		}))
	}
	return sequence(parts...)
}

func sequence(parts ...matcher) matcher {
	return func(s []rune, i int, then func(int) bool) bool {
		if len(parts) == 0 {
			return then(i)
		}
		return parts[0](s, i, func(end int) bool { return sequence(parts[1:]...)(s, end, then) })
	}
}

func either(options ...matcher) matcher {
	return func(s []rune, i int, then func(int) bool) bool {
		for _, option := range options {
			if option(s, i, then) {
				return true
			}
		}
		return false
	}
}

// repeat matches m as often as it can, least to most times.
func repeat(m matcher, least, most int) matcher {
	return func(s []rune, i int, then func(int) bool) bool {
		if most > 0 && m(s, i, func(end int) bool { return repeat(m, max(least-1, 0), most-1)(s, end, then) }) {
			return true
		}
		return least == 0 && then(i)
	}
}

func star(m matcher) matcher  { return repeat(m, 0, 1<<30) }
func plus(m matcher) matcher  { return repeat(m, 1, 1<<30) }
func maybe(m matcher) matcher { return repeat(m, 0, 1) }

func noneOf(classes ...func(rune) bool) func(rune) bool {
	return func(r rune) bool { return !anyOf(classes...)(r) }
}

func anyOf(classes ...func(rune) bool) func(rune) bool {
	return func(r rune) bool {
		for _, is := range classes {
			if is(r) {
				return true
			}
		}
		return false
	}
}

func in(tables ...*unicode.RangeTable) func(rune) bool {
	return func(r rune) bool { return unicode.In(r, tables...) }
}

func chars(list string) func(rune) bool {
	return func(r rune) bool { return strings.ContainsRune(list, r) }
}

func endOfSpace(s []rune, i int, then func(int) bool) bool { // (?!\S)
	return (i == len(s) || unicode.IsSpace(s[i])) && then(i)
}

// statement states the pattern of an encoding, alternative by alternative.
func statement(caseWords bool) matcher {
	letter, number, space := in(unicode.L), in(unicode.N), unicode.IsSpace
	contraction := either(word1("'s"), word1("'t"), word1("'re"), word1("'ve"), word1("'m"), word1("'ll"), word1("'d"))
	before := maybe(one(noneOf(chars("\r\n"), letter, number)))
	rest := either(
		repeat(one(number), 1, 3),
		sequence(maybe(one(chars(" "))), plus(one(noneOf(space, letter, number))), star(one(chars(map[bool]string{false: "\r\n", true: "\r\n/"}[caseWords])))),
		sequence(star(one(space)), plus(one(chars("\r\n")))),
		sequence(plus(one(space)), endOfSpace),
		plus(one(space)),
	)
	if !caseWords {
		return either(contraction, sequence(before, plus(one(letter))), rest)
	}
	front := one(in(unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M))
	back := one(in(unicode.Ll, unicode.Lm, unicode.Lo, unicode.M))
	return either(
		sequence(before, star(front), plus(back), maybe(contraction)),
		sequence(before, plus(front), star(back), maybe(contraction)),
		rest,
	)
}

// piecesOf cuts text by the statement. A byte that is not valid is U+FFFD.
func piecesOf(t *testing.T, pattern matcher, text string) []string {
	var runes []rune
	var starts []int
	for i, r := range text {
		runes = append(runes, r)
		starts = append(starts, i)
	}
	starts = append(starts, len(text))
	var pieces []string
	for i := 0; i < len(runes); {
		end := -1
		require.True(t, pattern(runes, i, func(e int) bool { end = e; return true }), "%q", text)
		require.Greater(t, end, i)
		pieces = append(pieces, text[starts[i]:starts[end]])
		i = end
	}
	return pieces
}

// hard are parts that the patterns tell apart.
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
	if rng.IntN(3) == 0 { // dwell on a few
		few = []string{hard[rng.IntN(len(hard))], hard[rng.IntN(len(hard))], hard[rng.IntN(len(hard))]}
	}
	for range 1 + rng.IntN(14) {
		b.WriteString(few[rng.IntN(len(few))])
	}
	return b.String()
}

func TestEncoding_next(t *testing.T) {
	for name, e := range encodings() {
		pattern := statement(e.caseWords)
		rng := rand.New(rand.NewPCG(1, 2))
		for range atLeast(t, 10_000) {
			text := hardText(rng)
			want := piecesOf(t, pattern, text)
			var got []string
			for i := 0; i < len(text); {
				end := e.next(text, i)
				if w := loadTail(text, i); kinds[byte(w)] != kindLetter {
					// The measure for ASCII may pass, and must not differ.
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

// The classes are those of Go's tables, but for what Unicode has added since
// or taken back.
func Test_classOf(t *testing.T) {
	differ := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		var want class
		switch {
		case unicode.In(r, unicode.Lu, unicode.Lt):
			want = letter | front
		case unicode.Is(unicode.Ll, r):
			want = letter | back
		case unicode.In(r, unicode.Lm, unicode.Lo):
			want = letter | front | back
		case unicode.Is(unicode.M, r):
			want = front | back
		case unicode.Is(unicode.N, r):
			want = number
		case r == '\r' || r == '\n':
			want = space | newline
		case unicode.IsSpace(r):
			want = space
		}
		if got := classOf(r); got != want {
			assert.False(t, r < 0x80, "%U", r)
			differ++
		}
	}
	assert.Less(t, differ, 12_000, "code points added by a few versions of Unicode")
}

func Test_decode(t *testing.T) {
	check := func(s string) {
		r, size := utf8.DecodeRuneInString(s)
		gotRune, gotSize := decode("xy"+s, 2)
		require.Equal(t, r, gotRune, "%q", s)
		require.Equal(t, size, gotSize, "%q", s)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		check(string(r))
		check(string(r) + "ab")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	edges := []byte{0, 'a', 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF}
	for range 100_000 {
		b := make([]byte, 1+rng.IntN(5))
		for i := range b {
			b[i] = edges[rng.IntN(len(edges))]
		}
		check(string(b))
	}
}
