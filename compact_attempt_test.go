package convo_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// alwaysDue makes a Trigger of a strategy.
type alwaysDue struct{ convo.CompactionStrategy }

func (alwaysDue) Due(convo.Status) bool { return true }

// When a trigger is due but there is little to gain, no model is called.
func TestTrigger_LittleToGain(t *testing.T) {
	var goals []convo.Goal
	probe := convo.StrategyFunc(func(_ context.Context, _ *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		goals = append(goals, g)
		return convo.Edit{}, nil
	})
	h := toolTurn(t, windowOf(0, alwaysDue{probe}), 8)
	require.NoError(t, h.Pin(4, 6, 8, 10, 12, 14))
	floor := 0
	for x := range h.Snapshot().Exchanges() {
		if x.Floor {
			floor += x.Tokens
		}
	}
	weight := func(raw int) int { return raw + (raw+7)/8 }
	gain := weight(h.Snapshot().Tokens()) - weight(floor)
	for i, minFree := range []int{gain - 1, gain, gain + 1} {
		require.NoError(t, h.SetLimits(convo.Limits{MinFree: minFree}))
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
		require.Len(t, goals, i+1)
		assert.Equal(t, convo.ReasonTrigger, goals[i].Reason)
		assert.Equal(t, minFree > gain, goals[i].NoModel != nil, "MinFree %d", minFree)
		assert.Zero(t, goals[i].Target, "the strategy decides")
	}

	calls := 0
	h, err := convo.Restore(h.Snapshot(), windowOf(0, alwaysDue{convo.Summarize{With: broken(&calls), Window: -1}}))
	require.NoError(t, err)
	require.NoError(t, h.SetLimits(convo.Limits{MinFree: gain + 1}))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
	assert.Equal(t, convo.ErrNoGain, r.Cause)
	assert.Zero(t, calls)
}

// An edit that frees nothing is declined, unless a trigger was due: then the
// strategy may have other reasons.
func TestCompact_FreesNothing(t *testing.T) {
	same := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		return convo.Edit{Clear: []convo.Clear{{ID: 4, Text: strings.Repeat("-", 92)}}}, nil
	})
	h := toolTurn(t, windowOf(0, same), 20)
	unchanged(t, h, func() {
		r, err := h.Compact(t.Context(), "")
		assert.Equal(t, convo.ErrNoGain, err)
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
		assert.Equal(t, convo.ErrNoGain, r.Cause)
	})

	h = toolTurn(t, windowOf(0, alwaysDue{same}), 20)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{4}, r.Cleared)

	// So it is with the links of a ladder.
	h = toolTurn(t, windowOf(2000, convo.Chain(same, convo.Truncate{})), 20)
	r, err = reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, []convo.Link{{Strategy: "func", Outcome: convo.OutcomeDeclined, Cause: convo.ErrNoGain}, {Strategy: "truncate", Outcome: convo.OutcomeApplied}}, r.Links)
	assert.Empty(t, r.Cleared)

	h = toolTurn(t, windowOf(0, convo.Chain(alwaysDue{same}, convo.Truncate{})), 20)
	r, err = reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, []convo.Link{{Strategy: "func", Outcome: convo.OutcomeApplied}}, r.Links)
	assert.Equal(t, []convo.ID{4}, r.Cleared)
}

// Each exchange counts once, and the shares add up: pinned, if without the pin
// something of it could go, and otherwise in the first share that it belongs to.
func TestFloorError_Shares(t *testing.T) {
	opts := windowOf(50, convo.Truncate{})
	opts.Limits.Tools = 7
	opts.Roles = convo.Relaxed()
	opts.Priors = map[string]convo.Prior{"": {Margin: -1}} // weights are bytes
	c := callOf("c")
	h := historyOf(t, opts,
		convo.System("guide"),
		convo.User("first"), convo.Assistant("pinned answer"), convo.Assistant("free"),
		convo.User("one"), convo.User("and two"), convo.Assistant("hm"),
		convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 30)),
	)
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	want := convo.FloorError{Limit: 50, System: 5, Users: 3 + 7, Ephemeral: 4, Tools: 7, NewestRole: convo.RoleAssistant, RewindUsers: 1}
	const newest = 7 + 35
	for _, tt := range []struct {
		name   string
		pin    []convo.ID
		pinned int
		newest int
	}{
		{"an old answer and the newest exchange", []convo.ID{3, 9}, 13 + newest, 0},
		{"the newest exchange and all the users", []convo.ID{2, 5, 6, 9}, 5 + newest, 0},
		{"all", []convo.ID{2, 3, 4, 5, 6, 7, 8}, 5 + 13 + 4 + 2 + newest, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, h.Unpin(idsOf(h.Snapshot())...))
			require.NoError(t, h.Pin(tt.pin...))
			_, _, err := h.Prepare(t.Context())
			var floor *convo.FloorError
			require.ErrorAs(t, err, &floor)
			want := want
			want.Pinned, want.Newest = tt.pinned, tt.newest
			want.Floor = 5 + 10 + tt.pinned + tt.newest + 4 + 7
			assert.Equal(t, want, *floor)
		})
	}

	// Where the newest turn has nothing but its users, the last of them is the
	// newest exchange.
	h = historyOf(t, opts, convo.System("guide"), convo.Assistant("hello"), convo.User("one"), convo.User(strings.Repeat("x", 50)))
	require.NoError(t, h.Pin(3, 4))
	_, _, err := h.Prepare(t.Context())
	var floor *convo.FloorError
	require.ErrorAs(t, err, &floor)
	assert.Equal(t, convo.FloorError{Floor: 65, Limit: 50, System: 5, Newest: 50, Users: 3, Tools: 7, NewestRole: convo.RoleUser, RewindUsers: 1}, *floor)
}

