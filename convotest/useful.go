package convotest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/seed-c1b73e60/convo"
)

// How a strategy can follow the rules and be of no use.
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

// noteCall counts a call of a fake for a check that watches.
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

// model checks that no model was called if the goal forbids it. calls are those of
// the fakes.
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

// useful checks whether an edit that leaves next of s does what the goal asks for.
func (c *strategyCheck) useful(s, next *convo.Snapshot, e convo.Edit, g goal, where []string) {
	where = slices.Clip(where)
	if g.Reason == convo.ReasonTrigger || g.MinFree > s.Tokens() || linkFailed(e) {
		return // the strategy decides itself how far to go, or would have gone further
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
		return // judge says so, if it happens in the first place
	}
	// A summary may be written a little shorter the second time.
	first, more := s.Tokens()-next.Tokens(), next.Tokens()-again.Tokens()
	switch {
	case more <= first/4:
	case next.Tokens() > g.Target:
		c.add(ruleShort, append(where, fmt.Sprintf("%d tokens are left, the target is %d", next.Tokens(), g.Target))...)
	default:
		c.add(ruleGoesOn, append(where, fmt.Sprintf("%d tokens are left, the target is %d", next.Tokens(), g.Target))...)
	}
}

// kept returns the tokens of what no edit without a summary can free.
func kept(s *convo.Snapshot) int {
	n := s.Tokens()
	for x := range s.Exchanges() {
		if !x.Floor {
			n -= x.Tokens
		}
	}
	return n
}

// refuses reports whether a strategy made no edit for a goal. In the background it
// may wait for what has failed.
func refuses(g goal, p planned) bool {
	waits := g.Reason == convo.ReasonSoft && (linkFailed(p.edit) || p.err != nil && !declines(p.err))
	return (p.err != nil || isZero(p.edit)) && !waits
}

// linkFailed reports whether a link of a chain failed.
func linkFailed(e convo.Edit) bool {
	return e.Effort != nil && slices.ContainsFunc(e.Effort.Links, func(l convo.Link) bool { return l.Outcome == convo.OutcomeFailed })
}

// hasOwnMeasure reports whether the strategy is a Trigger that is ever due.
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

// order checks that the strategy does not take the newest first, in a conversation
// where what is new is neither larger nor smaller, nor of another kind, than what
// is old. A strategy that takes the newest first does so whatever the target is.
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

// whichFirst compares exchanges outside the floor that are of one kind and of like
// size. It reports whether, of some kind and size, the newest are touched and older
// ones are not, at least two of each; and whether, of some kind and size, one is
// touched and a newer one is not. The oldest of each kind and size tells nothing.
func whichFirst(s *convo.Snapshot, touch func(convo.Exchange) (is, can bool)) (newest, other bool) {
	type like struct {
		role  convo.Role
		calls bool
		large bool
	}
	groups := make(map[like][]bool) // what is touched, oldest first
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

// clearsIn reports whether an edit clears a result of an exchange, and whether
// there is one to clear.
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

// A use is for which goals a strategy made an edit in one case.
type use struct {
	did      string // a goal for which it freed a good part
	declined []string
	refused  map[string]bool // goals for which it declined or failed each time
}

// add adds a goal for which the strategy freed so many tokens of all.
func (u *use) add(g goal, freed, all int) {
	if slices.Contains(alikeGoals, g.name) && freed > all/4 {
		u.did = g.name
	}
}

// mustWork are the goals for which a strategy must make an edit in one case at
// least, if it does for one of alikeGoals.
var mustWork = append(slices.Clone(alikeGoals), "loose")

// refused adds the case to the goals for which the strategy made no edit, although
// it did for another.
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

// never checks what takes more than one case to tell: that an edit was made for each
// of the goals that another is like, in one case at least, since a model may be down
// for a while; that one was made of a tool exchange; and that most edits for a loose
// target leave what they may.
func (c *strategyCheck) never() {
	for _, name := range mustWork {
		if where := c.refusals[name]; where != nil && !c.worked[name] {
			c.add(ruleNeverFor, where...)
		}
	}
	if c.edits > 0 && !c.tools {
		c.add(ruleTools)
	}
	// One that drops whole turns, or half of what there is, goes far now and then.
	if len(c.far) > c.loose/2 && !c.hasOwnMeasure() {
		c.add(ruleFar, c.far[0]...)
	}
}

// made notes an edit of s that was made for a goal.
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

// alikeGoals ask for about as much, each for another reason.
var alikeGoals = []string{"tight", "target 0", "fit", "overflow"}

// fault returns a goal for which the strategy declined, and one for which it did
// not. They are empty if there are no such two.
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
