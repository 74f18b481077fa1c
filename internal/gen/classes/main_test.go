package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The file that package bpe embeds is the generator's output, byte for byte.
func Test_build(t *testing.T) {
	got, err := build()
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join("..", "..", "bpe", "classes.bin"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "out of date: go -C internal/gen run ./classes")
}

func Test_parse(t *testing.T) {
	got, err := parse([]byte("# head\n\n0041..0042 Lu # A and B\n0061 Ll\n0042 Z\n"))
	require.NoError(t, err)
	assert.Equal(t, []byte{0, letter | front, letter | front | space, 0}, got[0x40:0x44])
	assert.EqualValues(t, letter|back, got['a'])
	for _, bad := range []string{"41..40 Lu", "41 Xx", "41", "x Lu", "41..y Lu", "110000 Lu"} {
		_, err := parse([]byte(bad))
		assert.Error(t, err, bad)
	}
}
