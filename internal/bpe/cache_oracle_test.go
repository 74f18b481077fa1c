package bpe_test

import (
	"math/rand/v2"
	"testing"
)

// Pieces that differ in a few bytes only are not taken for each other, however
// many there are: what remembers pieces by a part of them shows here.
func TestOracle_Alike(t *testing.T) {
	forEachOracle(t, func(t *testing.T, o *oracle) {
		rng := rand.New(rand.NewPCG(*oracleSeed, 4))
		letters := func(piece []byte) {
			for i := range piece {
				piece[i] = byte('a' + rng.IntN(26))
			}
		}
		n, bad := amount(0, 2000), 0
		for _, size := range []int{6, 14, 21, 30} {
			piece := make([]byte, size)
			for start := 0; start < size; start += 8 {
				letters(piece)
				for range n {
					letters(piece[start:min(start+8, size)])
					if how := o.differs(t, string(piece)); how != "" && bad < 10 {
						t.Errorf("%s of %q", how, piece)
						bad++
					}
				}
			}
		}
	})
}
