package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each conversation compacts once, and makes calls of Prepare that have nothing to do.
func TestLive(t *testing.T) {
	for _, atOnce := range []int{1, 2} {
		l, err := live(size{6, 8_000}, atOnce)
		require.NoError(t, err)
		assert.Len(t, l.compacted, 6)
		assert.Greater(t, len(l.idle), 6)
	}
}

func TestQuantile(t *testing.T) {
	list := make([]time.Duration, 200)
	for i := range list {
		list[i] = time.Duration(i + 1)
	}
	for percent, want := range map[int]time.Duration{0: 1, 50: 100, 99: 198, 100: 200} {
		assert.Equal(t, want, quantile(list, percent), "%d %%", percent)
	}
	assert.Zero(t, quantile(nil, 50))
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Write(&b, true))
	assert.Contains(t, b.String(), "| **convo** 20 conversations, window of 32,000, 2 at a time | ")
}
