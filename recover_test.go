package convo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecover(t *testing.T) {
	tooLong := errors.New(`400: {"error":{"message":"prompt is too long: 203000 tokens > 200000 maximum"}}`)
	h := toolTurn(t, windowOf(50_000, convo.Truncate{}), 20)
	at := h.Snapshot()

	unchanged(t, h, func() {
		other := errors.New("connection reset")
		retry, r, err := h.Recover(t.Context(), at, other)
		assert.False(t, retry)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
		assert.Same(t, other, err, "what is not about length comes back as it is")
		retry, _, err = h.Recover(t.Context(), at, nil)
		assert.False(t, retry)
		require.EqualError(t, err, "convo: Recover: cause is <nil>, want the error that the provider returned")

		for _, foreign := range []*convo.Snapshot{nil, new(convo.Snapshot), tour(t, nil).Snapshot()} {
			retry, r, err = h.Recover(t.Context(), foreign, tooLong)
			assert.False(t, retry)
			require.ErrorIs(t, err, convo.ErrStale)
			require.ErrorIs(t, err, tooLong)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		}
	})

	retry, r, err := h.Recover(t.Context(), at, tooLong)
	require.NoError(t, err)
	assert.True(t, retry)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonOverflow, r.Reason)
	assert.LessOrEqual(t, h.Snapshot().Tokens(), at.Tokens()/2)

	// It is still too long: once more, though nothing was appended.
	at = h.Snapshot()
	retry, _, err = h.Recover(t.Context(), at, tooLong)
	require.NoError(t, err)
	assert.True(t, retry)
	assert.LessOrEqual(t, h.Snapshot().Tokens(), at.Tokens()/2)

	for retry {
		at = h.Snapshot()
		retry, _, err = h.Recover(t.Context(), at, tooLong)
	}
	require.ErrorIs(t, err, tooLong, "down to the floor: the error says both")
	require.ErrorIs(t, err, convo.ErrNoGain)
	assert.Equal(t, []convo.ID{1, 2, 43}, idsOf(h.Snapshot()))
}

// When another goroutine has made room meanwhile, Recover retries at once.
func TestRecover_RoomFromElsewhere(t *testing.T) {
	h := toolTurn(t, windowOf(50_000, convo.Truncate{}), 20)
	at := h.Snapshot()
	_, err := h.SplicePrefix(at, 30, "")
	require.NoError(t, err)
	retry, r, err := h.Recover(t.Context(), at, errors.New("context_length_exceeded"))
	require.NoError(t, err)
	assert.True(t, retry)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
}

func TestRecover_OwnClassification(t *testing.T) {
	opts := windowOf(50_000, convo.Truncate{})
	opts.IsOverflow = func(err error) bool {
		if strings.Contains(err.Error(), "boom") {
			panic("boom")
		}
		return strings.Contains(err.Error(), "zu lang")
	}
	h := toolTurn(t, opts, 20)
	at := h.Snapshot()
	retry, _, err := h.Recover(t.Context(), at, errors.New("prompt is too long"))
	assert.False(t, retry)
	require.EqualError(t, err, "prompt is too long")
	retry, _, err = h.Recover(t.Context(), at, errors.New("boom"))
	assert.False(t, retry)
	var p *convo.PanicError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, "Options.IsOverflow", p.In)
	retry, _, err = h.Recover(t.Context(), at, errors.New("zu lang"))
	require.NoError(t, err)
	assert.True(t, retry)
}

func TestIsOverflow(t *testing.T) {
	for _, text := range []string{
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
		`{"error":{"code":"context_length_exceeded"}}`,
		"Your input exceeds the context window of this model. Please adjust your input and try again.",
		"prompt is too long: 228307 tokens > 200000 maximum",
		"input length and `max_tokens` exceed context limit: 170636 + 34048 > 200000",
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
		"prompt token count of 130000 exceeds the limit of 128000",
		"Input is too long for requested model.",
		"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
		"Input length (265330) exceeds model's maximum context length (262144).",
		"The input (263000 tokens) is longer than the model's context length (262144 tokens).",
		"Requested token count exceeds the model's maximum context length of 262144 tokens.",
		"the request exceeds the available context size, try increasing it",
		`{"error":{"type":"exceed_context_size_error"}}`,
		"Prompt too long: 5152 tokens exceeds max_seq_len 2048",
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
		"Please reduce the length of the messages or completion.",
		"tokens to keep from the initial prompt is greater than the context length",
		"Prompt contains 300000 tokens, too large for model with 262144 maximum context length",
		"stop reason: model_context_window_exceeded",
	} {
		assert.True(t, convo.IsOverflow(errors.New(text)), text)
	}
	for _, text := range []string{
		"", "connection reset by peer", "invalid api key", "model not found",
		"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
		"ThrottlingException: Too many tokens, please wait before trying again.",
		"429: This request would exceed your organization's rate limit of 30,000 input tokens per minute",
		"You exceeded your current quota",
		"Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
		"max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens",
	} {
		assert.False(t, convo.IsOverflow(errors.New(text)), text)
	}
	assert.False(t, convo.IsOverflow(nil))
}
