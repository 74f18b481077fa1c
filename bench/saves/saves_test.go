package saves

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/turns"
	"github.com/seed-c1b73e60/convo/filestore"
)

// After a row has run, what it has saved can be opened.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	for i, folder := range []string{"/save", "/append"} {
		r := rows(dir)[i]
		t.Run(r.name, func(t *testing.T) {
			require.NoError(t, r.cell(10).(peer.Case).Do(5))
			h, err := turns.Open(&filestore.Store{Dir: dir + folder}, turns.Key)
			require.NoError(t, err)
			assert.Equal(t, 2*15, h.Len())
		})
	}
}

func TestWrite(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Write(&out, true, new(harness.Fleet)))
	assert.Contains(t, out.String(), "### A turn saved, without a sync\n")
	assert.Contains(t, out.String(), "| **convo** Append and Save | ")
	assert.Contains(t, out.String(), "### A turn of each of many conversations\n")
	assert.Contains(t, out.String(), "| bare write | ")
}
