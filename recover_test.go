package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
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

// When another goroutine has already made room, Recover retries at once.
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

// A limit of a small model is not believed because the retry of Do is smaller, nor because
// another limit was believed before.
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

// refuseOnce returns a Send that is refused with a text, and then answers.
func refuseOnce(text string) convo.Send {
	asked := false
	return func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if !asked {
			asked = true
			return convo.Reply{}, errors.New(text)
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
	}
}

// A refuser is a provider that refuses requests in which it finds a text, and names the path.
type refuser struct {
	format  wire.Format
	refuses string // part of what it refuses
	path    func(steps []any) string
	message string // "%s" is the path
	asked   int
	bodies  []string
}

func (r *refuser) send(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	r.asked++
	req, err := r.format.Encode(s)
	if err != nil {
		return convo.Reply{}, err
	}
	body := req.Body()
	r.bodies = append(r.bodies, string(body))
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return convo.Reply{}, err
	}
	if steps := stepsTo(v, r.refuses); steps != nil {
		message := r.message
		if strings.Contains(message, "%s") {
			message = fmt.Sprintf(message, r.path(steps))
		}
		return convo.Reply{}, fmt.Errorf("400 Bad Request: {\"error\":{\"message\":%q}}", message)
	}
	return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
}

// stepsTo returns the names and indexes on the way to the first string that contains a text, or
// nil.
func stepsTo(v any, text string) []any {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, text) {
			return []any{}
		}
	case []any:
		for i, in := range v {
			if steps := stepsTo(in, text); steps != nil {
				return append([]any{i}, steps...)
			}
		}
	case map[string]any:
		for name, in := range v {
			if steps := stepsTo(in, text); steps != nil {
				return append([]any{name}, steps...)
			}
		}
	}
	return nil
}

func dotted(steps []any) string {
	var words []string
	for _, s := range steps {
		words = append(words, fmt.Sprint(s))
	}
	return strings.Join(words, ".")
}

func bracketed(steps []any) string {
	path := ""
	for _, s := range steps {
		if i, ok := s.(int); ok {
			path += fmt.Sprintf("[%d]", i)
		} else if path += "." + s.(string); path[0] == '.' {
			path = path[1:]
		}
	}
	return path
}

// refusers are providers with the grammar of their paths. Converse names paths of another body.
var refusers = map[string]refuser{
	"anthropic": {format: wire.Anthropic{}, path: dotted},
	"chat":      {format: wire.OpenAIChat{}, path: bracketed},
	"responses": {format: wire.OpenAIResponses{}, path: bracketed},
	"gemini":    {format: wire.Gemini{}, path: bracketed},
}

// image returns an image of which no other has the bytes.
func image(name string) convo.Media {
	return convo.NewMedia("image/png", []byte("\x89PNG image "+name))
}

// manyImages is a conversation with images between and in other messages.
func manyImages(t *testing.T, opts *convo.Options) *convo.History {
	if opts == nil {
		opts = &convo.Options{}
	}
	opts.Roles = convo.Relaxed()
	call := callOf("a")
	result := convo.Result(call, "two pictures")
	in := result.ToolResults()[0]
	in.Parts = append(in.Parts, image("in 1"), image("in 2"))
	result.Parts[0] = in
	h := historyOf(t, opts, convo.User("look", image("one")), convo.Assistant("a", call), result, convo.Assistant("seen"),
		convo.User("and", image("two"), convo.Text("and this"), image("three")), convo.Assistant("seen"))
	require.NoError(t, h.SetSystem(convo.System("system")))
	mustAppend(t, h, convo.System("a note"))
	mustAppend(t, h, convo.User("next"), convo.User("more"))
	return h
}

