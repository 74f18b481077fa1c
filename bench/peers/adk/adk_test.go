package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCells(t *testing.T) {
	for _, cell := range library.Cells {
		t.Run(string(cell.Table)+"/"+cell.Name, func(t *testing.T) {
			for _, n := range []int{10, 100} {
				c := cell.New(n)
				assert.NoError(t, c.Do(max(c.Step, 1)*5), "n = %d", n)
			}
		})
	}
}
