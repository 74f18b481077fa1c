//go:build tiktoken

package tiktokengo_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/pkoukk/tiktoken-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpe"
	"github.com/seed-c1b73e60/convo/internal/bpetest"
)

// comparisons compare both encodings with tiktoken-go, by the encoding's name.
var comparisons = sync.OnceValues(func() (map[string]*bpetest.Comparison, error) {
	differ, err := newCodePoints()
	if err != nil {
		return nil, err
	}
	judges := func(text string) bool {
		return !strings.ContainsFunc(text, func(r rune) bool { return differ[r] }) &&
			!slices.ContainsFunc(folds, func(fold string) bool { return strings.Contains(text, fold) })
	}
	all := map[string]*bpetest.Comparison{}
	for _, e := range []struct {
		ours  *bpe.Encoding
		known func() (*bpetest.Slow, error)
	}{{bpe.Cl100k(), bpetest.Cl100k}, {bpe.O200k(), bpetest.O200k}} {
		known, err := e.known()
		if err != nil {
			return nil, err
		}
		ids, err := encoder(known)
		if err != nil {
			return nil, err
		}
		all[known.Name] = &bpetest.Comparison{Ours: e.ours, Tokens: known.Tokens(), IDs: ids, Judges: judges, MB: 2}
	}
	return all, nil
})

// encoder returns an encoder of tiktoken-go with the vocabulary and the pattern
// that OpenAI published.
func encoder(known *bpetest.Slow) (func(text string) []uint32, error) {
	ranks := make(map[string]int, known.Size)
	for id, token := range known.Tokens() {
		ranks[token] = id
	}
	core, err := tiktoken.NewCoreBPE(ranks, map[string]int{tiktoken.ENDOFTEXT: known.Size + 1}, known.Pattern)
	if err != nil {
		return nil, err
	}
	theirs := tiktoken.NewTiktoken(core, &tiktoken.Encoding{Name: known.Name}, nil)
	return func(text string) []uint32 {
		var ids []uint32
		for _, id := range theirs.EncodeOrdinary(text) {
			ids = append(ids, uint32(id))
		}
		return ids
	}, nil
}

// newCodePoints holds the code points whose class in package unicode, which
// tiktoken-go uses, differs from their class in OpenAI's tokenizer. They differ
// because Go and OpenAI's tokenizer use different versions of Unicode.
var newCodePoints = sync.OnceValues(func() (map[rune]bool, error) {
	theirs, err := bpetest.Classes()
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

// goClass returns the class of r by package unicode, as a letter of classes.txt.
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

// folds holds an apostrophe with each character that (?i) matches as a letter of
// a contraction and that is neither its upper nor its lower case. There is one:
// the long s. OpenAI's regular expressions use case folding, which makes it an
// s. Those of tiktoken-go use lower case, which does not.
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

// Ids and counts equal those of tiktoken-go, wherever it is right.
func TestTiktokenGo(t *testing.T) {
	all, err := comparisons()
	require.NoError(t, err)
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Run(t)
		})
	}
}

// Few code points are left out of the comparison with tiktoken-go.
func TestTiktokenGo_NotJudged(t *testing.T) {
	differ, err := newCodePoints()
	require.NoError(t, err)
	t.Logf("package unicode %s: %d code points have another class in OpenAI's code", unicode.Version, len(differ))
	assert.Less(t, len(differ), 20_000, "more means that classes.txt was not read")
	assert.Equal(t, []string{"'ſ"}, folds)
	for _, r := range "aZ0 \n'é中кΩ😀\u0301\u2028" {
		assert.False(t, differ[r], "%q", r)
	}
}

func FuzzTiktokenGo(f *testing.F) {
	for _, text := range bpetest.HardCases {
		f.Add(text)
	}
	all, err := comparisons()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<11 {
			return // tiktoken-go is quadratic
		}
		for name, c := range all {
			if !c.Judges(text) {
				continue
			}
			if how := c.Differs(text); how != "" {
				t.Fatalf("%s: %s", name, how)
			}
		}
	})
}
