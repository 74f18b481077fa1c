package ranges_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/ranges"
)

type id int64

type span struct {
	First id `json:"first"`
	Last  id `json:"last"`
}

// some returns some of the IDs from 1 to 20, in order.
func some(rng *rand.Rand) (ids []id) {
	for i := id(1); i <= 20; i++ {
		if rng.IntN(2) == 0 {
			ids = append(ids, i)
		}
	}
	return ids
}

// without returns the IDs that are not among others.
func without(ids, others []id) []id {
	return slices.DeleteFunc(slices.Clone(ids), func(i id) bool { return slices.Contains(others, i) })
}

func TestRanges_AsSets(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a, b := some(rng), some(rng)
		x, y := ranges.Of[span](a), ranges.Of[span](b)
		require.True(t, ranges.Ascend(x, 20), "seed %d", seed)
		left := ranges.Minus(x, y)
		for i := id(1); i <= 20; i++ {
			require.Equal(t, slices.Contains(a, i), ranges.Has(x, i), "seed %d, ID %d", seed, i)
			require.Equal(t, slices.Contains(without(a, b), i), ranges.Has(left, i), "seed %d, ID %d", seed, i)
			found, ok := ranges.Find(x, i)
			require.Equal(t, slices.Contains(a, i), ok, "seed %d, ID %d", seed, i)
			require.Equal(t, ok, ok && found.First <= i && i <= found.Last, "seed %d, ID %d", seed, i)
		}
		require.Equal(t, without(a, without(a, b)), ranges.Within(a, y), "seed %d", seed)
		mixed := slices.Clone(y)
		rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		ranges.Sort(mixed)
		require.Equal(t, y, mixed, "seed %d", seed)
		both := slices.Concat(a, without(b, a))
		slices.Sort(both)
		require.Equal(t, both, append([]id(nil), ranges.Merge(a, b, func(i id) id { return i })...), "seed %d", seed)
	}
}

func TestOf(t *testing.T) {
	assert.Nil(t, ranges.Of[span]([]id{}))
	assert.Equal(t, []span{{2, 4}, {6, 6}}, ranges.Of[span]([]id{2, 3, 4, 6}))
}

func TestIn_Overlapping(t *testing.T) {
	in := ranges.In([]span{{2, 9}, {3, 4}, {12, 12}})
	for i, want := range map[id]bool{1: false, 2: true, 9: true, 10: false, 12: true, 13: false} {
		assert.Equal(t, want, ranges.Has([]span{{2, 9}, {3, 4}, {12, 12}}, i))
	}
	for i := id(1); i < 14; i++ {
		assert.Equal(t, 2 <= i && i <= 9 || i == 12, in(i), "ID %d", i)
	}
}

func TestMerge(t *testing.T) {
	type item struct {
		id   id
		from string
	}
	list := func(from string, ids ...id) (all []item) {
		for _, n := range ids {
			all = append(all, item{n, from})
		}
		return all
	}
	for _, c := range []struct{ a, b, want []item }{
		{nil, nil, []item{}},
		{list("a", 1, 3), nil, list("a", 1, 3)},
		{nil, list("b", 2), list("b", 2)},
		{list("a", 1, 3, 5), list("b", 2, 3, 6), []item{{1, "a"}, {2, "b"}, {3, "b"}, {5, "a"}, {6, "b"}}},
	} {
		assert.Equal(t, c.want, ranges.Merge(c.a, c.b, func(i item) id { return i.id }))
	}
}

func TestAscend(t *testing.T) {
	for _, c := range []struct {
		list []span
		want bool
	}{
		{nil, true}, {[]span{{1, 1}, {2, 9}}, true}, {[]span{{1, 10}}, false}, {[]span{{0, 1}}, false},
		{[]span{{3, 2}}, false}, {[]span{{1, 3}, {3, 4}}, false},
	} {
		assert.Equal(t, c.want, ranges.Ascend(c.list, 9), "%v", c.list)
	}
}

func TestJoin(t *testing.T) {
	isEmpty := func(first, last id) bool { return first > last || first > 5 } // there is nothing above 5
	for _, c := range []struct{ list, want []span }{
		{nil, nil},
		{[]span{{1, 2}, {4, 4}}, []span{{1, 2}, {4, 4}}},
		{[]span{{1, 2}, {3, 4}}, []span{{1, 4}}},
		{[]span{{1, 4}, {2, 3}, {4, 5}}, []span{{1, 5}}},
		{[]span{{1, 5}, {8, 9}, {20, 20}}, []span{{1, 20}}},
	} {
		was := slices.Clone(c.list)
		assert.Equal(t, c.want, ranges.Join(c.list, isEmpty), "%v", was)
		assert.Equal(t, was, c.list)
	}
}

func TestTexts(t *testing.T) {
	assert.Equal(t, []string{"3-9", "12"}, ranges.Texts([]span{{3, 9}, {12, 12}}))
}