// What a provider refuses at a place is cleared there, and nothing else.
func TestRecover_Place(t *testing.T) {
	for name, r := range refusers {
		for _, bad := range []struct {
			name  string
			image convo.Media
			place convo.RefusedPart
		}{
			{"of a user", image("three"), convo.RefusedPart{ID: 5, Part: 3, Inside: -1}},
			{"in a result", image("in 2"), convo.RefusedPart{ID: 3, Part: 0, Inside: 2}},
		} {
			t.Run(name+" "+bad.name, func(t *testing.T) {
				var told []convo.Report
				h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
				before := h.Snapshot().Messages()
				r := r
				r.refuses, r.message = bad.image.Data, "%s: Could not process image"
				reply, err := h.Do(t.Context(), func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
					assert.Empty(t, told, "it is not proved yet")
					return r.send(ctx, s)
				})
				require.NoError(t, err)
				assert.Equal(t, 2, r.asked)
				require.Len(t, reply.Reports, 1)
				report := reply.Reports[0]
				bad.place.Words = report.Refused[0].Words
				assert.Equal(t, []convo.RefusedPart{bad.place}, report.Refused)
				assert.Contains(t, bad.place.Words, "Could not process image")
				assert.Equal(t, convo.ReasonRefused, report.Reason)
				assert.Equal(t, convo.OutcomeApplied, report.Outcome)
				assert.Equal(t, []convo.ID{bad.place.ID}, report.Rewritten)
				require.Len(t, told, 1)
				assert.Equal(t, report.Refused, told[0].Refused)

				after := h.Snapshot().Messages()
				all := fmt.Sprint(after)
				assert.Contains(t, all, "removed, since the provider refused it")
				assert.Equal(t, 4, countMedia(after))
				require.NoError(t, h.Undo(report))
				restored := h.Snapshot().Messages()
				assert.Equal(t, before, restored[:len(before)])
			})
		}
	}
}

// Code of the provider whose container has expired is cleared, and code of other containers is not.
func TestRecover_ExpiredContainer(t *testing.T) {
	const format = "openai-responses"
	ran := func(id, container string) convo.Opaque {
		return convo.Opaque{Format: format, JSON: fmt.Sprintf(`{"type":"code_interpreter_call","id":%q,"status":"completed","code":"print(1)","container_id":%q,"outputs":[]}`, id, container)}
	}
	origin := convo.Origin{Format: format, Model: "gpt-5"}
	for name, tt := range map[string]struct {
		message string
		others  string // the container of the other code
		cleared int
	}{
		"named":               {"Expected container_id: old.", "new", 2},
		"not named":           {"Container is expired.", "old", 3},
		"not named, one left": {"Container is expired.", "new", 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(parts ...convo.Part) convo.Message {
				return convo.Message{Role: convo.RoleAssistant, Origin: origin, Parts: append(parts, convo.Text("One."))}
			}
			h := historyOf(t, nil, convo.User("run it"), answer(ran("ci_1", "old"), ran("ci_2", "old")), convo.User("again"), answer(ran("ci_3", tt.others)), convo.User("and"))
			r := refuser{format: wire.OpenAIResponses{}, refuses: "ci_1", path: bracketed, message: tt.message}
			reply, err := h.Do(t.Context(), r.send)
			if tt.cleared == 0 {
				require.ErrorContains(t, err, tt.message)
				assert.Empty(t, reply.Reports)
				return
			}
			require.NoError(t, err)
			assert.Len(t, reply.Reports[0].Refused, tt.cleared)
			assert.Equal(t, 3-tt.cleared, strings.Count(r.bodies[1], `"type":"code_interpreter_call"`))
			assert.Contains(t, r.bodies[1], "removed, since the provider refused it")
		})
	}
}

func countMedia(msgs []convo.Message) (n int) {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case convo.Media:
				n++
			case convo.ToolResult:
				n += countMedia([]convo.Message{{Parts: p.Parts}})
			}
		}
	}
	return n
}

// If the provider refuses the request as before, what was cleared is back, and the first error is
// returned.
func TestRecover_PlaceInVain(t *testing.T) {
	for _, again := range []string{"messages.0.content.1: Could not process image", "messages.0.content.1: The image was specified using the image/png media type"} {
		var told []convo.Report
		h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
		before := h.Snapshot()
		first := errors.New("messages.0.content.1: Could not process image")
		asked := 0
		reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			_, _ = wire.Anthropic{}.Encode(before)
			_, _ = wire.Anthropic{}.Encode(s)
			if asked++; asked == 1 {
				return convo.Reply{}, first
			}
			assert.Equal(t, 4, countMedia(s.Messages()))
			return convo.Reply{}, errors.New(again)
		})
		if again == first.Error() {
			assert.Equal(t, first, err)
			assert.Equal(t, before.Messages(), h.Snapshot().Messages())
			for _, r := range slices.Concat(told, reply.Reports) {
				assert.NotEqual(t, convo.OutcomeApplied, r.Outcome)
			}
			require.Len(t, reply.Reports, 1)
			assert.Equal(t, "compaction failed at 1,000 tokens", strings.SplitN(fmt.Sprint(reply.Reports[0]), ":", 2)[0][:17]+" at 1,000 tokens")
		}
		assert.Equal(t, 2, asked)
	}
}

