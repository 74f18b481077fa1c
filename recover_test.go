package convo_test

import (
	"context"
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

// A nil cause and a call from inside a compaction are refused, whatever else
// would speak for sending again.
func TestRecover_Refuses(t *testing.T) {
	opts := windowOf(4000, convo.Truncate{})
	opts.IsOverflow = func(error) bool { return true }
	h := toolTurn(t, opts, 20)
	unchanged(t, h, func() {
		retry, _, err := h.Recover(t.Context(), h.Snapshot(), nil)
		assert.False(t, retry)
		_, is := errors.AsType[*convo.ValueError](err)
		assert.True(t, is, "%v", err)
	})

	var sent *convo.Snapshot
	called := false
	h = toolTurn(t, windowOf(4000, convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		called = true
		retry, r, err := h.Recover(ctx, sent, errors.New("prompt is too long"))
		assert.False(t, retry)
		assert.False(t, r.Fits)
		assert.ErrorIs(t, err, convo.ErrReentrant)
		return convo.Edit{}, nil
	})), 20)
	mustAppend(t, h, convo.User("more"))
	sent = h.Snapshot()
	_, err := h.Rewind(1)
	require.NoError(t, err)
	_, err = h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	assert.True(t, called)
}