// When a compaction is declined but another goroutine has made room,
// the request fits, and there is no error.
func TestPrepare_RoomFromElsewhere(t *testing.T) {
	var h *convo.History
	h = toolTurn(t, windowOf(1000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		_, err := h.SplicePrefix(s, 38, "")
		return convo.Edit{}, err
	})), 20)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
	assert.Equal(t, convo.ErrNoGain, r.Cause)
	assert.True(t, r.Fits)
}

// An edit is checked against the limit that it was made for. When the limit has
// changed since, the History checks again.
func TestPrepare_SetLimitsMeanwhile(t *testing.T) {
	var h *convo.History
	var limits []convo.Limits
	runs := 0
	h = toolTurn(t, windowOf(2000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		runs++
		if len(limits) > 0 {
			require.NoError(t, h.SetLimits(limits[0]))
			limits = limits[1:]
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	})), 20)
	fork := h.Snapshot()

	limits = []convo.Limits{{Window: 800, Reserve: -1}} // lower
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.True(t, r.Fits)
	assert.Equal(t, 2, runs)
	assert.LessOrEqual(t, h.Status().Upper, 400)

	h, err = convo.Restore(fork, windowOf(2000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		require.NoError(t, h.SetLimits(convo.Limits{Window: 2400, Reserve: -1})) // higher
		return convo.Edit{Drop: []convo.ID{3, 4}}, nil
	})))
	require.NoError(t, err)
	unchangedLen := h.Len()
	_, _, err = h.Prepare(t.Context())
	var limit *convo.LimitError
	require.ErrorAs(t, err, &limit)
	assert.Equal(t, 2000, limit.Limit)
	assert.Equal(t, unchangedLen, h.Len())
}

// A counting strategy counts attempts to summarise: runs of another strategy in
// which its summarizer was called.
type counting struct {
	convo.CompactionStrategy
	requests *recorder
	attempts int
	most     int // calls beyond what one attempt may make, at most
}

func (c *counting) Compact(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	before := len(c.requests.requests)
	e, err := c.CompactionStrategy.Compact(ctx, s, g)
	all := c.requests.requests[before:]
	made := slices.DeleteFunc(slices.Clone(all), func(req convo.SummaryRequest) bool { return !strings.Contains(req.Prompt, "<transcript key=") })
	c.most = max(c.most, len(all)-2*len(made)) // each summary may be shortened once
	if len(made) > 0 {
		c.attempts++
		c.most = max(c.most, len(made)-c.allowed(made))
	}
	return e, err
}

// allowed returns how many calls one attempt may make for the messages it had to
// summarise.
func (c *counting) allowed(reqs []convo.SummaryRequest) int {
	window := convo.Limits{}.Window
	if z, ok := c.CompactionStrategy.(convo.Summarize); ok {
		window = z.Window
	}
	if window <= 0 {
		return 2
	}
	total, chunk := 0, window
	for _, req := range reqs {
		_, rest, _ := strings.Cut(req.Prompt, "<transcript key=")
		rest, _, _ = strings.Cut(rest, "</transcript key=")
		transcript := req.Count(rest)
		total += transcript
		room := window*7/8 - (req.Count(req.Prompt) - transcript) - 2*req.MaxTokens
		chunk = min(chunk, room*7/8)
	}
	return 2 * ((total+chunk-1)/chunk + 1)
}

