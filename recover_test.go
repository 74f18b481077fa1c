package convo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
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

// More was appended while Recover ran than it removed.
func TestRecover_MoreThanBefore(t *testing.T) {
	var h *convo.History
	h = toolTurn(t, windowOf(50_000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		_, err := h.Append(convo.User(strings.Repeat("x", 1000)))
		return convo.Edit{Drop: []convo.ID{3, 4}}, err
	})), 20)
	refused := h.Tokens().Upper
	retry, r, err := h.Recover(t.Context(), h.Snapshot(), errors.New("context_length_exceeded"))
	assert.False(t, retry)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	var limit *convo.LimitError
	require.ErrorAs(t, err, &limit)
	assert.Equal(t, convo.LimitError{Need: h.Tokens().Upper, Limit: refused - 1, Compacted: true}, *limit)
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

// tooLongOf is what a provider answers to a request of so many tokens, some of
// them for the answer, when its window has limit tokens.
func tooLongOf(limit, prompt, output int) error {
	return fmt.Errorf("400: This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion).",
		limit, prompt+output, prompt, output)
}

// A limit that the error names lowers the marks, and the size of the prompt
// corrects the estimate, until the limits or the model are set.
func TestRecover_Learns(t *testing.T) {
	h := toolTurn(t, windowOf(4_000, convo.Truncate{}), 20)
	at := h.Snapshot()
	require.Equal(t, 2157, at.Tokens(), "what follows depends on it")

	retry, r, err := h.Recover(t.Context(), at, tooLongOf(2_500, 2_400, 500))
	require.NoError(t, err)
	assert.True(t, retry)
	assert.Equal(t, 2_500, r.NamedLimit, "as the provider said")
	assert.Contains(t, fmt.Sprint(r), "the provider named a limit of 2,500")
	s := h.Status()
	assert.Equal(t, []int{4_000, 2_000, 2_000, 1_000, 1_500, 250}, []int{s.Window, s.Limit, s.High, s.Low, s.Soft, s.MinFree})
	assert.LessOrEqual(t, s.Upper, 1_000, "down to the new low mark")
	assert.InDelta(t, 2_400-2_157, s.Tokens-h.Snapshot().Tokens(), 100, "the estimate has learned the prompt's size")

	for i := range 60 { // and from now on nothing is sent that is larger
		mustAppend(t, h, convo.User(fmt.Sprint("question ", i)), convo.Assistant("a long answer, and a longer one"))
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, r.TokensAfter, 2_000)
		require.Zero(t, r.NamedLimit)
	}
	require.NoError(t, h.SetLimits(convo.Limits{Window: 3_000, Reserve: -1}))
	assert.Equal(t, 3_000, h.Status().Limit)

	for h.Tokens().Upper < 2_000 {
		mustAppend(t, h, convo.User("and"), convo.Assistant("a long answer, and a longer one"))
	}
	at = h.Snapshot()
	size := h.Tokens().Upper
	_, r, err = h.Recover(t.Context(), at, tooLongOf(size-100, size, 0))
	require.NoError(t, err)
	assert.Equal(t, size-100, r.NamedLimit)
	for _, same := range []convo.Limits{{}, {Window: 3_000, Reserve: -1}} {
		require.NoError(t, h.SetModel("", same))
		assert.Equal(t, size-100, h.Status().Limit, "it is as it was")
	}
	require.NoError(t, h.SetModel("another", convo.Limits{}))
	assert.Equal(t, 3_000, h.Status().Limit)

	for h.Tokens().Upper < 2_000 {
		mustAppend(t, h, convo.User("and"), convo.Assistant("a long answer, and a longer one"))
	}
	_, r, err = h.Recover(t.Context(), h.Snapshot(), tooLongOf(1_900, h.Tokens().Upper, 0))
	require.NoError(t, err)
	require.Equal(t, 1_900, r.NamedLimit)
	require.NoError(t, h.SetModel("another", convo.Limits{Window: 3_001, Reserve: -1}))
	assert.Equal(t, 3_001, h.Status().Limit, "other limits of the same model")
}

