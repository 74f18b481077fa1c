package convo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// The texts of all errors, with all of their fields set and with none.
func TestErrors_Texts(t *testing.T) {
	for want, err := range map[string]error{
		"convo: Limits.High is 7, want less":                      &convo.ValueError{Name: "Limits.High", Value: 7, Want: "less"},
		`convo: message 2 ("user"): empty`:                        &convo.MessageError{Index: 2, Role: convo.RoleUser, Part: -1, Reason: "empty"},
		`convo: message 2 ("user"), part 0: nil part`:             &convo.MessageError{Index: 2, Role: convo.RoleUser, Reason: "nil part"},
		"convo: message 0 (no role): unknown role":                &convo.MessageError{Part: -1, Reason: "unknown role"},
		`convo: message 0 ("a role with a name t"): unknown role`: &convo.MessageError{Role: "a role with a name that is long", Part: -1, Reason: "unknown role"},
		`convo: message 1: role "assistant" may not come first; append the user message that it answers before it, or set Options.Roles to Relaxed() to allow it`:      &convo.RoleError{Attempted: convo.RoleAssistant, Index: 1},
		`convo: message 1: role "assistant" may not follow "system"; append the user message that it answers before it, or set Options.Roles to Relaxed() to allow it`: &convo.RoleError{Attempted: convo.RoleAssistant, Previous: convo.RoleSystem, Index: 1},
		`convo: message 1: two calls in one message have the same ID (id "c", tool "f"); leave the ID empty to have one made`:                                          &convo.PairError{Err: convo.ErrDuplicateCall, CallID: "c", Name: "f", Index: 1},
		`convo: message 0: a call has no result yet (id "c", tool "f"); append its result first, or give it up with AnswerOpenCalls`:                                   &convo.PairError{Err: convo.ErrOpenCalls, CallID: "c", Name: "f"},
		`convo: snapshot entry 2 (ID 4): a call has no result yet (id "c", tool "f"); Options.Repair makes Restore repair it`:                                          &convo.SnapshotError{Index: 2, ID: 4, Err: &convo.PairError{Err: convo.ErrOpenCalls, CallID: "c", Name: "f", Index: 2}},
		`convo: snapshot entry 2 (ID 4): role "user" may not follow "user"; set Options.Roles to allow it, or Options.Repair to keep it all the same`:                  &convo.SnapshotError{Index: 2, ID: 4, Err: &convo.RoleError{Attempted: convo.RoleUser, Previous: convo.RoleUser, Index: 2}},
		`convo: Tiktoken model is "", want a name`: &convo.ValueError{Name: "Tiktoken model", Value: "", Want: "a name"},
		`convo: message 1: role "user" may not be in an answer; give user messages to Queue, or append them when Do has returned; SetSystem takes system messages`:                                         &convo.RoleError{Attempted: convo.RoleUser, Previous: convo.RoleAssistant, Index: 1, Answer: true},
		`convo: message 0: result answers no call of the newest exchange (id "c", tool "f"); make it with Result for a call of the newest assistant message, or leave it out`:                              &convo.PairError{Err: convo.ErrNoOpenCall, CallID: "c", Name: "f"},
		`convo: message 0: result without an ID could answer the calls ["a" "b" "c" "d" "e" "f" "g" "h"] (tool "f"); make it with Result, or append the results of all open calls at once, in their order`: &convo.PairError{Err: convo.ErrAmbiguous, Name: "f", Calls: strings.Split("a b c d e f g h", " ")},
		`convo: message 0: result without an ID could answer the calls ["a" "b" "c" "d" "e" "f" "g" "h"] and 1 more (tool "f"); make it with Result, or append the results of all open calls at once, in their order`: &convo.PairError{
			Err: convo.ErrAmbiguous, Name: "f", Calls: strings.Split("a b c d e f g h i", " ")},
		`convo: message 3: call already has a result (id "c", tool "f"); leave it out, or take the first result back with Rollback`: &convo.PairError{Err: convo.ErrAnswered, CallID: "c", Name: "f", Index: 3},
		"convo: the model was not done after 1 request; call Run again to go on, or raise RunOptions.MaxRequests":                   &convo.MaxRequestsError{Max: 1},
		"convo: the answer is empty (stop: done); ask the model again":                                                              &convo.AnswerError{},
		"convo: edit: r":                      &convo.EditError{Rule: "r"},
		"convo: edit: r (entry 1)":            &convo.EditError{Rule: "r", ID: 1},
		`convo: edit: r (entry 1) (call "c")`: &convo.EditError{Rule: "r", ID: 1, CallID: "c"},
		"convo: budget exhausted: need 5 tokens, 2 are free; release a Reservation or compact a History that uses the budget": &convo.BudgetError{Need: 5, Free: 2},
		"convo: refused: the summary is empty":                           &convo.RefusedError{Reason: "the summary is empty"},
		"convo: snapshot: nil snapshot; pass the data as it was written": &convo.SnapshotError{Index: -1, Err: errors.New("nil snapshot")},
		"convo: snapshot entry 0 (ID 4): refused: why":                   &convo.SnapshotError{ID: 4, Err: &convo.RefusedError{Reason: "why"}},
		"convo: panic in Trigger: boom":                                  &convo.PanicError{In: "Trigger", Value: "boom"},
		`convo: message 0: role "user" may not follow "user"; request an answer first, or give the message to Queue, which appends it after the answer; Rewind(1) takes the unanswered one back`:                       &convo.RoleError{Attempted: convo.RoleUser, Previous: convo.RoleUser},
		`convo: message 1: role "user" may not follow "user"; put both into one message, or set Options.Roles to Relaxed() to allow it`:                                                                                &convo.RoleError{Attempted: convo.RoleUser, Previous: convo.RoleUser, Index: 1},
		`convo: message 1: role "system" may not follow "user"; a system message may stand before calls or after all their results, unless RolePolicy.NoNotes is set; SetSystem replaces the system messages in front`: &convo.RoleError{Attempted: convo.RoleSystem, Previous: convo.RoleUser, Index: 1},
		`convo: message 1: role "assistant" may not follow "assistant"; put both into one message, or append what the user said in between, or set Options.Roles to Relaxed() to allow it`:                             &convo.RoleError{Attempted: convo.RoleAssistant, Previous: convo.RoleAssistant, Index: 1},
		`convo: message 1: role "user" may not follow "tool"; set Options.Roles to allow it`:                                                                                                                           &convo.RoleError{Attempted: convo.RoleUser, Previous: convo.RoleTool, Index: 1},
		"convo: stale snapshot: r":         &convo.StaleError{Reason: "r"},
		"convo: stale snapshot: entry 3 r": &convo.StaleError{Reason: "r", ID: 3},
		"convo: cannot fit: 9 tokens after compaction exceed limit 8; end the strategy with Truncate in a Chain, or raise Limits.Window": &convo.LimitError{Need: 9, Limit: 8, Compacted: true},
		"convo: cannot fit: 9,153 tokens exceed limit 7,000; end the strategy with Truncate in a Chain, or raise Limits.Window":          &convo.LimitError{Need: 9153, Limit: 7000},
		"convo: Limits.Tools is -128,000, want 0 or more":                                                               &convo.ValueError{Name: "Limits.Tools", Value: -128_000, Want: "0 or more"},
		"convo: cannot fit: 9 tokens exceed limit 8; end the strategy with Truncate in a Chain, or raise Limits.Window": &convo.LimitError{Need: 9, Limit: 8},
	} {
		assert.EqualError(t, err, want)
	}
}

