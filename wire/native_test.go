package wire_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

// A maker is a format whose provider gives what answer returns.
type maker struct {
	wire.Anthropic
	answer      func() (convo.Summary, error)
	sent        *convo.Snapshot // the snapshot that was last encoded
	instruction string
}

func (m *maker) Encode(s *convo.Snapshot) (wire.Request, error) {
	m.sent = s
	return wire.Request{}, nil
}

func (m *maker) CompactRequest(r wire.Request, instruction string) (wire.Request, error) {
	m.instruction = instruction
	return r, nil
}

func (m *maker) DecodeCompaction([]byte) (convo.Summary, error) { return m.answer() }

// nothing is a Post.
func nothing(context.Context, wire.Request) ([]byte, error) { return nil, nil }

// nativeBy returns a strategy that asks a provider, which gives what answer returns.
func nativeBy(answer func() (convo.Summary, error)) (wire.NativeSummary, *maker) {
	m := &maker{answer: answer}
	return wire.NativeSummary{Format: m, Post: nothing}, m
}

// nativeOf returns what a provider makes of a conversation.
func nativeOf(items ...string) convo.Summary {
	return convo.Summary{Native: convo.Native{Format: "anthropic", Model: "m", Items: items}, Usage: convo.Usage{Input: 500, Output: 40}, Model: "m"}
}

// byBytes counts a token for each byte, and nothing else.
func byBytes() *convo.Options {
	return &convo.Options{
		Tokenizer: convo.TokenizerFunc(func(text string) int { return len(text) }),
		Overheads: convo.Overheads{Message: -1, Call: -1, Result: -1},
	}
}

// narrow returns options with a small window.
func narrow(c convo.CompactionStrategy) *convo.Options {
	opts := byBytes()
	opts.Limits = convo.Limits{Window: 1200, Reserve: -1, High: 1000, Low: 400}
	opts.Strategy = c
	return opts
}

func signedAnswer(text string) convo.Message {
	return thoughts.In(convo.Assistant(text), convo.Reasoning{Text: "hm", Signature: "sig of " + text})
}

// talk returns a History with a number of turns, with signed answers.
func talk(t *testing.T, opts *convo.Options, turns int) *convo.History {
	t.Helper()
	h, err := convo.New(opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.System("guide"))
	for i := range turns {
		mustAppend(t, h, convo.User(fmt.Sprintf("question %d, which is not a short one, since it must count", i)))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		mustAppend(t, h, signedAnswer(fmt.Sprintf("answer %d, which is as long as the question", i)))
	}
	return h
}

// NativeSummary gives the provider the beginning up to a question. What stays begins with its
// answer, and what was made after it stays bound, again and again, in every form.
func TestNativeSummary(t *testing.T) {
	n := 0
	ask, provider := nativeBy(func() (convo.Summary, error) {
		n++
		return nativeOf(fmt.Sprintf(`{"type":"compaction","content":"c%d"}`, n)), nil
	})
	h := talk(t, narrow(ask), 12)
	require.Positive(t, n, "it was compacted")
	for range 3 {
		before := n
		for n == before {
			mustAppend(t, h, convo.User("another question that is not a short one"))
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			mustAppend(t, h, signedAnswer(fmt.Sprintf("an answer to it of %d", h.Len())))
		}
		s := h.Snapshot()
		first, _ := s.At(1)
		assert.Equal(t, convo.RoleAssistant, first.Message.Role)
		given := provider.sent.Messages()
		assert.Equal(t, "guide", given[0].Text())
		assert.Equal(t, convo.RoleUser, given[len(given)-1].Role)
		sum, _ := s.Summary()
		assert.Equal(t, []string{fmt.Sprintf(`{"type":"compaction","content":"c%d"}`, n)}, sum.Native.Items)
		assert.NotEmpty(t, sum.Text, "for other models")
		assert.Equal(t, "m", sum.Model)
		assert.GreaterOrEqual(t, s.Breakdown().Summary, 40)
		assert.Empty(t, s.Unbound())
		assert.Empty(t, restoredOf(t, s).Snapshot().Unbound())
		sum.Native.Items[0] = "changed"
		again, _ := h.Snapshot().Summary()
		assert.NotEqual(t, "changed", again.Native.Items[0], "a copy")
	}
	assert.Empty(t, provider.instruction, "without a focus, the provider has its own")
	mustAppend(t, h, convo.User("q"))
	_, err := h.Compact(t.Context(), "the names")
	require.NoError(t, err)
	assert.Contains(t, provider.instruction, "the names")
	require.NoError(t, h.SetSystem(convo.System("another guide")))
	assert.NotEmpty(t, h.Snapshot().Unbound())
	require.NoError(t, h.SetSystem(convo.System("guide")))
	assert.Empty(t, h.Snapshot().Unbound())
}