// A failure that says nothing of the place leaves what was cleared, and it is told.
func TestRecover_PlaceThenOther(t *testing.T) {
	for _, other := range []string{"503 Service Unavailable", "connection reset", `{"error":{"type":"overloaded_error","message":"Overloaded"}}`} {
		var told []convo.Report
		h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
		r := refusers["anthropic"]
		r.refuses, r.message = image("two").Data, "%s: Could not process image"
		reply, err := h.Do(t.Context(), func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
			reply, err := r.send(ctx, s)
			if r.asked > 1 {
				err = errors.New(other)
			}
			return reply, err
		})
		require.EqualError(t, err, other)
		assert.Equal(t, 2, r.asked)
		assert.Equal(t, 4, countMedia(h.Snapshot().Messages()))
		require.Len(t, reply.Reports, 1)
		assert.Equal(t, convo.OutcomeApplied, reply.Reports[0].Outcome)
		assert.Len(t, told, 1)
	}
}

// What cannot be found, what is not of the kind that was refused, and what is pinned stays.
func TestRecover_PlaceNotFound(t *testing.T) {
	for _, text := range []string{
		"messages.0.content.0: Could not process image",   // a text
		"messages.99.content.1: Could not process image",  // out of range
		"messages[0].content[1]: Could not process image", // another grammar, and there are five images
		"contents[0].parts[1]: Could not process image",   // the same
		"messages.0.content.1: The PDF specified is password protected.",
		"Could not process image",
		"system.0: Could not process image",
		"messages.0.content.1: Tool reference 'X' not found in available tools",
		"Invalid 'messages[1].tool_calls[0].function.arguments': string too long. Expected a string with maximum length 1048576, but got a string with length 1900000 instead.",
		"rate limit: messages.0.content.1: Could not process image",
	} {
		h := manyImages(t, nil)
		cause := errors.New(text)
		unchanged(t, h, func() {
			asked := 0
			_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				asked++
				_, _ = wire.Anthropic{}.Encode(s)
				return convo.Reply{}, cause
			})
			require.Equal(t, cause, err, text)
			assert.Equal(t, 1, asked, text)
		})
	}
	h := manyImages(t, nil)
	require.NoError(t, h.Pin(1))
	cause := errors.New("messages.0.content.1: Could not process image")
	unchanged(t, h, func() {
		_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			_, _ = wire.Anthropic{}.Encode(s)
			return convo.Reply{}, cause
		})
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "Unpin it first")
		wrong, ok := errors.AsType[*convo.EditError](err)
		require.True(t, ok)
		assert.EqualValues(t, 1, wrong.ID)
	})
	require.NoError(t, h.SetEphemeral(convo.User("now", image("now"))))
	_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		_, _ = wire.OpenAIChat{}.Encode(s)
		return convo.Reply{}, errors.New("messages[7].content[1].image_url: Could not process image")
	})
	require.ErrorContains(t, err, "Could not process image")
}

// After content nothing is cleared, and a request is sent again at most three times.
func TestDo_PlaceRetries(t *testing.T) {
	h := manyImages(t, nil)
	unchanged(t, h, func() {
		_, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			_, _ = wire.Anthropic{}.Encode(s)
			return convo.Reply{Messages: []convo.Message{convo.Assistant("I")}}, errors.New("messages.0.content.1: Could not process image")
		})
		require.EqualError(t, err, "messages.0.content.1: Could not process image")
	})

	// Each image is refused: two are cleared, and the third refusal is returned.
	asked := 0
	reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		asked++
		req, err := wire.Anthropic{}.Encode(s)
		require.NoError(t, err)
		var v any
		require.NoError(t, json.Unmarshal(req.Body(), &v))
		return convo.Reply{}, errors.New(dotted(stepsTo(v, "base64")) + ": Could not process image")
	})
	require.ErrorContains(t, err, "Could not process image")
	assert.Equal(t, 3, asked)
	assert.Len(t, reply.Reports, 2)
	assert.Equal(t, 3, countMedia(h.Snapshot().Messages()))
}

