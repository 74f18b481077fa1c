package filestore

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// Prune leaves the lines from a full record on as they are, so that the way from the
// newest to the full ones still leads there.
func TestStore_Prune(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
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

	// Where the newest state is damaged, what is before the damage is not pruned: it is
	// what can be loaded. Damage before the newest full record stays as it is.
	log = fill(t, s, "d", 30)
	path = filepath.Join(s.Dir, fileName("d"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var fulls []int
	for i, r := range log {
		if r.Full {
			fulls = append(fulls, i)
		}
	}
	newest := fulls[len(fulls)-1]
	for _, damaged := range []int{len(log) - 1, newest, newest - 1, fulls[3], fulls[1]} {
		lines := bytes.SplitAfter(bytes.Clone(data), []byte("\n"))
		lines[damaged][30] ^= 1
		changed := bytes.Join(lines, nil)
		require.NoError(t, os.WriteFile(path, changed, 0o600))
		for _, at := range fulls[1:min(len(fulls), 6)] {
			err := s.Prune(t.Context(), "d", log[at].Seq)
			after, readErr := os.ReadFile(path)
			require.NoError(t, readErr)
			switch {
			case damaged >= newest:
				require.True(t, isOfLog(err), "%v", err)
				require.True(t, bytes.Equal(changed, after))
			case damaged == at:
				require.ErrorAs(t, err, new(*convo.ValueError), "it is no full record any more")
			default:
				require.NoError(t, err)
				require.True(t, bytes.Equal(bytes.Join(lines[at:], nil), after), "record %d damaged, pruned before %d", damaged+1, at+1)
			}
			require.NoFileExists(t, path+tmpSuffix)
		}
	}

	require.NoError(t, os.WriteFile(path+tmpSuffix, []byte("left by a crash"), 0o600))
	require.NoError(t, s.Delete(t.Context(), "d"))
	assert.NoFileExists(t, path)
	assert.NoFileExists(t, path+tmpSuffix)
	assert.Empty(t, stored(t, s, "d"))
}
