package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCells(t *testing.T) {
	for _, cell := range library(t.TempDir()).Cells {
		t.Run(cell.Name, func(t *testing.T) {
			for _, n := range []int{1, 3} {
				assert.NoError(t, cell.New(n).Do(5), "n = %d", n)
			}
		})
	}
}
