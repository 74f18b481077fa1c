package long_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/long"
)

func TestOn(t *testing.T) {
	for value, on := range map[string]bool{"1": true, "": false, "0": false, "true": false} {
		t.Setenv("CONVO_LONG", value)
		assert.Equal(t, on, long.On(), "CONVO_LONG=%q", value)
		assert.Equal(t, map[bool]int{false: 10, true: 1000}[on], long.Or(10, 1000), "CONVO_LONG=%q", value)
		ran := false
		t.Run("only", func(t *testing.T) {
			long.Only(t, "takes a minute")
			ran = true
		})
		assert.Equal(t, on, ran, "CONVO_LONG=%q", value)
	}
}
