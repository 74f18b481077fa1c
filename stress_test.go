package convo_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
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
)

// acks holds the texts of messages whose Append returned nil, by the last ID of
// their batch.
type acks struct {
	mu   sync.Mutex
	text map[convo.ID]string
}

func (a *acks) add(id convo.ID, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text[id] = text
}

// gone counts how often reports named each ID.
type gone struct {
	mu  sync.Mutex
	ids map[convo.ID]int
}

func (g *gone) report(r convo.Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range slices.Concat(r.Dropped, r.Summarised) {
		g.ids[id]++
	}
}

// checkPairs checks that a view has the order that Append leads to, apart from
// what compactions took.
func checkPairs(t testing.TB, s *convo.Snapshot) {
	t.Helper()
	if fault := orderFault(s); fault != "" {
		t.Errorf("%s in %v", fault, s)
	}
}

// appendOne appends a user message, or a user message with a whole tool round.
func appendOne(h *convo.History, text string, round bool) (convo.ID, error) {
	if !round {
		return h.Append(convo.User(text))
	}
	call := convo.ToolCall{ID: "c1", Name: "run", Arguments: `{}`}
	return h.Append(convo.User(text+" round"), convo.Assistant("", call), convo.Result(call, text))
}

// While goroutines append and splice, no message is lost: each is in the view as
// it was, once and in order, or named by a report.
func TestTorture_NoMessageIsLost(t *testing.T) {
	lost := &gone{ids: map[convo.ID]int{}}
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), OnCompaction: lost.report})
	require.NoError(t, err)
	done := &acks{text: map[convo.ID]string{}}

	const appenders, each = 4, 1500
	var running atomic.Int32
	running.Store(appenders)
	var wg sync.WaitGroup
	for a := range appenders {
		wg.Go(func() {
			defer running.Add(-1)
			for i := range each {
				text := fmt.Sprintf("%d/%d", a, i)
				id, err := appendOne(h, text, i%5 == 0)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				done.add(id, text)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for last := false; !last; {
				last = running.Load() == 0 // once more when all is there
				at := h.Snapshot()
				_, err := h.SplicePrefix(at, at.Len()/2, "summary")
				if err != nil {
					assert.ErrorIs(t, err, convo.ErrStale)
				}
			}
		})
	}
	wg.Wait()
	assert.Len(t, done.text, appenders*each)
	checkNothingLost(t, h.Snapshot(), done, lost)
}

// checkNothingLost checks that each message is in the view as it was, once and
// in order, or was reported once as part of the summary.
func checkNothingLost(t *testing.T, s *convo.Snapshot, done *acks, lost *gone) {
	t.Helper()
	checkPairs(t, s)
	there := map[convo.ID]string{}
	for _, e := range s.All() {
		there[e.ID] = e.Message.Text()
	}
	for id, text := range done.text {
		got, present := there[id]
		if present == (lost.ids[id] == 1) || lost.ids[id] > 1 {
			t.Errorf("entry %d: present %v, reported gone %d times", id, present, lost.ids[id])
		}
		if present && got != text {
			t.Errorf("entry %d is %q, want %q", id, got, text)
		}
	}
	sum, ok := s.Summary()
	require.True(t, ok)
	covered := map[convo.ID]bool{}
	for _, r := range sum.Covers {
		for id := r.First; id <= r.Last; id++ {
			covered[id] = true
		}
	}
	for id := range lost.ids {
		if !covered[id] {
			t.Errorf("entry %d went and the summary does not cover it", id)
		}
	}
}

var tortureAppends = flag.Int("convo.appends", 40_000, "appends of TestTorture_Background")