// However a summarizer behaves, the number of attempts is bounded.
func TestAttempts_Bounded(t *testing.T) {
	fakes := map[string]func() convo.Summarizer{
		"canned":    func() convo.Summarizer { return convotest.Canned{} },
		"echo":      func() convo.Summarizer { return convotest.Echo{} },
		"failing":   func() convo.Summarizer { return convotest.Failing{} },
		"flaky":     func() convo.Summarizer { return &convotest.Flaky{} },
		"flaky, 3":  func() convo.Summarizer { return &convotest.Flaky{Every: 3, With: convotest.Echo{}} },
		"panicking": func() convo.Summarizer { return convotest.Panicking{} },
		"empty":     func() convo.Summarizer { return convotest.Empty{} },
		"cut off":   func() convo.Summarizer { return convotest.CutOff{} },
		"growing":   func() convo.Summarizer { return new(convotest.Growing) },
	}
	for name, fake := range fakes {
		for _, setup := range []struct {
			name   string
			steps  int // in the short form: a few compactions
			limits convo.Limits
			window int
			pins   bool
			others []convo.CompactionStrategy
		}{
			{name: "alone", steps: 200, limits: convo.Limits{Window: 8000, Reserve: -1}, window: -1},
			{name: "in a ladder", steps: 200, limits: convo.Limits{Window: 8000, Reserve: -1}, window: -1, others: []convo.CompactionStrategy{convo.Truncate{}}},
			{name: "high floor", steps: 220, limits: convo.Limits{Window: 8000, Reserve: -1, Low: 2000, MinFree: 100}, window: -1, pins: true},
			{name: "folding", steps: 350, limits: convo.Limits{Window: 16000, Reserve: -1}, window: 5600},
			{name: "small steps", steps: 120, limits: convo.Limits{Window: 8000, Reserve: -1, High: 4000, Low: 3800, Soft: 3900, MinFree: 20}, window: -1},
		} {
			t.Run(name+", "+setup.name, func(t *testing.T) {
				with := fake()
				rec := &recorder{answer: func(req convo.SummaryRequest) (convo.Summary, error) { return with.Summarize(t.Context(), req) }}
				c := &counting{requests: rec, CompactionStrategy: convo.Summarize{With: rec, Window: setup.window, MaxTokens: 600}}
				strategy := convo.Chain(append([]convo.CompactionStrategy{c}, setup.others...)...)
				h, err := convo.New(&convo.Options{Limits: setup.limits, Strategy: strategy})
				require.NoError(t, err)
				rng := rand.New(rand.NewPCG(1, 1))
				appended, pinned := 0, 0
				for i := range long.Or(setup.steps, 1500) {
					text := strings.Repeat("some words of it ", rng.IntN(30))
					from := h.Snapshot().Tokens()
					id := mustAppend(t, h, convo.User("step "+itoa(i)), convo.Assistant(text+"so."))
					added := h.Snapshot().Tokens() - from
					appended += added + added/8 + 1
					if setup.pins && i%long.Or(2, 10) == 0 && pinned < 5500 {
						require.NoError(t, h.Pin(id))
						pinned += added
					}
					_, r, err := h.Prepare(t.Context())
					require.True(t, err != nil || r.Fits)
					if !r.Fits { // nothing more can be done for it here
						_, err := h.SplicePrefix(h.Snapshot(), h.Len()/2, "")
						require.NoError(t, err)
					}
				}
				minFree := h.Status().MinFree
				bound := 3*((appended+minFree-1)/minFree) + 3
				t.Logf("%d attempts, %d calls, bound %d", c.attempts, len(rec.requests), bound)
				assert.Greater(t, c.attempts, 1)
				assert.LessOrEqual(t, c.attempts, bound)
				assert.LessOrEqual(t, c.most, 0, "calls in one attempt")
			})
		}
	}
}

// While the floor leaves less than MinFree, no summarizer is called.
func TestAttempts_FloorLeavesTooLittle(t *testing.T) {
	rec := new(convotest.Recorder)
	for _, over := range []bool{false, true} {
		h, err := convo.New(&convo.Options{
			Limits:   convo.Limits{Window: 4000, Reserve: -1, High: 3000, Low: 1000, Soft: 2900, MinFree: 900},
			Strategy: convo.Chain(convo.Summarize{With: rec, Window: -1}, convo.Truncate{}),
		})
		require.NoError(t, err)
		id := mustAppend(t, h, convo.User(strings.Repeat("the whole brief ", 800)), convo.Assistant("I see."))
		require.NoError(t, h.Pin(id-1))
		for range 200 {
			mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
			s := h.Status()
			if over {
				require.NoError(t, h.SetLimits(convo.Limits{Window: s.Upper - 1, Reserve: -1, Low: 1000, MinFree: 900, Soft: s.Upper - 2}))
			}
			floor := 0
			for x := range h.Snapshot().Exchanges() {
				if x.Floor {
					floor += x.Tokens
				}
			}
			if s.Upper-floor*9/8 >= 900 {
				break
			}
			requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
			h.CompactInBackground(t.Context())
			_, _ = h.Wait(t.Context())
		}
	}
	assert.Zero(t, rec.Calls())
}

// When the tool definitions leave no room, the error names them, and no model is
// called in vain.
func TestPrepare_ToolsAboveTheLimit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits convo.Limits
		fits   bool
	}{
		{"schemas of 29 of 32 thousand", convo.Limits{Window: 32_000, Reserve: 4000, Tools: 29_000}, false},
		{"and just fits", convo.Limits{Window: 36_000, Reserve: -1, Tools: 29_000, High: 20_000}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := new(recorder)
			opts := bare()
			opts.Limits, opts.Strategy = tt.limits, convo.Summarize{With: rec, MaxTokens: 100, Window: -1}
			h := toolTurn(t, opts, 5)
			for range 20 {
				r, err := reportOf(h.Prepare(t.Context()))
				assert.Equal(t, tt.fits, r.Fits)
				var floor *convo.FloorError
				assert.Equal(t, !tt.fits, errors.As(err, &floor))
				if floor != nil {
					assert.GreaterOrEqual(t, floor.Tools, 29_000, "it is named")
				}
				mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
			}
			assert.Empty(t, rec.requests)
		})
	}
}

// The shares of a floor that is too large stand in proportion to their raw tokens,
// in whatever order they are computed, and add up to the floor.
func TestFloorError_SharesInProportion(t *testing.T) {
	h := historyOf(t, bare(), convo.System(strings.Repeat("s", 30)))
	pinned := mustAppend(t, h, convo.User(strings.Repeat("p", 369)))
	mustAppend(t, h, convo.Assistant("yes"), convo.User(strings.Repeat("n", 198)))
	require.NoError(t, h.Pin(pinned))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Snapshot().Tokens()}))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 500, Reserve: -1}))
	_, _, err := h.Prepare(t.Context())
	floor := new(convo.FloorError)
	require.ErrorAs(t, err, &floor)
	assert.InDelta(t, 369, floor.Pinned, 40)
	assert.InDelta(t, 198, floor.Newest+floor.Users, 25)
	assert.InDelta(t, 30, floor.System, 5)
	assert.Equal(t, floor.Floor, floor.Tools+floor.System+floor.Newest+floor.Round+floor.Users+floor.Pinned+floor.Ephemeral)
	assert.Regexp(t, "pinned exchanges hold .*the newest user message holds", err.Error())
}

