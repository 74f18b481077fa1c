package convotest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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
	"github.com/seed-c1b73e60/convo/internal/long"
)

// Each strategy runs in a synctest bubble, which fails if a goroutine outlives
// it.
func TestCheckStrategy_AcceptsStrategiesThatFollowTheRules(t *testing.T) {
	with := func(s convo.Summarizer) convo.CompactionStrategy { return convo.Summarize{With: s} }
	good := map[string]convo.CompactionStrategy{
		"truncate":              convo.Truncate{},
		"sliding window":        convo.SlidingWindow{},
		"sliding window of 6":   convo.SlidingWindow{KeepLast: 6, TriggerAt: 10},
		"sliding window, turns": convo.SlidingWindow{KeepTurns: 2, TriggerAt: 4},
		"sliding window, both":  convo.SlidingWindow{KeepTurns: 2, KeepLast: 3},
		"when":                  convo.When(func(s convo.Status) bool { return s.Upper > 100 }, convo.Truncate{}),
		"summarize, keep last":  convo.Summarize{With: convotest.Echo{}, KeepLast: 3},
		"summarize, keep turns": convo.Summarize{KeepTurns: 1, KeepTokens: 200},
		"clear tool results":    convo.ClearToolResults{},
		"clear all results":     convo.ClearToolResults{KeepLast: -1, MinFree: -1},
		"summarize, extract":    convo.Summarize{},
		"summarize, short":      convo.Summarize{KeepTokens: -1, MaxTokens: 80, Window: 2000},
		"summarize, canned":     with(convotest.Canned{}),
		"summarize, echo":       with(convotest.Echo{}),
		"summarize, slow":       with(convotest.Slow{For: time.Second, With: convotest.Echo{}}),
		"summarize, flaky":      with(&convotest.Flaky{With: convotest.Echo{}}),
		"summarize, recorder":   with(&convotest.Recorder{}),
		"default":               convo.Chain(convo.ClearToolResults{}, convo.Truncate{}),
		"ladder":                convo.Chain(convo.ClearToolResults{}, convo.Summarize{}, convo.Truncate{}),
		"ladder, flaky":         convo.Chain(convo.ClearToolResults{}, with(&convotest.Flaky{Every: 3}), convo.Truncate{}),
		"ladder, failing":       convo.Chain(with(convotest.Failing{}), convo.SlidingWindow{KeepLast: 4}),
		"ladder, panicking":     convo.Chain(with(convotest.Panicking{}), convo.Truncate{}),
		"ladder, growing":       convo.Chain(with(&convotest.Growing{}), convo.Truncate{}),
		"nested":                convo.Chain(convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{}), convo.Truncate{}),
		"summarize, late":       with(&convotest.Flaky{First: 40, With: convotest.Echo{}}),
		"a function":            convo.StrategyFunc(truncated).Named("mine"),
		"shorten":               convo.StrategyFunc(shortened),
		"shorten, truncate":     convo.Chain(convo.StrategyFunc(shortened), convo.ClearToolResults{}, convo.Truncate{}),
	}
	maps.Copy(good, otherOrders())
	few := []string{"truncate", "when", "clear all results", "summarize, keep turns", "largest, then newest", "tool rounds only", "summarises everything"}
	for _, name := range few {
		require.Contains(t, good, name)
	}
	for name, s := range good {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(few, name) {
				long.Only(t, "checks a strategy much like one of the short form")
			}
			synctest.Test(t, func(t *testing.T) { convotest.TestStrategy(t, s) })
		})
	}
}

// release ends what the strategies wait for that do not listen to ctx.
var release chan struct{}

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
				all.Rewrite = append(all.Rewrite, one.Rewrite...)
			}
		}
		return all, nil
	}
}

// always returns a strategy that makes the same edit for each snapshot.
func always(e convo.Edit) compact {
	return func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return e, nil }
}

func drop(_ *convo.Snapshot, e convo.Entry) convo.Edit { return convo.Edit{Drop: []convo.ID{e.ID}} }

func wipe(_ *convo.Snapshot, e convo.Entry) convo.Edit {
	return convo.Edit{Clear: []convo.Clear{{ID: e.ID}}}
}

func isRole(r convo.Role) func(*convo.Snapshot, convo.Entry) bool {
	return func(_ *convo.Snapshot, e convo.Entry) bool { return e.Message.Role == r }
}

