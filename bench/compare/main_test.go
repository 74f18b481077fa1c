package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// The sides take turns, twice or more, and each is first as often as the other.
func TestRace(t *testing.T) {
	var order string
	side := func(name string) measure.Cell {
		return peer.Case{Max: 1, New: func(int) (func(int) error, error) {
			return func(int) error { order += name; return nil }, nil
		}}
	}
	var seen []int
	require.NoError(t, race([2]measure.Cell{side("a"), side("b")}, time.Nanosecond, func(i int, f peer.Figures) { seen = append(seen, i) }))
	assert.Equal(t, "abab"+"ab"+"ba", order, "two rounds each to fit, then two")
	assert.Equal(t, []int{0, 1, 1, 0}, seen)

	boom := errors.New("boom")
	bad := peer.Case{New: func(int) (func(int) error, error) { return nil, boom }}
	assert.ErrorIs(t, race([2]measure.Cell{bad, side("b")}, time.Nanosecond, nil), boom)
}

// A row that a side does not have is left out of the table.
func TestWrite_MissingRow(t *testing.T) {
	var out strings.Builder
	require.NoError(t, write(&out, [2]string{t.TempDir(), t.TempDir()}, []string{"none"}, time.Nanosecond))
	assert.NotContains(t, out.String(), "none")
	assert.Contains(t, out.String(), "| row | base | head |")
}
