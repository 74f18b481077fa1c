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
		for range 400 {
			id := int64(r.IntN(200))
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
				for _, m := range found {
					require.Equal(t, all.Excerpt(texts[m.ID], q), some.Excerpt(texts[m.ID], q))
				}
			}
		}
	}
}

// A term that is in one text of thousands far apart, and hundreds of times there, is found.
func TestIndex_LongDistances(t *testing.T) {
	var ix search.Index
	for id := range int64(1000) {
		text := "nothing"
		if id%400 == 7 {
			text = strings.Repeat("x1 ", int(300+id))
		}
		ix.Add(id, ix.Read(text))
	}
	var ids []int64
	for _, m := range ix.Search(search.Ask("x1"), 9) {
		ids = append(ids, m.ID)
	}
	assert.ElementsMatch(t, []int64{7, 407, 807}, ids)
}