// isOldAnswer finds answers outside the floor.
func isOldAnswer(s *convo.Snapshot, e convo.Entry) bool {
	return e.Message.Role == convo.RoleAssistant && len(e.Message.ToolCalls()) == 0 && !convotest.Floor(s)[e.ID]
}

func isOldResult(s *convo.Snapshot, e convo.Entry) bool {
	return e.Message.Role == convo.RoleTool && !convotest.Floor(s)[e.ID]
}

func rewrite(_ *convo.Snapshot, e convo.Entry) convo.Edit {
	return convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: []convo.Part{convo.Text("x")}}}}
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

// shortened rewrites texts and results to a few words, the oldest first.
func shortened(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	const short = "(in short: they spoke)"
	var e convo.Edit
	left, floor := s.Tokens(), convotest.Floor(s)
	for _, entry := range s.All() {
		if floor[entry.ID] || left <= g.Target {
			continue
		}
		parts, freed := entry.Message.Parts, 0
		for i, p := range parts {
			if r, ok := p.(convo.ToolResult); ok && len(r.Text()) > 2*len(short) {
				freed += g.Count(r.Text()) - g.Count(short)
				r.Parts = []convo.Part{convo.Text(short)}
				parts[i] = r
			} else if text, ok := p.(convo.Text); ok && len(text) > 2*len(short) {
				freed += g.Count(string(text)) - g.Count(short)
				parts[i] = convo.Text(short)
			}
		}
		if freed > 0 {
			left -= freed
			e.Rewrite = append(e.Rewrite, convo.Rewrite{ID: entry.ID, Parts: parts})
		}
	}
	return e, nil
}

// summarized returns a strategy that makes the edit of Truncate with a summary.
func summarized(sum convo.Summary) compact {
	return func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		e, err := truncated(ctx, s, g)
		e.Summary = &sum
		return e, err
	}
}

// inHistory returns a strategy that makes another edit than Truncate in a History to which
// messages were appended after the first compactions.
func inHistory(other func() convo.Edit) compact {
	return func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if slices.ContainsFunc(s.Messages(), func(m convo.Message) bool { return m.Text() == "And then?" }) {
			return other(), nil
		}
		return truncated(ctx, s, g)
	}
}

func TestCheckStrategy_NamesTheBrokenRule(t *testing.T) {
	calls, names := 0, 0
	unknown := convo.Edit{Drop: []convo.ID{99999}}
	tests := []badStrategy{
		{"nil", nil, `is nil`},
		{"blank name", named(func() string { return " " }), `has a blank name`},
		{"names", named(func() string { names++; return fmt.Sprint("n", names) }), `changes its name`},
		{"panic in Name", named(func() string { panic("boom") }), `panics (in Name, "boom")`},

		{"unknown entry", always(unknown), `names an entry that the snapshot does not hold (case "empty", goal "tight", entry 99999)`},
		{"unknown entry to clear", always(convo.Edit{Clear: []convo.Clear{{ID: 99999}}}), `names an entry that the snapshot does not hold`},
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
		{"rewrites what is not there", always(rewrite(nil, convo.Entry{ID: 99999})), `names an entry that the snapshot does not hold`},
		{"rewrites system", each(isRole(convo.RoleSystem), rewrite), `rewrites a system entry`},
		{"rewrites pinned", each(isPinned, rewrite), `rewrites a pinned exchange (case "only floor"`},
		{"rewrites newest", each(isNewest, rewrite), `rewrites the newest exchange`},
		{"rewrites newest users", each(isNewestUser, rewrite), `rewrites a user message of the newest turn`},
		{"rewrites twice", each(isOldAnswer, func(s *convo.Snapshot, e convo.Entry) convo.Edit {
			edit := rewrite(s, e)
			edit.Rewrite = append(edit.Rewrite, edit.Rewrite...)
			return edit
		}), `rewrites an entry twice`},
		{"rewrites and clears", each(isOldResult, func(s *convo.Snapshot, e convo.Entry) convo.Edit {
			edit := rewrite(s, e)
			edit.Clear = wipe(s, e).Clear
			return edit
		}), `rewrites an entry and clears a result in it`},
		{"rewrites to nothing", each(isOldAnswer, func(_ *convo.Snapshot, e convo.Entry) convo.Edit {
			return convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID}}}
		}), `makes an edit that is refused`},
		{"rewrites to more", each(isOldAnswer, func(_ *convo.Snapshot, e convo.Entry) convo.Edit {
			return convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: []convo.Part{convo.Text(strings.Repeat("more ", 1000))}}}}
		}), `makes the view larger`},
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
		{"grows", each(isOldResult, func(_ *convo.Snapshot, e convo.Entry) convo.Edit {
			return convo.Edit{Clear: []convo.Clear{{ID: e.ID, Text: strings.Repeat("gone ", 1000)}}}
		}), `makes the view larger`},
		{"grows by a summary", summarized(convo.Summary{Text: strings.Repeat("gone ", 10000)}), `makes the view larger`},

		{"not the same", compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			e, err := truncated(ctx, s, g)
			if calls++; calls%2 == 0 && len(e.Drop) > 4 && s.Len() > 20 {
				e = convo.Edit{}
			}
			return e, err
		}), `drops, clears or rewrites other entries the second time`},
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
		{"fails", convo.Summarize{With: convotest.Failing{}}, `fails, and never makes an edit ("convo: summarizer: convotest: the fake summarizer failed, as it was told to; set its Err to return another error")`},
		{"cut off each time", convo.Summarize{With: convotest.CutOff{}}, `fails, and never makes an edit`},

		{"due and not due", trigger{truncated, func(convo.Status) bool { calls++; return calls%2 == 0 }}, `gives two answers of Due for the same Status`},
		{"panics in Due", trigger{truncated, func(s convo.Status) bool { return 1/s.Entries > 0 }}, `panics (in Due, "runtime error: integer divide by zero")`},
		{"waits in Due", trigger{truncated, func(convo.Status) bool { <-release; return false }}, `waits in Due`},

		{"refused in a History", inHistory(func() convo.Edit { return unknown }), `makes an edit that a History refuses (case "empty", in a History`},
		{"panics in a History", inHistory(func() convo.Edit { panic("boom") }), `panics (case "empty", in a History`},
		{"stuck in a History", inHistory(func() convo.Edit { <-release; return convo.Edit{} }), `does not return within a minute (case "empty", in a History`},
	}
	checkStrategies(t, tests)
}

