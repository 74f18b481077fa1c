package convo

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Prune leaves the lines from a full record on as they are, so that the way from the
// newest to the full ones still leads there.
func TestFileStore_Prune(t *testing.T) {
	s := &FileStore{Dir: t.TempDir()}
	log := fill(t, s, "k", 40)
	path := filepath.Join(s.Dir, fileName("k"))
	require.NoError(t, os.WriteFile(path+tmpSuffix, []byte("left by a crash"), 0o600))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, r := range log {
		if !r.Full {
			assert.Error(t, s.Prune(t.Context(), "k", r.Seq))
			continue
		}
		require.NoError(t, s.Prune(t.Context(), "k", r.Seq))
		log, _ = log.pruned(r.Seq)
		require.Equal(t, log, stored(t, s, "k"))
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.HasSuffix(before, after))
		assert.NoFileExists(t, path+tmpSuffix)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, log.newest().Updated, info.ModTime().UTC(), "a Prune is no update")
	}
	require.NoError(t, s.Append(t.Context(), log.next(rand.New(rand.NewPCG(8, 8)), "k")))

	// What stands before damage is not pruned: it is what can be loaded.
	log = fill(t, s, "d", 30)
	path = filepath.Join(s.Dir, fileName("d"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[20][30] ^= 1
	data = bytes.Join(lines, nil)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	at := uint64(0)
	for _, r := range log[1:18] {
		if r.Full {
			at = r.Seq
		}
	}
	assert.True(t, isOfLog(s.Prune(t.Context(), "d", at)))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, data, after)
	assert.NoFileExists(t, path+tmpSuffix)

	require.NoError(t, os.WriteFile(path+tmpSuffix, []byte("left by a crash"), 0o600))
	require.NoError(t, s.Delete(t.Context(), "d"))
	assert.NoFileExists(t, path)
	assert.NoFileExists(t, path+tmpSuffix)
	assert.Empty(t, stored(t, s, "d"))
}
