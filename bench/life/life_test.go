package life

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// What the README says of the lives is what is measured.
func TestLife(t *testing.T) {
	lives, err := Measure()
	require.NoError(t, err)
	require.Len(t, lives, 3)
	nothing, trimmed, ours := lives[0], lives[1], lives[2]
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	said := fmt.Sprintf("with nothing it ends at request %d, trimmed the condition is gone from request %d on, with convo all %d succeed", len(nothing.Tokens)+1, trimmed.Forgotten, len(ours.Tokens))
	assert.Contains(t, string(page), said)
	result := file(convo.ToolCall{Arguments: `{"path":"pkg/file_100.go"}`})
	assert.Contains(t, string(page), fmt.Sprintf("The agent's tool returns %.1f kB", float64(len(result))/1_000))
	assert.Contains(t, string(page), fmt.Sprintf("fills a window of 8,000 tokens in %d requests", len(nothing.Tokens)))
	bench, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(bench)), " ")
	assert.Contains(t, text, fmt.Sprintf("One agent, %d requests, a tool that returns %.1f kB", requests, float64(len(result))/1_000))
	assert.Contains(t, text, fmt.Sprintf("If nothing is removed, request %d is refused.", len(nothing.Tokens)+1))
	assert.Contains(t, text, fmt.Sprintf("No request is refused, %d,000 tokens are sent, and from request %d on", thousands(trimmed.Tokens), trimmed.Forgotten))
	assert.Contains(t, text, fmt.Sprintf("With convo, %d,000 tokens are sent", thousands(ours.Tokens)))
	assert.NotEmpty(t, nothing.Refused)
	assert.Less(t, len(nothing.Tokens), 25)
	assert.Empty(t, trimmed.Refused)
	assert.Positive(t, trimmed.Forgotten)
	assert.Empty(t, ours.Refused)
	assert.Zero(t, ours.Forgotten)
	assert.Len(t, ours.Tokens, requests)

	var drawn []Life
	data, err := os.ReadFile("life.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &drawn))
	assert.Equal(t, lives, drawn, "the picture is of other figures; draw it again with go run ./pictures -measure life")
}

// thousands returns the sum of counts in thousands.
func thousands(counts []int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return (sum + 500) / 1_000
}
