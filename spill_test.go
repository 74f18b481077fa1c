package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A Spill that fails is called a few times, and then again only when enough was
// appended, however many results there are.
func TestSpill_DownIsNotAskedForEachResult(t *testing.T) {
	for name, spill := range map[string]func(context.Context, convo.ToolResult) (string, error){
		"an error":         func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("disk full") },
		"a panic":          func(context.Context, convo.ToolResult) (string, error) { panic("disk full") },
		"a long reference": func(context.Context, convo.ToolResult) (string, error) { return strings.Repeat("x", 2000), nil },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			opts := windowOf(400_000, convo.ClearToolResults{})
			opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 60_000, 40_000, 2000
			opts.Spill = func(ctx context.Context, r convo.ToolResult) (string, error) {
				calls++
				return spill(ctx, r)
			}
			h := toolTurn(t, opts, 1000)
			for i := range 10 {
				r, err := reportOf(h.Prepare(t.Context()))
				require.NoError(t, err)
				assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
				if i > 0 {
					require.ErrorContains(t, r.Cause, "Options.Spill is not called for a while after failures", "nothing was planned in vain")
				}
			}
			assert.Equal(t, 3, calls)

			// Each failure doubles what must be appended, from MinFree/2 on.
			var gaps []int
			appended := 0
			for len(gaps) < 4 {
				before := calls
				mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("x", 97)))
				appended += 100
				requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
				if calls > before {
					assert.Equal(t, before+3, calls)
					gaps = append(gaps, appended*9/8)
					appended = 0
				}
			}
			for i, least := range []int{1000, 2000, 4000, 8000} {
				assert.InDelta(t, least, gaps[i], 120)
			}

			// What is asked for by hand is not bound by it.
			before := calls
			_, _ = h.Compact(t.Context(), "")
			assert.Equal(t, before+3, calls)
			_, _ = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			assert.Equal(t, before+4, calls)
			var all convo.Edit
			for id := convo.ID(4); id < 1000; id += 2 {
				all.Clear = append(all.Clear, convo.Clear{ID: id})
			}
			r, err := h.Apply(h.Snapshot(), all)
			require.Equal(t, r.Cause, err)
			assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
			assert.Equal(t, before+7, calls)
			assert.Len(t, strings.Split(r.Cause.Error(), "\n"), 4, "three failures, and once that there are more")
		})
	}
}

// While Spill is not called, a Chain goes on with its next link, and calls a
// summarizer once and not for an edit that would be refused.
func TestSpill_DownLeavesTheLadder(t *testing.T) {
	rec, calls := new(recorder), 0
	opts := windowOf(4000, convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: rec, Window: -1, MaxTokens: 200}))
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { calls++; return "", errors.New("disk full") }
	h := toolTurn(t, opts, 45)
	for i := range 100 {
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		require.True(t, r.Fits)
		c := callOf("d" + itoa(i))
		mustAppend(t, h, convo.User("on"), convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 92)), convo.Assistant("so"))
	}
	assert.Positive(t, calls)
	assert.Less(t, calls, 25)
	assert.NotEmpty(t, rec.requests)
}

// After one success, Spill is called as before.
func TestSpill_UpAgain(t *testing.T) {
	down, calls := true, 0
	opts := windowOf(40_000, convo.ClearToolResults{})
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) {
		if calls++; down {
			return "", errors.New("disk full")
		}
		return "f", nil
	}
	h := toolTurn(t, opts, 40)
	requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	require.Equal(t, 3, calls)
	down = false
	mustAppend(t, h, convo.User(strings.Repeat("x", 200)))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Len(t, r.Cleared, 40)
	assert.Equal(t, 43, calls)

	down = true
	mustAppend(t, h, convo.Assistant("so"), convo.User("on"))
	for i := range 30 {
		c := callOf("d" + itoa(i))
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 92)))
	}
	requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	require.Equal(t, 46, calls)
	mustAppend(t, h, convo.Assistant(strings.Repeat("x", 100))) // MinFree/2: it was the first failure in a row
	requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	assert.Equal(t, 49, calls)
}