// Arguments become an object that says what was there, and reports, rows and stores know it.
func TestRecover_PlaceSaved(t *testing.T) {
	long := `{"text":"` + strings.Repeat("long ", 300_000) + `"}`
	call := convo.ToolCall{ID: "c1", Name: "write", Arguments: long}
	search := convo.Opaque{Format: "anthropic", JSON: `{"type":"server_tool_use","id":"srvtoolu_0123456789","name":"web_search","input":{"query":"x"}}`}
	found := convo.Opaque{Format: "anthropic", JSON: `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_0123456789","content":[{"type":"web_search_result","encrypted_content":"0123456789abcdef","title":"t","url":"u"}]}`}
	seek := convo.Opaque{Format: "anthropic", JSON: `{"type":"server_tool_use","id":"srvtoolu_seek","name":"tool_search_tool_bm25","input":{"query":"x"}}`}
	sought := convo.Opaque{Format: "anthropic", JSON: `{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_seek","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"mcp_x"}]}}`}
	for name, tt := range map[string]struct {
		format  wire.Format
		message convo.Message
		refusal string
		gone    []string
	}{
		"arguments":               {wire.OpenAIResponses{}, convo.Assistant("a", call), "Invalid 'input[2].arguments': string too long. Expected a string with maximum length 1048576, but got a string with length 1500011 instead.", []string{"long long"}},
		"a block and its partner": {wire.Anthropic{}, convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{search, found, convo.Text("so")}}, "messages.1.content.1.web_search_tool_result.content.0: Invalid `encrypted_content` in `web_search_result` block", []string{"srvtoolu_0123456789"}},
		"a reference":             {wire.Anthropic{}, convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("s"), seek, sought}}, "messages.1.content.1: Tool reference 'mcp_x' not found in available tools", []string{"tool_reference"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store := new(convotest.MemStore)
			key := 0
			opts := func() *convo.Options {
				return &convo.Options{Key: func(convo.Message) string { key++; return fmt.Sprint("k", key) }}
			}
			h, err := convo.Open(ctx, store, "k", opts())
			require.NoError(t, err)
			msgs := []convo.Message{convo.User("go"), tt.message}
			if len(tt.message.ToolCalls()) > 0 {
				msgs = append(msgs, convo.Result(call, "written"))
			}
			msgs = append(msgs, convo.User("next"))
			mustAppend(t, h, msgs...)
			rows := h.Snapshot().Messages()
			shown := func(h *convo.History) string {
				r, err := tt.format.Encode(h.Snapshot())
				require.NoError(t, err)
				return string(r.Body())
			}
			decisions := func(h *convo.History) []byte {
				d, err := h.Decisions()
				require.NoError(t, err)
				return d
			}
			size := len(decisions(h))
			asked := 0
			reply, err := h.Do(ctx, func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				if asked++; asked == 1 {
					_, err := tt.format.Encode(s)
					require.NoError(t, err)
					return convo.Reply{}, errors.New(tt.refusal)
				}
				return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
			})
			require.NoError(t, err)
			require.Len(t, reply.Reports, 1)
			require.NotEmpty(t, reply.Reports[0].Refused)
			assert.NotEmpty(t, reply.Reports[0].Refused[0].Key)
			rows = append(rows, reply.Messages...)
			body := shown(h)
			for _, gone := range tt.gone {
				assert.NotContains(t, body, gone)
			}
			assert.Empty(t, tt.format.(interface{ Check([]byte) []wire.Finding }).Check([]byte(body)))

			saved := decisions(h)
			assert.Less(t, len(saved), size+1500, "the message is not in it")
			d, err := convo.ReadDecisions(saved)
			require.NoError(t, err)
			again, err := convo.Resume(d, rowsOf(rows...), nil)
			require.NoError(t, err)
			assert.Equal(t, body, shown(again))
			assert.Equal(t, string(saved), string(decisions(again)))
			d, err = convo.ReadDecisions(saved)
			require.NoError(t, err)
			changed := slices.Clone(rows)
			changed[1] = convo.Assistant("x")
			_, err = convo.Resume(d, rowsOf(changed...), nil)
			_, ok := errors.AsType[*convo.RowError](err)
			assert.True(t, ok, "%v", err)

			require.NoError(t, h.Save(ctx))
			opened, err := convo.Open(ctx, store, "k", opts())
			require.NoError(t, err)
			assert.Equal(t, body, shown(opened))
			require.NoError(t, h.Undo(reply.Reports[0]))
			for _, gone := range tt.gone {
				assert.Contains(t, shown(h), gone)
			}
		})
	}
}

