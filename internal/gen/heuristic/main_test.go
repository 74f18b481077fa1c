package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/bpe"
)

// seeded returns about 400 KB of text in four classes.
func seeded(seed uint64) []document {
	var docs []document
	for _, m := range []struct {
		class string
		text  func(*rand.Rand) string
	}{
		{"gen-json", func(r *rand.Rand) string { return records(r, "\t") }},
		{"gen-csv", csv},
		{"gen-log", logs},
		{"gen-emoji", emoji},
	} {
		for n, size := uint64(0), 0; size < 100<<10; n++ {
			text := m.text(rand.New(rand.NewPCG(seed, n)))
			size += len(text)
			docs = append(docs, pieces(m.class, string(rune('a'+n)), text)...)
		}
	}
	return docs
}

// The same text gives the same table in whatever order it is found.
func Test_fit_deterministic(t *testing.T) {
	one := fit(label(limit(seeded(1))))
	again := seeded(1)
	rand.New(rand.NewPCG(8, 8)).Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	assert.True(t, one == fit(label(limit(again))), "the same text gives another table")
	assert.False(t, one == fit(label(limit(seeded(2)))), "other text gives the same table")
}

// A fitted table estimates held-out text of the same classes well.
func Test_fit_heldOut(t *testing.T) {
	docs := limit(seeded(1))
	table := fit(label(docs))
	for x, v := range table {
		require.NotZero(t, v, "entry %d", x)
	}
	sum, exact := map[string]int{}, map[string]int{}
	for _, d := range docs {
		if !d.held {
			continue
		}
		sum[d.class] += scale
		for i := 1; i < len(d.text); i++ {
			sum[d.class] += int(table[at(d.text, i)])
		}
		exact[d.class] += len(bpe.O200k().Append(nil, d.text))
	}
	require.Len(t, exact, 4)
	for class, n := range exact {
		assert.InEpsilon(t, n, float64(sum[class])/scale, 0.08, class)
	}
}

// The synthetic text is the same each time, and there is enough of each class.
func Test_synthetic(t *testing.T) {
	docs := synthetic()
	assert.Equal(t, docs, synthetic())
	bytes := map[string]int{}
	for _, d := range docs {
		bytes[d.class] += len(d.text)
	}
	assert.Len(t, bytes, 13)
	for class, n := range bytes {
		assert.GreaterOrEqual(t, n, 200<<10, class)
	}
}

func Test_limit(t *testing.T) {
	text := func(c string) string { return strings.Repeat(c, 1000) }
	docs := []document{
		{"b", text("x"), false, 3}, {"a", text("y"), true, 2}, {"a", text("z"), false, 1}, {"b", text("x"), false, 4},
	}
	var got strings.Builder
	for _, d := range limit(docs) {
		got.WriteString(d.class + d.text[:1])
	}
	assert.Equal(t, "azaybx", got.String(), "sorted by class and key, without duplicates")
}

// The numbers for long runs in the committed file agree with the vocabulary.
func Test_runs(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "..", "bigram", "table.bin"))
	require.NoError(t, err)
	table := unpack(file)
	require.Len(t, table, 1<<16+128)
	assert.True(t, bytes.Equal(runs(), table[1<<16:]), "table.bin is out of date: the README describes how to make it")
	assert.NotContains(t, table, byte(0), "every entry is at least 1")
	assert.Equal(t, file, pack(table))
}

// unpack is the inverse of pack for the table.
func unpack(file []byte) (table []byte) {
	entries := file[(1<<16+128)/8:]
	next := 0
	for i := range 1<<16 + 128 {
		if file[i/8]&(1<<(i%8)) != 0 {
			next++
		}
		table = append(table, entries[next-1])
	}
	return table
}
