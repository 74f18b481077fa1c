package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/search"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// randomText returns a text of up to n words, some of them often.
func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n) {
		word := fmt.Sprintf("w%d ", r.IntN(20)*r.IntN(20))
		b.WriteString(strings.Repeat(word, 1+r.IntN(2)*r.IntN(200)/(1+r.IntN(100))))
	}
	return b.String()
}

// An Index for some queries answers them like one that finds everything, also after removals.
func TestFor(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		queries := make([]string, 10)
		for i := range queries {
			queries[i] = randomText(r, 12)
		}
		all, some := new(search.Index), search.For(slices.Values(queries))
		texts := map[int64]string{}
		for range 250 {
			id := int64(r.IntN(80))
			if r.IntN(3) == 0 {
				require.Equal(t, all.Remove(id), some.Remove(id))
				all.Pack()
				some.Pack()
			} else if text := randomText(r, 1+r.IntN(1+r.IntN(1000))); !all.Read(text).IsBlank() {
				all.Add(id, all.Read(text))
				some.Add(id, some.Read(text))
				texts[id] = text
			}
			if r.IntN(20) > 0 {
				continue
			}
			for _, text := range queries {
				q := search.Ask(text)
				found := all.Search(q, 30)
				require.Equal(t, found, some.Search(q, 30))
				for _, m := range found[:min(2, len(found))] {
					require.Equal(t, all.Excerpt(texts[m.ID], q), some.Excerpt(texts[m.ID], q))
				}
			}
		}
	}
}

// Passages have large numbers, and a term may be in one as often as its size allows.
func TestIndex_ManyPassages(t *testing.T) {
	var ix search.Index
	none := ix.Read("nothing")
	for id := range int64(70_000) {
		ix.Add(id, none)
	}
	ix.Add(70_000, ix.Read(strings.Repeat("aA", 3<<10)))
	ix.Add(70_001, ix.Read("a "+strings.Repeat("b ", 3000)))
	found := ix.Search(search.Ask("a"), 9)
	require.Len(t, found, 2)
	assert.Equal(t, []int64{70_000, 70_001}, []int64{found[0].ID, found[1].ID})
	assert.Greater(t, found[0].Score, found[1].Score)
}
