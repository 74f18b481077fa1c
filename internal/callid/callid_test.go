package callid_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo/internal/callid"
)

func TestNew(t *testing.T) {
	assert.Regexp(t, "^call_[A-Z2-7]{16}$", callid.New())
	assert.NotEqual(t, callid.New(), callid.New())
}

func TestOf(t *testing.T) {
	assert.Equal(t, "call_CVW45FWJGVBQMWTE", callid.Of("a", 0))
	assert.NotEqual(t, callid.Of("a", 0), callid.Of("a", 1))
	assert.NotEqual(t, callid.Of("a", 0), callid.Of("b", 0))
}
