package texts

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTexts(t *testing.T) {
	const size = 20_000
	nonASCII := map[string][2]float64{ // least and most share of bytes
		"English prose": {0, 0.02}, "Go source": {0, 0.02}, "JSON": {0, 0}, "base64": {0, 0}, "markdown": {0, 0.05},
		"Chinese and Japanese": {0.95, 1}, "Cyrillic": {0.75, 0.95},
	}
	assert.Len(t, nonASCII, len(Classes()))
	seen := map[string]string{}
	for part := range 3 {
		texts, err := All(part, size)
		require.NoError(t, err)
		again, err := All(part, size)
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
			assert.Equal(t, text, strings.Join(Chunks(text, 1000), ""), name)
		}
	}
}
