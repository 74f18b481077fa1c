package convotest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/seed-c1b73e60/convo"
)

// The rules that a useless strategy breaks.
var (
	ruleNever     = rule{"never makes an edit", "while Snapshot.Tokens is above Goal.Target, drop or clear something that is not floor"}
	ruleFreesNone = rule{"makes an edit that frees nothing", "return ErrNoGain, or the zero Edit, if nothing can be freed"}
	ruleShort     = rule{"stops short of the target, though it can free more", "go on until no more than Goal.Target is left, or nothing that can go"}
	ruleGoesOn    = rule{"goes on although the target is reached", "return ErrNoGain, or the zero Edit, if Snapshot.Tokens is at most Goal.Target"}
	ruleFar       = rule{"drops far more than the target asks for", "stop as soon as no more than Goal.Target is left; a strategy with a measure of its own says so with a method Due, as SlidingWindow does"}
	ruleNewest    = rule{"drops the newest exchanges first", "of exchanges that are alike, drop the oldest first"}
	ruleNewestOut = rule{"clears the newest results first", "of results that are alike, clear the oldest first"}
	ruleReason    = rule{"declines for one reason what it does for another", "make an edit whatever Goal.Reason is"}
	ruleNeverFor  = rule{"never makes an edit for one reason, though it does for another", "make an edit whatever Goal.Reason is"}
	ruleTools     = rule{"never drops, clears or rewrites a tool exchange", "drop or clear those as well, for most of a long conversation can be in them"}
	ruleModel     = rule{"calls a model although Goal.NoModel forbids it", "return Goal.NoModel as the error; if no model was called, say so with Effort: &Effort{}"}
)

// watchKey is the key of the ctx value that counts calls of the fakes.
type watchKey struct{}

// noteCall counts a call of a fake if ctx is from watch.
func noteCall(ctx context.Context) {
	if n, ok := ctx.Value(watchKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
}

// watch returns ctx with a counter of the calls of fakes.
func watch(ctx context.Context) (context.Context, *atomic.Int64) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, watchKey{}, n), n
}

// model checks that no model was called if the goal forbids it. calls is the number of
// calls of the fakes.
func (c *strategyCheck) model(g convo.Goal, got planned, calls int64, where []string) {
	where = slices.Clip(where)
	switch w := got.edit.Effort; {
	case g.NoModel == nil:
	case calls > 0:
		c.add(ruleModel, append(where, "a fake summarizer was called")...)
	case w != nil && w.Calls > 0:
		c.add(ruleModel, append(where, fmt.Sprintf("Effort.Calls is %d", w.Calls))...)
	case w == nil && got.err == nil && got.edit.Summary != nil && got.edit.Summary.Text != "":
		c.add(ruleModel, append(where, "a summary without Effort counts as a call")...)
	}
}

// useful checks whether an edit does what the goal asks for. The edit turns s into next.
func (c *strategyCheck) useful(s, next *convo.Snapshot, e convo.Edit, g goal, where []string) {
	where = slices.Clip(where)
	if g.Reason == convo.ReasonTrigger || g.MinFree > s.Tokens() || linkFailed(e) {
		return // the strategy sets its own target, or would have freed more
	}
	if e.Summary == nil && len(e.Drop) > 0 && g.Target >= s.Tokens()/2 && kept(s) < g.Target/2 {
		c.loose++
		if next.Tokens() < g.Target/2 {
			c.far = append(c.far, append(where, fmt.Sprintf("%d tokens are left, and may be %d", next.Tokens(), g.Target)))
		}
	}
	own := *next
	got, end := finish(c.plan(&own, g.Goal))
	if end.isBad() || got.err != nil || isZero(got.edit) {
		return
	}
	again, err := next.With(got.edit)
	if err != nil {
		return // judge reports this for the first edit
	}
	// A second summary may be a little shorter.
	first, more := s.Tokens()-next.Tokens(), next.Tokens()-again.Tokens()
	switch {
	case more <= first/4:
	case next.Tokens() > g.Target && next.Tokens() <= g.Target*5/4: // a heavy floor may add up to a quarter
	case next.Tokens() > g.Target:
		c.add(ruleShort, append(where, fmt.Sprintf("%d tokens are left, the target is %d", next.Tokens(), g.Target))...)
	default:
		c.add(ruleGoesOn, append(where, fmt.Sprintf("%d tokens are left, the target is %d", next.Tokens(), g.Target))...)
	}
}

