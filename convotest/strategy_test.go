package convotest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// Each strategy runs in a synctest bubble, which fails if a goroutine outlives
// it.
func TestCheckStrategy_AcceptsStrategiesThatFollowTheRules(t *testing.T) {
	with := func(s convo.Summarizer) convo.CompactionStrategy { return convo.Summarize{With: s} }
	good := map[string]convo.CompactionStrategy{
		"truncate":            convo.Truncate{},
		"sliding window":      convo.SlidingWindow{},
		"sliding window of 6": convo.SlidingWindow{Keep: 6, TriggerAt: 10},
		"clear tool results":  convo.ClearToolResults{},
		"clear all results":   convo.ClearToolResults{KeepLast: -1, MinFreed: -1},
		"summarize, extract":  convo.Summarize{},
		"summarize, short":    convo.Summarize{KeepTokens: -1, MaxTokens: 80, Window: 2000},
		"summarize, canned":   with(convotest.Canned{}),
		"summarize, echo":     with(convotest.Echo{}),
		"summarize, slow":     with(convotest.Slow{For: time.Second, With: convotest.Echo{}}),
		"summarize, flaky":    with(&convotest.Flaky{With: convotest.Echo{}}),
		"summarize, recorder": with(&convotest.Recorder{}),
		"default":             convo.Chain(convo.ClearToolResults{}, convo.Truncate{}),
		"ladder":              convo.Chain(convo.ClearToolResults{}, convo.Summarize{}, convo.Truncate{}),
		"ladder, flaky":       convo.Chain(convo.ClearToolResults{}, with(&convotest.Flaky{Every: 3}), convo.Truncate{}),
		"ladder, failing":     convo.Chain(with(convotest.Failing{}), convo.SlidingWindow{Keep: 4}),
		"ladder, panicking":   convo.Chain(with(convotest.Panicking{}), convo.Truncate{}),
		"ladder, growing":     convo.Chain(with(&convotest.Growing{}), convo.Truncate{}),
		"nested":              convo.Chain(convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{}), convo.Truncate{}),
		"summarize, late":     with(&convotest.Flaky{First: 40, With: convotest.Echo{}}),
		"a function":          convo.StrategyFunc(truncated).Named("mine"),
		"scores":              compact(middleOut),
	}
	for name, s := range good {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { convotest.TestStrategy(t, s) })
		})
	}
}

// compact is a strategy with the name "bad".
type compact func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error)

func (compact) Name() string { return "bad" }

func (f compact) Compact(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	return f(ctx, s, g)
}

type named func() string

func (f named) Name() string { return f() }

func (named) Compact(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
	return convo.Edit{}, nil
}

type trigger struct {
	compact
	due func(convo.Status) bool
}

func (t trigger) Due(s convo.Status) bool { return t.due(s) }

// each returns a strategy that makes an edit of all entries that fit.
func each(fits func(s *convo.Snapshot, e convo.Entry) bool, edit func(s *convo.Snapshot, e convo.Entry) convo.Edit) compact {
	return func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		var all convo.Edit
		for _, e := range s.All() {
			if fits(s, e) {
				one := edit(s, e)
				all.Drop, all.Clear = append(all.Drop, one.Drop...), append(all.Clear, one.Clear...)
			}
		}
		return all, nil
	}
}

func drop(_ *convo.Snapshot, e convo.Entry) convo.Edit { return convo.Edit{Drop: []convo.ID{e.ID}} }

func wipe(_ *convo.Snapshot, e convo.Entry) convo.Edit {
	return convo.Edit{Clear: []convo.Clear{{ID: e.ID}}}
}

func isRole(r convo.Role) func(*convo.Snapshot, convo.Entry) bool {
	return func(_ *convo.Snapshot, e convo.Entry) bool { return e.Message.Role == r }
}

func isPinned(_ *convo.Snapshot, e convo.Entry) bool { return e.Pinned }

func isPinnedResult(_ *convo.Snapshot, e convo.Entry) bool {
	return e.Pinned && e.Message.Role == convo.RoleTool
}

