package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/seed-c1b73e60/convo/bench/turns"
)

// Every record is there, behind those that were there before.
func TestPut(t *testing.T) {
	dir := t.TempDir()
	c := library(dir).Cells[0].New(10)
	require.NoError(t, c.Do(5))
	require.NoError(t, c.Do(7), "again, from the start")
	op, err := c.New(3)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, op(i))
	}
	copied := dir + "/copy.db"
	require.NoError(t, opened.View(func(tx *bbolt.Tx) error { return tx.CopyFile(copied, 0o600) }))
	db, err := bbolt.Open(copied, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	want, err := turns.Lines(1)
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(turns.Key))
		assert.Equal(t, 13, b.Stats().KeyN)
		_, v := b.Cursor().First()
		assert.InDelta(t, len(want[0]), len(v), 20)
		return nil
	}))
}
