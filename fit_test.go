package convo_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestFit_Window(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	total := h.Status().Upper

	res, r, err := h.Fit(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.NotNeeded, r.Outcome, "room enough")
	assert.Equal(t, 1000, res.Tokens())
	assert.Equal(t, total, h.Status().Upper)
	assert.Equal(t, 3000, h.Status().Limit, "the limit is lower until Release")
	assert.Equal(t, 3000, h.Status().High)

	second, r, err := h.Fit(t.Context(), 2000)
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, convo.ReasonFit, r.Reason)
	assert.LessOrEqual(t, h.Status().Upper, 1000, "further than low water, where n needs it")
	assert.Equal(t, 1000, h.Status().Limit)

	res.Release()
	res.Release()
	assert.Equal(t, 2000, h.Status().Limit)
	second.Release()
	assert.Equal(t, 4000, h.Status().Limit)

	// To low water, not just as far as n needs.
	h = toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	_, r, err = h.Fit(t.Context(), 4000-total+1)
	require.NoError(t, err)
	assert.LessOrEqual(t, r.TokensAfter, 2000)
}

func TestFit_Fails(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	unchanged(t, h, func() {
		for _, tt := range []struct {
			n     int
			check func(error)
		}{
			{-1, func(err error) {
				var v *convo.ValueError
				require.ErrorAs(t, err, &v)
				assert.Equal(t, "Fit", v.Name)
			}},
			{3990, func(err error) {
				var floor *convo.FloorError
				require.ErrorAs(t, err, &floor)
				assert.Equal(t, 20, floor.Floor)
				assert.Equal(t, 3990, floor.Room)
				assert.Equal(t, 4000, floor.Limit)
				assert.ErrorContains(t, err, "floor of 20 tokens, with 3990 to be kept free, above the limit of 4000")
			}},
		} {
			res, r, err := h.Fit(t.Context(), tt.n)
			assert.Nil(t, res)
			assert.Equal(t, convo.Failed, r.Outcome)
			tt.check(err)
		}
	})

	// A strategy that frees too little: nothing is deleted, nothing reserved.
	timid := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{3, 4}}, nil
	})
	h = toolTurn(t, windowOf(4000, timid), 20)
	unchanged(t, h, func() {
		_, _, err := h.Fit(t.Context(), 3000)
		var limit *convo.LimitError
		require.ErrorAs(t, err, &limit)
		assert.Equal(t, 1000, limit.Limit)
	})
	var none *convo.Reservation
	none.Release() // of a Fit that failed
}

func TestFit_NoLimit(t *testing.T) {
	h := tour(t, nil)
	res, r, err := h.Fit(t.Context(), 1<<30)
	require.NoError(t, err)
	assert.Equal(t, convo.NotNeeded, r.Outcome)
	res.Release()
}

func TestFit_Budget(t *testing.T) {
	pool := convo.NewBudget(5000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	charge := pool.Used()

	res, r, err := h.Fit(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.NotNeeded, r.Outcome)
	assert.Equal(t, charge+1000, pool.Used())
	assert.Zero(t, h.Status().Limit, "out of the pool, not of the window")

	other, err := pool.Reserve(1000)
	require.NoError(t, err)
	big, r, err := h.Fit(t.Context(), 2000)
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, 4000+h.Status().Upper, pool.Used())
	assert.LessOrEqual(t, pool.Used(), 5000)

	// The pool is too small for floor and n, whatever this History gives up.
	unchanged(t, h, func() {
		_, _, err := h.Fit(t.Context(), 2500)
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
	})
	big.Release()
	other.Release()
	res.Release()
	require.NoError(t, h.Close())
	assert.Zero(t, pool.Used())
}

func TestRecover(t *testing.T) {
	tooLong := errors.New(`400: {"error":{"message":"prompt is too long: 203000 tokens > 200000 maximum"}}`)
	h := toolTurn(t, windowOf(50_000, convo.Truncate{}), 20)
	at := h.Snapshot()

	unchanged(t, h, func() {
		other := errors.New("connection reset")
		retry, r, err := h.Recover(t.Context(), at, other)
		assert.False(t, retry)
		assert.Equal(t, convo.NotNeeded, r.Outcome)
		assert.Same(t, other, err, "what is not about length comes back as it is")
		retry, _, err = h.Recover(t.Context(), at, nil)
		assert.False(t, retry)
		require.NoError(t, err)

		for _, foreign := range []*convo.Snapshot{nil, new(convo.Snapshot), tour(t, nil).Snapshot()} {
			retry, r, err = h.Recover(t.Context(), foreign, tooLong)
			assert.False(t, retry)
			require.ErrorIs(t, err, convo.ErrStale)
			require.ErrorIs(t, err, tooLong)
			assert.Equal(t, convo.Failed, r.Outcome)
		}
	})

	retry, r, err := h.Recover(t.Context(), at, tooLong)
	require.NoError(t, err)
	assert.True(t, retry)
	assert.Equal(t, convo.Applied, r.Outcome)
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

// Somebody else has made room meanwhile: a retry makes sense at once.
func TestRecover_RoomFromElsewhere(t *testing.T) {
	h := toolTurn(t, windowOf(50_000, convo.Truncate{}), 20)
	at := h.Snapshot()
	_, err := h.SplicePrefix(at, 30, "")
	require.NoError(t, err)
	retry, r, err := h.Recover(t.Context(), at, errors.New("context_length_exceeded"))
	require.NoError(t, err)
	assert.True(t, retry)
	assert.Equal(t, convo.NotNeeded, r.Outcome)
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