func TestRecover_LearnsOnlyWhatAgrees(t *testing.T) {
	const size = 2157 // of toolTurn with 20 calls
	for _, tt := range []struct {
		name   string
		limits convo.Limits
		cause  error
		named  int
		learns bool // the size of the prompt
	}{
		{"no numbers", convo.Limits{Window: 4_000, Reserve: -1}, errors.New("context_length_exceeded"), 0, false},
		{"a limit alone", convo.Limits{Window: 4_000, Reserve: -1}, errors.New("Range of input length should be [1, 2000]"), 0, false},
		{"a size more than twice ours", convo.Limits{Window: 4_000, Reserve: -1}, tooLongOf(2_000, 3*size, 0), 0, false},
		{"a size less than half of ours", convo.Limits{Window: 4_000, Reserve: -1}, tooLongOf(1_000, 1_100, 0), 0, false},
		{"a limit that was not exceeded", convo.Limits{Window: 4_000, Reserve: -1}, tooLongOf(3_000, 2_400, 0), 0, true},
		{"a small model that a gateway fell back to", convo.Limits{Window: 4_000, Reserve: -1}, tooLongOf(1_000, 2_400, 0), 0, true},
		{"an answer as large as the window", convo.Limits{Window: 4_000, Reserve: -1}, fmt.Errorf("maximum context length is 2000 tokens, requested 4400 tokens (2400 in the messages, 2000 in the completion)"), 0, true},
		{"the sum alone", convo.Limits{Window: 4_000, Reserve: -1}, errors.New("Your request exceeded model token limit: 2000 (requested: 2500)"), 2_000, false},
		{"above our limit", convo.Limits{Window: 2_350, Reserve: -1}, tooLongOf(2_360, 2_400, 0), 0, true},
		{"the answer's share of the window", convo.Limits{Window: 4_000, Reserve: 400}, tooLongOf(2_000, 2_400, 0), 2_000, true},
		{"no limits until then", convo.Limits{}, tooLongOf(2_000, 2_400, 0), 2_000, true},
		{"High alone", convo.Limits{High: 3_000}, tooLongOf(2_000, 2_400, 0), 2_000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := bare()
			opts.Limits, opts.Strategy = tt.limits, convo.Truncate{}
			opts.IsOverflow = func(error) bool { return true }
			h := toolTurn(t, opts, 20)
			at, before := h.Snapshot(), h.Status()
			_, r, err := h.Recover(t.Context(), at, tt.cause)
			require.NoError(t, err)
			assert.Equal(t, tt.named, r.NamedLimit)
			assert.Equal(t, tt.learns, h.Tokens().Measured != 0)
			s := h.Status()
			if tt.named == 0 {
				assert.Equal(t, []int{before.Limit, before.High, before.Low, before.Soft}, []int{s.Limit, s.High, s.Low, s.Soft})
				return
			}
			limit := tt.named - max(tt.limits.Reserve, 0)*tt.named/max(tt.limits.Window, 1)
			assert.Equal(t, limit, s.Limit)
			assert.Equal(t, []int{limit, limit / 2, limit * 3 / 4}, []int{s.High, s.Low, s.Soft})
			assert.LessOrEqual(t, s.MinFree, s.Soft-s.Low)
		})
	}
}

// That the retry of Do is smaller does not make the limit of a small model one to
// believe, and neither does one that was believed before.
func TestRecover_LearnsNoFallback(t *testing.T) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 10_000, Reserve: 1_000}, Strategy: convo.Truncate{}})
	require.NoError(t, err)
	for h.Status().Tokens < 7_800 {
		mustAppend(t, h, convo.User(strings.Repeat("some words ", 20)), convo.Assistant(strings.Repeat("answer ", 20)))
	}
	mustAppend(t, h, convo.User("the last question"))
	sent := 0
	_, err = h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		sent++
		if s.Tokens() > 2_900 {
			return convo.Reply{}, fmt.Errorf("prompt is too long: %d tokens > 2900 maximum", s.Tokens())
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("fine")}}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, 3, sent, "what follows depends on it")
	assert.Equal(t, 9_000, h.Status().Limit)

	h = toolTurn(t, windowOf(4_000, convo.Truncate{}), 20)
	_, r, err := h.Recover(t.Context(), h.Snapshot(), tooLongOf(2_100, 2_200, 0))
	require.NoError(t, err)
	require.Equal(t, 2_100, r.NamedLimit)
	size := h.Tokens().Upper
	require.Less(t, size, 1_200)
	_, r, _ = h.Recover(t.Context(), h.Snapshot(), tooLongOf(1_100, max(size, 1_150), 0))
	assert.Zero(t, r.NamedLimit)
	assert.Equal(t, 2_100, h.Status().Limit)
}

