package convotest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// TestStrategy runs [CheckStrategy] and calls t.Error for each broken rule.
func TestStrategy(t testing.TB, s convo.CompactionStrategy) {
	t.Helper()
	report(t, CheckStrategy(s))
}

// CheckStrategy runs a strategy on built-in conversations, first on snapshots, then
// with each of their exchanges pinned in turn, and then in a History. It returns
// the broken rules as joined errors. The rules:
//
//   - Name is not blank, and always the same.
//   - An edit names only entries and tool results in the snapshot. It drops whole
//     exchanges, and does not drop, clear or rewrite any part of the floor. It rewrites
//     an entry at most once, and no entry in which it clears a result.
//   - A summary is neither blank nor cut off, and an edit with a summary frees at
//     least Goal.MinFree tokens.
//   - An edit does not make the view larger, and frees something unless the
//     Reason is ReasonTrigger.
//   - It is useful. It makes edits. An edit reaches the target, or frees as much as
//     the strategy can free, so that a second edit for the same goal frees nothing more.
//     When the target is reached, the strategy stops. Without a summary, it does not
//     leave less than half of a loose target each time it could, unless it is a Trigger,
//     which sets its own target. Among exchanges of the same kind and similar size, it
//     does not drop or clear the newest first; any other order is allowed. It makes
//     edits for each Reason if it does so for one, and it drops, clears or rewrites some
//     tool exchanges.
//   - It calls no model when Goal.NoModel is set: no fake of this package is called, and
//     Effort.Calls is 0. A summary without Effort counts as a call.
//   - The same snapshot and goal give an edit of the same entries. The texts of
//     summaries may differ. If they differ in length, so may the entries.
//   - The snapshot is not changed.
//   - Compact returns within a minute, and soon after its ctx has ended.
//   - It does not panic or call runtime.Goexit.
//   - It may decline, with [convo.ErrNoGain], [convo.ErrBreaker] or the zero Edit,
//     and it may fail.
//   - Due of a [convo.Trigger] returns the same result for the same Status, does not
//     wait, and returns false for an empty conversation and for one short message.
//   - A History accepts all edits, and the remaining conversation is in order and
//     contains the whole floor.
//
// The runs with a pinned exchange and the runs in a History are made only if no rule
// was broken before.
//
// If Compact does not return, CheckStrategy stops and leaks the goroutine that called
// it.
func CheckStrategy(s convo.CompactionStrategy) error {
	if s == nil {
		return errors.New("strategy: is nil; pass the strategy to check")
	}
	c := strategyCheck{s: s}
	c.of = "strategy"
	if c.checkName(); len(c.list) > 0 {
		return c.err()
	}
	if err := c.all(); err != nil {
		return err
	}
	c.checkName()
	return c.err()
}

// The rules that a strategy can break.
var (
	ruleName     = rule{"has a blank name", "let Name return a short name, for reports and log lines"}
	ruleSameName = rule{"changes its name", "let Name return the same text each time"}
	ruleBlank    = rule{"returns a blank summary", "return an error if the summarizer wrote nothing"}
	ruleCutOff   = rule{"returns a summary that was cut off", "return an error unless Summary.Stop is StopDone"}
	ruleMinFree  = rule{"returns a summary and frees less than Goal.MinFree", "return ErrNoGain before a model is called for so little, or ask for a shorter summary"}
	ruleGrows    = rule{"makes the view larger", "put less in the place of what goes; Snapshot.With returns the view that an edit leaves"}
	ruleSame     = rule{"drops, clears or rewrites other entries the second time", "decide by the snapshot and the goal alone"}
	ruleSnapshot = rule{"changes the snapshot", "only read it; Snapshot.With returns the view that an edit leaves, as another snapshot"}
	ruleFails    = rule{"fails, and never makes an edit", "if it calls a model, test it with a fake that answers, such as Echo"}
	ruleEdit     = rule{"makes an edit that is refused", "the error is that of Snapshot.With, which you can call to try an edit"}
	ruleDue      = rule{"gives two answers of Due for the same Status", "decide by the Status alone"}
	ruleDueWaits = rule{"waits in Due", "answer at once, from the Status"}
	ruleDueEmpty = rule{"is due for an empty conversation", "be due only if there is something to remove"}
	ruleDueSmall = rule{"is due for a conversation of one short message", "be due only if there is something to remove"}
)

