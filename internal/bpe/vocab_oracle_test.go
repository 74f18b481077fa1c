package bpe_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/pkoukk/tiktoken-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// An oracle is tiktoken-go with the vocabulary that this package embeds.
type oracle struct {
	name    string // as tiktoken calls it
	ours    func() *bpe.Encoding
	size    int    // tokens, without special ones
	ranks   string // SHA-256 of the published rank file
	pattern string // OpenAI's, see TestGolden_Head

	load func() (*tiktoken.Tiktoken, error) // once
}

var oracles = []*oracle{
	{
		name:    "cl100k_base",
		ours:    bpe.Cl100k,
		size:    100256,
		ranks:   "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
		pattern: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	},
	{
		name:  "o200k_base",
		ours:  bpe.O200k,
		size:  199998,
		ranks: "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
		pattern: `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
			`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
			`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	},
}

func init() {
	for _, o := range oracles {
		o.load = sync.OnceValues(o.build)
	}
}

// build writes the rank file anew from the embedded vocabulary and makes an
// encoder of it if it is the published one, to the byte.
func (o *oracle) build() (*tiktoken.Tiktoken, error) {
	tokens := tokensOf(o.ours())
	ranks := make(map[string]int, len(tokens))
	file := sha256.New()
	w := bufio.NewWriter(file)
	for id, token := range tokens {
		ranks[token] = id
		fmt.Fprintf(w, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(token)), id)
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	if got := hex.EncodeToString(file.Sum(nil)); got != o.ranks {
		return nil, fmt.Errorf("%s: the rank file of our vocabulary has SHA-256 %s, want %s", o.name, got, o.ranks)
	}
	core, err := tiktoken.NewCoreBPE(ranks, map[string]int{tiktoken.ENDOFTEXT: o.size + 1}, o.pattern)
	if err != nil {
		return nil, err
	}
	return tiktoken.NewTiktoken(core, &tiktoken.Encoding{Name: o.name}, nil), nil
}

// tokensOf are all tokens by id.
func tokensOf(e *bpe.Encoding) []string {
	var tokens []string
	for id := uint32(0); ; id++ {
		token, ok := e.Token(id)
		if !ok {
			return tokens
		}
		tokens = append(tokens, token)
	}
}

// forEachOracle runs test for both encodings, side by side.
func forEachOracle(t *testing.T, test func(t *testing.T, o *oracle)) {
	for _, o := range oracles {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			test(t, o)
		})
	}
}

// mustLoad is the encoder of o; without it no test stands on anything.
func (o *oracle) mustLoad(t testing.TB) *tiktoken.Tiktoken {
	t.Helper()
	theirs, err := o.load()
	require.NoError(t, err)
	return theirs
}

// ids are what the oracle makes of text.
func (o *oracle) ids(t testing.TB, text string) []uint32 {
	theirs := o.mustLoad(t).EncodeOrdinary(text)
	ids := make([]uint32, len(theirs))
	for i, id := range theirs {
		ids[i] = uint32(id)
	}
	return ids
}

// differs tells how our ids or our count of text are not the oracle's; empty
// when they are the same.
func (o *oracle) differs(t testing.TB, text string) string {
	want := o.ids(t, text)
	if got := o.ours().Append(nil, text); !slices.Equal(want, got) {
		return fmt.Sprintf("%s: ids of %d bytes: want %s, got %s", o.name, len(text), o.spell(want), o.spell(got))
	}
	if got := o.ours().Count(text); got != len(want) {
		return fmt.Sprintf("%s: Count of %d bytes is %d, ids are %d", o.name, len(text), got, len(want))
	}
	return ""
}

// spell shows the first ids and the tokens that they stand for.
func (o *oracle) spell(ids []uint32) string {
	const most = 60
	var b strings.Builder
	fmt.Fprintf(&b, "%d [", len(ids))
	for _, id := range ids[:min(len(ids), most)] {
		token, _ := o.ours().Token(id)
		fmt.Fprintf(&b, " %d:%q", id, token)
	}
	b.WriteString(" ]")
	return b.String()
}

// minimise takes away what it can from text as long as it stays bad.
func minimise(text string, bad func(string) bool) string {
	for size := len(text) / 2; size > 0; {
		smaller := false
		for i := 0; i+size <= len(text); {
			if shorter := text[:i] + text[i+size:]; bad(shorter) {
				text, smaller = shorter, true
			} else {
				i += size
			}
		}
		if !smaller || size > len(text) {
			size /= 2
		}
	}
	return text
}

// newCodePoints are those that this Go's package unicode, which tiktoken-go
// goes by, takes for another class than OpenAI's tokenizer does: the ones that
// their versions of Unicode do not share. The golden files have them.
var newCodePoints = sync.OnceValues(func() (map[rune]bool, error) {
	theirs, err := readClasses()
	if err != nil {
		return nil, err
	}
	differ := map[rune]bool{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if theirs[r] != goClass(r) && (r < 0xd800 || r > 0xdfff) {
			differ[r] = true
		}
	}
	return differ, nil
})

// folds are what (?i) takes for a letter of a contraction beside its upper and
// lower case, after an apostrophe: the long s. OpenAI's regular expressions fold
// it, those of tiktoken-go lower its case, which is another thing.
var folds = func() []string {
	var folds []string
	for _, letter := range "strevmld" {
		for r := unicode.SimpleFold(letter); r != letter; r = unicode.SimpleFold(r) {
			if unicode.ToLower(r) != letter {
				folds = append(folds, "'"+string(r))
			}
		}
	}
	return folds
}()

// unjudged reports whether text holds what the oracle is known to take
// otherwise than OpenAI's code: a new code point or a fold.
func unjudged(t testing.TB, text string) bool {
	differ, err := newCodePoints()
	require.NoError(t, err)
	return strings.ContainsFunc(text, func(r rune) bool { return differ[r] }) ||
		slices.ContainsFunc(folds, func(fold string) bool { return strings.Contains(text, fold) })
}

// readClasses reads what OpenAI's tokenizer takes each code point for: see
// internal/gen/golden.
func readClasses() ([]byte, error) {
	data, err := os.ReadFile("testdata/classes.txt")
	if err != nil {
		return nil, err
	}
	classes := make([]byte, unicode.MaxRune+1)
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if fields[0] == "#" {
			continue
		}
		first, err := strconv.ParseInt(fields[1], 16, 32)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, err
		}
		for i := range n {
			classes[int(first)+i] = fields[0][0]
		}
	}
	return classes, nil
}

// goClass is the class of r by package unicode, in the letters of classes.txt.
func goClass(r rune) byte {
	switch {
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return 'U'
	case unicode.Is(unicode.Ll, r):
		return 'l'
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return 'L'
	case unicode.Is(unicode.M, r):
		return 'M'
	case unicode.Is(unicode.N, r):
		return 'N'
	case unicode.IsSpace(r):
		return 's'
	}
	return 0
}

func TestOracle_Vocabulary(t *testing.T) {
	forEachOracle(t, func(t *testing.T, o *oracle) {
		o.mustLoad(t) // compares the rank file
		tokens := tokensOf(o.ours())
		require.Len(t, tokens, o.size)
		for _, id := range []uint32{uint32(o.size), uint32(o.size) + 1, 1 << 20, 1<<32 - 1} {
			token, ok := o.ours().Token(id)
			assert.False(t, ok, "%d", id)
			assert.Empty(t, token, "%d", id)
		}
		ours := o.ours()
		for id, token := range tokens {
			if n := ours.Count(token); n < 1 || n > len(token) {
				t.Fatalf("token %d, %q, counts %d", id, token, n)
			}
		}
	})
}

func TestOracle_Unjudged(t *testing.T) {
	differ, err := newCodePoints()
	require.NoError(t, err)
	t.Logf("package unicode %s: %d code points of another class than OpenAI's code has them", unicode.Version, len(differ))
	assert.Less(t, len(differ), 20_000, "or classes.txt was not read")
	assert.Equal(t, []string{"'ſ"}, folds)
	for _, r := range "aZ0 \n'é中кΩ😀\u0301\u2028" {
		assert.False(t, differ[r], "%q", r)
	}
}

func Test_minimise(t *testing.T) {
	bad := func(s string) bool { return strings.Contains(s, "x") && strings.Contains(s, "y") }
	assert.Equal(t, "xy", minimise(strings.Repeat("ab", 50)+"x"+strings.Repeat("cd", 77)+"y"+strings.Repeat("e", 9), bad))
}
