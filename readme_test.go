package convo_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first block of the README is the body of Example.
func TestREADME_FirstBlockIsExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, block, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")

	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, body, ok := strings.Cut(string(source), "func Example() {\n")
	require.True(t, ok)
	body, _, _ = strings.Cut(body, "\t// Output:")
	var lines []string
	for line := range strings.Lines(body) {
		lines = append(lines, strings.TrimPrefix(line, "\t"))
	}
	assert.Equal(t, strings.Join(lines, ""), block)
}

// The commands that .ci/run takes from the README.
func TestREADME_CommandsStand(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, command := range []string{"\ngo run ./examples/quickstart\n", "\ngo test ./...\n"} {
		assert.Contains(t, string(readme), command)
	}
}
