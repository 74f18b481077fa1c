package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/turns"
)

// Every record is there, behind those that were there before, and nothing waits for the
// disk.
func TestInsert(t *testing.T) {
	c := library(t.TempDir()).Cells[0].New(10)
	require.NoError(t, c.Do(5))
	require.NoError(t, c.Do(7), "again, from the start")
	want, err := turns.Lines(1)
	require.NoError(t, err)
	var count, length, synchronous int
	var mode string
	require.NoError(t, opened.QueryRow("SELECT count(*), (SELECT length(line) FROM records WHERE seq = 1) FROM records").Scan(&count, &length))
	assert.Equal(t, 17, count)
	assert.InDelta(t, len(want[0]), length, 20)
	require.NoError(t, opened.QueryRow("PRAGMA synchronous").Scan(&synchronous))
	assert.Zero(t, synchronous)
	require.NoError(t, opened.QueryRow("PRAGMA journal_mode").Scan(&mode))
	assert.Equal(t, "wal", mode)
	require.NoError(t, opened.Close())
	opened = nil
}