// A Send that writes the body itself names the places.
func TestPartError(t *testing.T) {
	h := manyImages(t, nil)
	cause := errors.New("no such picture")
	places := []convo.RefusedPart{{ID: 3, Part: 0, Inside: 1}, {ID: 5, Part: 1, Inside: -1}}
	asked := 0
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if asked++; asked == 1 {
			return convo.Reply{}, fmt.Errorf("send: %w", &convo.PartError{Parts: places, Err: cause})
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("yes")}}, nil
	})
	require.NoError(t, err)
	require.Len(t, reply.Reports, 1)
	assert.Len(t, reply.Reports[0].Refused, 2)
	assert.Equal(t, 3, countMedia(h.Snapshot().Messages()))

	for name, p := range map[string]convo.RefusedPart{"an unknown entry": {ID: 99}, "a part": {ID: 1, Part: 9, Inside: -1}, "a part of a result": {ID: 3, Inside: 9}, "a text": {ID: 1, Part: 0, Inside: -1}, "negative": {ID: 1, Part: -1}} {
		unchanged(t, h, func() {
			retry, r, err := h.Recover(t.Context(), h.Snapshot(), &convo.PartError{Parts: []convo.RefusedPart{p}, Err: cause})
			assert.False(t, retry, name)
			require.ErrorIs(t, err, cause, name)
			_, ok := errors.AsType[*convo.EditError](err)
			assert.True(t, ok, "%s: %v", name, err)
			assert.NotEqual(t, convo.OutcomeApplied, r.Outcome)
		})
	}
}

// A PartError that is returned again puts back what it named, and an edit between keeps it and
// tells it.
func TestRecover_PartErrorInVain(t *testing.T) {
	for _, isEdited := range []bool{false, true} {
		var told []convo.Report
		h := manyImages(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }})
		before := h.Snapshot().Messages()
		first := &convo.PartError{Parts: []convo.RefusedPart{{ID: 1, Part: 1, Inside: -1}}, Err: errors.New("no")}
		asked := 0
		reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
			if asked++; asked == 2 && isEdited {
				_, err := h.Apply(s, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
				require.NoError(t, err)
			}
			return convo.Reply{}, first
		})
		require.Equal(t, error(first), err)
		assert.Equal(t, 2, asked)
		applied := slices.ContainsFunc(told, func(r convo.Report) bool { return len(r.Refused) > 0 })
		assert.Equal(t, isEdited, applied)
		assert.Len(t, reply.Reports, map[bool]int{false: 1, true: 2}[isEdited])
		if !isEdited {
			assert.Equal(t, before, h.Snapshot().Messages())
		}
	}
}

// A PartError that comes again puts back a result that it names as a whole, and reasoning.
func TestRecover_PartErrorAgain(t *testing.T) {
	for name, place := range map[string]convo.RefusedPart{"a whole result": {ID: 3, Inside: -1}, "reasoning": {ID: 4, Inside: -1}} {
		t.Run(name, func(t *testing.T) {
			call := callOf("a")
			result := convo.Result(call, "a picture")
			in := result.ToolResults()[0]
			in.Parts = append(in.Parts, image("in 1"), image("in 2"))
			result.Parts[0] = in
			h := historyOf(t, nil, convo.User("look"), convo.Assistant("", call), result)
			at, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			signed := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: "hm", Signature: "s"}, convo.Text("seen")}}
			_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{signed}})
			require.NoError(t, err)
			mustAppend(t, h, convo.User("and"))
			before, bound := h.Snapshot().Messages(), h.Snapshot().Bound(4)
			require.True(t, bound)
			reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				return convo.Reply{}, &convo.PartError{Parts: []convo.RefusedPart{place}, Err: errors.New("no")}
			})
			require.Error(t, err)
			require.NotEmpty(t, reply.Reports)
			assert.NotEqual(t, convo.OutcomeApplied, reply.Reports[len(reply.Reports)-1].Outcome)
			assert.Equal(t, before, h.Snapshot().Messages())
			assert.Equal(t, bound, h.Snapshot().Bound(4))
		})
	}
}

// Requests that are refused at the same time are all sent again.
func TestRecover_PlaceConcurrent(t *testing.T) {
	for range 20 {
		h := manyImages(t, nil)
		at := h.Snapshot()
		_, err := wire.Anthropic{}.Encode(at)
		require.NoError(t, err)
		var all sync.WaitGroup
		for _, place := range []string{"messages.0.content.1", "messages.0.content.1", "messages.4.content.1", "messages.4.content.3"} {
			all.Go(func() {
				retry, _, err := h.Recover(t.Context(), at, errors.New(place+": Could not process image"))
				assert.True(t, retry)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Less(t, countMedia(h.Snapshot().Messages()), 5)
	}
}

// An own loop proves what was cleared by the usage or the answer that it reports.
func TestRecover_PlaceOwnLoop(t *testing.T) {
	for name, accepted := range map[string]func(h *convo.History){
		"usage": func(h *convo.History) {
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 3000, Output: 5}))
		},
		"answer": func(h *convo.History) { mustAppend(t, h, convo.Assistant("answer")) },
		"close":  func(h *convo.History) { require.NoError(t, h.Close()) },
	} {
		var told []convo.Report
		h := historyOf(t, &convo.Options{OnCompaction: func(r convo.Report) { told = append(told, r) }}, convo.User("look", image("one")))
		retry, _, err := h.Recover(t.Context(), h.Snapshot(), errors.New("Could not process image"))
		require.NoError(t, err)
		assert.True(t, retry)
		assert.Empty(t, told)
		accepted(h)
		require.Len(t, told, 1, name)
		assert.Len(t, told[0].Refused, 1)
	}
}

