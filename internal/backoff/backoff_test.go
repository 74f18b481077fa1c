package backoff_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/backoff"
)

func TestBreaker(t *testing.T) {
	var b backoff.Breaker
	assert.False(t, b.IsOpen(0, 10, 50), "no failure")
	down := errors.New("down")
	for i, wait := range []int64{10, 20, 40, 50, 50} {
		b.Trip(int64(100*i), down)
		assert.True(t, b.IsOpen(wait-1, 10, 50), "after failure %d", i)
		assert.False(t, b.IsOpen(wait, 10, 50), "after failure %d", i)
	}
	assert.Equal(t, backoff.Breaker{Failures: 5, Appended: 400, Cause: down}, b)
	assert.Equal(t, backoff.Breaker{Failures: 5, Appended: 400}, b.Saved())

	b.Failures = math.MaxInt32
	b.Trip(1, nil)
	assert.Equal(t, math.MaxInt32, b.Failures)
	assert.True(t, b.IsOpen(1<<53-1, 10, 1<<53))
	assert.False(t, b.IsOpen(1, 0, 0), "at least one token, whatever the bounds are")
}
