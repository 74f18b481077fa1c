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

// The sides take turns, each is first as often as the other, and the least figures count.
func TestRace(t *testing.T) {
	var order string
	side := func(name string) measure.Cell {
		return peer.Case{Max: 1, New: func(int) (func(int) error, error) {
			return func(int) error { order += name; return nil }, nil
		}}
	}
	least, rounds, err := race([2]measure.Cell{side("a"), side("b")}, time.Nanosecond)
	require.NoError(t, err)
	assert.Equal(t, 5, rounds)
	assert.Equal(t, "ab"+"ab"+"ba"+"ab"+"ba"+"ab", order, "one round each to fit, then five")
	assert.Less(t, least[0].NS, 1e6)

	boom := errors.New("boom")
	bad := peer.Case{New: func(int) (func(int) error, error) { return nil, boom }}
	_, _, err = race([2]measure.Cell{bad, side("b")}, time.Nanosecond)
	assert.ErrorIs(t, err, boom)
}

// A row that a side does not have is left out of the table.
func TestWrite_MissingRow(t *testing.T) {
	var out strings.Builder
	require.NoError(t, write(&out, [2]string{t.TempDir(), t.TempDir()}, []string{"none"}, time.Nanosecond))
	assert.NotContains(t, out.String(), "none")
	assert.Contains(t, out.String(), "| row | base | head |")
}