type planFunc = func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error)

// oldest returns the IDs of the exchanges outside the floor, oldest first.
func oldest(s *convo.Snapshot) [][]convo.ID {
	var all [][]convo.ID
	for x := range s.Exchanges() {
		if !x.Floor {
			all = append(all, x.IDs())
		}
	}
	return all
}

// An edit that breaks a rule is refused with an error that names the rule, and
// nothing changes.
func TestHostile_Strategies(t *testing.T) {
	drop := func(ids ...convo.ID) planFunc {
		return func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: ids}, nil
		}
	}
	summary := func(sum convo.Summary) planFunc {
		return func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: slices.Concat(oldest(s)...), Summary: &sum}, nil
		}
	}
	for _, tt := range []struct {
		name string
		plan planFunc
		want string
	}{
		{"an unknown ID", drop(99), "names an entry that the snapshot does not hold (entry 99)"},
		{"a negative ID", drop(-1), "names an entry that the snapshot does not hold (entry -1)"},
		{"part of an exchange", drop(3), "drops part of an exchange (entry 3)"},
		{"a system entry", drop(1), "names a system entry (entry 1)"},
		{"a pinned entry", drop(5, 6), "drops a pinned exchange (entry 5)"},
		{"the newest exchange", drop(43), "drops the newest exchange (entry 43)"},
		{"the user message of the newest turn", drop(2), "drops a user message of the newest turn (entry 2)"},
		{"clears a pinned result", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 6}}}, nil
		}, "clears a pinned exchange (entry 6)"},
		{"clears what is no result", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 3, CallID: "c0"}}}, nil
		}, "clears a result that is not there (entry 3) (call \"c0\")"},
		{"a blank summary", summary(convo.Summary{Text: " \n"}), "the summary is blank"},
		{"a summary that was cut off", summary(convo.Summary{Text: "and then", Stop: convo.StopLength}), "the summary was cut off"},
		{"a summary of a tool call", summary(convo.Summary{Text: "x", Stop: convo.StopToolCall}), "the model called a tool"},
		{"a summary of the future", summary(convo.Summary{Text: "x", Covers: []convo.Range{{First: 3, Last: 1000}}}), "covers 3 to 1000"},
		{"a summary that covers backwards", summary(convo.Summary{Text: "x", Covers: []convo.Range{{First: 9, Last: 3}}}), "covers 9 to 3"},
		{"a summary longer than what it replaces", summary(convo.Summary{Text: lines(2000, "blah %d")}), "the view would grow by"},
		{"a clear that grows", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 4, Text: strings.Repeat("x", 10_000)}}}, nil
		}, "the view would grow by"},
		{"nothing at all", drop(), "nothing worth removing"},
		{"a panic", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic("boom") }, "panic in CompactionStrategy: boom"},
		{"a panic with nil", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic(nil) }, "panic in CompactionStrategy"},
		{"a panic of the runtime", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			var s *convo.Summary
			return convo.Edit{Drop: []convo.ID{convo.ID(s.Tokens)}}, nil
		}, "panic in CompactionStrategy"},
		{"an error", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{3, 4}}, errors.New("out of ideas")
		}, "out of ideas"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, convo.StrategyFunc(tt.plan)), 20)
			require.NoError(t, h.Pin(6))
			unchanged(t, h, func() {
				r, err := reportOf(h.Prepare(t.Context()))
				require.ErrorContains(t, err, tt.want)
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.False(t, r.Fits)
				_, err = h.Compact(t.Context(), "")
				require.Error(t, err)
			})
			require.True(t, h.CompactInBackground(t.Context()))
			unchanged(t, h, func() {
				r, err := h.Wait(t.Context())
				require.NoError(t, err)
				require.ErrorContains(t, r.Cause, tt.want)
				assert.False(t, r.Fits)
			})
		})
	}
}

type nameless struct{ convo.Truncate }

func (nameless) Name() string { panic("no name") }

func TestHostile_NamesAndTriggers(t *testing.T) {
	h := toolTurn(t, windowOf(1000, nameless{}), 20)
	unchanged(t, h, func() {
		_, _, err := h.Prepare(t.Context())
		require.ErrorContains(t, err, "panic in CompactionStrategy: no name")
	})

	var reported []convo.Report
	opts := windowOf(50_000, panicsWhenDue{})
	opts.OnCompaction = func(r convo.Report) { reported = append(reported, r) }
	h = toolTurn(t, opts, 20)
	unchanged(t, h, func() {
		r := requireFailed(t)(reportOf(h.Prepare(t.Context())))
		assert.Equal(t, []convo.Report{r}, reported)
		require.ErrorContains(t, r.Cause, "panic in Trigger: not now")
		assert.NotErrorIs(t, r.Cause, convo.ErrClosed)
	})

	var nothing *convo.Truncate // a typed nil
	h = toolTurn(t, windowOf(1000, nothing), 20)
	unchanged(t, h, func() {
		_, _, err := h.Prepare(t.Context())
		require.ErrorContains(t, err, "panic in CompactionStrategy")
	})
	h = toolTurn(t, windowOf(10_000, convo.StrategyFunc(nil)), 20)
	_, err := h.Compact(t.Context(), "")
	require.ErrorContains(t, err, "panic in CompactionStrategy")
	_, err = h.Handoff(t.Context(), convo.SummarizerFunc(nil), "")
	require.ErrorContains(t, err, "panic in Summarizer")
}