// kept returns the number of tokens that an edit without a summary cannot free.
func kept(s *convo.Snapshot) int {
	n := s.Tokens()
	for x := range s.Exchanges() {
		if !x.Floor {
			n -= x.Tokens
		}
	}
	return n
}

// refuses reports whether a strategy made no edit for a goal. In the background a
// strategy may make no edit after a failure.
func refuses(g goal, p planned) bool {
	waits := g.Reason == convo.ReasonSoft && (linkFailed(p.edit) || p.err != nil && !declines(p.err))
	return (p.err != nil || isZero(p.edit)) && !waits
}

// linkFailed reports whether a link of a chain failed.
func linkFailed(e convo.Edit) bool {
	return e.Effort != nil && slices.ContainsFunc(e.Effort.Links, func(l convo.Link) bool { return l.Outcome == convo.OutcomeFailed })
}

// hasOwnMeasure reports whether the strategy is a Trigger that can be due.
func (c *strategyCheck) hasOwnMeasure() bool {
	t, ok := c.s.(convo.Trigger)
	if !ok {
		return false
	}
	due, end := finish(func(context.Context) bool {
		return t.Due(convo.Status{Entries: 1 << 20, Turns: 1 << 20, Tokens: 1 << 30, Upper: 1 << 30, Appended: 1 << 30})
	})
	return !end.isBad() && due
}

// order checks that the strategy does not take the newest exchanges first. It uses a
// conversation in which new and old exchanges have the same sizes and kinds. A strategy
// that takes the newest first does so for any target.
func (c *strategyCheck) order() error {
	h, err := mixed().history(convo.Options{})
	if err != nil {
		return err
	}
	s := h.Snapshot()
	newest, other := map[rule]bool{}, map[rule]bool{}
	for _, target := range []int{s.Tokens() * 7 / 8, s.Tokens() * 3 / 4, s.Tokens() / 2} {
		own := *s
		got, end := finish(c.plan(&own, convo.Goal{Target: target, MinFree: 1, Reason: convo.ReasonHigh, Count: convo.Heuristic{}.CountTokens}))
		if end.isBad() {
			c.add(end.rule, end.where(fmt.Sprintf("case %q", mixed().name))...)
			c.stuck = end.isStuck()
			return nil
		}
		if got.err != nil || isZero(got.edit) {
			continue
		}
		for r, touch := range map[rule]func(convo.Exchange) (is, can bool){
			ruleNewest:    func(x convo.Exchange) (is, can bool) { return slices.Contains(got.edit.Drop, x.First), true },
			ruleNewestOut: func(x convo.Exchange) (is, can bool) { return clearsIn(s, got.edit, x) },
		} {
			a, b := whichFirst(s, touch)
			newest[r], other[r] = newest[r] || a, other[r] || b
		}
	}
	for _, r := range []rule{ruleNewest, ruleNewestOut} {
		if newest[r] && !other[r] {
			c.add(r, fmt.Sprintf("case %q", mixed().name))
		}
	}
	return nil
}