// When Spill fails for one result, the others are cleared.
func TestSpill_OneThatFails(t *testing.T) {
	opts := windowOf(3000, convo.ClearToolResults{})
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		if r.CallID == "c3" {
			return "", errors.New("too large")
		}
		return "f", nil
	}
	h := toolTurn(t, opts, 30)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Len(t, r.Cleared, 29)
	require.ErrorContains(t, r.Cause, "too large")
}

// A strategy of the caller's that clears results does not call a failing Spill
// again and again either.
func TestSpill_DownForOtherStrategies(t *testing.T) {
	calls := 0
	opts := windowOf(40_000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		var e convo.Edit
		for id := convo.ID(4); id < 60; id += 2 {
			e.Clear = append(e.Clear, convo.Clear{ID: id})
		}
		return e, nil
	}))
	opts.Limits.High = 3000
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { calls++; return "", errors.New("disk full") }
	h := toolTurn(t, opts, 30)
	for range 10 {
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	}
	assert.Equal(t, 3, calls)
}

// Planning what to clear, while some results cannot be kept, is linear in the
// number of results.
func BenchmarkClearToolResults_SpillDown(b *testing.B) {
	for _, n := range []int{1000, 4000, 16_000} {
		opts := windowOf(0, convo.ClearToolResults{})
		opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("disk full") }
		h := toolTurn(b, opts, n)
		b.Run("results="+itoa(n), func(b *testing.B) {
			for b.Loop() {
				_, _ = h.Compact(b.Context(), "")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/result")
		})
	}
}

func TestSpill(t *testing.T) {
	refused := errors.New("disk full")
	for name, tt := range map[string]struct {
		spill func(context.Context, convo.ToolResult) (string, error)
		want  func(error) bool
	}{
		"its error is Append's": {func(context.Context, convo.ToolResult) (string, error) { return "", refused }, func(err error) bool { return errors.Is(err, refused) }},
		"a panic is an error": {func(context.Context, convo.ToolResult) (string, error) { panic(refused) }, func(err error) bool {
			p, ok := errors.AsType[*convo.PanicError](err)
			return ok && p.In == "Options.Spill" && errors.Is(err, refused)
		}},
		"a reference too long": {func(context.Context, convo.ToolResult) (string, error) { return strings.Repeat("r", 300), nil }, func(err error) bool {
			_, ok := errors.AsType[*convo.MessageError](err)
			return ok
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(&convo.Options{MaxResult: 256, Spill: tt.spill, Tokenizer: byBytes})
			require.NoError(t, err)
			call := convo.ToolCall{ID: "c", Name: "f"}
			_, err = h.Append(convo.User("u"), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 500)))
			assert.True(t, tt.want(err), "%v", err)
			assert.Zero(t, h.Len())
		})
	}
}

// When originals cannot be kept, a Chain goes on without clearing.
func TestClearToolResults_SpillFails(t *testing.T) {
	for name, spill := range map[string]func(context.Context, convo.ToolResult) (string, error){
		"an error":         func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("disk full") },
		"a long reference": func(context.Context, convo.ToolResult) (string, error) { return strings.Repeat("x", 2000), nil },
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(3000, nil) // the default ladder
			opts.Spill = spill
			h := historyOf(t, opts, convo.User("the task"))
			for i := range 80 {
				_, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				require.True(t, r.Fits)
				c := callOf("c" + itoa(i))
				mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 200)))
			}
		})
	}
}

// When an edit is refused and planned again, no original is spilled twice.
func TestClearToolResults_SpillsOnce(t *testing.T) {
	calls := map[string]int{}
	opts := windowOf(700, convo.ClearToolResults{MinFree: -1}) // never enough
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		calls[r.CallID]++
		return "f" + r.CallID, nil
	}
	h := toolTurn(t, opts, 20)
	for range 5 {
		_, _, err := h.Prepare(t.Context())
		require.Error(t, err)
	}
	require.NotEmpty(t, calls)
	for id, n := range calls {
		assert.Equal(t, 1, n, id)
	}
}

