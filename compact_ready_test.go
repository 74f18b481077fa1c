package convo_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

// waiting returns a History above Limits.Soft, of which a compaction in the background
// has ended with OutcomeReady, and the reports so far. ttl is Options.CacheTTL.
func waiting(t *testing.T, ttl time.Duration, change ...func(*convo.Options)) (h *convo.History, told *[]convo.Report, calls *atomic.Int32) {
	t.Helper()
	calls, told = new(atomic.Int32), new([]convo.Report)
	opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		calls.Add(1)
		return convo.Summary{Text: "so far", Usage: convo.Usage{Output: 5}, Model: "m"}, nil
	}), MaxTokens: 100, Window: -1})
	opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
	opts.CacheTTL = ttl
	opts.OnCompaction = func(r convo.Report) { *told = append(*told, r) }
	for _, f := range change {
		f(opts)
	}
	h = toolTurn(t, opts, 20)
	require.True(t, h.CompactInBackground(t.Context()))
	r, err := h.Wait(t.Context())
	require.NoError(t, err)
	if ttl <= 0 {
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
		return h, told, calls
	}
	require.Equal(t, convo.OutcomeReady, r.Outcome)
	assert.Equal(t, 1, r.Calls)
	assert.Equal(t, 5, r.Usage.Output)
	assert.Equal(t, r.TokensBefore, r.TokensAfter)
	assert.True(t, r.Fits)
	assert.Contains(t, fmt.Sprint(r), "compaction ready at")
	assert.Len(t, *told, 1)
	_, has := h.Snapshot().Summary()
	assert.False(t, has, "nothing has changed yet")
	return h, told, calls
}

// The edit of a compaction in the background waits for a pause or for Limits.High, and is
// applied by whichever compaction comes first.
func TestCacheTTL_EditWaits(t *testing.T) {
	applied := func(t *testing.T, h *convo.History, r convo.Report, calls *atomic.Int32) {
		t.Helper()
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		assert.Equal(t, convo.ReasonSoft, r.Reason)
		assert.Zero(t, r.Calls, "they were reported before")
		assert.Zero(t, r.Usage)
		assert.NotEmpty(t, r.Summarised)
		assert.Equal(t, "m", r.Model)
		assert.EqualValues(t, 1, calls.Load())
		sum, _ := h.Snapshot().Summary()
		assert.Equal(t, "so far", sum.Text)
	}
	run := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	run("a pause", func(t *testing.T) {
		h, told, calls := waiting(t, 5*time.Minute)
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."), convo.User("so?"))
		time.Sleep(5 * time.Minute)
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "the request may still be in the cache")
		assert.False(t, h.CompactInBackground(t.Context()), "an edit waits already")
		time.Sleep(time.Second)
		s, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		applied(t, h, r, calls)
		assert.Len(t, *told, 2)
		assert.Less(t, s.Tokens(), 2000)
		assert.Equal(t, "so?", s.Messages()[s.Len()].Text(), "what was appended meanwhile stays")
	})
	run("a pause, in the background", func(t *testing.T) {
		h, _, calls := waiting(t, time.Minute)
		time.Sleep(2 * time.Minute)
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("high", func(t *testing.T) {
		h, _, calls := waiting(t, time.Hour)
		mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("a", 1200)), convo.User("so?"))
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("by hand", func(t *testing.T) {
		h, _, calls := waiting(t, time.Hour)
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("room", func(t *testing.T) {
		h, told, calls := waiting(t, time.Hour)
		_, _, err := h.MakeRoom(t.Context(), 2500)
		require.NoError(t, err)
		applied(t, h, (*told)[1], calls)
	})
	run("no option", func(t *testing.T) {
		h, told, _ := waiting(t, 0)
		_, has := h.Snapshot().Summary()
		assert.True(t, has)
		assert.Len(t, *told, 1)
		time.Sleep(1000 * time.Hour)
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	})
	run("stale", func(t *testing.T) {
		h, told, calls := waiting(t, time.Hour)
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4}})
		require.NoError(t, err)
		require.True(t, h.CompactInBackground(t.Context()), "another one is written")
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeReady, r.Outcome)
		assert.EqualValues(t, 2, calls.Load())
		assert.Equal(t, convo.OutcomeStale, (*told)[len(*told)-2].Outcome)
	})
	run("a rollback of all it covers", func(t *testing.T) {
		h, _, calls := waiting(t, time.Hour)
		_, err := h.Rewind(1)
		require.NoError(t, err)
		mustAppend(t, h, convo.User(strings.Repeat("a", 2500)))
		require.True(t, h.CompactInBackground(t.Context()))
		_, err = h.Wait(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, calls.Load(), "nothing is left to summarise")
	})
	run("a compaction that is given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		end := func() {}
		h, told, calls := waiting(t, time.Hour, func(opts *convo.Options) {
			opts.Tokenizer = convo.TokenizerFunc(func(text string) int { end(); return len(text) })
		})
		end = cancel
		_, err := h.Compact(ctx, "")
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, convo.OutcomeFailed, (*told)[1].Outcome)
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("close", func(t *testing.T) {
		h, told, _ := waiting(t, time.Hour)
		require.NoError(t, h.Close())
		_, err := h.Compact(t.Context(), "")
		require.ErrorIs(t, err, convo.ErrClosed)
		assert.Len(t, *told, 1)
	})
}

