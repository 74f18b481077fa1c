package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each cell checks the answers that it gets.
func TestCells(t *testing.T) {
	for _, cell := range library.Cells {
		t.Run(cell.Name, func(t *testing.T) {
			for _, n := range []int{10, 100} {
				assert.NoError(t, cell.New(n).Do(5), "n = %d", n)
			}
		})
	}
}