func TestClearToolResults_Spill(t *testing.T) {
	kept := map[string]string{}
	opts := bare()
	opts.Strategy = convo.ClearToolResults{KeepLast: 2}
	opts.Limits = convo.Limits{Window: 700, Reserve: -1}
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		if r.CallID == "c1" {
			return "", errors.New("disk full")
		}
		kept[r.CallID] = r.Text()
		return "file-" + r.CallID, nil
	}
	h := toolTurn(t, opts, 6)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{4, 8, 10, 12, 14}, r.Cleared)
	require.ErrorContains(t, r.Cause, "disk full")
	assert.Equal(t, strings.Repeat("x", 92), kept["c0"])
	e, _ := h.Snapshot().Find(4)
	assert.Equal(t, "[result of tool cleared: 92 bytes, kept at file-c0]", e.Message.ToolResults()[0].Text())
	e, _ = h.Snapshot().Find(6)
	assert.Len(t, e.Message.ToolResults()[0].Text(), 92, "what could not be kept stays")
}

// Once Spill has given a reference for a result, it is never called with what was left of
// that result, and the marker names the reference again, even where the original is no
// longer kept.
func TestSpill_NeverGetsWhatWasCut(t *testing.T) {
	long := strings.Repeat("one line of the result\n", 200)
	open := func(t *testing.T, s *convo.Snapshot, opts *convo.Options) *convo.History {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		read := new(convo.Snapshot)
		require.NoError(t, json.Unmarshal(data, read))
		h, err := convo.Restore(read, opts)
		require.NoError(t, err)
		return h
	}
	for _, tt := range []struct {
		name  string
		ref   string
		keep  int  // Options.KeepOriginals
		again bool // opened before the result is cleared
		floor bool // the result is still unanswered, and too long for the window
	}{
		{"no originals", "kept at 1]", -1, false, false},
		{"no room for the original", "file 1", 10, false, false},
		{"opened", "file 1", 0, true, false},
		{"opened, without a reference", "", 0, true, false},
		{"opened, and cut once more", "file 1", 0, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			opts := bare()
			opts.MaxResult, opts.KeepOriginals = 200, tt.keep
			opts.Strategy = convo.ClearToolResults{KeepLast: -1, MinFree: -1}
			opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
				calls++
				assert.Equal(t, long, r.Text(), "call %d", calls)
				return tt.ref, nil
			}
			h, err := convo.New(opts)
			require.NoError(t, err)
			mustAppend(t, h, convo.User("q"), convo.Assistant("", callOf("c")), convo.Result(callOf("c"), long))
			if !tt.floor {
				mustAppend(t, h, convo.Assistant("a"), convo.User("more"))
			}
			if tt.again {
				h = open(t, h.Snapshot(), opts)
			}
			if tt.floor {
				require.NoError(t, h.SetLimits(convo.Limits{Window: 300, Reserve: -1}))
				mustAppend(t, h, convo.User(strings.Repeat("q", 100)))
			}
			_, err = h.Compact(t.Context(), "")
			require.NoError(t, err)
			e, _ := h.Snapshot().Find(3)
			text := e.Message.ToolResults()[0].Text()
			assert.Less(t, len(text), 200)
			if tt.ref != "" {
				assert.Contains(t, text, ", kept at "+tt.ref+"]")
			}
			assert.Equal(t, 1, calls)
		})
	}
}

// Where the original of a result that was cut is gone, its marker has the reference. The
// result next to it, which was not cut, is stored when it is cleared.
func TestSpill_NextToACutResult(t *testing.T) {
	var spilled []string
	opts := bare()
	opts.MaxResult, opts.KeepOriginals = 100, -1
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		spilled = append(spilled, r.CallID)
		return fmt.Sprint("ref-", len(spilled)), nil
	}
	result := func(id, text string) convo.ToolResult {
		return convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(text)}}
	}
	const quoted = "\n[cut: 9 bytes left out, not kept]\n[cut: bytes left out, kept at x"
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", callOf("a"), callOf("b")),
		convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result("a", strings.Repeat("long ", 60)), result("b", strings.Repeat("b", 30)+quoted)}},
		convo.Assistant("so"), convo.User("v"), convo.Assistant("w"))
	require.Equal(t, []string{"a"}, spilled)
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	assert.Equal(t, []string{"a", "b"}, spilled)
	for i, ref := range []string{"ref-1", "ref-2"} {
		assert.Contains(t, find(t, h, 3).Message.Parts[i].(convo.ToolResult).Text(), ref)
	}
}
