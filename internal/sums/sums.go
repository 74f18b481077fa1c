// Package sums adds and divides numbers, also those whose sum is larger than an int64.
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

// Over returns the sum of what of returns for each element of a list.
func Over[T any](list []T, of func(T) int64) (n int64) {
	for _, x := range list {
		n += of(x)
	}
	return n
}

// Divide divides n in proportion to amounts, so that the shares sum up to n. No argument is
// negative. If all amounts are 0, so are the shares.
func Divide(n int64, amounts ...int64) []int64 {
	whole, upTo, given := int64(0), int64(0), int64(0)
	for _, a := range amounts {
		whole += a
	}
	shares := make([]int64, len(amounts))
	for i, a := range amounts {
		upTo += a
		shares[i] = Portion(n, upTo, whole) - given
		given += shares[i]
	}
	return shares
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