// isDroppablePinnedError finds the exchanges of failed calls that are pinned and
// not the newest.
func isDroppablePinnedError(s *convo.Snapshot, e convo.Entry) bool {
	for x := range s.Exchanges() {
		if x.First <= e.ID && e.ID <= x.Last {
			result, _ := s.Find(x.Last)
			newest, _ := s.At(s.Len() - 1)
			results := result.Message.ToolResults()
			return e.Pinned && x.Last != newest.ID && len(results) > 0 && results[0].IsError
		}
	}
	return false
}

func isNewest(s *convo.Snapshot, e convo.Entry) bool {
	newest, _ := s.At(s.Len() - 1)
	return e.ID == newest.ID && e.Message.Role != convo.RoleUser
}

func isNewestResult(s *convo.Snapshot, e convo.Entry) bool {
	return isNewest(s, e) && e.Message.Role == convo.RoleTool
}

func isNewestUser(s *convo.Snapshot, e convo.Entry) bool {
	newest, _ := s.At(s.Len() - 1)
	return e.Turn == newest.Turn && e.ID != newest.ID && e.Message.Role == convo.RoleUser
}

// truncated returns the edit that Truncate makes.
func truncated(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	return convo.Truncate{}.Compact(ctx, s, g)
}

// summarized returns a strategy that makes the edit of Truncate with a summary.
func summarized(sum convo.Summary) compact {
	return func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		e, err := truncated(ctx, s, g)
		e.Summary = &sum
		return e, err
	}
}

// goesOn reports whether the conversation is in a History to which messages
// were appended after the first compactions.
func goesOn(s *convo.Snapshot) bool {
	for _, m := range s.Messages() {
		if m.Text() == "And then?" {
			return true
		}
	}
	return false
}