// A badStrategy is refused with a report that begins, after the name, with want.
type badStrategy struct {
	name string
	s    convo.CompactionStrategy
	want string
}

func checkStrategies(t *testing.T, tests []badStrategy) {
	rules := namedRules{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rules.another(t, tt.want)
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

// otherOrders returns strategies that drop or clear in an order of their own. Some
// are unusual, and each is of use.
func otherOrders() map[string]convo.CompactionStrategy {
	// A place is that of an exchange among the n that may go, the oldest of which has 0.
	type place struct {
		s    *convo.Snapshot
		i, n int
		x    convo.Exchange
	}
	type score func(p place) int // the exchanges with the least go first
	order := func(all []convo.Exchange, s *convo.Snapshot, of score) []convo.Exchange {
		scores := make(map[convo.ID]int)
		for i, x := range all {
			scores[x.First] = of(place{s, i, len(all), x})
		}
		return slices.SortedStableFunc(slices.Values(all), func(a, b convo.Exchange) int { return cmp.Compare(scores[a.First], scores[b.First]) })
	}
	// by drops in an order, until the target is reached.
	by := func(of score) convo.CompactionStrategy {
		return drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			return until(order(all, s, of), s, g.Target)
		})
	}
	// first drops those of which is is true before the others.
	first := func(is func(p place) bool) score {
		return func(p place) int {
			if is(p) {
				return 0
			}
			return 1
		}
	}
	// clears clears results in an order of their exchanges, until the target is
	// reached.
	clears := func(of score) convo.CompactionStrategy {
		return compact(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			var e convo.Edit
			left := s.Tokens()
			for _, x := range order(droppable(s), s, of) {
				for _, id := range x.IDs() {
					entry, _ := s.Find(id)
					for _, r := range entry.Message.ToolResults() {
						one := convo.Edit{Clear: []convo.Clear{{ID: id, CallID: r.CallID}}}
						if next, err := s.With(one); err == nil && next.Tokens() < s.Tokens() && left > g.Target {
							e.Clear = append(e.Clear, one.Clear...)
							left -= s.Tokens() - next.Tokens()
						}
					}
				}
			}
			return e, nil
		})
	}
	oldest := func(p place) int { return p.i }
	largest := func(p place) int { return -p.x.Tokens }
	isLarge := func(p place) bool { return p.x.Tokens > 100 }
	isTool := func(p place) bool { return p.x.First != p.x.Last }
	return map[string]convo.CompactionStrategy{
		"oldest first":             by(oldest),
		"largest first":            by(largest),
		"largest, then newest":     by(func(p place) int { return -p.x.Tokens<<20 - p.i }),
		"smallest first":           by(func(p place) int { return p.x.Tokens }),
		"oldest large first":       by(first(isLarge)),
		"by age and size":          by(func(p place) int { return -(p.n - p.i) * p.x.Tokens }),
		"every other first":        by(first(func(p place) bool { return p.i%2 == 1 })),
		"cut in the middle":        by(first(func(p place) bool { return p.i >= p.n/4 })),
		"keep the first half":      by(first(func(p place) bool { return p.i >= p.n/2 })),
		"from the middle outwards": by(func(p place) int { return max(2*p.i-p.n, p.n-2*p.i) }),
		"from both ends inwards":   by(func(p place) int { return min(p.i, p.n-1-p.i) }),
		"keep the first two and last four": by(func(p place) int {
			switch {
			case p.i < 2:
				return 1
			case p.i >= p.n-4:
				return 2
			}
			return 0
		}),
		"tool rounds first": by(first(isTool)),
		"tool rounds last":  by(first(func(p place) bool { return !isTool(p) })),
		"tool rounds only":  toTarget(func(all []convo.Exchange) []convo.Exchange { return roundsOnly(all, true) }),
		"answers first": by(first(func(p place) bool {
			e, _ := p.s.Find(p.x.First)
			return e.Message.Role == convo.RoleAssistant
		})),
		"shuffled": by(func(p place) int { return rand.New(rand.NewPCG(1, uint64(p.i))).Int() }),
		"half by half": drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			n, left := 0, s.Tokens()
			for n < len(all) && left > g.Target {
				for range (len(all) - n + 1) / 2 {
					left -= all[n].Tokens
					n++
				}
			}
			return all[:n]
		}),
		"whole turns": drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			n := len(until(all, s, g.Target))
			for ; n > 0 && n < len(all); n++ {
				a, _ := s.Find(all[n-1].First)
				if b, _ := s.Find(all[n].First); a.Turn != b.Turn {
					break
				}
			}
			return all[:n]
		}),
		"clears the oldest first":       clears(oldest),
		"clears the largest first":      clears(largest),
		"clears the oldest large first": clears(first(isLarge)),
		"summarises everything": compact(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			all := droppable(s)
			if len(all) == 0 || s.Tokens() <= g.Target {
				return convo.Edit{}, convo.ErrNoGain
			}
			e := convo.Edit{Summary: &convo.Summary{Text: "They spoke."}, Effort: &convo.Effort{}}
			for _, x := range all {
				e.Drop = append(e.Drop, x.IDs()...)
			}
			if next, err := s.With(e); err != nil || s.Tokens()-next.Tokens() < max(g.MinFree, 1) {
				return convo.Edit{}, convo.ErrNoGain
			}
			return e, nil
		}),
	}
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

