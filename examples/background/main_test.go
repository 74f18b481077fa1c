package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(&out))
		assert.Contains(t, out.String(), "a summary is being written")
		assert.Contains(t, out.String(), "the newest message is still 60 of 60")
	})
}
