package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The results are what is measured, and the picture is what is drawn from them.
func TestLife(t *testing.T) {
	var kept []Life
	data, err := os.ReadFile("life.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &kept))
	lives, err := measure()
	require.NoError(t, err)
	assert.Equal(t, kept, lives, "run go run ./life -measure")

	drawn, err := os.ReadFile("../../docs/img/life.svg")
	require.NoError(t, err)
	assert.Equal(t, string(drawn), string(draw(kept)), "run go run ./life")

	require.Len(t, lives, 3)
	nothing, trimmed, ours := lives[0], lives[1], lives[2]
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	said := fmt.Sprintf("with nothing it ends at request %d, with the usual trim the condition is gone from request %d on, with convo all %d succeed", len(nothing.Tokens)+1, trimmed.Forgotten, len(ours.Tokens))
	assert.Contains(t, string(page), said)
	assert.Contains(t, string(page), fmt.Sprintf("fills a window of 8,000 tokens in %d requests", len(nothing.Tokens)))
	assert.NotEmpty(t, nothing.Refused)
	assert.Less(t, len(nothing.Tokens), 25)
	assert.Empty(t, trimmed.Refused)
	assert.Positive(t, trimmed.Forgotten)
	assert.Empty(t, ours.Refused)
	assert.Zero(t, ours.Forgotten)
	assert.Len(t, ours.Tokens, requests)
}
