package convo_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// What convotest does not check of a MemStore: a loop shows the log as it was.
func TestMemStore_LoopShowsTheLogAsItWas(t *testing.T) {
	var s convo.MemStore
	log := logOf(t, &s, "a", "FPF")
	var got []convo.Record
	for r, err := range s.Records(t.Context(), "a", 1) {
		require.NoError(t, err)
		if r.Seq == 1 {
			moreOf(t, &s, "a", slices.Clone(log), "P")
			require.NoError(t, s.Prune(t.Context(), "a", 3))
		}
		got = append(got, r)
	}
	require.Equal(t, log, got)
	require.Len(t, recordsOf(t, &s, "a"), 2)
}

func TestMemStore_KeepsNothingOfWhatWasPruned(t *testing.T) {
	var s convo.MemStore
	text, w := watch(1 << 16)
	r := convo.Record{Head: convo.Head{Key: "a", Seq: 1}, ID: "aaaaaaaaaaaaaaaaaaaaaaaaaa", Full: true, Format: 1, Data: []byte("x")}
	r.Title = text[:100]
	require.NoError(t, s.Append(t.Context(), r))
	r.Title, r.Seq, r.Prev, r.ID = "", 2, r.ID, "bbbbbbbbbbbbbbbbbbbbbbbbbb"
	require.NoError(t, s.Append(t.Context(), r))
	text = ""
	require.NoError(t, s.Prune(t.Context(), "a", 2))
	require.Zero(t, inMemory([]watched{w}))
	require.Len(t, recordsOf(t, &s, "a"), 1)
}