// toTarget returns a strategy that drops the exchanges in an order until the target is reached.
func toTarget(order func(all []convo.Exchange) []convo.Exchange) compact {
	return drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
		return until(order(all), s, g.Target)
	})
}

// roundsOnly returns the exchanges with tool calls, or those without.
func roundsOnly(all []convo.Exchange, rounds bool) []convo.Exchange {
	return slices.DeleteFunc(all, func(x convo.Exchange) bool { return (x.First != x.Last) != rounds })
}

func newestFirst(all []convo.Exchange) []convo.Exchange {
	slices.Reverse(all)
	return all
}

// unless returns a strategy that returns an error, or no edit, for some reasons, and
// truncates for others.
func unless(refuses func(convo.Reason) bool, err error) compact {
	return func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if refuses(g.Reason) {
			return convo.Edit{}, err
		}
		return truncated(ctx, s, g)
	}
}

// Strategies that follow every rule of an edit and are of no use.
func TestCheckStrategy_FailsUselessStrategies(t *testing.T) {
	const newest = `drops the newest exchanges first (case "exchanges of many sizes")`
	failed := errors.New("not today")
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
	tests := []badStrategy{
		{"does nothing", always(convo.Edit{}), `never makes an edit`},
		{"finds it never worth it", unless(func(convo.Reason) bool { return true }, convo.ErrNoGain), `never makes an edit`},
		{"an empty chain", convo.Chain(), `never makes an edit`},
		{"a chain of nothing", convo.Chain(convo.Chain(), convo.SlidingWindow{KeepLast: 1 << 20}), `never makes an edit`},
		{"clears by the same text", clearing("", false), `makes an edit that frees nothing (case "tool rounds", goal "tight")`},
		{"drops one exchange", drops(func(all []convo.Exchange, _ *convo.Snapshot, _ convo.Goal) []convo.Exchange {
			return all[:min(len(all), 1)]
		}), `stops short of the target, though it can free more (case "many turns", goal "tight", `},
		{"drops a tenth", share(10), `stops short of the target, though it can free more`},
		{"frees a tenth of what is asked", drops(func(all []convo.Exchange, s *convo.Snapshot, g convo.Goal) []convo.Exchange {
			return until(all, s, s.Tokens()-max(s.Tokens()-g.Target, 0)/10)
		}), `stops short of the target, though it can free more`},
		{"drops half, whatever the target", share(50), `stops short of the target, though it can free more`},
		{"works on ten exchanges at most", toTarget(func(all []convo.Exchange) []convo.Exchange { return all[:min(len(all), 10)] }), `stops short of the target, though it can free more`},
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
		{"drops the newest first", toTarget(newestFirst), newest},
		{"drops the newest large ones first", toTarget(func(all []convo.Exchange) []convo.Exchange {
			return slices.SortedStableFunc(slices.Values(newestFirst(all)), func(a, b convo.Exchange) int { return cmp.Compare(min(b.Tokens, 100), min(a.Tokens, 100)) })
		}), newest},
		{"drops the newest tool rounds first", toTarget(func(all []convo.Exchange) []convo.Exchange { return roundsOnly(newestFirst(all), true) }), newest},
		{"clears the newest half", clearing("", true), `clears the newest results first (case "exchanges of many sizes")`},
		{"works for Prepare alone", unless(func(r convo.Reason) bool { return r != convo.ReasonHigh }, nil),
			`declines for one reason what it does for another (case "many turns", goal "target 0", unlike for goal "tight")`},
		{"gives up at an overflow", unless(func(r convo.Reason) bool { return r == convo.ReasonOverflow }, nil),
			`declines for one reason what it does for another (case "many turns", goal "overflow", unlike for goal`},
		{"calls a fake although it must not", calls(convotest.Echo{}), `calls a model although Goal.NoModel forbids it (case "many turns", goal "no model", a fake summarizer was called)`},
		{"calls a failing model although it must not", convo.Chain(calls(convotest.Failing{}), convo.Truncate{}), `calls a model although Goal.NoModel forbids it`},
		{"says that it called a model", calls(convo.SummarizerFunc(func(ctx context.Context, r convo.SummaryRequest) (convo.Summary, error) {
			return convo.Extract{}.Summarize(ctx, r)
		})), `calls a model although Goal.NoModel forbids it (case "many turns", goal "no model", Effort.Calls is 1)`},
		{"does not say whether it called one", summarized(convo.Summary{Text: "They spoke."}), `calls a model although Goal.NoModel forbids it (case "many turns", goal "no model", a summary without Effort counts as a call)`},
		{"fails for Prepare", unless(func(r convo.Reason) bool { return r == convo.ReasonHigh }, failed), `never makes an edit for one reason, though it does for another (case "many turns", goal "tight", unlike for goal "overflow")`},
		{"works for Compact alone", unless(func(r convo.Reason) bool { return r != convo.ReasonManual }, failed), `never makes an edit for one reason, though it does for another (case "many turns", goal "tight", unlike for goal "target 0")`},
		{"works for MakeRoom alone", unless(func(r convo.Reason) bool { return r != convo.ReasonRoom }, failed), `never makes an edit for one reason, though it does for another (case "many turns", goal "tight", unlike for goal "fit")`},
		{"never works in the background", unless(func(r convo.Reason) bool { return r == convo.ReasonSoft }, nil),
			`never makes an edit for one reason, though it does for another (case "many turns", goal "loose", unlike for goal "overflow")`},
		{"leaves tool calls alone", toTarget(func(all []convo.Exchange) []convo.Exchange { return roundsOnly(all, false) }), `never drops, clears or rewrites a tool exchange`},
		{"drops the oldest, then the newest first", toTarget(func(all []convo.Exchange) []convo.Exchange {
			return append(all[:min(len(all), 1)], newestFirst(all[min(len(all), 1):])...)
		}), newest},
		{"due from the first message on", trigger{truncated, func(s convo.Status) bool { return s.Entries > 0 }}, `is due for a conversation of one short message`},
		{"always due", trigger{truncated, func(convo.Status) bool { return true }}, `is due for an empty conversation`},
	}
	checkStrategies(t, tests)
}
