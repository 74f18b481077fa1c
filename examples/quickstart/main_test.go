package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	assert.Contains(t, out.String(), "turn 8: applied, reason high")
	assert.Contains(t, out.String(), "summarize          applied")
	assert.NotContains(t, out.String(), "failed")
	assert.Contains(t, out.String(), "80 requests, none above 3500 tokens.")
	assert.True(t, strings.HasSuffix(out.String(), "\n  2 user: Window seats only, I am tall. And nothing before 9 o'clock.\n"))
}
