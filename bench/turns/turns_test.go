package turns

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// Each record holds one turn, and each line a record.
func TestLines(t *testing.T) {
	list, err := Records(20)
	require.NoError(t, err)
	lines, err := Lines(20)
	require.NoError(t, err)
	require.Len(t, list, 20)
	require.Len(t, lines, 20)
	for i, r := range list {
		assert.Equal(t, i == 0, r.Full)
		assert.Equal(t, 2*(i+1), r.Entries)
		assert.InEpsilon(t, 2*(i+1)*peer.PerMessage, r.Tokens, 0.2)
		assert.Greater(t, len(r.Data), 2*len(peer.Text))
		assert.Greater(t, len(lines[i]), len(r.Data)-len(list[0].Data)/4)
		assert.Less(t, len(lines[i]), 2*2*len(peer.Text))
	}
}