// A mark that is below the named limit stays where it is.
func TestRecover_LearnsAboveHigh(t *testing.T) {
	opts := windowOf(4_000, convo.Truncate{})
	opts.Limits.High = 1_000
	h := toolTurn(t, opts, 20)
	_, r, err := h.Recover(t.Context(), h.Snapshot(), tooLongOf(2_300, 2_400, 0))
	require.NoError(t, err)
	assert.Equal(t, 2_300, r.NamedLimit)
	s := h.Status()
	assert.Equal(t, []int{2_300, 1_000, 500, 750}, []int{s.Limit, s.High, s.Low, s.Soft})
}

// What is said of a request for another model says nothing about this one.
func TestRecover_LearnsForTheModelOfTheSnapshot(t *testing.T) {
	h := toolTurn(t, windowOf(4_000, convo.Truncate{}), 20)
	at := h.Snapshot()
	require.NoError(t, h.SetModel("another", convo.Limits{}))
	_, r, err := h.Recover(t.Context(), at, tooLongOf(2_000, 2_400, 0))
	require.NoError(t, err)
	assert.Zero(t, r.NamedLimit)
	assert.Equal(t, 4_000, h.Status().Limit)
	assert.Zero(t, h.Tokens().Measured)
}

// What can get no smaller is not sent again: the error says what the provider
// said, and why.
func TestRecover_NothingToRemove(t *testing.T) {
	tooLong := errors.New("prompt is too long")
	h, err := convo.New(windowOf(4_000, convo.Truncate{}))
	require.NoError(t, err)
	retry, r, err := h.Recover(t.Context(), h.Snapshot(), tooLong)
	assert.False(t, retry)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	require.ErrorIs(t, err, tooLong)
	require.EqualError(t, err, "convo: nothing worth removing; the provider said: prompt is too long")

	mustAppend(t, h, convo.System("guide"), convo.User("the one question"))
	unchangedView := h.Snapshot().Messages()
	retry, _, err = h.Recover(t.Context(), h.Snapshot(), tooLong)
	assert.False(t, retry)
	require.ErrorIs(t, err, convo.ErrNoGain)
	require.ErrorIs(t, err, tooLong)
	assert.Equal(t, unchangedView, h.Snapshot().Messages())

	// A named limit that the floor exceeds is a FloorError.
	size := h.Tokens().Upper
	require.NoError(t, h.SetLimits(convo.Limits{Window: size, Reserve: -1}))
	retry, r, err = h.Recover(t.Context(), h.Snapshot(), tooLongOf(size-5, size, 0))
	assert.False(t, retry)
	assert.Equal(t, size-5, r.NamedLimit)
	var floor *convo.FloorError
	require.ErrorAs(t, err, &floor)
	assert.Equal(t, size-5, floor.Limit)
}

func ExampleHistory_Recover_learns() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 8_000, Reserve: 500}})
	if err != nil {
		panic(err)
	}
	for i := range 200 {
		if _, err := h.Append(convo.User(fmt.Sprint("question ", i)), convo.Assistant("an answer of some length, as they come")); err != nil {
			panic(err)
		}
	}
	snap := h.Snapshot()
	tooLong := errors.New("400: prompt is too long: 4500 tokens > 4096 maximum") // a server with a smaller window than we thought
	retry, report, err := h.Recover(context.Background(), snap, tooLong)
	fmt.Println(retry, err, report.NamedLimit)
	fmt.Println(h.Status().Limit, h.Tokens().Upper < 2_000)
	// Output:
	// true <nil> 4096
	// 3840 true
}

// What Recover has learned of the limit is saved, and kept by a Reload of another
// History, until the limits or the model are set, or Open is given other limits.
func TestRecover_LearnedIsSaved(t *testing.T) {
	s := new(shelf)
	opts := windowOf(4_000, convo.Truncate{})
	h := open(t, s, "k", opts)
	for h.Tokens().Upper < 3_500 {
		mustAppend(t, h, convo.User("and"), convo.Assistant("a long answer, and a longer one"))
	}
	save(t, h)
	other := open(t, s, "k", opts)
	size := h.Tokens().Tokens
	_, r, err := h.Recover(t.Context(), h.Snapshot(), tooLongOf(2_500, size, 0))
	require.NoError(t, err)
	require.Equal(t, 2_500, r.NamedLimit)
	save(t, h)
	assert.Equal(t, 2_500, open(t, s, "k", opts).Status().Limit)
	assert.Equal(t, 5_000, open(t, s, "k", windowOf(5_000, nil)).Status().Limit, "other limits than it was learned with")

	mustAppend(t, other, convo.User("one more"))
	takeOver(t, other)
	assert.Equal(t, 2_500, other.Status().Limit)
	save(t, other)
	assert.Equal(t, 2_500, open(t, s, "k", opts).Status().Limit)

	require.NoError(t, other.SetModel("another", convo.Limits{}))
	save(t, other)
	assert.Equal(t, 4_000, open(t, s, "k", opts).Status().Limit)
}