func TestCheckStrategy_NamesTheBrokenRule(t *testing.T) {
	release := make(chan struct{})
	calls := 0
	names := 0
	tests := []struct {
		name string
		s    convo.CompactionStrategy
		want string // how the text after the name begins
	}{
		{"nil", nil, `is nil`},
		{"blank name", named(func() string { return " " }), `has a blank name`},
		{"names", named(func() string { names++; return fmt.Sprint("n", names) }), `changes its name`},
		{"panic in Name", named(func() string { panic("boom") }), `panics (in Name, "boom")`},

		{"unknown entry", compact(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{99999}}, nil
		}), `names an entry that the snapshot does not hold (case "empty", goal "tight", entry 99999)`},
		{"unknown entry to clear", compact(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 99999}}}, nil
		}), `names an entry that the snapshot does not hold`},
		{"half", each(isRole(convo.RoleTool), drop), `drops part of an exchange (case "tool rounds", goal "tight", entry 4)`},
		{"other half", each(func(s *convo.Snapshot, e convo.Entry) bool { return len(e.Message.ToolCalls()) > 0 }, drop), `drops part of an exchange`},
		{"drops system", each(isRole(convo.RoleSystem), drop), `drops a system entry`},
		{"drops pinned", each(isPinned, drop), `drops a pinned exchange (case "only floor"`},
		{"drops pinned errors", each(isDroppablePinnedError, drop), `drops a pinned exchange (case "empty results", goal "target 0", entry 4 pinned, entry 4)`},
		{"drops newest", each(isNewest, drop), `drops the newest exchange`},
		{"drops newest users", each(isNewestUser, drop), `drops a user message of the newest turn`},
		{"clears pinned", each(isPinnedResult, wipe), `clears a pinned exchange (case "pinned exchanges"`},
		{"clears newest", each(isNewestResult, wipe), `clears the newest exchange`},
		{"clears system", each(isRole(convo.RoleSystem), wipe), `clears a system entry`},
		{"clears no result", each(isRole(convo.RoleAssistant), wipe), `clears a result that the entry does not hold`},
		{"clears another result", each(isRole(convo.RoleTool), func(_ *convo.Snapshot, e convo.Entry) convo.Edit {
			return convo.Edit{Clear: []convo.Clear{{ID: e.ID, CallID: "other"}}}
		}), `clears a result that the entry does not hold`},

		{"blank summary", summarized(convo.Summary{Text: " \n"}), `returns a blank summary`},
		{"cut off", summarized(convo.Summary{Text: "They", Stop: convo.StopLength}), `returns a summary that was cut off (case "many turns", goal "tight", Stop is "length")`},
		{"refused and no text", summarized(convo.Summary{Stop: convo.StopRefused}), `returns a summary that was cut off`},
		{"too little for a summary", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			g.MinFree = 0
			return convo.Summarize{}.Compact(ctx, s, g)
		}), `returns a summary and frees less than Goal.MinFree (case "many turns", goal "more to free than there is"`},
		{"covers", summarized(convo.Summary{Text: "They spoke.", Covers: []convo.Range{{First: 1, Last: 1 << 40}}}), `makes an edit that is refused`},
		{"grows", each(func(s *convo.Snapshot, e convo.Entry) bool {
			return e.Message.Role == convo.RoleTool && !convotest.Floor(s)[e.ID]
		}, func(_ *convo.Snapshot, e convo.Entry) convo.Edit {
			return convo.Edit{Clear: []convo.Clear{{ID: e.ID, Text: strings.Repeat("gone ", 1000)}}}
		}), `makes the view larger`},
		{"grows by a summary", summarized(convo.Summary{Text: strings.Repeat("gone ", 10000)}), `makes the view larger`},

		{"not the same", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			e, err := truncated(ctx, s, g)
			if calls++; calls%2 == 0 && len(e.Drop) > 4 && s.Len() > 20 {
				e = convo.Edit{}
			}
			return e, err
		}), `drops or clears other entries the second time`},
		{"changes the snapshot", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			e, err := truncated(ctx, s, g)
			if err == nil {
				next, _ := s.With(e)
				*s = *next
			}
			return e, err
		}), `changes the snapshot`},

		{"deaf", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			<-release
			return truncated(ctx, s, g)
		}), `does not return after ctx has ended (case "empty", goal "tight", ctx had ended before the call)`},
		{"deaf once it is at work", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if ctx.Err() == nil {
				<-release
			}
			return convo.Edit{}, ctx.Err()
		}), `does not return after ctx has ended (case "empty", goal "tight", ctx ended during the call)`},
		{"never done", convo.Summarize{With: convotest.Slow{}}, `fails, and never makes an edit ("convo: summarizer: no answer within three quarters of the time`},

		{"panics", compact(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic("boom") }), `panics (case "empty", goal "tight", "boom"`},
		{"panics at an open call", compact(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			for x := range s.Exchanges() {
				if x.Open {
					panic(errors.New("open"))
				}
			}
			return convo.Edit{}, nil
		}), `panics (case "open calls", goal "tight", "open"`},
		{"ends the goroutine", compact(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			if s.Len() > 10 {
				runtime.Goexit() // like FailNow of a test
			}
			return convo.Edit{}, nil
		}), `ends the goroutine that it is called on`},
		{"fails", convo.Summarize{With: convotest.Failing{}}, `fails, and never makes an edit ("convo: summarizer: convotest: fake summarizer failed")`},
		{"too long each time", convo.Summarize{With: &convotest.Growing{}}, `fails, and never makes an edit`},
		{"cut off each time", convo.Summarize{With: convotest.CutOff{}}, `fails, and never makes an edit`},

		{"due and not due", trigger{truncated, func(convo.Status) bool { calls++; return calls%2 == 0 }}, `gives two answers of Due for the same Status`},
		{"panics in Due", trigger{truncated, func(s convo.Status) bool { return 1/s.Entries > 0 }}, `panics (in Due, "runtime error: integer divide by zero")`},
		{"waits in Due", trigger{truncated, func(convo.Status) bool { <-release; return false }}, `waits in Due`},

		{"refused in a History", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if goesOn(s) {
				return convo.Edit{Drop: []convo.ID{99999}}, nil
			}
			return truncated(ctx, s, g)
		}), `makes an edit that a History refuses (case "empty", in a History`},
		{"panics in a History", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if goesOn(s) {
				panic("boom")
			}
			return truncated(ctx, s, g)
		}), `panics (case "empty", in a History`},
		{"stuck in a History", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if goesOn(s) {
				<-release
			}
			return truncated(ctx, s, g)
		}), `does not return within a minute (case "empty", in a History`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{}) // a channel of this bubble
				defer close(release)
				err := convotest.CheckStrategy(tt.s)
				require.Error(t, err)
				require.Regexp(t, `(?m)^strategy( "[^"]+")?: `+regexp.QuoteMeta(tt.want), err.Error())
			})
		})
	}
}