type panicsWhenDue struct{ convo.Truncate }

func (panicsWhenDue) Due(convo.Status) bool { panic("not now") }

// A strategy or a summarizer may keep what it was given, change it, and use it
// at any time.
func TestHostile_KeepsAndChanges(t *testing.T) {
	var kept *convo.Snapshot
	vandal := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		for _, list := range [][]convo.Message{req.Messages, req.Pinned} {
			for i := range list {
				for j := range list[i].Parts {
					if r, ok := list[i].Parts[j].(convo.ToolResult); ok && len(r.Parts) > 0 {
						r.Parts[0] = convo.Text("overwritten")
					}
					list[i].Parts[j] = convo.Text("overwritten")
				}
				list[i].Role = "nobody"
			}
		}
		return convo.Summary{Text: "fine", Usage: convo.Usage{Input: -5}, Covers: []convo.Range{{First: 1, Last: 1 << 40}}}, nil
	})
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		snap := *s
		kept = &snap
		defer func() { *s = convo.Snapshot{} }()
		e, err := convo.Summarize{With: vandal, MaxTokens: 50, Window: -1}.Compact(ctx, s, g)
		for x := range s.Exchanges() {
			clear(x.IDs())
		}
		return e, err
	}))
	opts.OnCompaction = func(r convo.Report) {
		clear(r.Summarised)
		clear(r.Links)
		panic("observer")
	}
	h := toolTurn(t, opts, 20)
	require.NoError(t, h.Pin(6))
	before := pictureOf(t, h.Snapshot())
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.ID(3), r.Summarised[0])
	assert.Equal(t, before, pictureOf(t, kept))
	assert.Zero(t, r.Usage, "a negative figure counts for nothing")
	for _, m := range h.Snapshot().Messages() {
		assert.NotContains(t, m.Text(), "overwritten")
	}
	for _, e := range h.Snapshot().All() {
		for _, res := range e.Message.ToolResults() {
			assert.Equal(t, strings.Repeat("x", 92), res.Text())
		}
	}
}

// A tokenizer that panics or returns nonsense leads to errors, never to a broken
// History.
func TestHostile_Tokenizers(t *testing.T) {
	count := func(s string) int { return len(s) }
	opts := windowOf(1000, convo.ClearToolResults{})
	opts.Tokenizer = convo.TokenizerFunc(func(s string) int { return count(s) })
	h := toolTurn(t, opts, 20)
	count = func(string) int { panic("no vocabulary") }
	unchanged(t, h, func() {
		_, _, err := h.Prepare(t.Context()) // by ClearToolResults
		require.ErrorContains(t, err, "no vocabulary")
		_, err = h.Handoff(t.Context(), nil, "")
		require.ErrorContains(t, err, "no vocabulary")
	})
	for name, bad := range map[string]func(string) int{
		"negative": func(string) int { return -1 },
		"huge":     func(string) int { return math.MaxInt },
		"growing":  func() func(string) int { n := 0; return func(string) int { n += 1000; return n } }(),
	} {
		count = bad
		_, _, err := h.Prepare(t.Context())
		t.Logf("%s: %v", name, err)
		_, err = h.Compact(t.Context(), name)
		t.Logf("%s: %v", name, err)
		checkPairs(t, h.Snapshot())
	}
}

// A summarizer that ignores its ctx and never returns blocks only its caller, and
// only until ctx ends. What is appended before stays, and other compactions run.
func TestHostile_NeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		var calls atomic.Int32
		h := toolTurn(t, windowOf(1000, convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			if calls.Add(1) == 1 {
				<-forever
			}
			return convo.Summary{Text: "late"}, nil
		}), MaxTokens: 50, Window: -1}, convo.Truncate{})), 20)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		r, err := reportOf(h.Prepare(ctx))
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(start))
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Equal(t, 1, r.Calls)
		mustAppend(t, h, convo.User("are you there?"))
		r, err = reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		after := h.Snapshot()
		close(forever)
		synctest.Wait()
		assert.Same(t, after, h.Snapshot())
	})
}

// aboveHigh returns a History above its high mark and far below its limit.
func aboveHigh(t testing.TB, c convo.CompactionStrategy) *convo.History {
	t.Helper()
	h, _ := aboveHighTold(t, c)
	return h
}

// aboveHighTold is aboveHigh with the reports that Options.OnCompaction is
// given.
func aboveHighTold(t testing.TB, c convo.CompactionStrategy) (h *convo.History, told *[]convo.Report) {
	t.Helper()
	opts := windowOf(40_000, c)
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	told = new([]convo.Report)
	var mu sync.Mutex
	opts.OnCompaction = func(r convo.Report) {
		mu.Lock()
		defer mu.Unlock()
		*told = append(*told, r)
	}
	return toolTurn(t, opts, 30), told
}

// check runs Prepare on a goroutine of its own, which the code under
// test may end.
func check(ctx context.Context, h *convo.History) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _, _ = h.Prepare(ctx)
	}()
	<-over
}

