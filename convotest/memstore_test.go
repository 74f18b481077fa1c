package convotest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// recordOf returns a record with a Seq, after that with the Seq before it, if there is one.
func recordOf(seq uint64, full bool) convo.Record {
	r := convo.Record{LogInfo: convo.LogInfo{Key: "a", Seq: seq}, ID: fmt.Sprintf("%026d", seq), Full: full, Format: 1, Data: []byte("x")}
	if seq > 1 {
		r.Prev = fmt.Sprintf("%026d", seq-1)
	}
	return r
}

// A loop over Records shows the log as it was when the loop began.
func TestMemStore_LoopShowsTheLogAsItWas(t *testing.T) {
	var s convotest.MemStore
	log := []convo.Record{recordOf(1, true), recordOf(2, false), recordOf(3, true)}
	for _, r := range log {
		require.NoError(t, s.Append(t.Context(), r))
	}
	records := func() (got []convo.Record) {
		for r, err := range s.Records(t.Context(), "a", 1) {
			require.NoError(t, err)
			if r.Seq == 1 {
				require.NoError(t, s.Append(t.Context(), recordOf(4, false)))
				require.NoError(t, s.Prune(t.Context(), "a", 3))
			}
			got = append(got, r)
		}
		return got
	}
	require.Equal(t, log, records())
	require.Len(t, records(), 2)
}

func TestMemStore_KeepsNothingOfWhatWasPruned(t *testing.T) {
	var s convotest.MemStore
	text := strings.Repeat("word and ", 10_000)
	memory := weak.Make(unsafe.StringData(text))
	r := recordOf(1, true)
	r.Title = text[:100]
	require.NoError(t, s.Append(t.Context(), r))
	require.NoError(t, s.Append(t.Context(), recordOf(2, true)))
	r.Title, text = "", ""
	require.NoError(t, s.Prune(t.Context(), "a", 2))
	runtime.GC()
	runtime.GC()
	require.Nil(t, memory.Value())
	require.Equal(t, "memory store(1 log)", s.String())
}

// A Prune that finds removed what it was to remove has nothing to do.
func TestMemStore_PruneThatComesTooLate(t *testing.T) {
	var s convotest.MemStore
	for _, r := range []convo.Record{recordOf(1, true), recordOf(2, false), recordOf(3, true)} {
		require.NoError(t, s.Append(t.Context(), r))
	}
	require.NoError(t, s.Prune(t.Context(), "a", 3))
	require.NoError(t, s.Prune(t.Context(), "a", 2))
	require.NoError(t, s.Delete(t.Context(), "a"))
	require.NoError(t, s.Prune(t.Context(), "a", 3))
}
