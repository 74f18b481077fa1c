package convo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFileStore_List(t *testing.T) {
	s := &FileStore{Dir: t.TempDir()}
	for range s.List(t.Context(), "") {
		t.Fatal("nothing to list")
	}
	want := map[string]Head{}
	for i, key := range []string{"trip a", "trip b", "Trip c", "trip d", "other"} {
		log := fill(t, s, key, 1+(i*3)%5)
		want[key] = log.newest().Head
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "notes.txt"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, fileName("empty")), nil, 0o600))
	keys := func(prefix string) (keys []string) {
		for h, err := range s.List(t.Context(), prefix) {
			require.NoError(t, err)
			assert.Equal(t, want[h.Key], h)
			keys = append(keys, h.Key)
		}
		return keys
	}
	assert.Equal(t, []string{"trip d", "trip b", "other", "Trip c", "trip a"}, keys("")[:5])
	assert.Equal(t, []string{"trip d", "trip b", "trip a"}, keys("trip"))
	assert.Empty(t, keys("trip a long prefix of more than 24 bytes"))
	for range s.List(t.Context(), "") {
		break
	}
	// A damaged log does not hide the others.
	path := filepath.Join(s.Dir, fileName("trip b"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)-5] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))
	require.NoError(t, os.Rename(filepath.Join(s.Dir, fileName("other")), filepath.Join(s.Dir, fileName("moved"))))
	var damaged, good []string
	for h, err := range s.List(t.Context(), "") {
		if err == nil {
			good = append(good, h.Key)
			continue
		}
		damage, ok := errors.AsType[*DamageError](err)
		require.True(t, ok, "%v", err)
		damaged = append(damaged, damage.Key)
	}
	assert.ElementsMatch(t, []string{"trip d", "Trip c", "trip a"}, good)
	assert.ElementsMatch(t, []string{fileName("trip b"), "other"}, damaged)
}