// When the provider gives nothing, Extract writes the summary, and the next link of a
// Chain runs.
func TestNativeSummary_Declines(t *testing.T) {
	fail := errors.New("529 compaction_unavailable")
	for name, with := range map[string]func() (convo.Summary, error){
		"an error":  func() (convo.Summary, error) { return convo.Summary{}, fail },
		"no native": func() (convo.Summary, error) { return convo.Summary{Text: "t"}, nil },
		"no item":   func() (convo.Summary, error) { return nativeOf(), nil },
		"no JSON":   func() (convo.Summary, error) { return nativeOf("x"), nil },
		"no object": func() (convo.Summary, error) { return nativeOf("5"), nil },
		"no usage": func() (convo.Summary, error) {
			sum := nativeOf()
			sum.Usage.Input = -1
			return sum, nil
		},
		"a panic": func() (convo.Summary, error) { panic("x") },
		"not done": func() (convo.Summary, error) {
			sum := nativeOf("{}")
			sum.Stop = convo.StopLength
			return sum, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var paid convo.Usage
			ask, _ := nativeBy(func() (convo.Summary, error) {
				sum, err := with()
				if sum.Usage.Input >= 0 {
					paid = sum.Usage
				}
				return sum, err
			})
			opts := narrow(convo.Chain(ask, convo.Truncate{}))
			var reports []convo.Report
			opts.OnCompaction = func(r convo.Report) { reports = append(reports, r) }
			h := talk(t, opts, 12)
			require.NotEmpty(t, reports)
			assert.Equal(t, convo.OutcomeApplied, reports[0].Outcome)
			assert.Equal(t, paid, reports[0].Usage)
			sum, has := h.Snapshot().Summary()
			assert.True(t, has, "by Extract")
			assert.Empty(t, sum.Native.Items)
			if name == "an error" {
				assert.ErrorIs(t, reports[0].Links[0].Cause, fail)
			}
		})
	}
	asked, _ := nativeBy(func() (convo.Summary, error) {
		t.Error("asked")
		return convo.Summary{}, nil
	})
	_, err := asked.Compact(t.Context(), talk(t, byBytes(), 1).Snapshot(), convo.Goal{Target: 1})
	assert.ErrorIs(t, err, convo.ErrNoGain, "there is no older turn")
	s := talk(t, byBytes(), 9).Snapshot()
	_, err = asked.Compact(t.Context(), s, convo.Goal{Target: 1, Redact: func(m convo.Message) convo.Message { return m }})
	assert.ErrorIs(t, err, convo.ErrNoGain)
	_, err = asked.Compact(t.Context(), s, convo.Goal{Target: 1, NoModel: fail})
	assert.Equal(t, fail, err)
	_, err = asked.Compact(t.Context(), s, convo.Goal{Target: 1, MinFree: 4000})
	assert.ErrorIs(t, err, convo.ErrNoGain, "too little would be freed")
}

// An answer whose items cannot be sent is refused, as an answer without items is.
func TestNativeSummary_RefusesItems(t *testing.T) {
	s := talk(t, byBytes(), 9).Snapshot()
	for _, items := range [][]string{
		nil, {}, {""}, {" "}, {"x"}, {"null"}, {"5"}, {`"a"`}, {"[]"}, {"[{}]"}, {"{"}, {"{} {}"}, {`{"a":1,}`}, {"{\"a\":\"\xff\"}"}, {"{}", "null"}, {"{}", ""},
	} {
		ask, _ := nativeBy(func() (convo.Summary, error) { return nativeOf(items...), nil })
		e, err := ask.Compact(t.Context(), s, convo.Goal{Target: 1})
		var refused *convo.RefusedError
		require.ErrorAs(t, err, &refused, "%q", items)
		assert.Equal(t, convo.Edit{Effort: &convo.Effort{Calls: 1, Usage: convo.Usage{Input: 500, Output: 40}}}, e, "%q", items)
	}
}

// Of what a format decodes, an edit has the text, the items, the usage, the model and the stop.
func TestNativeSummary_PassesOn(t *testing.T) {
	was := nativeOf("{}")
	was.Text, was.Stop = " what was said\xff\n", convo.StopLength
	ask, provider := nativeBy(func() (convo.Summary, error) {
		sum := was
		sum.Covers, sum.Read = []convo.Range{{First: 1, Last: 900}}, []convo.Range{{First: 1, Last: 900}}
		sum.Names, sum.Updates, sum.Tokens, sum.Time = "others", 7, 5, time.Now()
		return sum, nil
	})
	e, err := ask.Compact(t.Context(), talk(t, byBytes(), 9).Snapshot(), convo.Goal{Target: 1})
	require.NoError(t, err)
	was.Text, was.Native.Compacted = "what was said\ufffd", provider.sent
	assert.Equal(t, &was, e.Summary)
	assert.Equal(t, was.Usage, e.Effort.Usage)
}

