package bpe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpe"
	"github.com/seed-c1b73e60/convo/internal/bpetest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// An encoding pairs an encoding of this package with the slow tokenizer of the
// same name.
type encoding struct {
	fast *bpe.Encoding
	slow *bpetest.Slow
}

func encodings(t testing.TB) []encoding {
	t.Helper()
	cl100k, err := bpetest.Cl100k()
	require.NoError(t, err)
	o200k, err := bpetest.O200k()
	require.NoError(t, err)
	return []encoding{{bpe.Cl100k(), cl100k}, {bpe.O200k(), o200k}}
}

func (e encoding) comparison() *bpetest.Comparison {
	return &bpetest.Comparison{Ours: e.fast, Tokens: e.slow.Tokens(), IDs: e.slow.IDs, MB: 5}
}

// forEachEncoding runs test for both encodings in parallel.
func forEachEncoding(t *testing.T, test func(t *testing.T, e encoding)) {
	for _, e := range encodings(t) {
		t.Run(e.slow.Name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// Ids and counts equal those of the slow tokenizer.
func TestSlow(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, e encoding) { e.comparison().Run(t) })
}

// The vocabulary is the published one: the slow tokenizer checks its own against
// the published hash.
func TestSlow_Vocabulary(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, e encoding) {
		tokens := e.slow.Tokens()
		require.Len(t, tokens, e.slow.Size)
		require.Equal(t, e.slow.Size, e.fast.Len())
		for id, want := range tokens {
			if got, ok := e.fast.Token(uint32(id)); !ok || got != want {
				t.Fatalf("token %d is %q, want %q", id, got, want)
			}
			if n := e.fast.Count(want); n < 1 || n > len(want) {
				t.Fatalf("token %d, %q, has a count of %d", id, want, n)
			}
		}
		for _, id := range []uint32{uint32(e.slow.Size), uint32(e.slow.Size) + 1, 1 << 20, 1<<32 - 1} {
			token, ok := e.fast.Token(id)
			assert.False(t, ok, "%d", id)
			assert.Empty(t, token, "%d", id)
		}
	})
}

// The slow tokenizer also passes the golden strings, and its patterns and
// vocabularies are those of OpenAI's package.
func TestSlow_Golden(t *testing.T) {
	head, all := readGolden(t)
	forEachEncoding(t, func(t *testing.T, e encoding) {
		assert.Equal(t, head.Encodings[e.slow.Name].Pattern, e.slow.Pattern)
		assert.Equal(t, head.Encodings[e.slow.Name].Ranks, e.slow.Published)
		for i := 0; i < len(all); i += long.Or(8, 1) {
			s := all[i]
			text := strings.Repeat(s.Text, max(s.Times, 1))
			ids := e.slow.IDs(text)
			assert.Equal(t, s.of(e.slow.Name), goldenCount{len(ids), fmt.Sprintf("%08x", mix(mixStart, ids))}, bpetest.Quoted(text))
		}
	})
}
