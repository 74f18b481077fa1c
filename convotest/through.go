package convotest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// The rules that a strategy can break in a History.
var (
	ruleRefused = rule{"makes an edit that a History refuses", "decide by the snapshot of this call, and keep nothing of the calls before"}
	ruleView    = rule{"leaves a conversation that is out of order", theirFault}
	ruleFloor   = rule{"removes or changes something of the floor", theirFault}
	ruleOutcome = rule{"ends with an unknown outcome", theirFault}
	ruleFits    = rule{"leaves a request that is too long, without an error", theirFault}
	ruleChanged = rule{"changes the conversation although no edit was applied", theirFault}
)

// theirFault is the remedy for a fault that a History should have prevented.
const theirFault = "the History should have refused this, so please report it as a bug of package convo"

// A result is the result of a compaction.
type result struct {
	report convo.Report
	err    error
}

// through runs the strategy in a History that holds the conversation, with
// several limits. After the first compactions it appends more messages, and compacts
// again.
func (c *strategyCheck) through(conv conversation) error {
	plain, err := conv.history(convo.Options{})
	if err != nil {
		return err
	}
	upper := max(plain.Tokens().Upper, 120)
	for _, setup := range []struct {
		name   string
		limits convo.Limits
	}{
		{"no limits", convo.Limits{}},
		{"above high water", convo.Limits{Window: upper * 4, Reserve: -1, High: upper * 2 / 3}},
		{"above the limit", convo.Limits{Window: upper * 2 / 3, Reserve: -1}},
		{"far above the limit", convo.Limits{Window: upper / 4, Reserve: -1}},
	} {
		h, err := conv.history(convo.Options{Limits: setup.limits, Strategy: c.s})
		if err != nil {
			return err
		}
		where := []string{fmt.Sprintf("case %q", conv.name), "in a History " + setup.name}
		if setup.name == "no limits" {
			where[1] = "in a History without limits"
		}
		err = c.inside(h, where)
		if c.stuck {
			return nil // h.Close might wait for the call that did not return
		}
		if err := errors.Join(err, h.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (c *strategyCheck) inside(h *convo.History, where []string) error {
	where = slices.Clip(where)
	for range 2 {
		c.compact(h, append(where, "Prepare"), func(ctx context.Context) result {
			_, r, err := h.Prepare(ctx)
			return result{r, err}
		})
		if c.stuck {
			return nil
		}
		c.compact(h, append(where, "Compact"), func(ctx context.Context) result {
			r, err := h.Compact(ctx, "the river")
			return result{r, err}
		})
		if c.stuck {
			return nil
		}
		if _, err := h.AnswerOpenCalls("given up"); err != nil {
			return err
		}
		f := filler{h: h}
		f.turns(3)
		f.append(convo.User("And then?"))
		f.tools(2, 2)
		if f.err != nil {
			return f.err
		}
	}
	return nil
}

// compact runs one compaction, and checks the remaining conversation.
func (c *strategyCheck) compact(h *convo.History, where []string, f func(context.Context) result) {
	before := *h.Snapshot() // a copy that the strategy cannot change
	got, end := finish(f)
	if end.isBad() {
		c.add(end.rule, end.where(where...)...)
		c.stuck = end.isStuck()
		return
	}
	if broken, detail := reportFault(got.report, got.err); broken != (rule{}) {
		c.add(broken, append(where, detail)...)
		return
	}
	after := h.Snapshot()
	if got.report.Outcome != convo.OutcomeApplied {
		if !pictureOf(after).is(pictureOf(&before)) {
			c.add(ruleChanged, where...)
		}
		return
	}
	c.left(&before, after, where)
}

// left checks the conversation that remains after an edit.
func (c *strategyCheck) left(before, after *convo.Snapshot, where []string) {
	if fault := viewFault(after.Messages()); fault != "" {
		c.add(ruleView, append(where, fault)...)
	}
	if fault := floorFault(before, after); fault != "" {
		c.add(ruleFloor, append(where, fault)...)
	}
}

// reportFault returns the rule that the strategy broke according to a report, with a
// detail.
func reportFault(r convo.Report, err error) (broken rule, detail string) {
	all := errors.Join(err, r.Cause)
	if e, ok := errors.AsType[*convo.EditError](all); ok {
		return ruleRefused, fmt.Sprintf("%.300q", e)
	}
	if e, ok := errors.AsType[*convo.PanicError](all); ok && (e.In == "CompactionStrategy" || e.In == "Trigger") {
		return rulePanics, fmt.Sprintf("%.200q", fmt.Sprint(e.Value))
	}
	switch {
	case r.Outcome > convo.OutcomeReady:
		return ruleOutcome, r.Outcome.String()
	case !r.Fits && err == nil:
		return ruleFits, r.Outcome.String()
	}
	return rule{}, ""
}
