package pairs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Many calls are found as few are, whatever was answered and opened again.
func TestCalls_Keyed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var list []Call
	for i := range manyCalls + 8 {
		list = append(list, Call{ID: string(rune('a' + i)), Name: string(rune('A' + i%3))})
	}
	var many, few Calls[int]
	many.Begin(1, Of[int](list))
	few.Begin(1, Of[int](list))
	require.NotNil(t, many.keyed)
	few.keyed = nil
	var answered []int
	for range 10_000 {
		id, name := "", ""
		switch r.IntN(3) {
		case 0:
			id = string(rune('a' + r.IntN(manyCalls+9)))
		case 1:
			name = string(rune('A' + r.IntN(4)))
		}
		i, err := many.Find(id, name)
		j, want := few.Find(id, name)
		require.Equal(t, want, err)
		require.Equal(t, j, i)
		for n := range 5 {
			require.Equal(t, few.hasOpen("A", n), many.hasOpen("A", n))
		}
		if err == nil {
			many.Answer(i)
			few.Answer(i)
			answered = append(answered, i)
		}
		if err != nil || r.IntN(8) == 0 {
			n := len(answered) - r.IntN(len(answered)+1)
			many.Reopen(answered[n:])
			few.Reopen(answered[n:])
			answered = slices.Clip(answered[:n])
		}
		require.Equal(t, few.Open(), many.Open())
	}
}
