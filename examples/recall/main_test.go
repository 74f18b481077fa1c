package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	run(&out)
	assert.Contains(t, out.String(), "is the name still in the view? false")
	assert.Contains(t, out.String(), "does the summary name the tool? true")
	assert.Contains(t, out.String(), "model: Carla Cole did.")
}