// Goroutines append while compactions run in the background with slow summaries,
// and in the foreground when the window is full.
func TestTorture_Background(t *testing.T) {
	lost := &gone{ids: map[convo.ID]int{}}
	var applied atomic.Int64
	with := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		return convotest.Slow{For: 2 * time.Millisecond, With: &convotest.Flaky{Every: 5}}.Summarize(ctx, req)
	})
	h, err := convo.New(&convo.Options{
		Roles:    convo.Relaxed(),
		Limits:   convo.Limits{Window: 60_000, Reserve: -1, High: 50_000, Low: 2_000, Soft: 5_000},
		Strategy: convo.Summarize{With: with, Window: -1},
		OnCompaction: func(r convo.Report) {
			if lost.report(r); r.Outcome == convo.OutcomeApplied {
				applied.Add(1)
			}
		},
	})
	require.NoError(t, err)
	done := &acks{text: map[convo.ID]string{}}

	const appenders = 4
	var running atomic.Int32
	running.Store(appenders)
	var wg sync.WaitGroup
	for a := range appenders {
		wg.Go(func() {
			defer running.Add(-1)
			for i := range *tortureAppends / appenders {
				text := fmt.Sprintf("%d/%d", a, i)
				id, err := appendOne(h, text, i%5 == 0)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				done.add(id, text)
				if i%10 == 0 {
					h.CompactInBackground(t.Context())
				}
				if _, err := h.CompactIfNeeded(t.Context()); err != nil {
					t.Errorf("compact: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	_, _ = h.Wait(t.Context())
	t.Logf("%d appends, %d compactions, %d entries left", len(done.text), applied.Load(), h.Len())
	assert.Len(t, done.text, *tortureAppends/appenders*appenders)
	assert.Positive(t, applied.Load())
	checkNothingLost(t, h.Snapshot(), done, lost)
	require.NoError(t, h.Close())
}

// All operations run at once. Snapshots never change, views stay valid, and what
// is left in the end is what was acknowledged and not taken.
func TestTorture_Everything(t *testing.T) {
	lost := &gone{ids: map[convo.ID]int{}}
	pool := convo.NewBudget(math.MaxInt32)
	h, err := convo.New(&convo.Options{
		Roles:        convo.Relaxed(),
		Limits:       convo.Limits{Window: 4000, Reserve: -1},
		Strategy:     convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{With: &convotest.Flaky{}, Window: -1}, convo.Truncate{}),
		OnCompaction: lost.report,
		Budget:       pool,
	})
	require.NoError(t, err)
	done := &acks{text: map[convo.ID]string{}}
	const each = 450

	var wg sync.WaitGroup
	for a := range 3 {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d/%d", a, i)
				id, err := appendOne(h, text, i%3 == 0)
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				done.add(id, text)
			}
		})
	}
	worker := func(seed uint64, step func(rng *rand.Rand)) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 9))
			for range each / 3 {
				step(rng)
			}
		})
	}
	worker(1, func(rng *rand.Rand) { // pins
		at := h.Snapshot()
		if at.Len() == 0 {
			return
		}
		e, _ := at.At(rng.IntN(at.Len()))
		if err := h.Pin(e.ID); err != nil {
			assert.ErrorIs(t, err, convo.ErrNotFound)
		}
		if rng.IntN(2) == 0 {
			if err := h.Unpin(e.ID); err != nil {
				assert.ErrorIs(t, err, convo.ErrNotFound)
			}
		}
	})
	worker(2, func(rng *rand.Rand) { // splices
		at := h.Snapshot()
		if _, err := h.SplicePrefix(at, rng.IntN(at.Len()+1), "summary"); err != nil {
			assert.ErrorIs(t, err, convo.ErrStale)
		}
	})
	worker(3, func(rng *rand.Rand) { // rollbacks
		if rng.IntN(3) > 0 {
			if _, err := h.Rewind(rng.IntN(2)); err != nil {
				t.Errorf("rewind: %v", err)
			}
			return
		}
		at := h.Snapshot()
		if err := h.Rollback(at); err != nil {
			assert.ErrorIs(t, err, convo.ErrStale)
		}
	})
	worker(4, func(rng *rand.Rand) { // the rest
		at := h.Snapshot()
		assert.NoError(t, h.RecordUsage(at, convo.Usage{Input: rng.IntN(10_000)}))
		assert.NoError(t, h.SetSystem(convo.System("s")))
		assert.NoError(t, h.SetEphemeral(convo.User("e")))
		_, err := h.AnswerOpenCalls("")
		assert.NoError(t, err)
		_ = h.Status()
	})
	worker(5, func(rng *rand.Rand) { // compactions
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(2000))*time.Microsecond)
		defer cancel()
		var r convo.Report
		var err error
		switch rng.IntN(6) {
		case 0:
			h.CompactInBackground(ctx)
			// OutcomeNotNeeded: there was none to wait for, whatever was reported since.
			if r, err = h.Wait(ctx); err == nil && !r.Fits && r.Cause == nil && r.Outcome != convo.OutcomeApplied && r.Outcome != convo.OutcomeNotNeeded {
				t.Errorf("does not fit, and no cause: %+v", r)
			}
			return
		case 1:
			r, err = h.Compact(ctx, "")
			if done := r.Outcome == convo.OutcomeApplied || r.Outcome == convo.OutcomeNotNeeded; done != (err == nil) {
				t.Errorf("outcome %v beside %v", r.Outcome, err)
			}
			return
		case 2:
			var res *convo.Reservation
			res, r, err = h.MakeRoom(ctx, 1000)
			res.Release()
		case 3:
			_, _, _ = h.Recover(ctx, h.Snapshot(), errors.New("prompt is too long"))
			return
		default:
			_, r, err = h.Prepare(ctx)
		}
		if !r.Fits && err == nil {
			t.Errorf("does not fit, and no error: %+v", r)
		}
	})
	worker(6, func(*rand.Rand) { // readers
		s := h.Snapshot()
		before := printOf(s)
		checkPairs(t, s)
		if after := printOf(s); after != before {
			t.Errorf("snapshot %d changed", s.Version())
		}
	})
	wg.Wait()

	s := h.Snapshot()
	checkPairs(t, s)
	for _, e := range s.All() {
		if want, ok := done.text[e.ID]; ok && e.Message.Text() != want {
			t.Errorf("entry %d is %q, want %q", e.ID, e.Message.Text(), want)
		}
		if lost.ids[e.ID] > 0 && e.Message.Role != convo.RoleSystem {
			t.Logf("entry %d was dropped and a rollback put it back", e.ID)
		}
	}
	assert.Equal(t, h.Tokens().Upper, pool.Used())
	require.NoError(t, h.Close())
	assert.Zero(t, pool.Used())
}