type strategyCheck struct {
	findings
	s    convo.CompactionStrategy
	name *string

	edits   int   // number of edits so far
	failure error // the first error other than a refusal to compact
	stuck   bool  // a call did not return, so the check must stop

	worked   map[string]bool     // goals for which an edit was made
	refusals map[string][]string // goals for which no edit was made, with the first place
	tools    bool                // an edit dropped, cleared or rewrote something of a tool exchange
	loose    int                 // number of edits that could have freed far too much
	far      [][]string          // the places of the edits that did
}

func (c *strategyCheck) checkName() {
	name, end := finish(func(context.Context) string { return c.s.Name() })
	switch {
	case end.isBad():
		c.add(end.rule, end.where("in Name")...)
	case c.name == nil && strings.TrimSpace(name) == "":
		c.add(ruleName)
	case c.name == nil:
		c.name = &name
		c.of = fmt.Sprintf("strategy %q", name)
	case *c.name != name:
		c.add(ruleSameName, fmt.Sprintf("to %q", name))
	}
}

// all runs all checks except the check of the name.
func (c *strategyCheck) all() error {
	cases := conversations()
	views := make([]*convo.Snapshot, len(cases))
	now := time.Now()
	statuses := []convo.Status{{}, {Entries: 1, Turns: 1, Tokens: 10, Upper: 12, Appended: 10, LastAppend: now}, {Entries: 1 << 20, Turns: 1 << 20, Tokens: 1 << 30, Upper: 1 << 30, Appended: 1 << 30}}
	for i, conv := range cases {
		h, err := conv.history(convo.Options{})
		if err != nil {
			return err
		}
		views[i] = h.Snapshot()
		statuses = append(statuses, h.Status())
	}
	for i, conv := range cases {
		if c.end(views[i], conv.name); c.stuck {
			return nil
		}
	}
	for i, conv := range cases {
		before, data := pictureOf(views[i]), jsonOf(views[i])
		var u use
		for _, g := range goals(views[i]) {
			if c.try(views[i], before, g, place(conv.name, g.name), &u); c.stuck {
				return nil
			}
		}
		if declined, did := u.fault(); declined != "" {
			c.add(ruleReason, append(place(conv.name, declined), fmt.Sprintf("unlike for goal %q", did))...)
		}
		c.refused(conv.name, &u)
		if jsonOf(views[i]) != data {
			c.add(ruleSnapshot, fmt.Sprintf("case %q", conv.name))
		}
	}
	if c.edits == 0 && c.failure != nil {
		c.add(ruleFails, fmt.Sprintf("%.300q", c.failure))
	}
	if err := c.order(); err != nil || c.stuck {
		return err
	}
	if len(c.list) == 0 {
		c.never()
	}
	if trigger, ok := c.s.(convo.Trigger); ok {
		for _, status := range statuses {
			c.due(trigger, status)
		}
	}
	if len(c.list) > 0 {
		return nil
	}
	for _, conv := range cases {
		if err := c.pins(conv); err != nil || c.stuck {
			return err
		}
	}
	if c.edits == 0 {
		c.add(ruleNever)
	}
	if len(c.list) > 0 {
		return nil
	}
	for _, conv := range cases {
		if err := c.through(conv); err != nil || c.stuck {
			return err
		}
	}
	return nil
}

// pins tries one goal with each exchange of the conversation pinned in turn, so
// that a strategy must leave every kind of exchange alone.
func (c *strategyCheck) pins(conv conversation) error {
	h, err := conv.history(convo.Options{})
	if err != nil {
		return err
	}
	for x := range h.Snapshot().Exchanges() {
		if x.Floor {
			continue
		}
		if err := h.Pin(x.First); err != nil {
			return err
		}
		s := h.Snapshot()
		g := goals(s)[2] // "target 0", for which a strategy removes the most
		where := append(place(conv.name, g.name), fmt.Sprintf("entry %d pinned", x.First))
		got, end := finish(c.plan(s, g.Goal))
		if end.isBad() {
			c.add(end.rule, end.where(where...)...)
			c.stuck = end.isStuck()
			return nil
		}
		if got.err == nil && !isZero(got.edit) {
			c.edits++
			c.judge(s, got.edit, g.Goal, where)
		}
		if err := h.Unpin(x.First); err != nil {
			return err
		}
	}
	return nil
}