// middleOut drops every other exchange outside the floor, then the others, until
// the target is reached. That is unusual, and as useful as any.
func middleOut(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	var e convo.Edit
	left := s.Tokens()
	for odd := range 2 {
		i := 0
		for x := range s.Exchanges() {
			if x.Floor {
				continue
			}
			if i++; i%2 == odd && left > g.Target {
				e.Drop = append(e.Drop, x.IDs()...)
				left -= x.Tokens
			}
		}
	}
	return e, nil
}

// droppable returns the exchanges outside the floor, oldest first.
func droppable(s *convo.Snapshot) []convo.Exchange {
	var list []convo.Exchange
	for x := range s.Exchanges() {
		if !x.Floor {
			list = append(list, x)
		}
	}
	return list
}

// drops returns a strategy that drops the exchanges that choose returns.
func drops(choose func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange) compact {
	return func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		var e convo.Edit
		for _, x := range choose(droppable(s), s, g) {
			e.Drop = append(e.Drop, x.IDs()...)
		}
		return e, nil
	}
}

// share returns a strategy that drops the oldest exchanges, so many of a hundred.
func share(percent int) compact {
	return drops(func(all []convo.Exchange, _ *convo.Snapshot, _ convo.Goal) []convo.Exchange {
		return all[:(len(all)*percent+99)/100]
	})
}

// until returns the first of all that have to go to reach a target.
func until(all []convo.Exchange, s *convo.Snapshot, target int) []convo.Exchange {
	left, n := s.Tokens(), 0
	for n < len(all) && left > target {
		left -= all[n].Tokens
		n++
	}
	return all[:n]
}

// failsFor returns a strategy that fails for some reasons, and truncates for others.
func failsFor(fails func(convo.Reason) bool) compact {
	return func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if fails(g.Reason) {
			return convo.Edit{}, errors.New("not today")
		}
		return truncated(ctx, s, g)
	}
}