// Each cause of a stale snapshot has a text of its own, which names the entry.
func TestErrors_Stale(t *testing.T) {
	const again = "; take a new snapshot"
	round := convo.Edit{Drop: []convo.ID{3, 4}}
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, h *convo.History) error
		want string
		id   convo.ID
	}{
		{"nil", func(t *testing.T, h *convo.History) error { return h.Rollback(nil) },
			"it is nil; take one with History.Snapshot", 0},
		{"of another History", func(t *testing.T, h *convo.History) error {
			other, err := convo.Restore(h.Snapshot(), nil)
			require.NoError(t, err)
			return h.Rollback(other.Snapshot())
		}, "another History made it; take one of this History", 0},
		{"of With", func(t *testing.T, h *convo.History) error {
			s, err := h.Snapshot().With(round)
			require.NoError(t, err)
			_, err = h.Apply(s, convo.Edit{Drop: []convo.ID{5, 6}})
			return err
		}, "it belongs to no History, since With, NewSnapshot, Load or JSON made it; make a History of it with Restore", 0},
		{"taken back", func(t *testing.T, h *convo.History) error {
			early := h.Snapshot()
			mustAppend(t, h, convo.User("on"), convo.Assistant("so")) // 24 and 25
			late := h.Snapshot()
			require.NoError(t, h.Rollback(early))
			return h.Rollback(late)
		}, "entry 24 was taken back by a rollback since" + again, 24},
		{"undone", func(t *testing.T, h *convo.History) error {
			early := h.Snapshot()
			mustAppend(t, h, convo.User("on"))
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{23}})
			require.NoError(t, err)
			_, err = h.Rewind(1)
			require.NoError(t, err)
			edited := h.Snapshot()
			require.NoError(t, h.Rollback(early))
			return h.Rollback(edited)
		}, "an edit that it shows was undone since" + again, 0},
		{"another summary", func(t *testing.T, h *convo.History) error {
			s := h.Snapshot()
			_, err := h.Apply(s, convo.Edit{Summary: &convo.Summary{Text: "first"}})
			require.NoError(t, err)
			_, err = h.Apply(s, convo.Edit{Summary: &convo.Summary{Text: "second"}})
			return err
		}, "another summary was put in place since" + again, 0},
		{"an entry gone, dropped", func(t *testing.T, h *convo.History) error {
			s := h.Snapshot()
			requireNoFailure(t)(h.Apply(s, round))
			_, err := h.Apply(s, convo.Edit{Drop: []convo.ID{3, 4, 5, 6}})
			return err
		}, "entry 3 has left the view since" + again, 3},
		{"an entry gone, cleared", func(t *testing.T, h *convo.History) error {
			s := h.Snapshot()
			requireNoFailure(t)(h.Apply(s, round))
			_, err := h.Apply(s, convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 6}}})
			return err
		}, "entry 4 has left the view since" + again, 4},
		{"floor by now", func(t *testing.T, h *convo.History) error {
			mustAppend(t, h, convo.User("on"))
			s := h.Snapshot()
			_, err := h.Rewind(1)
			require.NoError(t, err)
			_, err = h.Apply(s, convo.Edit{Drop: []convo.ID{23}})
			return err
		}, "entry 23 is the newest exchange by now, which no compaction removes" + again, 23},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := toolTurn(t, windowOf(0, nil), 10) // entries 1 to 23
			err := tt.do(t, h)
			require.ErrorIs(t, err, convo.ErrStale)
			require.EqualError(t, err, "convo: stale snapshot: "+tt.want)
			var stale *convo.StaleError
			require.ErrorAs(t, err, &stale)
			assert.Equal(t, tt.id, stale.ID)
		})
	}
}

