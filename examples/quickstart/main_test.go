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
	assert.Contains(t, out.String(), "refused: convo: message 0: result for no open call")
	assert.Contains(t, out.String(), "* 2 user: Window seats only, I am tall.")
	assert.Contains(t, out.String(), "loaded: 7 entries, pinned [2]")
}
