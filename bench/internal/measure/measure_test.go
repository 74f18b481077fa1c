package measure

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

var sink []byte

func TestCells(t *testing.T) {
	effort := Effort{Rounds: 3, Round: time.Millisecond}
	rounds := 0
	var ks []int
	got, err := Cells([]Cell{
		peer.Case{New: func(int) (func(int) error, error) {
			return func(int) error { sink = make([]byte, 1000); return nil }, nil
		}},
		peer.Case{Units: 4, New: func(int) (func(int) error, error) {
			return func(int) error { sink = make([]byte, 1000); return nil }, nil
		}},
		peer.Case{Once: true, Step: 7, New: func(k int) (func(int) error, error) {
			rounds++
			return func(int) error { return nil }, nil
		}},
		peer.Case{Step: 7, Max: 30, New: func(k int) (func(int) error, error) {
			ks = append(ks, k)
			return func(int) error { return nil }, nil
		}},
	}, effort)
	require.NoError(t, err)
	assert.InDelta(t, 1, got[0].Allocs, 0.1)
	assert.InDelta(t, 1024, got[0].Bytes, 100)
	assert.Positive(t, got[0].NS)
	assert.InDelta(t, 0.25, got[1].Allocs, 0.1)
	assert.Equal(t, 1, rounds)
	for _, k := range ks {
		assert.Zero(t, k%7)
		assert.LessOrEqual(t, k, 30)
	}
	assert.GreaterOrEqual(t, len(ks), 4, "one or more rounds to fit, then three")
}

func TestCells_Errors(t *testing.T) {
	boom := errors.New("boom")
	_, err := Cells([]Cell{peer.Case{New: func(int) (func(int) error, error) { return nil, boom }}}, Quick)
	assert.ErrorIs(t, err, boom)
	_, err = Cells([]Cell{peer.Case{New: func(int) (func(int) error, error) { return func(int) error { return boom }, nil }}}, Quick)
	assert.ErrorIs(t, err, boom)
}

func TestFormats(t *testing.T) {
	for want, got := range map[string]string{
		"0 ns": Time(0), "1 ns": Time(1), "2.50 ns": Time(2.5), "12.3 ns": Time(12.34), "999 ns": Time(999), "1.50 µs": Time(1500),
		"2 ms": Time(2e6), "32.3 s": Time(32.3e9),
		"16": Size(16), "1.02k": Size(1024), "34.5G": Size(34.5e9),
		"2×": Ratio(4, 2), "–": Ratio(4, 0),
		"10": Count(10), "1,000": Count(1000), "1,000,000": Count(1_000_000), "-100": Count(-100),
	} {
		assert.Equal(t, want, got)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Table(&b, []string{"a", "b"}, [][]string{{"1", ""}, {"x|y", "2"}}))
	require.NoError(t, Notes(&b, "one", "two"))
	assert.Equal(t, "| a | b |\n|---|---|\n| 1 | – |\n| x\\|y | 2 |\n\n- one\n- two\n\n", b.String())
}

// The cells of a column take turns.
func TestCells_InTurns(t *testing.T) {
	var order string
	cell := func(name string) Cell {
		return peer.Case{Step: 1, Max: 1, New: func(int) (func(int) error, error) {
			return func(int) error { order += name; return nil }, nil
		}}
	}
	_, err := Cells([]Cell{cell("a"), cell("b"), cell("c")}, Effort{Rounds: 3, Round: time.Microsecond})
	require.NoError(t, err)
	assert.Equal(t, "abc"+"abcabcabc", order, "one round to fit, then three")
}