// Faults of limits name what the caller has set, and the defaults with it.
func TestErrors_Limits(t *testing.T) {
	for want, l := range map[string]convo.Limits{
		"{Window: 100, High: 200, Low: 300}, want Low < High; High <= Window - Reserve; with its defaults it is {Window: 100, Reserve: 12, High: 200, Low: 300, Soft: 251}": {Window: 100, High: 200, Low: 300},
		"{Window: 100, Low: 95}, want Low < High; with its defaults it is {Window: 100, Reserve: 12, High: 88, Low: 95, Soft: 92}":                                          {Window: 100, Low: 95},
		"{Window: 100, Reserve: 50, High: 60}, want High <= Window - Reserve; with its defaults it is {Window: 100, Reserve: 50, High: 60, Low: 30, Soft: 45, MinFree: 7}":  {Window: 100, Reserve: 50, High: 60},
		"{High: 10, Low: 10}, want Low < High; with its defaults it is {High: 10, Low: 10, Soft: 10}":                                                                       {High: 10, Low: 10},
	} {
		_, err := convo.New(&convo.Options{Limits: l})
		assert.EqualError(t, err, "convo: Limits is "+want)
	}
	for want, z := range map[string]convo.Summarize{"Limits.Window is 500": {}, "Summarize.Window is 500": {Window: 500}} {
		z.With = new(recorder)
		_, err := toolTurn(t, windowOf(500, z), 20).Compact(t.Context(), "")
		assert.ErrorContains(t, err, "exceed limit 500; "+want+", want at least ")
	}
}

