package convo_test

import (
	"errors"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// When no ID or turn is left, what would need one is refused.
func TestHistory_IDsAndTurnsRunOut(t *testing.T) {
	const (
		user = `{"id":1,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"u"}]}}`
		call = `{"id":2,"turn":1,"message":{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f"}]}}`
		next = `{"id":2,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"v"}]}}`
	)
	read := func(numbers, second string) *convo.Snapshot {
		return snapshotOf(t, `{"version":1,"key":"@bcdefgh",`+numbers+`,"entries":[`+user+`,`+second+`]}`)
	}
	oneLeft := read(`"last":9007199254740991,"turn":1`, call)
	h, err := convo.Restore(oneLeft, nil)
	require.NoError(t, err)
	unchanged(t, h, func() {
		_, err := h.Append(convo.Result(toolC, "r"), convo.Assistant("a"))
		require.EqualError(t, err, "convo: ID is 9007199254740993, want at most 9007199254740992; begin another conversation")
	})
	assert.Equal(t, convo.ID(1<<53), mustAppend(t, h, convo.Result(toolC, "r")), "the last one")
	unchanged(t, h, func() {
		_, err := h.Append(convo.Assistant("a"))
		require.Error(t, err)
		require.Error(t, h.SetSystem(convo.System("s")))
	})
	require.NoError(t, h.SetSystem(), "takes no ID")

	h, err = convo.Restore(read(`"last":9007199254740000,"turn":1073741824`, call), nil)
	require.NoError(t, err)
	mustAppend(t, h, convo.Result(toolC, "r"), convo.Assistant("a"))
	unchanged(t, h, func() {
		_, err := h.Append(convo.User("v"))
		require.EqualError(t, err, "convo: turn is 1,073,741,825, want at most 1,073,741,824; begin another conversation")
	})

	_, err = convo.Restore(oneLeft, &convo.Options{OnLoad: convo.OnLoadClose})
	require.NoError(t, err)
	noneLeft := `"last":9007199254740992,"turn":1`
	h, err = convo.Restore(read(noneLeft, call), nil)
	require.NoError(t, err)
	unchanged(t, h, func() {
		_, err := h.AnswerOpenCalls("")
		require.Error(t, err)
	})
	assert.Equal(t, 1, h.Status().OpenCalls)
	for name, tt := range map[string]struct {
		second string
		opts   convo.Options
	}{
		"close":  {call, convo.Options{OnLoad: convo.OnLoadClose}},
		"repair": {next, convo.Options{Repair: func(convo.Fault) {}}},
	} {
		_, err = convo.Restore(read(noneLeft, tt.second), &tt.opts)
		wrong, ok := errors.AsType[*convo.SnapshotError](err)
		require.True(t, ok, "%s: %v", name, err)
		assert.Equal(t, -1, wrong.Index)
	}
}