// After a pause longer than CacheTTL, a request above Limits.Soft is compacted. The pause
// is measured from the newest entry of the assistant, also after a restart.
func TestCacheTTL_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(4000, convo.Truncate{})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.CacheTTL = 5 * time.Minute
		h := toolTurn(t, opts, 20)
		time.Sleep(4 * time.Minute)
		mustAppend(t, h, convo.User("and"))
		data, err := json.Marshal(h.Snapshot())
		require.NoError(t, err)
		for _, restart := range []bool{false, true} {
			if restart {
				s := new(convo.Snapshot)
				require.NoError(t, json.Unmarshal(data, s))
				h, err = convo.Restore(s, opts)
				require.NoError(t, err)
			}
			r, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			if !restart {
				assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
				time.Sleep(2 * time.Minute)
				r, err = h.CompactIfNeeded(t.Context())
				require.NoError(t, err)
			}
			assert.Equal(t, convo.OutcomeApplied, r.Outcome, "after a restart: %v", restart)
			assert.Equal(t, convo.ReasonSoft, r.Reason)
			assert.LessOrEqual(t, h.Status().Upper, 1000)
			time.Sleep(time.Hour)
			r, err = h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "below soft a pause changes nothing")
		}
	})
}

// What a client says about the cache of its provider counts where Options.CacheTTL is 0.
func TestReply_CacheTTL(t *testing.T) {
	const ttl = 5 * time.Minute
	type answer func(context.Context, *convo.History, convo.Reply) (convo.Reply, error)
	do := func(ctx context.Context, h *convo.History, r convo.Reply) (convo.Reply, error) {
		return h.Do(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) { return r, nil })
	}
	appendReply := func(_ context.Context, h *convo.History, r convo.Reply) (convo.Reply, error) {
		return h.AppendReply(h.Snapshot(), r)
	}
	for name, tt := range map[string]struct {
		option time.Duration
		told   []time.Duration // by each answer
		answer answer
		from   time.Duration // the longest pause after which nothing is due; 0: nothing ever is
	}{
		"Do":                      {0, []time.Duration{ttl}, do, ttl},
		"AppendReply":             {0, []time.Duration{ttl}, appendReply, ttl},
		"the newest answer":       {0, []time.Duration{ttl, time.Hour}, do, time.Hour},
		"not told any more":       {0, []time.Duration{ttl, 0}, do, 0},
		"negative":                {0, []time.Duration{-ttl}, do, 0},
		"the option is longer":    {time.Hour, []time.Duration{ttl}, do, time.Hour},
		"the option is shorter":   {time.Minute, []time.Duration{ttl}, do, time.Minute},
		"the option says no time": {-1, []time.Duration{ttl}, do, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := windowOf(4000, convo.Truncate{})
				opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
				opts.CacheTTL = tt.option
				h := toolTurn(t, opts, 20)
				for _, ttl := range tt.told {
					mustAppend(t, h, convo.User("and"))
					r, err := tt.answer(t.Context(), h, convo.Reply{Messages: []convo.Message{convo.Assistant("ok")}, CacheTTL: ttl})
					require.NoError(t, err)
					assert.Equal(t, ttl, r.CacheTTL)
				}
				mustAppend(t, h, convo.User("so?"))
				time.Sleep(cmp.Or(tt.from, 1000*time.Hour))
				_, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "%v", r)
				time.Sleep(time.Second)
				_, r, err = h.Prepare(t.Context())
				require.NoError(t, err)
				if tt.from == 0 {
					assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "%v", r)
					return
				}
				assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
				assert.Equal(t, convo.ReasonSoft, r.Reason)
				assert.Equal(t, tt.from+time.Second, r.Pause)
				assert.Contains(t, fmt.Sprint(r), "; after a pause of "+r.Pause.String())
				assert.LessOrEqual(t, h.Status().Upper, 1000)
			})
		})
	}
}

