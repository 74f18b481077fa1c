package count

import (
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	cohere "github.com/cohere-ai/tokenizer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

func forEachEncoding(t *testing.T, f func(t *testing.T, e encoding, counters []counter)) {
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			counters, err := countersOf(e)
			require.NoError(t, err)
			f(t, e, counters)
		})
	}
}

// Ours counts what tiktoken-go counts, on all texts of the tables.
func TestCounts_Agree(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, _ encoding, counters []counter) {
		ours, reference := find(counters, oursName), find(counters, tiktokenName)
		for part := range 2 {
			texts, err := all(part, 64<<10)
			require.NoError(t, err)
			for name, text := range texts {
				d := compare(ours, reference, chunks(text, callSize))
				assert.Zero(t, d.off, "%s, part %d: %+v", name, part, d)
				assert.Greater(t, d.tokens, len(text)/15, name)
			}
		}
		for _, o := range oddities {
			assert.Equal(t, reference.count(o.text), ours.count(o.text), o.name)
		}
		for _, n := range []int{1, 10, 1000, 3000} {
			text := strings.Repeat("a", n)
			assert.Equal(t, reference.count(text), ours.count(text), "%d letters", n)
		}
	})
}

// The notes say where tiktoken-go/tokenizer counts otherwise.
func TestCounts_CodecDiffers(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, _ encoding, counters []counter) {
		codec, reference := find(counters, codecName), find(counters, tiktokenName)
		for i, o := range oddities {
			if i < 3 {
				assert.NotEqual(t, reference.count(o.text), codec.count(o.text), o.name)
			} else {
				assert.Equal(t, reference.count(o.text), codec.count(o.text), o.name)
			}
		}
	})
}

func TestOurs_Allocations(t *testing.T) {
	forEachEncoding(t, func(t *testing.T, _ encoding, counters []counter) {
		texts, err := all(0, callSize)
		require.NoError(t, err)
		for _, name := range []string{oursName, heuristicName} {
			c := find(counters, name)
			for class, text := range texts {
				assert.Zero(t, testing.AllocsPerRun(20, func() { c.count(text) }), "%s: %s", name, class)
			}
		}
	})
}

func TestTexts(t *testing.T) {
	const size = 20_000
	nonASCII := map[string][2]float64{ // least and most share of bytes
		"English prose": {0, 0.02}, "Go source": {0, 0.02}, "JSON": {0, 0}, "base64": {0, 0}, "markdown": {0, 0.05},
		"Chinese and Japanese": {0.95, 1}, "Cyrillic": {0.75, 0.95},
	}
	assert.Len(t, nonASCII, len(classes()))
	seen := map[string]string{}
	for part := range 3 {
		texts, err := all(part, size)
		require.NoError(t, err)
		again, err := all(part, size)
		require.NoError(t, err)
		assert.Equal(t, texts, again, "the same text each time")
		for name, text := range texts {
			assert.InDelta(t, size, len(text), 4, name)
			assert.True(t, utf8.ValidString(text), name)
			assert.NotContains(t, seen, text, "%s is used twice", name)
			seen[text] = name
			beyond := 0
			for i := range len(text) {
				if text[i] >= utf8.RuneSelf {
					beyond++
				}
			}
			share := float64(beyond) / float64(len(text))
			assert.GreaterOrEqual(t, share, nonASCII[name][0], name)
			assert.LessOrEqual(t, share, nonASCII[name][1], name)
			assert.Equal(t, text, strings.Join(chunks(text, 1000), ""), name)
		}
	}
}

func TestTexts_EnoughForAFullRun(t *testing.T) {
	x := extentOf(false)
	for _, c := range classes() {
		text, err := c.make(x.effort.Rounds, x.size)
		require.NoError(t, err)
		assert.InDelta(t, x.size, len(text), 4, c.name)
	}
}

// Another provider's tokenizer makes something else of the same text: an exact
// count of one vocabulary is an estimate for any other model.
func TestForeignTokenizerDiffers(t *testing.T) {
	foreign, err := cohere.NewFromPrebuilt("coheretext-50k")
	require.NoError(t, err)
	counters, err := countersOf(encodings[0])
	require.NoError(t, err)
	text, err := sourceOf(0, 4000)
	require.NoError(t, err)
	ids, _ := foreign.Encode(text)
	assert.Greater(t, len(ids), 1000)
	assert.NotEqual(t, len(ids), find(counters, oursName).count(text))
}

func TestTables(t *testing.T) {
	x := extent{measure.Effort{Rounds: 1, Round: time.Microsecond}, 4 << 10, []int{10, 1000}, 10}
	forEachEncoding(t, func(t *testing.T, e encoding, counters []counter) {
		var b strings.Builder
		require.NoError(t, writeSpeed(&b, e, counters, x))
		require.NoError(t, writeCalls(&b, e, counters, x))
		require.NoError(t, writeLetters(&b, e, counters, x))
		require.NoError(t, writeExact(&b, e, counters, x))
		out := b.String()
		for _, c := range classes() {
			assert.Equal(t, 2, strings.Count(out, "\n| "+c.name+" |"), c.name)
		}
		for _, c := range counters {
			assert.Contains(t, out, " "+c.name+" ")
		}
		assert.Contains(t, out, "| 1,000 × a |")
		assert.Contains(t, out, "not run")
		assert.NotContains(t, out, "NaN")
	})
}

func TestPrograms(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build with:", err)
	}
	list := programs()
	dir := t.TempDir()
	for i, p := range list[:3] {
		binary, err := p.build(dir, string(rune('a'+i)))
		require.NoError(t, err, p.name)
		l, err := run(binary)
		require.NoError(t, err, p.name)
		assert.Positive(t, l.Tokens)
		assert.Positive(t, l.NS)
		if p.name == "convo, Tiktoken, o200k_base" {
			assert.EqualValues(t, 10, l.Tokens)
			assert.Greater(t, l.Heap, int64(100_000), "a vocabulary is loaded")
		}
	}
	_, err := program{name: "broken", load: "count := 1"}.build(dir, "broken")
	assert.Error(t, err)
}