// Every call of a summarizer counts as a failure, however it ends, unless its
// summary was used.
func TestBreaker_CountsCallsThatWereMade(t *testing.T) {
	type answer = func(h *convo.History) (convo.Summary, error)
	for name, tt := range map[string]answer{
		"an error":            func(*convo.History) (convo.Summary, error) { return convo.Summary{}, errors.New("down") },
		"another's ErrStale":  func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrStale },
		"another's ErrClosed": func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrClosed },
		"ErrStale, wrapped": func(*convo.History) (convo.Summary, error) {
			return convo.Summary{}, fmt.Errorf("x: %w", convo.ErrStale)
		},
		"ErrNoGain":             func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrNoGain },
		"ErrBreaker":            func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrBreaker },
		"another's cancel":      func(*convo.History) (convo.Summary, error) { return convo.Summary{}, context.Canceled },
		"a panic":               func(*convo.History) (convo.Summary, error) { panic("x") },
		"a panic with ErrStale": func(*convo.History) (convo.Summary, error) { panic(convo.ErrStale) },
		"a panic with ErrNoGain": func(*convo.History) (convo.Summary, error) {
			panic(convo.ErrNoGain)
		},
		"a goroutine that ends": func(*convo.History) (convo.Summary, error) {
			runtime.Goexit()
			return convo.Summary{}, nil
		},
		"an edit of its own": func(h *convo.History) (convo.Summary, error) {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "mine"}})
			return convo.Summary{Text: "x"}, err
		},
		"a pin of all": func(h *convo.History) (convo.Summary, error) {
			for id := convo.ID(2); id <= 60; id++ {
				if err := h.Pin(id); err != nil {
					return convo.Summary{}, err
				}
			}
			return convo.Summary{Text: "x"}, nil
		},
		"an empty summary": func(*convo.History) (convo.Summary, error) { return convo.Summary{}, nil },
	} {
		for _, where := range []string{"alone", "in a ladder"} {
			t.Run(name+", "+where, func(t *testing.T) {
				var h *convo.History
				calls := 0
				var c convo.CompactionStrategy = convo.Summarize{Window: -1, With: convo.SummarizerFunc(
					func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
						calls++
						return tt(h)
					})}
				if where == "in a ladder" {
					c = convo.Chain(convo.ClearToolResults{MinResult: 1 << 30}, c)
				}
				h = aboveHigh(t, c)
				for range 50 {
					check(t.Context(), h)
					for _, id := range h.Snapshot().Pinned() {
						require.NoError(t, h.Unpin(id))
					}
				}
				want := 2 // a call that fails is repeated once
				if name == "an edit of its own" || name == "a pin of all" {
					want = 1
				}
				assert.Equal(t, want, calls)
			})
		}
	}
}

// An error from a summarizer or a panic is a failure, even if its value is
// ErrNoGain or ErrStale: it is not taken for a compaction that declined, or for
// a stale snapshot.
func TestBreaker_ErrorsOfStrangersAreFailures(t *testing.T) {
	for _, cause := range []error{convo.ErrStale, convo.ErrClosed, convo.ErrNoGain, convo.ErrBreaker} {
		fails := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{}, cause
		})
		panics := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) { panic(cause) })
		for name, c := range map[string]convo.CompactionStrategy{
			"a summarizer's error":       convo.Summarize{Window: -1, With: fails},
			"a summarizer's panic":       convo.Summarize{Window: -1, With: panics},
			"a summarizer's, in a chain": convo.Chain(noStandIn(convo.Summarize{Window: -1, With: fails})),
			"a strategy's panic":         convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic(cause) }),
		} {
			t.Run(fmt.Sprintf("%s, %v", name, cause), func(t *testing.T) {
				h, told := aboveHighTold(t, c)
				r := requireFailed(t)(reportOf(h.Prepare(t.Context())))
				require.ErrorIs(t, r.Cause, cause)
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.Equal(t, []convo.Report{r}, *told)
			})
		}
	}
	for _, cause := range []error{convo.ErrStale, convo.ErrClosed} { // of another History, and told as any other
		var told []convo.Report
		opts := windowOf(1000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{}, cause
		}))
		opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
		h := toolTurn(t, opts, 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.ErrorIs(t, err, cause)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		require.Len(t, told, 1)
		assert.Equal(t, convo.OutcomeFailed, told[0].Outcome)
	}
}

// The breaker stays closed when no summarizer was called.
func TestBreaker_NotOpenedWithoutACall(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for name, tt := range map[string]struct {
		first convo.CompactionStrategy
		ctx   context.Context
	}{
		"a ctx that was over":        {convo.ClearToolResults{MinFree: 1 << 30}, over},
		"a link that is not a model": {convo.SlidingWindow{KeepLast: 1000}, over},
	} {
		t.Run(name, func(t *testing.T) {
			rec := new(recorder)
			var c convo.CompactionStrategy = convo.Summarize{With: rec, Window: -1, MaxTokens: 200}
			h, told := aboveHighTold(t, convo.Chain(tt.first, c))
			for i := range 3 {
				r := requireFailed(t)(reportOf(h.Prepare(tt.ctx)))
				require.ErrorIs(t, r.Cause, context.DeadlineExceeded)
				assert.Len(t, *told, i+1)
			}
			assert.Empty(t, rec.requests)
			r, err := reportOf(h.Prepare(t.Context()))
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			assert.Len(t, rec.requests, 1)
		})
	}
	t.Run("a strategy of one's own", func(t *testing.T) {
		runs := 0
		h := aboveHigh(t, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			runs++
			assert.NoError(t, g.NoModel)
			return convo.Truncate{}.Compact(ctx, s, g)
		}))
		r := requireFailed(t)(reportOf(h.Prepare(over)))
		require.ErrorIs(t, r.Cause, context.DeadlineExceeded)
		assert.Zero(t, runs)
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
		assert.Equal(t, 1, runs)
	})
	t.Run("a window that holds no request", func(t *testing.T) {
		rec := new(recorder)
		h, told := aboveHighTold(t, convo.Summarize{With: rec, Window: 100})
		for i := range 3 { // the mistake is the caller's, and reported each time
			r := requireFailed(t)(reportOf(h.Prepare(t.Context())))
			require.ErrorContains(t, r.Cause, "Summarize.Window")
			assert.Len(t, *told, i+1)
		}
		assert.Empty(t, rec.requests)
	})
}