// Strategies that follow every rule of an edit and are of no use.
func TestCheckStrategy_FailsUselessStrategies(t *testing.T) {
	calls := func(with convo.Summarizer) compact { // although NoModel forbids it
		return func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			g.NoModel = nil
			return convo.Summarize{With: with}.Compact(ctx, s, g)
		}
	}
	clearing := func(text string, newest bool) compact {
		return func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			var all convo.Edit
			for _, x := range droppable(s) {
				for _, id := range x.IDs() {
					e, _ := s.Find(id)
					for _, r := range e.Message.ToolResults() {
						text := text
						if text == "" && !newest {
							text = r.Text() // the same again
						}
						if !r.Cleared && r.Text() != "" {
							all.Clear = append(all.Clear, convo.Clear{ID: id, CallID: r.CallID, Text: text})
						}
					}
				}
			}
			if newest {
				all.Clear = all.Clear[len(all.Clear)/2:]
			}
			return all, nil
		}
	}
	tests := []struct {
		name string
		s    convo.CompactionStrategy
		want string
	}{
		{"does nothing", compact(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, nil }), `never makes an edit`},
		{"finds it never worth it", compact(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{}, convo.ErrNoGain
		}), `never makes an edit`},
		{"an empty chain", convo.Chain(), `never makes an edit`},
		{"a chain of nothing", convo.Chain(convo.Chain(), convo.SlidingWindow{Keep: 1 << 20}), `never makes an edit`},
		{"clears by the same text", clearing("", false), `makes an edit that frees nothing (case "tool rounds", goal "tight")`},
		{"drops one exchange", drops(func(all []convo.Exchange, _ *convo.Snapshot, _ convo.Goal) []convo.Exchange {
			return all[:min(len(all), 1)]
		}), `stops short of the target, though it can free more (case "many turns", goal "tight", `},
		{"drops a tenth", share(10), `stops short of the target, though it can free more`},
		{"frees a tenth of what is asked", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			return until(all, s, s.Tokens()-max(s.Tokens()-g.Target, 0)/10)
		}), `stops short of the target, though it can free more`},
		{"drops half, whatever the target", share(50), `stops short of the target, though it can free more`},
		{"works on ten exchanges at most", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			return until(all[:min(len(all), 10)], s, g.Target)
		}), `stops short of the target, though it can free more`},
		{"drops half of what is there, and on", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			if g.Target < s.Tokens()/2 {
				return until(all, s, g.Target)
			}
			return all[:len(all)/2]
		}), `goes on although the target is reached`},
		{"drops everything", share(100), `drops far more than the target asks for (case "many turns", goal "loose", `},
		{"drops nine tenths, or more for a small target", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			return until(all, s, min(s.Tokens()/10, g.Target))
		}), `drops far more than the target asks for`},
		{"drops the newest first", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			slices.Reverse(all)
			return until(all, s, g.Target)
		}), `drops the newest exchanges first (case "many turns", goal "tight")`},
		{"clears the newest half", clearing("", true), `clears the newest results first (case "tool rounds", goal "tight")`},
		{"works for Prepare alone", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			if g.Reason != convo.ReasonHigh {
				return nil
			}
			return until(all, s, g.Target)
		}), `declines for one reason what it does for another (case "many turns", goal "target 0", unlike for goal "tight")`},
		{"gives up at an overflow", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			if g.Reason == convo.ReasonOverflow {
				return nil
			}
			return until(all, s, g.Target)
		}), `declines for one reason what it does for another (case "many turns", goal "overflow", unlike for goal`},
		{"calls a fake although it must not", calls(convotest.Echo{}), `calls a model although Goal.NoModel forbids it (case "many turns", goal "no model", a fake summarizer was called)`},
		{"calls a failing model although it must not", convo.Chain(calls(convotest.Failing{}), convo.Truncate{}), `calls a model although Goal.NoModel forbids it`},
		{"says that it called a model", calls(convo.SummarizerFunc(func(ctx context.Context, r convo.SummaryRequest) (convo.Summary, error) {
			return convo.Extract{}.Summarize(ctx, r)
		})), `calls a model although Goal.NoModel forbids it (case "many turns", goal "no model", Work.Calls is 1)`},
		{"does not say whether it called one", summarized(convo.Summary{Text: "They spoke."}), `calls a model although Goal.NoModel forbids it (case "many turns", goal "no model", a summary without Work counts as a call)`},
		{"fails for Prepare", failsFor(func(r convo.Reason) bool { return r == convo.ReasonHigh }), `never makes an edit for one reason, though it does for another (case "many turns", goal "tight", unlike for goal "overflow")`},
		{"works for Compact alone", failsFor(func(r convo.Reason) bool { return r != convo.ReasonManual }), `never makes an edit for one reason, though it does for another (case "many turns", goal "tight", unlike for goal "target 0")`},
		{"works for Fit alone", failsFor(func(r convo.Reason) bool { return r != convo.ReasonFit }), `never makes an edit for one reason, though it does for another (case "many turns", goal "tight", unlike for goal "fit")`},
		{"never works in the background", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			if g.Reason == convo.ReasonSoft {
				return nil
			}
			return until(all, s, g.Target)
		}), `never makes an edit for one reason, though it does for another (case "many turns", goal "loose", unlike for goal "overflow")`},
		{"leaves tool calls alone", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			return until(slices.DeleteFunc(all, func(x convo.Exchange) bool { return x.First != x.Last }), s, g.Target)
		}), `never drops or clears a tool exchange`},
		{"drops the oldest, then the newest first", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			if len(all) > 1 {
				slices.Reverse(all[1:])
			}
			return until(all, s, g.Target)
		}), `drops the newest exchanges first (case "many turns", goal "tight")`},
		{"due from the first message on", trigger{truncated, func(s convo.Status) bool { return s.Entries > 0 }}, `is due for a conversation of one short message`},
		{"always due", trigger{truncated, func(convo.Status) bool { return true }}, `is due for an empty conversation`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := convotest.CheckStrategy(tt.s)
				require.Error(t, err)
				require.Regexp(t, `(?m)^strategy "[^"]+": `+regexp.QuoteMeta(tt.want), err.Error())
			})
		})
	}
}