// An error mentions a compaction only if there was one.
func TestErrors_AfterCompaction(t *testing.T) {
	for want, e := range map[string]convo.Edit{
		"convo: cannot fit: 2,427 tokens exceed limit 1,000; nothing worth removing; end the strategy with Truncate in a Chain, or raise Limits.Window": {},
		"convo: cannot fit: 2,308 tokens after compaction exceed limit 1,000; end the strategy with Truncate in a Chain, or raise Limits.Window":        {Drop: []convo.ID{3, 4}},
	} {
		h := toolTurn(t, windowOf(1000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return e, nil })), 20)
		_, _, err := h.Prepare(t.Context())
		assert.EqualError(t, err, want)
	}
}

// The text of an error has the remedy of ErrNoGain only if it has no other. An equal text of
// another error stays.
func TestErrors_OneRemedy(t *testing.T) {
	other := errors.New("no disk")
	for want, cause := range map[string]error{
		"nothing worth removing":                                                     convo.ErrNoGain,
		"mine: convo: nothing worth removing":                                        fmt.Errorf("mine: %w", convo.ErrNoGain),
		"nothing worth removing; nothing worth removing":                             errors.Join(convo.ErrNoGain, convo.ErrNoGain),
		"no disk, convo: nothing worth removing":                                     fmt.Errorf("%w, %w", other, convo.ErrNoGain),
		"nothing worth removing; go on with the conversation as it is, said the log": errors.New("nothing worth removing; go on with the conversation as it is, said the log"),
	} {
		e := &convo.LimitError{Need: 2, Limit: 1, Err: cause}
		assert.EqualError(t, e, "convo: cannot fit: 2 tokens exceed limit 1; "+want+"; end the strategy with Truncate in a Chain, or raise Limits.Window")
	}
	assert.EqualError(t, convo.ErrNoGain, "convo: nothing worth removing; go on with the conversation as it is")
}

// Without an exchange, PinLast says why it pins nothing.
func TestErrors_PinLast(t *testing.T) {
	for _, h := range []*convo.History{historyOf(t, nil), historyOf(t, nil, convo.System("s"))} {
		err := h.PinLast()
		require.ErrorIs(t, err, convo.ErrNotFound)
		assert.EqualError(t, err, "convo: not found: there is no exchange to pin; append a message other than a system message first")
	}
}

// The text of an error shortens the IDs, which stay as they are in the error.
func TestErrors_LongIDs(t *testing.T) {
	long := strings.Repeat("x", 1000)
	e := &convo.PairError{Err: convo.ErrAmbiguous, Calls: []string{"a", long, long}}
	assert.Less(t, len(e.Error()), 500)
	assert.Equal(t, []string{"a", long, long}, e.Calls)
}

func TestErrors_Match(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct{ err, is error }{
		{&convo.BudgetError{Need: 1}, convo.ErrBudget},
		{&convo.MaxRequestsError{Max: 1}, convo.ErrMaxRequests},
		{&convo.PairError{Err: convo.ErrOpenCalls}, convo.ErrOpenCalls},
		{&convo.SnapshotError{Err: convo.ErrVersion}, convo.ErrVersion},
		{&convo.PanicError{Value: boom}, boom},
	} {
		assert.ErrorIs(t, tt.err, tt.is)
		assert.NotErrorIs(t, tt.err, convo.ErrStale)
	}
	assert.NoError(t, (&convo.PanicError{Value: "boom"}).Unwrap())
}

