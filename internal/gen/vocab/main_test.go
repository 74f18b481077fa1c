package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files that package bpe embeds are the generator's output, byte for byte.
func Test_build(t *testing.T) {
	for _, v := range vocabularies {
		got, err := build(v.ranks, v.sha256)
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join("..", "..", "bpe", v.file))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got), "%s is out of date: go -C internal/gen run ./vocab", v.file)

		_, err = build(v.ranks, "00")
		assert.ErrorContains(t, err, "sha256")
	}
	_, err := build("none.tiktoken", "")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func Test_parse(t *testing.T) {
	got, err := parse([]byte("IQ== 0\nIg== 1\n"))
	require.NoError(t, err)
	assert.Equal(t, []string{"!", "\""}, got)
	for _, bad := range []string{"IQ== 1\n", "IQ==\n", "!! 0\n", "IQ== x\n"} {
		_, err := parse([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func Test_pack(t *testing.T) {
	var tokens []string
	for b := range 256 {
		tokens = append(tokens, string([]byte{byte(b)}))
	}
	got, err := pack(append(tokens, "ab", "abc"))
	require.NoError(t, err)
	assert.Equal(t, []byte{2, 1, 0, 0}, got[:4])
	assert.Equal(t, []byte{'a', 'b'}, got[4+256:][:2])
	// 256 and 'c' in 9 bits each, then 8 zeros
	assert.Equal(t, []byte{0, 'c'<<1 | 1, 0}, got[4+256+2:][:3])
	assert.Len(t, got, 4+256+2+3+8)

	for name, bad := range map[string][]string{
		"too few":       tokens[:255],
		"twice":         append(tokens[:256:256], "ab", "ab"),
		"long early":    append([]string{"ab"}, tokens[:255]...),
		"never reached": append(tokens[:256:256], "abc"),
	} {
		_, err := pack(bad)
		assert.Error(t, err, name)
	}
}

func Test_split(t *testing.T) {
	ranks := map[string]int{"a": 0, "b": 1, "c": 2, "bc": 3, "ab": 4, "abc": 5}
	left, right, ok := split("abc", ranks)
	assert.True(t, ok)
	assert.Equal(t, []int{0, 3}, []int{left, right}, "bc merges before ab")
}
