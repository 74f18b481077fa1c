package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/wire"
)

// What the provider cleared from a request is read, in a whole answer and in a stream.
func TestAnthropic_AppliedEdits(t *testing.T) {
	const edits = `{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":50000},{"type":"clear_thinking_20251015","cleared_thinking_turns":3,"cleared_input_tokens":"1500"},{"type":"new"},5]}`
	in := mustDecode(t, wire.Anthropic{}, []byte(`{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1},"context_management":`+edits+`}`))
	assert.Equal(t, 51_500, in.Cleared)
	assert.Equal(t, 9, in.Usage.Input)
	require.Len(t, in.Lost, 1)
	assert.Equal(t, "context_management.applied_edits[3]", in.Lost[0].Path)

	s := wire.Anthropic{}.Stream()
	for _, event := range []string{
		`{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2},"context_management":` + edits + `}`,
		`{"type":"message_stop"}`,
	} {
		_, err := s.Event("", []byte(event))
		require.NoError(t, err)
	}
	streamed, err := s.Transcript()
	require.NoError(t, err)
	assert.Equal(t, 51_500, streamed.Cleared)

	in = mustDecode(t, wire.Anthropic{}, []byte(`{"type":"message","role":"assistant","content":[],"context_management":{"applied_edits":[]}}`))
	assert.Zero(t, in.Cleared)
	assert.Empty(t, in.Lost)
}