// What NativeSummary lacks is an error, and those of Post and of the format come back, with the
// work that was done.
func TestNativeSummary_Errors(t *testing.T) {
	fail := errors.New("x")
	post := func(context.Context, wire.Request) ([]byte, error) { return nil, fail }
	f := wire.Anthropic{Model: "claude-opus-5-5", Betas: true}
	s, g := talk(t, byBytes(), 9).Snapshot(), convo.Goal{Target: 1}
	var value *convo.ValueError
	_, err := wire.NativeSummary{Post: post}.Compact(t.Context(), s, g)
	assert.ErrorAs(t, err, &value)
	_, err = wire.NativeSummary{Format: f}.Compact(t.Context(), s, g)
	assert.ErrorAs(t, err, &value)
	e, err := wire.NativeSummary{Format: f, Post: post}.Compact(t.Context(), s, g)
	assert.ErrorIs(t, err, fail)
	assert.Equal(t, 1, e.Effort.Calls)
	_, err = wire.NativeSummary{Format: wire.Anthropic{}, Post: post}.Compact(t.Context(), s, g)
	assert.ErrorAs(t, err, &value)
	_, err = wire.NativeSummary{Format: f, Post: func(context.Context, wire.Request) ([]byte, error) { panic(fail) }}.Compact(t.Context(), s, g)
	var panicked *convo.PanicError
	assert.ErrorAs(t, err, &panicked)
	_, err = wire.NativeSummary{Format: f, Post: func(context.Context, wire.Request) ([]byte, error) { runtime.Goexit(); return nil, nil }}.Compact(t.Context(), s, g)
	assert.ErrorContains(t, err, "Goexit")
	ask, _ := nativeBy(func() (convo.Summary, error) { return nativeOf("{}"), nil })
	g.Count = func(string) int { panic("count") }
	e, err = ask.Compact(t.Context(), s, g)
	assert.ErrorAs(t, err, &panicked)
	assert.Equal(t, convo.Effort{Calls: 1, Usage: convo.Usage{Input: 500, Output: 40}}, *e.Effort)
}

// A call ends after Timeout, and leaves a quarter of the time until the deadline of ctx, also if
// Post does not return.
func TestNativeSummary_Timeout(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout, deadline, want time.Duration
		text                    string
	}{
		"the default":  {0, 0, time.Minute, "no answer within 1m0s"},
		"its own":      {time.Second, time.Hour, time.Second, "no answer within 1s"},
		"the deadline": {0, 40 * time.Second, 30 * time.Second, "three quarters"},
		"no bound":     {-1, 40 * time.Hour, 30 * time.Hour, "three quarters"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				defer close(stop)
				ask, _ := nativeBy(nil)
				ask.Timeout = tt.timeout
				ask.Post = func(context.Context, wire.Request) ([]byte, error) {
					<-stop
					return nil, errors.New("too late")
				}
				ctx := t.Context()
				if tt.deadline > 0 {
					own, cancel := context.WithTimeout(ctx, tt.deadline)
					defer cancel()
					ctx = own
				}
				start := time.Now()
				e, err := ask.Compact(ctx, talk(t, byBytes(), 9).Snapshot(), convo.Goal{Target: 1})
				assert.ErrorContains(t, err, tt.text)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, tt.want, time.Since(start))
				assert.Equal(t, 1, e.Effort.Calls)
			})
		})
	}
}

// What is pinned stays, and ends the bonds after it. So no place is chosen at which too much
// signed reasoning would be lost. What leaves is read as it was.
func TestNativeSummary_Pinned(t *testing.T) {
	ask, provider := nativeBy(func() (convo.Summary, error) { return nativeOf("{}"), nil })
	h := talk(t, byBytes(), 9) // IDs 2 to 19
	g := convo.Goal{Target: 1}
	e, err := ask.Compact(t.Context(), h.Snapshot(), g)
	require.NoError(t, err)
	assert.Len(t, e.Drop, 15)
	assert.Equal(t, 16, provider.sent.Len(), "with the system message")
	assert.Contains(t, e.Summary.Text, "question 0")
	ask.KeepTurns = 3
	e, err = ask.Compact(t.Context(), h.Snapshot(), g)
	require.NoError(t, err)
	assert.Len(t, e.Drop, 11)

	require.NoError(t, h.Pin(2))
	ask.KeepTurns = 1
	e, err = ask.Compact(t.Context(), h.Snapshot(), g)
	require.NoError(t, err)
	assert.NotContains(t, e.Drop, convo.ID(2))
	assert.Len(t, e.Drop, 14)
	ask.KeepTurns = 3
	_, err = ask.Compact(t.Context(), h.Snapshot(), g)
	assert.ErrorIs(t, err, convo.ErrNoGain)
	assert.Equal(t, "native(with *wire_test.maker)", fmt.Sprint(ask))
}
