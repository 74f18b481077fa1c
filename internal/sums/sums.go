// Package sums adds numbers whose sum may be larger than an int64.
package sums

import (
	"math"
	"math/bits"
)

// A Sum is a sum of amounts from 0 to MaxInt64 that does not overflow.
type Sum struct{ high, low uint64 }

// Add adds an amount, or with a negative n takes away what was added.
func (s *Sum) Add(n int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(n), 0)
	s.high += carry + uint64(n>>63)
}

// Int64 returns the sum, or MaxInt64 if it is larger.
func (s Sum) Int64() int64 {
	if s.high > 0 {
		return math.MaxInt64
	}
	return int64(min(s.low, math.MaxInt64))
}

// Portion returns n * part / whole, or 0 if whole is 0. No argument is negative, and part is at
// most whole.
func Portion(n, part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(max(n, 0)), uint64(part))
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return int64(quotient)
}
