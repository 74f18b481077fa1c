package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, false))
	assert.Contains(t, out.String(), "compacted ")
	assert.Contains(t, out.String(), "\n120 requests, the largest of ")
	assert.True(t, strings.HasSuffix(out.String(), "\nthe user's condition is in the last request: true\n"), out.String())
}

func TestRun_Without(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, true))
	assert.Regexp(t, `^request 1\d: .* prompt is too long: 8\d\d\d tokens > 8000 maximum\n$`, out.String())
}