// A compaction that called no model says nothing about the summarizer, so the
// count of its failures stays.
func TestBreaker_KeptWhileNoModelIsCalled(t *testing.T) {
	calls, cuts := 0, false
	cutter := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if !cuts {
			return convo.Edit{}, convo.ErrNoGain
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	})
	h := aboveHigh(t, convo.Chain(cutter, noStandIn(convo.Summarize{With: broken(&calls), Window: -1})))
	add := func(n int) { mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("x", n))) }
	for calls < 6 {
		_, _, _ = h.Prepare(t.Context())
		add(10)
	}
	add(1000) // the breaker is closed
	cuts = true
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	cuts = false
	add(1000)
	r = requireFailed(t)(reportOf(h.Prepare(t.Context())))
	require.ErrorContains(t, r.Cause, "model is down")
	require.Equal(t, 8, calls)
	add(450) // more than MinFree/2, less than eight times that
	requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	assert.Equal(t, 8, calls)
}

// A summarizer that ignores its ctx is abandoned when ctx ends. That counts as a
// failure from then on, not from when the call returns, and the summary it
// returns then is no success.
func TestBreaker_AbandonedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		h := aboveHigh(t, convo.Summarize{Window: -1, Timeout: -1, With: convo.SummarizerFunc(
			func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				mu.Lock()
				calls++
				mu.Unlock()
				time.Sleep(time.Hour)
				return convo.Summary{Text: "late"}, nil
			})})
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go func() { _, _, _ = h.Prepare(ctx) }()
			time.Sleep(2 * time.Second)
		}
		mu.Lock()
		assert.Equal(t, 1, calls)
		mu.Unlock()
		time.Sleep(2 * time.Hour) // it has returned
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.ErrorIs(t, r.Cause, convo.ErrBreaker)
		assert.Equal(t, 1, calls)

		// It was one failure, not two: MinFree/2 more, and it is asked again.
		mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("x", 100)))
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
		assert.Equal(t, 2, calls)
	})
}

// When a rollback makes the edit stale, the summarizer has not failed.
func TestBreaker_RollbackMeanwhile(t *testing.T) {
	var h *convo.History
	calls := 0
	var outcomes []convo.Outcome
	opts := windowOf(40_000, convo.Summarize{Window: -1, MaxTokens: 200, KeepTokens: -1, With: convo.SummarizerFunc(
		func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			if calls++; calls == 1 {
				_, err := h.Rewind(1)
				return convo.Summary{Text: "stale"}, err
			}
			return convo.Summary{Text: "fine"}, nil
		})})
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	opts.OnCompaction = func(r convo.Report) { outcomes = append(outcomes, r.Outcome) }
	h = toolTurn(t, opts, 30)
	mustAppend(t, h, convo.User("more"), convo.Assistant(strings.Repeat("so ", 100)), convo.User("thanks"))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, 2, calls, "tried again at once")
	assert.Equal(t, []convo.Outcome{convo.OutcomeStale, convo.OutcomeApplied}, outcomes)
}

// A summary that a Chain refuses, because it frees nothing, counts as a failure of the
// summarizer.
func TestBreaker_SummaryThatAChainRefuses(t *testing.T) {
	runs := 0
	own := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if g.NoModel != nil {
			return convo.Edit{}, convo.ErrBreaker
		}
		runs++
		e := convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "x"}}
		next, err := s.With(e)
		if err != nil {
			return e, err
		}
		e.Summary.Text = strings.Repeat("x", s.Tokens()-next.Tokens()+2)
		return e, nil
	})
	h := aboveHigh(t, convo.Chain(own, convo.Truncate{}))
	for range 5 {
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "by the next link")
		mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
		l := convo.Limits{Window: 40_000, Reserve: -1, High: h.Status().Upper - 1, MinFree: 200}
		l.Low = l.High - 300
		l.Soft = l.High - 1
		require.NoError(t, h.SetLimits(l))
	}
	assert.Equal(t, 1, runs)
}

func TestBreaker(t *testing.T) {
	calls := 0
	opts := windowOf(40_000, convo.Summarize{With: broken(&calls), Window: -1})
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	h := toolTurn(t, opts, 30) // above high water
	// Each failure doubles what must be appended until the next try, from
	// MinFree/2 to High - Low.
	var gaps []int
	appended := 0
	for len(gaps) < 6 {
		before := calls
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.True(t, r.Fits)
		if calls > before {
			require.ErrorContains(t, r.Cause, "model is down")
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			gaps = append(gaps, appended*9/8)
			appended = 0
		} else {
			assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
			assert.ErrorIs(t, r.Cause, convo.ErrBreaker)
		}
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		appended += 9
	}
	for i, least := range []int{0, 100, 200, 400, 800, 1000} {
		assert.InDelta(t, least, gaps[i], 11)
	}

	// What is asked for by hand is not bound by it.
	before := calls
	_, err := h.Compact(t.Context(), "")
	require.Error(t, err)
	assert.Equal(t, before+2, calls, "and it is repeated")
}