// A part that an edit by hand has replaced by an empty text is in Decisions as a whole message.
func TestResume_EmptyText(t *testing.T) {
	row := convo.User("look", image("x"))
	row.Key = "k1"
	h := historyOf(t, nil, row)
	_, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: 1, Parts: []convo.Part{convo.Text("look"), convo.Text("")}}}})
	require.NoError(t, err)
	data, err := h.Decisions()
	require.NoError(t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(t, err)
	again, err := convo.Resume(d, rowsOf(row), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
}

// A refusal is what a provider in TestRefused_Random refuses, by a text that stands in it.
type refusal struct {
	text, message string
}

// A refusingTalk is a conversation with a provider that refuses some of its parts.
type refusingTalk struct {
	t       *testing.T
	rand    *rand.Rand
	name    string // of the provider
	h       *convo.History
	encoder wire.Encoder // of some of the requests
	rows    []convo.Message
	bad     []refusal
	pinned  map[convo.ID]bool
	told    []convo.Report
	n       int // makes names
	asked   int
	lies    bool // it names another place, always the same; what stands there may be cleared if that helps by chance
	lie     string
	echoes  bool // it writes what a tool has written in front
	forever bool // it refuses again whatever was cleared
}

func (r *refusingTalk) text(kind string) string {
	r.n++
	return fmt.Sprintf("%s number %d of this talk", kind, r.n)
}

// badOrNot returns the text of a part, and sometimes adds it to what is refused.
func (r *refusingTalk) badOrNot(text, message string) {
	if message != "" && r.rand.IntN(5) == 0 {
		r.bad = append(r.bad, refusal{text, message})
	}
}

func (r *refusingTalk) media() convo.Part {
	if r.rand.IntN(4) == 0 {
		m := convo.NewMedia("application/pdf", []byte("%PDF-1.7 "+r.text("document")))
		r.badOrNot(m.Data, map[string]string{"anthropic": "%s: The PDF specified is password protected.", "gemini": ""}[r.name])
		return m
	}
	m := image(r.text("image"))
	r.badOrNot(m.Data, "%s: Could not process image")
	return m
}

// answer returns an answer, and results of its calls.
func (r *refusingTalk) answer() (msgs []convo.Message) {
	m := convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: r.format().name}}
	if r.rand.IntN(3) == 0 {
		text := r.text("sealed")
		sealed := convo.Reasoning{Text: "hm", Signature: text}
		message := "%s: Invalid `signature` in `thinking` block"
		if r.name == "responses" {
			sealed = convo.Reasoning{ID: fmt.Sprint("rs_", r.n), Encrypted: text}
			message = fmt.Sprintf("The encrypted content for item rs_%d could not be verified.", r.n)
		}
		if r.name == "anthropic" || r.name == "responses" {
			m.Parts = append(m.Parts, sealed)
			r.badOrNot(text, message)
		}
	}
	if r.name == "anthropic" && r.rand.IntN(3) == 0 {
		id, text := fmt.Sprintf("srvtoolu_%016d", r.n), r.text("found")
		m.Parts = append(m.Parts,
			convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"server_tool_use","id":%q,"name":"web_search","input":{"query":"x"}}`, id)},
			convo.Opaque{Format: "anthropic", JSON: fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":%q,"content":[{"type":"web_search_result","encrypted_content":%q,"title":"t","url":"u"}]}`, id, text)})
		r.badOrNot(text, "%s: Invalid `encrypted_content` in `web_search_result` block")
	}
	m.Parts = append(m.Parts, convo.Text(r.text("said")))
	var calls []convo.ToolCall
	for range r.rand.IntN(3) {
		c := convo.ToolCall{ID: fmt.Sprint("call_", r.n), Name: "read", Arguments: fmt.Sprintf(`{"path":%q}`, r.text("path"))}
		if r.rand.IntN(4) == 0 && (r.name == "chat" || r.name == "responses") {
			c.Arguments = fmt.Sprintf(`{"path":%q}`, strings.Repeat("é", 300)+r.text("long"))
			r.badOrNot(c.Arguments, "Invalid '%s': string too long. Expected a string with maximum length 299, but got a string with length 400 instead.")
		}
		calls = append(calls, c)
		m.Parts = append(m.Parts, c)
	}
	msgs = append(msgs, m)
	for _, c := range calls {
		result := convo.ToolResult{CallID: c.ID, Name: c.Name, Parts: []convo.Part{convo.Text(r.text("result"))}}
		for range r.rand.IntN(3) {
			result.Parts = append(result.Parts, r.media())
		}
		msgs = append(msgs, convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result}})
	}
	return msgs
}