// An error means that what was asked for is not so. The table says what that is
// for each operation that compacts, whatever happened to the compaction.
func TestErrors_OfEachOperation(t *testing.T) {
	plans := func(e convo.Edit, err error) convo.CompactionStrategy {
		return convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return e, err })
	}
	const tooLong = "prompt is too long"
	for _, tt := range []struct {
		name     string
		strategy convo.CompactionStrategy
		ctx      string // empty: one that lives; "ended"; "inside": one that a strategy was given
		closed   bool

		cause   string        // part of the cause in the report; empty: none
		outcome convo.Outcome // when the request fits
		refused bool          // the request must not be sent, though it would fit
		told    int           // reports that OnCompaction is given
	}{
		{name: "applied", strategy: convo.Truncate{}, outcome: convo.OutcomeApplied, told: 1},
		{name: "declined", strategy: plans(convo.Edit{}, nil), cause: "nothing worth removing", outcome: convo.OutcomeDeclined, told: 1},
		{name: "failed", strategy: plans(convo.Edit{}, errors.New("out of ideas")), cause: "out of ideas", outcome: convo.OutcomeFailed, told: 1},
		{name: "refused", strategy: plans(convo.Edit{Drop: []convo.ID{3}}, nil), cause: "drops part of an exchange", outcome: convo.OutcomeFailed, told: 1},
		{name: "panicked", strategy: convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic("boom") }),
			cause: "panic in CompactionStrategy: boom", outcome: convo.OutcomeFailed, told: 1},
		{name: "the summarizer failed", strategy: convo.Summarize{With: broken(new(int)), Window: -1},
			cause: "model is down", outcome: convo.OutcomeFailed, told: 1},
		{name: "ctx had ended", strategy: convo.Truncate{}, ctx: "ended", cause: "context canceled", outcome: convo.OutcomeFailed, told: 1},
		{name: "called from inside", strategy: convo.Truncate{}, ctx: "inside", cause: "called from inside a compaction", outcome: convo.OutcomeFailed, refused: true},
		{name: "closed", strategy: convo.Truncate{}, closed: true, cause: "history is closed", outcome: convo.OutcomeFailed, refused: true},
	} {
		// start returns a History that fits or not, a context for the operation,
		// and the reports that OnCompaction is given.
		start := func(t *testing.T, fits bool) (*convo.History, context.Context, *[]convo.Report) {
			opts := windowOf(1000, nil)
			if fits {
				opts.Limits = convo.Limits{Window: 40_000, Reserve: -1, High: 3000, Low: 2000, MinFree: 200}
			}
			told, inside := new([]convo.Report), context.Context(nil)
			opts.OnCompaction = func(r convo.Report) { *told = append(*told, r) }
			opts.Strategy = convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
				if tt.ctx == "inside" && inside == nil {
					inside = ctx
					return convo.Edit{}, nil
				}
				return tt.strategy.Compact(ctx, s, g)
			})
			h := toolTurn(t, opts, 30)
			require.Equal(t, fits, h.Status().Upper <= h.Status().Limit)
			ctx, cancel := context.WithCancel(t.Context())
			switch t.Cleanup(cancel); tt.ctx {
			case "ended":
				cancel()
			case "inside":
				_, _ = h.Compact(ctx, "")
				ctx, *told = inside, nil
			}
			if tt.closed {
				require.NoError(t, h.Close())
			}
			return h, ctx, told
		}
		// says checks an error or the cause in a report.
		says := func(t *testing.T, err error, parts ...string) {
			t.Helper()
			if tt.cause == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.cause)
			for _, part := range parts {
				require.ErrorContains(t, err, part)
			}
		}
		for name, op := range map[string]func(*convo.History, context.Context) (convo.Report, error){
			"Prepare": func(h *convo.History, ctx context.Context) (convo.Report, error) {
				s, r, err := h.Prepare(ctx)
				assert.Same(t, h.Snapshot(), s)
				return r, err
			},
		} {
			t.Run(tt.name+"/"+name+" that fits", func(t *testing.T) {
				h, ctx, told := start(t, true)
				r, err := op(h, ctx)
				says(t, r.Cause)
				assert.Equal(t, tt.outcome, r.Outcome)
				assert.Equal(t, !tt.refused, r.Fits)
				if tt.refused {
					says(t, err)
				} else {
					require.NoError(t, err, "the request may be sent")
				}
				assert.Len(t, *told, tt.told)
			})
			t.Run(tt.name+"/"+name+" that does not fit", func(t *testing.T) {
				h, ctx, told := start(t, false)
				r, err := op(h, ctx)
				says(t, err)
				assert.Equal(t, err, r.Cause)
				assert.Equal(t, err == nil, r.Fits)
				assert.Equal(t, err == nil, r.Outcome == convo.OutcomeApplied)
				assert.Len(t, *told, tt.told)
			})
		}
		for name, fits := range map[string]bool{"Compact that fits": true, "Compact that does not fit": false} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				h, ctx, told := start(t, fits)
				r, err := h.Compact(ctx, "")
				says(t, err)
				assert.Equal(t, err, r.Cause)
				assert.Equal(t, (fits || err == nil) && !tt.refused, r.Fits)
				if tt.outcome == convo.OutcomeDeclined {
					require.ErrorIs(t, err, convo.ErrNoGain)
				}
				assert.Len(t, *told, tt.told)
			})
		}
		t.Run(tt.name+"/MakeRoom", func(t *testing.T) {
			h, ctx, told := start(t, true)
			res, r, err := h.MakeRoom(ctx, 38_000)
			says(t, err)
			assert.Equal(t, err == nil, res != nil, "an error exactly when nothing was reserved")
			assert.Equal(t, err, r.Cause)
			if tt.refused {
				assert.False(t, r.Fits)
			}
			assert.Len(t, *told, tt.told)
		})
		t.Run(tt.name+"/Recover", func(t *testing.T) {
			h, ctx, told := start(t, true)
			retry, r, err := h.Recover(ctx, h.Snapshot(), errors.New(tooLong))
			says(t, err, tooLong)
			assert.Equal(t, err == nil, retry)
			says(t, r.Cause)
			assert.Len(t, *told, tt.told)
		})
		t.Run(tt.name+"/Wait", func(t *testing.T) {
			if tt.closed || tt.ctx != "" {
				h, ctx, _ := start(t, true)
				if tt.ctx == "ended" { // and something to wait for
					block := make(chan struct{})
					defer close(block)
					h = aboveHigh(t, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
						<-block
						return convo.Edit{}, nil
					}))
					require.True(t, h.CompactInBackground(t.Context()))
				}
				_, err := h.Wait(ctx)
				if tt.closed {
					require.NoError(t, err, "there is nothing to wait for")
				} else {
					says(t, err)
				}
				return
			}
			h, ctx, told := start(t, true)
			require.True(t, h.CompactInBackground(ctx))
			r, err := h.Wait(ctx)
			require.NoError(t, err, "it could wait")
			says(t, r.Cause)
			assert.Equal(t, tt.outcome, r.Outcome)
			assert.True(t, r.Fits)
			assert.Equal(t, []convo.Report{r}, *told)
		})
	}
}