// An edit made in the background does not wait for the pause that only an answer has told, and
// no pause makes a compaction in the background due.
func TestReply_CacheTTLInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(4000, convo.Truncate{})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		h := toolTurn(t, opts, 20)
		mustAppend(t, h, convo.User("and"))
		_, err := h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.Assistant("ok")}, CacheTTL: time.Hour})
		require.NoError(t, err)
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		assert.Zero(t, r.Pause, "it is due without one")
		assert.NotContains(t, fmt.Sprint(r), "pause")
	})
}

// A summary that was written in the background names what the messages appended meanwhile
// use, and what only the entries that leave hold.
func TestBackground_NamesWhatCameUp(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			opts := windowOf(8000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				time.Sleep(time.Second)
				return convo.Summary{Text: "The user began a piece of work, which touches many hosts of the company, such as db-3.internal. " +
					"The assistant looked at each in turn, wrote down what it saw there, and found nothing that is wrong. " +
					"What is left to do is a last look at all the lists, a word to the people who keep them, and a short note about it."}, nil
			}), MaxTokens: 200, Window: -1})
			opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 7000, 2000, 1000
			opts.CacheTTL = wait
			opts.Redact = func(m convo.Message) convo.Message {
				m.Parts = []convo.Part{convo.Text(strings.ReplaceAll(m.Text(), "pass build-98", "pass"))}
				return m
			}
			h := historyOf(t, opts, convo.User("begin"))
			rare := []string{"t-4711", "t-4712", "db-3.internal"}
			mustAppend(t, h, convo.Assistant("I saw "+strings.Join(rare, " and ")+", and the pass build-98."), convo.User("go on"))
			for i := range 400 { // names that are as good, and come later
				mustAppend(t, h, convo.Assistant("next-"+itoa(i)), convo.User("go on"))
			}
			mustAppend(t, h, convo.Assistant("ok"))
			require.True(t, h.CompactInBackground(t.Context()))
			synctest.Wait()
			mustAppend(t, h, convo.User("Is db-3.internal what t-4711 was about, and build-99?"), convo.Assistant("No, t-4711 is about build-98."), convo.User("so?"))
			time.Sleep(2 * time.Second)
			_, err := h.Wait(t.Context())
			require.NoError(t, err)
			_, err = h.Compact(t.Context(), "")
			require.NoError(t, err)
			sum, ok := h.Snapshot().Summary()
			require.True(t, ok)
			names := strings.Fields(sum.Names)
			require.Equal(t, "t-4711", names[0])
			assert.NotContains(t, names[1:], "t-4711", "it is there once")
			assert.NotContains(t, names, "build-98", "Redact takes it out of what leaves")
			assert.NotContains(t, names, "t-4712", "it is one of many, and no message asked for it")
			assert.NotContains(t, names, "build-99", "nothing that leaves has it")
			assert.NotContains(t, names, "db-3.internal", "the text of the summary has it")
		})
	}
}

// A name that an exchange holds which was pinned in the meantime has not left.
func TestBackground_NamesNothingPinned(t *testing.T) {
	for _, pin := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			opts := windowOf(2000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (e convo.Edit, err error) {
				time.Sleep(time.Second)
				for x := range s.Exchanges() {
					if !x.Floor {
						e.Drop = append(e.Drop, x.IDs()...)
					}
				}
				e.Summary = &convo.Summary{Text: "The user began a piece of work, which touches many hosts of the company. The assistant looked at each in turn, wrote down what it saw there, and found nothing that is wrong."}
				return e, nil
			}))
			opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 1800, 500, 300
			h := historyOf(t, opts, convo.User("begin"))
			held := mustAppend(t, h, convo.Assistant("I saw ticket-4711."))
			mustAppend(t, h, convo.User(strings.Repeat("go on, ", 250)), convo.Assistant("ok"), convo.User("and now"))
			require.True(t, h.CompactInBackground(t.Context()))
			synctest.Wait()
			mustAppend(t, h, convo.Assistant("It is like ticket-4711."))
			if pin {
				require.NoError(t, h.Pin(held))
			}
			r, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome)
			sum, ok := h.Snapshot().Summary()
			require.True(t, ok)
			if pin {
				assert.Empty(t, sum.Names)
			} else {
				assert.Equal(t, "ticket-4711", sum.Names)
			}
		})
	}
}

