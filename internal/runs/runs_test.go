package runs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/runs"
)

const maxID, maxTurn = 1 << 20, 1 << 10

// listOf returns a list with runs of these lengths, with gaps between them, and From in a run.
func listOf(rng *rand.Rand, lengths []int) *runs.List[int64] {
	l := new(runs.List[int64])
	id, turn, from := int64(0), 0, 0
	if len(lengths) > 0 {
		from = rng.IntN(len(lengths))
	}
	for i, n := range lengths {
		id, turn = id+1+rng.Int64N(3), turn+rng.IntN(2)
		if i == from {
			l.From = len(l.Rows)
		}
		for k := range n {
			l.Rows = append(l.Rows, runs.Row[int64]{ID: id, Turn: turn, Key: fmt.Sprint("key ", id), Sum: fingerprint.Sum(rng.Uint64()), Begins: k == 0})
			id++
		}
	}
	return l
}

// read returns the list that is made of what is written of l.
func read(l *runs.List[int64]) (*runs.List[int64], error) {
	out := &runs.List[int64]{Keys: l.Keys, Places: l.Places, Run: l.Run, Sums: l.Sums}
	return out, out.Unpack(maxID, maxTurn)
}

func TestList_PackAndUnpack(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		lengths := make([]int, rng.IntN(6))
		for i := range lengths {
			lengths[i] = 1 + rng.IntN(4)
		}
		l := listOf(rng, lengths)
		l.Pack()
		require.Len(t, l.Places, 3*len(lengths))
		got, err := read(l)
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, l.From, got.From, "seed %d", seed)
		require.Len(t, got.Rows, len(l.Rows))
		for i, x := range l.Rows {
			if i >= l.From && !x.Begins && i+1 < l.Stop(i) {
				x.Key = "" // it is not listed
			}
			require.Equal(t, x, got.Rows[i], "seed %d, row %d", seed, i)
		}
	}
}

func TestList_Places(t *testing.T) {
	l := listOf(rand.New(rand.NewPCG(1, 1)), []int{3, 1, 4})
	assert.Equal(t, int64(l.Rows[7].ID), l.Newest())
	assert.Zero(t, new(runs.List[int64]).Newest())
	for i, want := range []struct{ start, stop int }{{0, 3}, {0, 3}, {0, 3}, {3, 4}, {4, 8}, {4, 8}, {4, 8}, {4, 8}} {
		assert.Equal(t, want.start, l.Start(i))
		assert.Equal(t, want.stop, l.Stop(i))
		at, ok := l.Find(l.Rows[i].ID)
		assert.True(t, ok)
		assert.Equal(t, i, at)
	}
	at, ok := l.Find(l.Newest() + 1)
	assert.False(t, ok)
	assert.Equal(t, 8, at)
}

// Cut leaves From if its row stays, and otherwise moves it to the last run that stays.
func TestList_Cut(t *testing.T) {
	for n := range 9 {
		l := listOf(rand.New(rand.NewPCG(1, 1)), []int{3, 1, 4})
		l.From = 3
		l.Pack()
		last := int64(0)
		if n > 0 {
			last = l.Rows[n-1].ID
		}
		l.Cut(last)
		assert.Len(t, l.Rows, n)
		assert.Len(t, l.Sums, n)
		assert.Equal(t, []int{0, 0, 0, 0, 3, 3, 3, 3, 3}[n], l.From, "%d rows", n)
	}
}

func TestList_UnpackRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *runs.List[int64])
		want   string
	}{
		"no run with the index":  {func(l *runs.List[int64]) { l.Run = 3 }, "from is 3"},
		"an index below zero":    {func(l *runs.List[int64]) { l.Run = -1 }, "from is -1"},
		"a place of two numbers": {func(l *runs.List[int64]) { l.Places, l.Run = l.Places[:8], 0 }, "places has 8 numbers"},
		"an ID twice":            {func(l *runs.List[int64]) { l.Places[3] = 0 }, "does not ascend"},
		"an ID above the last":   {func(l *runs.List[int64]) { l.Places[6] = maxID - 2 }, "does not ascend"},
		"a turn before":          {func(l *runs.List[int64]) { l.Places[4] = -1 }, "does not ascend"},
		"a turn above the last":  {func(l *runs.List[int64]) { l.Places[4] = maxTurn + 1 }, "does not ascend"},
		"an empty run":           {func(l *runs.List[int64]) { l.Places[5] = 0 }, "does not ascend"},
		"rows without sums":      {func(l *runs.List[int64]) { l.Sums = l.Sums[:7] }, "it has no sums"},
		"too few keys":           {func(l *runs.List[int64]) { l.Keys = l.Keys[1:] }, "has no keys"},
		"too many keys":          {func(l *runs.List[int64]) { l.Keys = append(l.Keys, "more") }, "0 sums and 1 keys are of no run"},
		"too many sums":          {func(l *runs.List[int64]) { l.Sums = append(l.Sums, 1) }, "1 sums and 0 keys are of no run"},
	} {
		l := listOf(rand.New(rand.NewPCG(1, 1)), []int{3, 1, 4})
		l.Pack()
		l.Places, l.Keys, l.Sums = slices.Clone(l.Places), slices.Clone(l.Keys), slices.Clone(l.Sums)
		c.change(l)
		_, err := read(l)
		assert.ErrorContains(t, err, c.want, name)
	}
}
