package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/texts"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// tiktoken-go and tiktoken.New agree on all texts of the tables.
func TestCounts_Agree(t *testing.T) {
	models := map[string]string{"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}
	counters := library().Counters
	require.Len(t, counters, len(models))
	for _, c := range counters {
		t.Run(c.Vocabulary, func(t *testing.T) {
			count, err := c.New()
			require.NoError(t, err)
			ours, err := tiktoken.New(models[c.Vocabulary])
			require.NoError(t, err)
			for part := range 2 {
				all, err := texts.All(part, 64<<10)
				require.NoError(t, err)
				for name, text := range all {
					tokens := 0
					for _, s := range texts.Chunks(text, 4<<10) {
						n := count(s)
						tokens += n
						assert.Equal(t, n, ours.CountTokens(s), "%s, part %d", name, part)
					}
					assert.Greater(t, tokens, len(text)/15, name)
				}
			}
			for _, o := range texts.Oddities {
				assert.Equal(t, count(o.Text), ours.CountTokens(o.Text), o.Name)
			}
			for _, n := range []int{1, 10, 1000, 3000} {
				text := strings.Repeat("a", n)
				assert.Equal(t, count(text), ours.CountTokens(text), "%d letters", n)
			}
		})
	}
}