// A grammar is a format, and how its provider names places.
type grammar struct {
	name   string
	format wire.Format
	path   func(steps []any) string
}

func (r *refusingTalk) format() grammar {
	return map[string]grammar{
		"anthropic": {wire.FormatAnthropic, wire.Anthropic{}, dotted},
		"chat":      {wire.FormatOpenAIChat, wire.OpenAIChat{}, bracketed},
		"responses": {wire.FormatOpenAIResponses, wire.OpenAIResponses{}, bracketed},
		"gemini":    {wire.FormatGemini, wire.Gemini{}, bracketed},
	}[r.name]
}

// append appends messages with keys.
func (r *refusingTalk) append(msgs ...convo.Message) {
	for i := range msgs {
		r.n++
		msgs[i].Key = fmt.Sprint("key ", r.n)
	}
	ids, err := r.h.Append(msgs...)
	require.NoError(r.t, err)
	r.rows = append(r.rows, msgs...)
	if r.rand.IntN(8) == 0 {
		require.NoError(r.t, r.h.Pin(ids))
	}
}

// send is the provider.
func (r *refusingTalk) send(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	r.asked++
	g := r.format()
	var req wire.Request
	var err error
	if r.rand.IntN(2) == 0 {
		if r.encoder.Format == nil {
			r.encoder.Format = g.format
		}
		req, err = r.encoder.Encode(s)
		fresh, _ := g.format.Encode(s)
		require.Equal(r.t, string(fresh.Body()), string(req.Body()))
	} else {
		req, err = g.format.Encode(s)
	}
	require.NoError(r.t, err)
	var v any
	require.NoError(r.t, json.Unmarshal(req.Body(), &v))
	for _, bad := range r.bad {
		steps := stepsTo(v, bad.text)
		if steps == nil && !r.forever {
			continue
		}
		message := bad.message
		if strings.Contains(message, "%s") {
			path := g.path(append([]any{}, steps...))
			if r.lies {
				path = r.lie
			}
			message = fmt.Sprintf(message, path)
		}
		if r.echoes {
			message = "messages.1.content.0.tool_result.content: Input should be a valid string, got " + message
		}
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": message}})
		return convo.Reply{}, errors.New([]string{"", "400 Bad Request: ", `POST "https://example.com/v1": 400 Bad Request `}[r.rand.IntN(3)] + string(body))
	}
	return convo.Reply{Messages: r.answer()[:1]}, nil
}

// isBad reports whether a part, or its partner, is refused.
func (r *refusingTalk) isBad(p convo.Part, m convo.Message) bool {
	for _, bad := range r.bad {
		switch p := p.(type) {
		case convo.Media:
			if p.Data == bad.text {
				return true
			}
		case convo.ToolCall:
			if p.Arguments == bad.text {
				return true
			}
		}
		if o, ok := p.(convo.Opaque); ok {
			if strings.Contains(o.JSON, bad.text) {
				return true
			}
			for _, q := range m.Parts {
				if partner, ok := q.(convo.Opaque); ok && strings.Contains(partner.JSON, bad.text) {
					var a, b struct{ ID, Tool_use_id string }
					_ = json.Unmarshal([]byte(o.JSON), &a)
					_ = json.Unmarshal([]byte(partner.JSON), &b)
					if a.ID == b.Tool_use_id {
						return true
					}
				}
			}
		}
	}
	return false
}

