package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run([]string{"-quick", "-only", "ops", "-sizes", "10"}, &out, io.Discard))
	for _, want := range []string{"# convo beside others\n", "| date |", "| machine |", "| Go | go1", "## Keeping a conversation\n", "### Append\n", "Took "} {
		assert.Contains(t, out.String(), want)
	}
	assert.NotContains(t, out.String(), "## Counting")
}

func TestRun_Faults(t *testing.T) {
	for _, args := range [][]string{{"-only", "nothing"}, {"-sizes", "ten"}, {"more"}, {"-unknown"}, {"-quick", "-only", "ops", "-sizes", "1"}} {
		assert.Error(t, run(args, io.Discard, io.Discard), "%v", args)
	}
}

func TestChoose(t *testing.T) {
	names := []string{"a", "b"}
	got, err := choose("", names)
	require.NoError(t, err)
	assert.Equal(t, names, got)
	got, err = choose("b", names)
	require.NoError(t, err)
	assert.Equal(t, []string{"b"}, got)
}

func TestCPUModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpuinfo")
	require.NoError(t, os.WriteFile(file, []byte("processor\t: 0\nmodel name\t: A Fine One 3000\n"), 0o600))
	assert.Equal(t, "A Fine One 3000", cpuModel(file))
	assert.Equal(t, "unknown processor", cpuModel(file+".none"))
}

// All sections are named once, and in the order of the tables.
func TestSections(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sections {
		assert.False(t, seen[s.name], s.name)
		seen[s.name] = true
		assert.NotNil(t, s.write)
		assert.NotEmpty(t, s.title)
	}
}