// Below Limits.High, no compaction that was not asked for takes place in a round of tool
// calls with signed reasoning.
func TestCompact_WaitsForTheEndOfARound(t *testing.T) {
	c := callOf("c")
	think := func(calls ...convo.ToolCall) convo.Message {
		return thoughts.In(convo.Assistant("", calls...), convo.Reasoning{Text: "hm", Signature: "sig"})
	}
	start := func(t *testing.T, ttl time.Duration, round ...convo.Message) *convo.History {
		opts := windowOf(4000, convo.Truncate{})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.CacheTTL = ttl
		h := toolTurn(t, opts, 20)
		mustAppend(t, h, convo.User("now"))
		mustAppend(t, h, round...)
		return h
	}
	background := func(t *testing.T, h *convo.History) convo.Outcome {
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		return r.Outcome
	}
	prepare := func(t *testing.T, h *convo.History) convo.Outcome {
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		return r.Outcome
	}
	for name, tt := range map[string]struct {
		round []convo.Message
		waits bool
	}{
		"results":               {[]convo.Message{think(c), convo.Result(c, "r")}, true},
		"an open call":          {[]convo.Message{think(c)}, true},
		"a note after":          {[]convo.Message{think(c), convo.Result(c, "r"), convo.System("n")}, true},
		"reasoning before":      {[]convo.Message{think(c), convo.Result(c, "r"), convo.Assistant("", c), convo.Result(c, "r")}, true},
		"an answer":             {[]convo.Message{think(c), convo.Result(c, "r"), think()}, false},
		"a user message":        {[]convo.Message{think(c), convo.Result(c, "r"), convo.User("stop")}, false},
		"reasoning not signed":  {[]convo.Message{thoughts.In(convo.Assistant("", c), convo.Reasoning{Text: "hm"}), convo.Result(c, "r")}, false},
		"no reasoning":          {[]convo.Message{convo.Assistant("", c), convo.Result(c, "r")}, false},
		"reasoning before that": {[]convo.Message{think(), convo.User("go"), convo.Assistant("", c), convo.Result(c, "r")}, false},
	} {
		if name == "an answer" {
			tt.round[2].Parts = append(tt.round[2].Parts, convo.Text("a"))
		}
		if name == "reasoning before that" {
			tt.round[0].Parts = append(tt.round[0].Parts, convo.Text("a"))
		}
		t.Run(name, func(t *testing.T) {
			want := convo.OutcomeApplied
			if tt.waits {
				want = convo.OutcomeReady
			}
			h := start(t, 0, tt.round...)
			assert.Equal(t, want, background(t, h))
			if !tt.waits {
				return
			}
			assert.Equal(t, convo.OutcomeNotNeeded, prepare(t, h))
			assert.False(t, h.CompactInBackground(t.Context()), "an edit waits already")
			if h.Status().OpenCalls > 0 {
				mustAppend(t, h, convo.Result(c, "r"))
			}
			mustAppend(t, h, convo.Assistant("done"))
			assert.Equal(t, convo.OutcomeApplied, prepare(t, h), "the round is over")

			h = start(t, 0, tt.round...)
			h.Release()
			assert.Equal(t, convo.OutcomeApplied, background(t, h), "nothing is bound")

			h = start(t, 0, tt.round...)
			assert.Equal(t, want, background(t, h))
			require.NoError(t, h.SetLimits(convo.Limits{Window: 3000, High: 2100, Soft: 2000, Low: 1000}))
			assert.Equal(t, convo.OutcomeApplied, prepare(t, h), "above high it runs")

			synctest.Test(t, func(t *testing.T) {
				h := start(t, time.Minute, tt.round...)
				time.Sleep(time.Hour)
				assert.Equal(t, convo.OutcomeNotNeeded, prepare(t, h))
				if h.Status().OpenCalls > 0 {
					mustAppend(t, h, convo.Result(c, "r"))
				}
				mustAppend(t, h, convo.User("so?"))
				assert.Equal(t, convo.OutcomeApplied, prepare(t, h))
			})
		})
	}
}