// check compares the view with the rows: what differs is refused, and not pinned.
func (r *refusingTalk) check() (cleared int) {
	same := func(was, now convo.Part, m convo.Message, id convo.ID) {
		if assert.ObjectsAreEqual(was, now) {
			return
		}
		cleared++
		assert.True(r.t, r.lies || r.isBad(was, m), "%T was cleared: %v", was, now)
		assert.False(r.t, r.pinned[id], "it was pinned")
		_, isText := was.(convo.Text)
		assert.False(r.t, isText, "a text was cleared")
	}
	i := 0
	for _, e := range r.h.Snapshot().All() {
		row := r.rows[i]
		i++
		require.Equal(r.t, row.Key, e.Message.Key)
		require.Len(r.t, e.Message.Parts, len(row.Parts))
		for k, p := range row.Parts {
			was, isResult := p.(convo.ToolResult)
			if !isResult {
				same(p, e.Message.Parts[k], row, e.ID)
				continue
			}
			now := e.Message.Parts[k].(convo.ToolResult)
			require.Len(r.t, now.Parts, len(was.Parts))
			for j := range was.Parts {
				same(was.Parts[j], now.Parts[j], row, e.ID)
			}
		}
	}
	assert.Equal(r.t, i, len(r.rows))
	return cleared
}

// live is one conversation.
func (r *refusingTalk) live() {
	if r.lies && (r.name == "gemini" || r.name == "chat") {
		r.lies = false // media of results move when others are cleared, so that another part stands at the same place
	}
	for range 2 + r.rand.IntN(5) {
		m := convo.User(r.text("asked"))
		for range r.rand.IntN(3) {
			m.Parts = append(m.Parts, r.media())
		}
		r.append(m)
		r.append(r.answer()...)
	}
	r.append(convo.User("go on"))
	for _, e := range r.h.Snapshot().All() {
		r.pinned[e.ID] = e.Pinned
	}
	before := r.h.Snapshot().Messages()
	refusedPinned := false
	for range 20 {
		r.asked = 0
		reply, err := r.h.Do(r.t.Context(), r.send)
		require.LessOrEqual(r.t, r.asked, 4)
		if err == nil {
			for i := range reply.Messages {
				reply.Messages[i].Key = ""
			}
			last, _ := r.h.Snapshot().At(r.h.Snapshot().Len() - 1)
			r.rows = append(r.rows, last.Message)
			r.check()
			r.restart()
			return
		}
		r.check()
		if strings.Contains(err.Error(), "Unpin it first") {
			refusedPinned = true
			break
		}
		if r.lies || r.echoes || r.forever {
			if !slices.ContainsFunc(r.told, func(r convo.Report) bool { return r.Outcome == convo.OutcomeApplied }) {
				assert.Equal(r.t, before, r.h.Snapshot().Messages())
			}
			return
		}
	}
	assert.True(r.t, refusedPinned || r.lies || r.echoes || r.forever, "it is stuck: %v", r.bad)
}

// restart makes the History again from its Decisions and the rows.
func (r *refusingTalk) restart() {
	g := r.format()
	body := func(h *convo.History) string {
		req, err := g.format.Encode(h.Snapshot())
		require.NoError(r.t, err)
		return string(req.Body())
	}
	data, err := r.h.Decisions()
	require.NoError(r.t, err)
	d, err := convo.ReadDecisions(data)
	require.NoError(r.t, err)
	again, err := convo.Resume(d, rowsOf(r.rows...), nil)
	require.NoError(r.t, err)
	assert.Equal(r.t, body(r.h), body(again))
	reports := slices.Clone(r.told)
	slices.Reverse(reports)
	for _, report := range reports {
		if report.Outcome == convo.OutcomeApplied && len(report.Refused) > 0 {
			require.NoError(r.t, r.h.Undo(report))
		}
	}
	assert.Zero(r.t, r.check())
}

// A provider refuses random parts in the words that are published: what it names is cleared, and
// nothing else, and the conversation goes on.
func TestRefused_Random(t *testing.T) {
	for seed := range long.Or(uint64(300), 100_000) {
		rnd := rand.New(rand.NewPCG(seed, 48))
		r := &refusingTalk{t: t, rand: rnd, name: []string{"anthropic", "chat", "responses", "gemini"}[seed%4], pinned: make(map[convo.ID]bool)}
		switch rnd.IntN(8) {
		case 0:
			r.lies = true
			r.lie = r.format().path([]any{[]string{"messages", "input", "contents"}[rnd.IntN(3)], rnd.IntN(6), []string{"content", "parts"}[rnd.IntN(2)], rnd.IntN(3)})
		case 1:
			r.echoes = true
		case 2:
			r.forever = true
		}
		r.h = historyOf(t, &convo.Options{OnCompaction: func(report convo.Report) { r.told = append(r.told, report) }, Key: func(convo.Message) string { r.n++; return fmt.Sprint("key ", r.n) }})
		r.live()
		if t.Failed() {
			t.Fatalf("seed %d, %s", seed, r.name)
		}
	}
}
