package fingerprint_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// The sums are saved, so they must never change.
func TestSum_Golden(t *testing.T) {
	var s fingerprint.Sum
	assert.Equal(t, fingerprint.Sum(0x3098cb26fa34d5a5), s.Uint64(7))
	assert.Equal(t, fingerprint.Sum(0xc0c933306b404e08), s.String(""))
	assert.Equal(t, fingerprint.Sum(0xa84efba51a15c36a), s.String("The quick brown fox jumps over the lazy dog.").Uint64(1).String("a"))
}

// Texts that differ in one bit, in length, in the order or in where one ends and the next
// begins have different sums.
func TestSum_Differs(t *testing.T) {
	seen := make(map[fingerprint.Sum]string)
	add := func(s fingerprint.Sum, of string) {
		was, ok := seen[s]
		assert.False(t, ok, "%q and %q", was, of)
		seen[s] = of
	}
	var zero fingerprint.Sum
	for n := range 70 {
		text := strings.Repeat("x", n)
		add(zero.String(text), text)
		for i := range n {
			for bit := range 8 {
				b := []byte(text)
				b[i] ^= 1 << bit
				add(zero.String(string(b)), string(b))
			}
			if i > 0 {
				add(zero.String(text[:i]).String(text[i:]), text[:i]+"|"+text[i:])
			}
		}
		add(zero.String(strings.Repeat("\x00", n+1)), "zeros")
	}
	for i := range uint64(1000) {
		add(zero.Uint64(i), "number")
		add(zero.Uint64(i).Uint64(i+1), "numbers")
		add(zero.Uint64(i+1).Uint64(i), "numbers")
	}
}

// About half of the bits change with each bit of the input.
func TestSum_Spreads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var changed [64]int
	const tries = 4000
	for range tries {
		b := make([]byte, 1+rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		before := fingerprint.Sum(0).String(string(b))
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		d := before ^ fingerprint.Sum(0).String(string(b))
		for i := range changed {
			changed[i] += int(d >> i & 1)
		}
	}
	for i, n := range changed {
		assert.InDelta(t, tries/2, n, tries/10, "bit %d", i)
	}
}

func BenchmarkSum_String(b *testing.B) {
	text := strings.Repeat("some words ", 40)[:400]
	b.SetBytes(400)
	for b.Loop() {
		fingerprint.Sum(0).String(text)
	}
}
