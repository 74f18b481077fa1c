package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// A call that a program makes names the program, as its output does, while the program is sent.
func TestResponses_Caller(t *testing.T) {
	const (
		by      = `"caller":{"type":"program","caller_id":"p"}`
		program = `{"type":"program","id":"cm_1","status":"completed","call_id":"p","code":"f()","fingerprint":"x"}`
		call    = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}",` + by + `}`
		output  = `{"type":"function_call_output","call_id":"c","output":"1",` + by + `}`
		ended   = `{"type":"program_output","id":"cmo_1","call_id":"p","result":"1","status":"completed"}`
		direct  = `{"type":"function_call","call_id":"d","name":"f","arguments":"{}","caller":{"type":"direct"}}`
	)
	f := wire.OpenAIResponses{}
	in := mustDecode(t, f, []byte(`{"object":"response","status":"completed","output":[`+program+`,`+call+`,`+direct+`]}`))
	require.Empty(t, in.Lost)
	h := relaxed(t, convo.Overheads{}, convo.User("hi"))
	mustAppend(t, h, in.Messages...)
	for _, c := range in.Messages[0].ToolCalls() {
		mustAppend(t, h, convo.Result(c, "1"))
	}
	e := wire.Encoder{Format: f}
	r := mustEncode(t, &e, h.Snapshot())
	assert.Empty(t, r.Lost)
	assert.Contains(t, string(r.Body()), program+","+call)
	assert.Contains(t, string(r.Body()), output)
	assert.Contains(t, string(r.Body()), `{"type":"function_call_output","call_id":"d","output":"1"}`)
	again := mustDecode(t, f, r.Body())
	assert.Empty(t, again.Lost)
	assert.Equal(t, in.Messages[0].Parts, again.Messages[1].Parts)

	// The user goes on: the program is not sent, and no call names it.
	h2 := relaxed(t, convo.Overheads{}, again.Messages...)
	mustAppend(t, h2, convo.User("stop"))
	r = mustEncode(t, f, h2.Snapshot())
	assert.NotContains(t, string(r.Body()), "caller")
	assert.NotContains(t, string(r.Body()), `"program"`)
	assert.Equal(t, []string{"entry 2, part 0: block", "entry 2, part 1: block"}, listed(r.Lost))

	// The program ends.
	in = mustDecode(t, f, []byte(`{"object":"response","status":"completed","output":[`+ended+`]}`))
	mustAppend(t, h, in.Messages...)
	mustAppend(t, h, convo.User("and?"))
	want, got := mustEncode(t, f, h.Snapshot()), mustEncode(t, &e, h.Snapshot())
	assert.Equal(t, string(want.Body()), string(got.Body()))
	assert.Empty(t, got.Lost)
	assert.Contains(t, string(got.Body()), call)
	assert.Contains(t, string(got.Body()), ended)
	assert.Empty(t, f.Check(got.Body()))
}