// Apply returns nil exactly when the edit took effect, if only in part.
func TestErrors_OfApply(t *testing.T) {
	full := errors.New("disk full")
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, h *convo.History) // after the snapshot
		edit   convo.Edit

		want    error
		says    string // instead of want
		outcome convo.Outcome
	}{
		{name: "it took effect", edit: convo.Edit{Drop: []convo.ID{2}}, outcome: convo.OutcomeApplied},
		{name: "in part", before: func(t *testing.T, h *convo.History) { require.NoError(t, h.Pin(2)) },
			edit: convo.Edit{Drop: []convo.ID{2, 6}}, outcome: convo.OutcomeApplied},
		{name: "one of two originals could not be kept", edit: convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 5}}}, outcome: convo.OutcomeApplied},
		{name: "all of it was pinned since", before: func(t *testing.T, h *convo.History) { require.NoError(t, h.Pin(2)) },
			edit: convo.Edit{Drop: []convo.ID{2}}, want: convo.ErrNoGain, outcome: convo.OutcomeDeclined},
		{name: "it names nothing", want: convo.ErrNoGain, outcome: convo.OutcomeDeclined},
		{name: "there is no summary to remove", edit: convo.Edit{Summary: &convo.Summary{}}, want: convo.ErrNoGain, outcome: convo.OutcomeDeclined},
		{name: "no original could be kept", edit: convo.Edit{Clear: []convo.Clear{{ID: 5}}}, want: full, outcome: convo.OutcomeDeclined},
		{name: "it breaks a rule", edit: convo.Edit{Drop: []convo.ID{3}}, says: "convo: edit: drops part of an exchange (entry 3); name all entries of it, or none", outcome: convo.OutcomeFailed},
		{name: "what it names has left", before: func(t *testing.T, h *convo.History) { apply(t, h, convo.Edit{Drop: []convo.ID{2}}) },
			edit: convo.Edit{Drop: []convo.ID{2}}, want: convo.ErrStale, outcome: convo.OutcomeStale},
		{name: "closed", before: func(t *testing.T, h *convo.History) { require.NoError(t, h.Close()) },
			edit: convo.Edit{Drop: []convo.ID{2}}, want: convo.ErrClosed, outcome: convo.OutcomeFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var told []convo.Report
			h := tour(t, &convo.Options{
				Tokenizer: byBytes,
				Spill: func(_ context.Context, r convo.ToolResult) (string, error) {
					if r.CallID == "c2" {
						return "", full
					}
					return "a file", nil
				},
				OnCompaction: func(r convo.Report) { told = append(told, r) },
			})
			at := h.Snapshot()
			if tt.before != nil {
				tt.before(t, h)
			}
			before := h.Snapshot()
			told = nil
			r, err := h.Apply(at, tt.edit)
			switch {
			case tt.says != "":
				require.EqualError(t, err, tt.says)
			default:
				require.ErrorIs(t, err, tt.want)
			}
			assert.Equal(t, tt.outcome, r.Outcome)
			assert.Equal(t, err == nil, h.Snapshot() != before)
			if err != nil {
				assert.Equal(t, err, r.Cause)
			}
			assert.Equal(t, tt.want != convo.ErrClosed, r.Fits, "a closed History sends nothing")
			assert.Equal(t, []convo.Report{r}, told)
		})
	}
}