func place(name, goal string) []string {
	return []string{fmt.Sprintf("case %q", name), fmt.Sprintf("goal %q", goal)}
}

type goal struct {
	name string
	convo.Goal
}

// goals returns the goals to try on a view.
func goals(s *convo.Snapshot) []goal {
	total := s.Tokens()
	list := []goal{
		{"tight", convo.Goal{Target: total / 4, MinFree: total / 16, Reason: convo.ReasonHigh}},
		{"loose", convo.Goal{Target: total * 3 / 4, MinFree: total / 32, Reason: convo.ReasonSoft}},
		{"target 0", convo.Goal{Reason: convo.ReasonManual, MinFree: 1, Focus: "the river"}},
		{"trigger", convo.Goal{Reason: convo.ReasonTrigger, MinFree: 1}},
		{"no model", convo.Goal{Target: total / 4, MinFree: 1, NoModel: convo.ErrBreaker, Reason: convo.ReasonHigh}},
		{"no model and target 0", convo.Goal{NoModel: convo.ErrBreaker, Reason: convo.ReasonOverflow}},
		{"fit", convo.Goal{Target: total / 2, MinFree: total / 8, Reason: convo.ReasonRoom}},
		{"overflow", convo.Goal{Target: total / 2, MinFree: 1, Reason: convo.ReasonOverflow}},
		{"more to free than there is", convo.Goal{Target: total / 2, MinFree: total + 1, Reason: convo.ReasonHigh}},
		{"already reached", convo.Goal{Target: total, MinFree: 1, Reason: convo.ReasonManual}},
	}
	for i := range list {
		list[i].Count = convo.Heuristic{}.CountTokens
	}
	return list
}

// A planned is the result of a call to Compact.
type planned struct {
	edit convo.Edit
	err  error
}

func (c *strategyCheck) plan(s *convo.Snapshot, g convo.Goal) func(context.Context) planned {
	return func(ctx context.Context) planned {
		e, err := c.s.Compact(ctx, s, g)
		return planned{e, err}
	}
}

// end checks that Compact returns when its ctx ends.
func (c *strategyCheck) end(s *convo.Snapshot, name string) {
	own, g := *s, goals(s)[0]
	if end := stop(c.plan(&own, g.Goal)); end.isBad() {
		c.add(end.rule, end.where(place(name, g.name)...)...)
		c.stuck = end.isStuck()
	}
}

// try calls Compact twice with the same snapshot and goal, and checks the
// edits. The picture before shows the unchanged snapshot.
func (c *strategyCheck) try(s *convo.Snapshot, before picture, g goal, where []string, u *use) {
	var plans [2]planned
	own := *s // a copy, so that a strategy that changes it spoils no other case
	for i := range plans {
		var calls *atomic.Int64
		got, end := finish(func(ctx context.Context) planned {
			ctx, calls = watch(ctx)
			return c.plan(&own, g.Goal)(ctx)
		})
		if end.isBad() {
			c.add(end.rule, end.where(where...)...)
			c.stuck = end.isStuck()
			return
		}
		c.model(g.Goal, got, calls.Load(), where)
		plans[i] = got
	}
	if !pictureOf(&own).is(before) {
		c.add(ruleSnapshot, where...)
		return
	}
	for i, p := range plans {
		switch {
		case p.err == nil && !isZero(p.edit):
			c.edits++
			c.made(s, p.edit, g.name)
			next := c.judge(s, p.edit, g.Goal, where)
			if i == 0 && next != nil {
				c.useful(s, next, p.edit, g, where)
				u.add(g, s.Tokens()-next.Tokens(), s.Tokens())
			}
		case p.err != nil && !declines(p.err) && c.failure == nil:
			c.failure = p.err
		}
		if i == 0 && (p.err == nil && isZero(p.edit) || declines(p.err)) {
			u.declined = append(u.declined, g.name)
		}
	}
	if u.refused == nil {
		u.refused = make(map[string]bool)
	}
	u.refused[g.name] = refuses(g, plans[0]) && refuses(g, plans[1])
	if !alike(plans[0], plans[1], g.Count) {
		c.add(ruleSame, where...)
	}
}