func TestBreaker_Resets(t *testing.T) {
	calls, down := 0, true
	with := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		if calls++; down {
			return convo.Summary{}, errors.New("model is down")
		}
		return convo.Summary{Text: "fine"}, nil
	})
	opts := windowOf(40_000, convo.Summarize{With: with, Window: -1, MaxTokens: 200})
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	h := toolTurn(t, opts, 30)
	requireFailed(t)(reportOf(h.Prepare(t.Context())))
	for down = false; calls == 2; {
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	}
	assert.LessOrEqual(t, h.Status().Upper, 2000)
	// After the success, a failure counts as the first again.
	var r convo.Report
	for down = true; calls == 3; {
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		r, _ = reportOf(h.Prepare(t.Context()))
	}
	requireFailed(t)(r, nil)
	appended := 0
	for calls == 5 {
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		appended += 9
		_, _, _ = h.Prepare(t.Context())
	}
	assert.LessOrEqual(t, appended*9/8, 111)
}

// A call that was made counts as a failure even if the caller's ctx ended it:
// callers build timeouts out of cancel functions.
func TestBreaker_EndedContext(t *testing.T) {
	var calls atomic.Int32
	waits := convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
		calls.Add(1)
		<-ctx.Done()
		return convo.Summary{}, ctx.Err()
	})
	for _, tt := range []struct {
		name  string
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		calls int
	}{
		{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, 1},
		{"timed out", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls.Store(0)
				opts := windowOf(40_000, convo.Summarize{With: waits, Window: -1})
				opts.Limits.High = 3000
				h := toolTurn(t, opts, 30)
				for range 2 {
					ctx, cancel := tt.ctx(t.Context())
					_, _, _ = h.Prepare(ctx)
					cancel()
				}
				assert.EqualValues(t, tt.calls, calls.Load())
			})
		})
	}
}

// A summary that frees nothing counts as a failure of the summarizer.
func TestBreaker_SummaryThatFreesNothing(t *testing.T) {
	calls := 0
	opts := windowOf(40_000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if g.NoModel != nil {
			return convo.Edit{}, convo.ErrBreaker
		}
		calls++
		e := convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "x"}}
		next, err := s.With(e)
		if err != nil {
			return e, err
		}
		e.Summary.Text = strings.Repeat("x", 1+s.Tokens()-next.Tokens())
		return e, nil
	}))
	opts.Limits.High = 1000
	h := toolTurn(t, opts, 20)
	for range 20 {
		_, _, _ = h.Prepare(t.Context())
	}
	assert.Equal(t, 1, calls)
}

// A summarizer that takes back what it reads, each time, is excused once.
func TestBreaker_RollbackByTheSummarizer(t *testing.T) {
	var h *convo.History
	calls := 0
	h = aboveHigh(t, convo.Summarize{Window: -1, With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		calls++
		_, err := h.Rewind(1000)
		for range 40 {
			mustAppend(t, h, convo.User(strings.Repeat("u", 1000)), convo.Assistant(strings.Repeat("a", 1000)))
		}
		return convo.Summary{Text: "short"}, err
	})})
	h2 := h.Snapshot()
	require.Positive(t, h2.Len())
	_, _, _ = h.Prepare(t.Context())
	require.Equal(t, 2, calls, "one more try after a rollback, in the same call")
	for range 50 {
		_, _, _ = h.Prepare(t.Context())
	}
	assert.LessOrEqual(t, calls, 12, "what is appended closes the breaker again, later each time")
}

// Behind the breaker, the failure that opened it can still be seen, alone and in
// a ladder. The end of a ctx that is not the caller's own cannot.
func TestBreaker_ShowsTheFailure(t *testing.T) {
	unavailable := errors.New("503 Service Unavailable")
	fails := convo.Summarize{Window: -1, With: convotest.Failing{Err: unavailable}}
	for name, c := range map[string]convo.CompactionStrategy{
		"alone": fails, "in a ladder": convo.Chain(convo.ClearToolResults{MinResult: 1 << 30}, noStandIn(fails)),
	} {
		opts := windowOf(1000, c)
		h := toolTurn(t, opts, 20)
		_, _, err := h.Prepare(t.Context())
		require.ErrorIs(t, err, unavailable, name)
		require.NotErrorIs(t, err, convo.ErrBreaker, name)
		for range 2 {
			r, err := reportOf(h.Prepare(t.Context()))
			require.ErrorIs(t, err, convo.ErrBreaker, name)
			require.ErrorIs(t, err, unavailable, name)
			assert.ErrorContains(t, err, "; summarizer is backing off after failures, the last of which was: ", name)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome, name)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	h := toolTurn(t, windowOf(1000, convo.Summarize{Window: -1, With: convo.SummarizerFunc(
		func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
			cancel()
			return convo.Summary{}, ctx.Err()
		})}), 20)
	_, _, err := h.Prepare(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = h.Prepare(t.Context())
	require.ErrorIs(t, err, convo.ErrBreaker)
	require.NotErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "context canceled")
}
