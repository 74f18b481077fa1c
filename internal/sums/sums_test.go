package sums

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSum(t *testing.T) {
	var s Sum
	for range 5 {
		s.Add(math.MaxInt64)
	}
	s.Add(7)
	assert.Equal(t, int64(math.MaxInt64), s.Int64())
	for range 5 {
		s.Add(-math.MaxInt64)
	}
	assert.Equal(t, int64(7), s.Int64())
}

func TestOver(t *testing.T) {
	assert.Zero(t, Over(nil, func(s string) int64 { return 1 }))
	assert.Equal(t, int64(5), Over([]string{"ab", "", "cde"}, func(s string) int64 { return int64(len(s)) }))
}

func TestDivide(t *testing.T) {
	assert.Equal(t, []int64{3, 3, 4}, Divide(10, 1, 1, 1), "what is left goes to the later ones")
	assert.Equal(t, []int64{0, 7, 0, 0}, Divide(7, 0, 5, 0, 0))
	assert.Equal(t, []int64{0, 0}, Divide(7, 0, 0))
	assert.Equal(t, []int64{math.MaxInt64 / 2, math.MaxInt64/2 + 1}, Divide(math.MaxInt64, 9, 9))
}