// ErrClosed never goes with Fits, wherever a compaction meets the end of its
// History.
func TestErrors_ClosedFitsNothing(t *testing.T) {
	for range 100 {
		h := aboveHigh(t, convo.Truncate{})
		require.True(t, h.CompactInBackground(t.Context()))
		require.NoError(t, h.Close())
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		if errors.Is(r.Cause, convo.ErrClosed) {
			require.False(t, r.Fits)
		}
	}
}

// A text around other errors has one prefix, at its front, and wraps them all.
func TestErrors_OnePrefix(t *testing.T) {
	inner := &convo.RefusedError{Reason: "of another history"}
	opts := windowOf(1000, nil)
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "", inner }
	opts.MaxResult = 64
	spilling := historyOf(t, opts, convo.User("u"), convo.Assistant("", callOf("c1")))
	_, err := spilling.Append(convo.Result(callOf("c1"), strings.Repeat("word ", 500)))
	errs := map[string]error{"spill": err}

	h := historyOf(t, nil, convo.User("u"))
	_, _, errs["recover"] = h.Recover(t.Context(), h.Snapshot(), fmt.Errorf("prompt is too long: %w", inner))
	_, _, errs["recover, stale"] = h.Recover(t.Context(), nil, &overflowOf{inner})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(inner)
	_, errs["do"] = h.Do(ctx, never(t))
	_, errs["panic"] = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { panic(inner) })
	_, errs["closed"] = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{}, errors.Join(h.Close(), inner)
	})
	for name, err := range errs {
		require.ErrorIs(t, err, inner, name)
		assert.Truef(t, strings.HasPrefix(err.Error(), "convo: "), "%s: %v", name, err)
		if name != "recover" { // whose cause is worded by the caller
			assert.Equal(t, 1, strings.Count(err.Error(), "convo: "), "%s: %v", name, err)
		}
	}
	require.ErrorIs(t, errs["do"], context.Canceled)
	assert.EqualError(t, errs["do"], "convo: the request was not sent: refused: of another history (context canceled)")
	assert.EqualError(t, errs["recover, stale"], "convo: stale snapshot: it is nil; take one with History.Snapshot; the provider said: prompt is too long")
	require.ErrorIs(t, errs["recover, stale"], convo.ErrStale)
}

// An overflowOf says that a prompt is too long, as if convo itself had said it.
type overflowOf struct{ error }

func (e *overflowOf) Error() string { return "convo: prompt is too long" }
func (e *overflowOf) Unwrap() error { return e.error }
