package count

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/texts"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// alone is a fleet without peers.
var alone = new(harness.Fleet)

func TestOurs_Allocations(t *testing.T) {
	all, err := texts.All(0, callSize)
	require.NoError(t, err)
	for _, e := range encodings {
		ours, err := tiktoken.New(e.model)
		require.NoError(t, err)
		for _, c := range []convo.Tokenizer{ours, convo.Heuristic{}} {
			for class, text := range all {
				assert.Zero(t, testing.AllocsPerRun(20, func() { c.CountTokens(text) }), "%s: %T: %s", e.name, c, class)
			}
		}
	}
}

func TestTexts_EnoughForAFullRun(t *testing.T) {
	x := extentOf(false)
	for _, c := range texts.Classes() {
		text, err := c.Make(x.effort.Rounds, x.size)
		require.NoError(t, err)
		assert.InDelta(t, x.size, len(text), 4, c.Name)
	}
}

// A cell counts another part in each round, including the round for Fit.
func TestSpeedCell_NothingTwice(t *testing.T) {
	seen := map[string]int{}
	c := &speedCell{counter: here("spy", func(s string) int { seen[s]++; return 1 }), parts: []string{"first", "second", "third"}}
	k, once, err := c.Fit(time.Microsecond)
	require.NoError(t, err)
	assert.False(t, once)
	for range 2 {
		_, err = c.Round(k)
		require.NoError(t, err)
	}
	assert.Equal(t, map[string]int{"first": 1, "second": 1, "third": 1}, seen)
}

func TestTables(t *testing.T) {
	x := extent{measure.Effort{Rounds: 1, Round: time.Microsecond}, 4 << 10, []int{10, 1000}, 10}
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			counters, err := countersOf(e, alone)
			require.NoError(t, err)
			ours := counters[0]
			oneMore := here("one more", func(s string) int {
				counts, _ := ours.count([]string{s})
				return counts[0] + 1
			})
			oneMore.quadratic = true
			counters = append(counters, oneMore)
			var b strings.Builder
			for _, write := range []func() error{
				func() error { return writeSpeed(&b, e, counters, x, alone) },
				func() error { return writeCalls(&b, e, counters, x, alone) },
				func() error { return writeLetters(&b, e, counters, x, alone) },
				func() error { return writeExact(&b, e, counters, x, alone) },
			} {
				require.NoError(t, write())
			}
			out := b.String()
			for _, c := range texts.Classes() {
				assert.Equal(t, 2, strings.Count(out, "\n| "+c.Name+" |"), c.Name)
			}
			for _, c := range counters {
				assert.Contains(t, out, " "+c.name+" ")
			}
			assert.Contains(t, out, "| 1,000 × a |")
			assert.Equal(t, 1, strings.Count(out, "not run"), "1,000 letters are too many for the quadratic counter")
			assert.Contains(t, out, "| markdown | 1 | ")
			assert.Contains(t, out, " | 1 · 1 |", "one call differs, by one token")
			assert.NotContains(t, out, "NaN")
		})
	}
}

// Without peers there is nothing to compare.
func TestTables_Alone(t *testing.T) {
	counters, err := countersOf(encodings[0], alone)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, writeExact(&b, encodings[0], counters, extentOf(true), alone))
	assert.Empty(t, b.String())
}

func TestTables_AFailureIsAnError(t *testing.T) {
	boom := errors.New("boom")
	counters, err := countersOf(encodings[0], alone)
	require.NoError(t, err)
	broken := here("broken", func(string) int { return -1 })
	broken.count = func([]string) ([]int, error) { return nil, boom }
	counters = append(counters, broken)
	var b strings.Builder
	x := extent{measure.Effort{Rounds: 1, Round: time.Microsecond}, 4 << 10, []int{10}, 10}
	assert.Error(t, writeSpeed(&b, encodings[0], counters, x, alone))
	assert.Error(t, writeCalls(&b, encodings[0], counters, x, alone))
	assert.Error(t, writeLetters(&b, encodings[0], counters, x, alone))
	assert.ErrorIs(t, writeExact(&b, encodings[0], counters, x, alone), boom)
}

func TestPrograms(t *testing.T) {
	long.Only(t, "builds three programs")
	list := programs(alone)
	dir := t.TempDir()
	for i, p := range list[:3] {
		binary, err := p.build(dir, string(rune('a'+i)))
		require.NoError(t, err, p.Name)
		l, err := run(binary)
		require.NoError(t, err, p.Name)
		assert.Positive(t, l.Tokens)
		assert.Positive(t, l.NS)
		if p.Name == "convo, Tiktoken, o200k_base" {
			assert.EqualValues(t, 10, l.Tokens)
			assert.Greater(t, l.Heap, int64(100_000), "a vocabulary is loaded")
		}
	}
	_, err := program{peer.Program{Name: "broken", Load: "count := 1"}, "."}.build(dir, "broken")
	assert.Error(t, err)
}