// overQuota is what OpenAI answers to a request that alone exceeds the quota of a minute.
func overQuota(limit, requested int) error {
	return fmt.Errorf("429: Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully.", limit, requested)
}

// A quota that a request exceeds alone lowers the limits, although it is a small part of the
// window, with a warning. It is saved, and lasts until the limits are set. A quota that other
// requests have used up is no overflow.
func TestRecover_Quota(t *testing.T) {
	s, log := new(shelf), new(strings.Builder)
	opts := windowOf(128_000, convo.Truncate{})
	opts.Limits.Reserve = 16_000
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	h := open(t, s, "k", opts)
	for h.Status().Tokens < 38_000 {
		mustAppend(t, h, convo.User(strings.Repeat("some words ", 20)), convo.Assistant(strings.Repeat("answer ", 20)))
	}
	mustAppend(t, h, convo.User("the newest question"))
	at := h.Snapshot()
	unchanged(t, h, func() {
		used := errors.New("429: Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 28000, Requested 5000. Please try again in 6s.")
		retry, _, err := h.Recover(t.Context(), at, used)
		assert.False(t, retry)
		assert.Same(t, used, err)
	})
	retry, r, err := h.Recover(t.Context(), at, overQuota(30_000, at.Tokens()+100))
	require.NoError(t, err)
	assert.True(t, retry)
	assert.Equal(t, 30_000, r.NamedLimit)
	assert.LessOrEqual(t, h.Snapshot().Tokens(), 15_000)
	limit := h.Status().Limit
	assert.Equal(t, 30_000-16_000*30_000/128_000, limit)
	assert.Equal(t, 1, strings.Count(log.String(), fmt.Sprintf("quota=30000 requested=%d limit=%d", at.Tokens()+100, limit)), log)
	assert.Contains(t, log.String(), "level=WARN msg=\"convo: a request alone exceeds what the account may use")

	save(t, h)
	assert.Equal(t, limit, open(t, s, "k", opts).Status().Limit)
	require.NoError(t, h.SetLimits(opts.Limits))
	assert.Equal(t, 112_000, h.Status().Limit)
}

// Some quotas count the tokens that the answer may have. If it has most of them, less of the
// quota is left for the request, and if it exceeds the quota alone, no compaction helps.
func TestRecover_QuotaOfAnswers(t *testing.T) {
	const upper = 2_427 // of toolTurn with 20 calls
	for _, tt := range []struct {
		name             string
		limit, requested int
		want             int // the limit; 0: it is no overflow
	}{
		{"the request alone", 1_500, 2_427, 1_500},
		{"the request with a short answer", 2_100, 2_600, 2_100 * upper / 2_600},
		{"the request with a long answer", 6_000, 7_000, 6_000 * upper / 7_000},
		{"a request that is counted with half as many tokens more", 500, 3_000, 500 * upper / 3_000},
		{"an answer that exceeds the quota alone", 6_000, 8_500, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := toolTurn(t, windowOf(100_000, convo.Truncate{}), 20)
			require.Equal(t, upper, h.Tokens().Upper, "what follows depends on it")
			cause := overQuota(tt.limit, tt.requested)
			retry, _, err := h.Recover(t.Context(), h.Snapshot(), cause)
			if tt.want == 0 {
				assert.False(t, retry)
				assert.Same(t, cause, err)
				assert.Equal(t, 100_000, h.Status().Limit)
				return
			}
			require.NoError(t, err)
			assert.True(t, retry)
			assert.Equal(t, tt.want, h.Status().Limit)

			mustAppend(t, h, convo.User("next"))
			before := h.Snapshot().Messages()
			cause = overQuota(tt.limit, tt.requested)
			retry, _, err = h.Recover(t.Context(), h.Snapshot(), cause)
			assert.False(t, retry, "a shorter request has the same size: it is that of the answer")
			assert.Same(t, cause, err)
			assert.Equal(t, before, h.Snapshot().Messages())
		})
	}
}