func declines(err error) bool {
	return errors.Is(err, convo.ErrNoGain) || errors.Is(err, convo.ErrBreaker)
}

func isZero(e convo.Edit) bool {
	return len(e.Drop) == 0 && len(e.Clear) == 0 && len(e.Rewrite) == 0 && e.Summary == nil
}

// judge checks one edit against the rules of an Edit, and returns the view after the
// edit, or nil if the edit breaks a rule.
func (c *strategyCheck) judge(s *convo.Snapshot, e convo.Edit, g convo.Goal, where []string) *convo.Snapshot {
	where = slices.Clip(where)
	wrong := entryFaults(s, e)
	for _, f := range wrong {
		c.add(f.rule, append(where, fmt.Sprintf("entry %d", f.id))...)
	}
	sum := e.Summary
	switch {
	case sum == nil || sum.Text == "" && sum.Stop == convo.StopDone: // no new summary
		sum = nil
	case sum.Stop != convo.StopDone:
		c.add(ruleCutOff, append(where, fmt.Sprintf("Stop is %q", sum.Stop.String()))...)
		return nil
	case strings.TrimSpace(sum.Text) == "":
		c.add(ruleBlank, where...)
		return nil
	}
	if len(wrong) > 0 {
		return nil
	}
	next, err := s.With(e)
	if err != nil {
		c.add(ruleEdit, append(where, fmt.Sprintf("%.300q", err))...)
		return nil
	}
	freed := s.Tokens() - next.Tokens()
	switch {
	case freed < 0:
		c.add(ruleGrows, append(where, fmt.Sprintf("by %d tokens", -freed))...)
	case freed == 0 && g.Reason != convo.ReasonTrigger:
		c.add(ruleFreesNone, where...)
	case sum != nil && freed < g.MinFree:
		c.add(ruleMinFree, append(where, fmt.Sprintf("%d of %d tokens", freed, g.MinFree))...)
	default:
		return next
	}
	return nil
}

// alike reports whether two plans for the same view drop, clear and rewrite the
// same entries. If the summarizer failed for one of them, or wrote texts of
// different lengths, the plans may differ.
func alike(a, b planned, count func(string) int) bool {
	failed := func(p planned) bool { return p.err != nil && !declines(p.err) }
	length := func(p planned) int {
		if p.err != nil || p.edit.Summary == nil {
			return -1
		}
		return count(p.edit.Summary.Text)
	}
	if failed(a) || failed(b) || length(a) != length(b) {
		return true
	}
	if (a.err != nil || isZero(a.edit)) != (b.err != nil || isZero(b.edit)) {
		return false
	}
	if a.err != nil || b.err != nil {
		return true
	}
	return slices.Equal(dropped(a.edit), dropped(b.edit)) && slices.Equal(cleared(a.edit), cleared(b.edit)) &&
		slices.Equal(rewritten(a.edit), rewritten(b.edit))
}

func dropped(e convo.Edit) []convo.ID {
	return slices.Compact(slices.Sorted(slices.Values(e.Drop)))
}

func rewritten(e convo.Edit) []convo.ID {
	var ids []convo.ID
	for _, r := range e.Rewrite {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

func cleared(e convo.Edit) []convo.Clear {
	list := slices.Clone(e.Clear)
	for i := range list {
		list[i].Text = ""
	}
	slices.SortFunc(list, func(a, b convo.Clear) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.CallID, b.CallID))
	})
	return slices.Compact(list)
}

// due calls Due twice with the same status.
func (c *strategyCheck) due(t convo.Trigger, s convo.Status) {
	var answers [2]bool
	for i := range answers {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		got, end := call(ended, func(context.Context) bool { return t.Due(s) })
		switch {
		case end.isStuck():
			c.add(ruleDueWaits)
			return
		case end.isBad():
			c.add(end.rule, end.where("in Due")...)
			return
		}
		answers[i] = got
	}
	if answers[0] && s == (convo.Status{}) {
		c.add(ruleDueEmpty)
	}
	if answers[0] && s.Entries == 1 && s.Tokens == 10 {
		c.add(ruleDueSmall)
	}
	if answers[0] != answers[1] {
		c.add(ruleDue, fmt.Sprintf("with %d entries", s.Entries))
	}
}