// Unless histories overdraw a pool, no more is ever reserved than it holds.
func TestTorture_BudgetNeverOvercommits(t *testing.T) {
	pool := convo.NewBudget(1000)
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 4))
			var held []*convo.Reservation
			for range 5000 {
				if r, err := pool.Reserve(rng.IntN(400)); err == nil {
					held = append(held, r)
				} else {
					assert.ErrorIs(t, err, convo.ErrBudget)
				}
				if used := pool.Used(); used > 1000 || used < 0 {
					t.Errorf("%d of 1000 used", used)
				}
				if len(held) > 0 && rng.IntN(2) == 0 {
					r := held[0]
					held = held[1:]
					go r.Release() // once, whoever is first
					r.Release()
				}
			}
			for _, r := range held {
				r.Release()
			}
		})
	}
	wg.Wait()
	assert.Zero(t, pool.Used())
	assert.Equal(t, 1000, pool.Free())
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
				r, err := h.CompactIfNeeded(t.Context())
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
		_, err := h.CompactIfNeeded(t.Context())
		require.ErrorContains(t, err, "panic in CompactionStrategy: no name")
	})

	var reported []convo.Report
	opts := windowOf(50_000, panicsWhenDue{})
	opts.OnCompaction = func(r convo.Report) { reported = append(reported, r) }
	h = toolTurn(t, opts, 20)
	unchanged(t, h, func() {
		r := requireFailed(t)(h.CompactIfNeeded(t.Context()))
		assert.Equal(t, []convo.Report{r}, reported)
		require.ErrorContains(t, r.Cause, "panic in Trigger: not now")
		assert.NotErrorIs(t, r.Cause, convo.ErrClosed)
	})

	var nothing *convo.Truncate // a typed nil
	h = toolTurn(t, windowOf(1000, nothing), 20)
	unchanged(t, h, func() {
		_, err := h.CompactIfNeeded(t.Context())
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
	r, err := h.CompactIfNeeded(t.Context())
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
		_, err := h.CompactIfNeeded(t.Context()) // by ClearToolResults
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
		_, err := h.CompactIfNeeded(t.Context())
		t.Logf("%s: %v", name, err)
		_, err = h.Compact(t.Context(), name)
		t.Logf("%s: %v", name, err)
		checkPairs(t, h.Snapshot())
	}
}

// A summarizer that ignores its ctx and never returns blocks only its caller, and
// only until ctx ends. What is appended meanwhile stays, and other compactions run.
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
		r, err := h.CompactIfNeeded(ctx)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(start))
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Equal(t, 1, r.Calls)
		mustAppend(t, h, convo.User("are you there?"))
		r, err = h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		after := h.Snapshot()
		close(forever)
		synctest.Wait()
		assert.Same(t, after, h.Snapshot())
	})
}

// orderFault says which rule of every view is broken:
// results directly behind their calls, ascending IDs. It returns an empty string
// when none is.
func orderFault(s *convo.Snapshot) string {
	var open []string
	var last convo.ID
	others := false
	for _, e := range s.All() {
		m := e.Message
		if !others && (m.Role != convo.RoleSystem || e.Turn > 0) { // a note, if that has another turn than system entries
			others, last = true, 0
		}
		if e.ID <= last {
			return fmt.Sprintf("entry %d after %d", e.ID, last)
		}
		last = e.ID
		if m.Role != convo.RoleTool && len(open) > 0 {
			return fmt.Sprintf("entry %d while calls %v are open", e.ID, open)
		}
		for _, c := range m.ToolCalls() {
			open = append(open, c.ID)
		}
		for _, r := range m.ToolResults() {
			i := slices.Index(open, r.CallID)
			if i < 0 {
				return fmt.Sprintf("entry %d answers no open call", e.ID)
			}
			open = slices.Delete(open, i, i+1)
		}
	}
	return ""
}
