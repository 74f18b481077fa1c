package fingerprint_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// The checks are saved, so they must never change.
func TestChecks_Golden(t *testing.T) {
	var c fingerprint.Checks
	c.Add(1, 0xa84efba51a15c36a)
	c.Add(1<<53, 0x3098cb26fa34d5a5)
	assert.Equal(t, fingerprint.Checks{
		0x18e7c6cc144a9915, 0x1d1f9470410ff844, 0x303cc3de53cbda4, 0xee9b075b2e0ea69,
		0x7959659eaae8e96, 0xd2e423fcee65c3a, 0x1b3daebb4ca9408, 0x1b68608460b0783f,
	}, c, "computed with other software")
}

// Whatever differs besides the unknown places is found, and a single difference has its place.
func TestChecks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		sums := make(map[uint64]fingerprint.Sum)
		for place := uint64(1); len(sums) < 100; place += 1 + rnd.Uint64N(1<<46) {
			sums[place] = fingerprint.Sum(rnd.Uint64())
		}
		places := func() (list []uint64) {
			for p := range sums {
				list = append(list, p)
			}
			rnd.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
			return list
		}()
		of := func(other ...uint64) (c fingerprint.Checks) {
			for p, s := range sums {
				for _, o := range other {
					if p == o {
						s = fingerprint.Sum(rnd.Uint64())
					}
				}
				c.Add(p, s)
			}
			return c
		}
		was := of()
		for known := range fingerprint.MostUnknown + 1 {
			unknown := places[:known]
			equal, at := was.Compare(of(unknown...), unknown...)
			require.True(t, equal, "%d unknown", known)
			require.Zero(t, at)
			equal, at = was.Compare(of(places[:known+1]...), unknown...)
			require.False(t, equal, "%d unknown", known)
			if known < fingerprint.MostUnknown {
				require.Equal(t, places[known], at, "%d unknown", known)
			} else {
				require.Zero(t, at)
			}
			more := known + 2 + rnd.IntN(5)
			equal, at = was.Compare(of(places[:more]...), unknown...)
			require.False(t, equal, "%d unknown", known)
			assert.NotContains(t, sums, at, "two or more differ")
		}
	}
}
