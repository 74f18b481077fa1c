package wire

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTally_Back(t *testing.T) {
	var seen tally
	for _, name := range []string{"a", "b", "a", "a", "c"} {
		seen.add(sentID, name)
	}
	seen.back(3)
	assert.Equal(t, 2, seen.count(sentID, "a"))
	seen.back(1)
	assert.True(t, seen.has(sentID, "a"))
	assert.False(t, seen.has(sentID, "b"))
	assert.False(t, seen.has(itemName, "a"))
	assert.False(t, seen.has(sentID, "c"))
	seen.back(0)
	assert.False(t, seen.has(sentID, "a"))
}
