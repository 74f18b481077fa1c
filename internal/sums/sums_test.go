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