// whichFirst groups the exchanges outside the floor by kind and size. newest reports
// whether, in some group, the newest exchanges are touched and the older ones are not, at
// least two of each. other reports whether, in some group, an exchange is touched and a
// newer one is not. The oldest exchange of each group is ignored.
func whichFirst(s *convo.Snapshot, touch func(convo.Exchange) (is, can bool)) (newest, other bool) {
	type like struct {
		role  convo.Role
		calls bool
		large bool
	}
	groups := make(map[like][]bool) // whether each exchange is touched, oldest first
	for x := range s.Exchanges() {
		first, _ := s.Find(x.First)
		if is, can := touch(x); can && !x.Floor {
			of := like{first.Message.Role, x.First != x.Last, x.Tokens > mixedLarge}
			groups[of] = append(groups[of], is)
		}
	}
	for _, all := range groups {
		all = all[1:]
		switch first := slices.Index(all, true); {
		case first < 0:
		case slices.Contains(all[first:], false):
			other = true
		case first > 1 && len(all)-first > 1:
			newest = true
		}
	}
	return newest, other
}

// clearsIn reports whether an edit clears a result of an exchange, and whether the
// exchange has a result to clear.
func clearsIn(s *convo.Snapshot, e convo.Edit, x convo.Exchange) (is, can bool) {
	for _, id := range x.IDs() {
		entry, _ := s.Find(id)
		for _, r := range entry.Message.ToolResults() {
			can = can || !r.Cleared && r.Text() != ""
		}
		is = is || slices.ContainsFunc(e.Clear, func(c convo.Clear) bool { return c.ID == id })
	}
	return is && can, can
}

// A use records for which goals a strategy made an edit in one case.
type use struct {
	did      string // a goal for which it freed more than a quarter
	declined []string
	refused  map[string]bool // goals for which it declined or failed each time
}

// add adds a goal for which the strategy freed some of all tokens.
func (u *use) add(g goal, freed, all int) {
	if slices.Contains(alikeGoals, g.name) && freed > all/4 {
		u.did = g.name
	}
}

// mustWork lists the goals for which a strategy must make an edit in at least one case,
// if it does so for one of alikeGoals.
var mustWork = append(slices.Clone(alikeGoals), "loose")

// refused adds the case to the goals for which the strategy made no edit, if it freed
// a good part for another goal.
func (c *strategyCheck) refused(conv string, u *use) {
	for _, name := range mustWork {
		if u.did != "" && u.refused[name] && c.refusals[name] == nil {
			if c.refusals == nil {
				c.refusals = make(map[string][]string)
			}
			c.refusals[name] = append(place(conv, name), fmt.Sprintf("unlike for goal %q", u.did))
		}
	}
}

// never checks the rules that need more than one case. The strategy must make an edit for
// each goal in mustWork, in at least one case, since a model may be down for a while; it
// must edit a tool exchange; and most edits for a loose target must not free far too much.
func (c *strategyCheck) never() {
	for _, name := range mustWork {
		if where := c.refusals[name]; where != nil && !c.worked[name] {
			c.add(ruleNeverFor, where...)
		}
	}
	if c.edits > 0 && !c.tools {
		c.add(ruleTools)
	}
	// A strategy that drops whole turns, or half of the view, goes far now and then.
	if len(c.far) > c.loose/2 && !c.hasOwnMeasure() {
		c.add(ruleFar, c.far[0]...)
	}
}

// made records an edit of s for a goal.
func (c *strategyCheck) made(s *convo.Snapshot, e convo.Edit, goal string) {
	if c.worked == nil {
		c.worked = make(map[string]bool)
	}
	c.worked[goal] = true
	c.tools = c.tools || len(e.Clear) > 0 || slices.ContainsFunc(append(rewritten(e), e.Drop...), func(id convo.ID) bool {
		entry, _ := s.Find(id)
		return len(entry.Message.ToolCalls())+len(entry.Message.ToolResults()) > 0
	})
}

// alikeGoals lists goals that ask for about as much, each with a different Reason.
var alikeGoals = []string{"tight", "target 0", "fit", "overflow"}

// fault returns a goal for which the strategy declined, and a goal for which it did
// not. Both are empty if there is no such pair.
func (u *use) fault() (declined, did string) {
	if u.did == "" {
		return "", ""
	}
	for _, name := range alikeGoals {
		if slices.Contains(u.declined, name) {
			return name, u.did
		}
	}
	return "", ""
}
