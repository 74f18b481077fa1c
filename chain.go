package convo

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Chain makes one strategy of several, a ladder: each link gets the view as
// the links before it would leave it, until the goal is reached. What they
// give up is one edit, applied in one step. A link that declines or fails adds
// nothing and is named in [Report].Links; the chain fails only when no link
// added anything.
//
// A Chain is a [Trigger] that is due when a link is; then only the links that
// are due run, each once. In the background a link that fails ends the ladder:
// there is still room, and what the next link would drop unread can be
// summarised later.
func Chain(links ...CompactionStrategy) CompactionStrategy {
	return chain(slices.Clone(links))
}

type chain []CompactionStrategy

// Name returns "chain".
func (chain) Name() string { return "chain" }

// Due reports whether a link is due.
func (c chain) Due(s Status) bool {
	return slices.ContainsFunc(c, func(link CompactionStrategy) bool {
		t := triggerOf(link)
		return t != nil && t.Due(s)
	})
}

// Compact asks the links.
func (c chain) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	if g.run == nil {
		g.run = &run{base: s, status: s.status()}
	}
	var sum sumOfEdits
	var failed, declined []error
	view := s
	for _, link := range c {
		if ctx.Err() != nil {
			return Edit{}, context.Cause(ctx)
		}
		if g.Reason == ReasonTrigger {
			if due, err := isDue(triggerOf(link), g.run.status); err != nil {
				failed = append(failed, err)
				continue
			} else if !due {
				continue
			}
		} else if view.raw() <= int64(g.Target) {
			break
		}
		next, err := c.climb(ctx, link, view, g, &sum)
		switch {
		case err == nil:
			view = next
			continue
		case isDecline(err):
			declined = append(declined, err)
		default:
			failed = append(failed, err)
		}
		if g.Reason == ReasonSoft && !onlyNoGain(err) {
			break
		}
	}
	switch {
	case view != s:
		return sum.edit(), nil
	case len(failed) > 0:
		return Edit{}, errors.Join(failed...)
	case len(declined) > 0:
		return Edit{}, errors.Join(declined...)
	}
	return Edit{}, ErrNoGain
}

// onlyNoGain reports whether a link ended with nothing but ErrNoGain.
func onlyNoGain(err error) bool { return isDecline(err) && !errors.Is(err, ErrBreaker) }

// climb asks one link, and returns the view with its edit.
func (c chain) climb(ctx context.Context, link CompactionStrategy, view *Snapshot, g Goal, sum *sumOfEdits) (next *Snapshot, err error) {
	if link == nil {
		err := &ValueError{Name: "Chain", Value: link, Want: "links that are not nil"}
		g.run.link("nil", err)
		return nil, err
	}
	own := *view // what the link does to it stays with the link
	name, e, err := plan(ctx, link, &own, g)
	if err == nil {
		next, err = view.with(e, g)
	}
	if err == nil && next.raw() >= view.raw() && g.Reason != ReasonTrigger {
		err = ErrNoGain
	}
	if _, nested := link.(chain); !nested || err != nil {
		if err != nil && !isDecline(err) {
			err = fmt.Errorf("%s: %w", name, err)
		}
		g.run.link(name, err)
	}
	if err != nil {
		return nil, err
	}
	sum.add(e)
	return next, nil
}

// with is With for an edit that a strategy made: its summary must be fit.
func (s *Snapshot) with(e Edit, g Goal) (*Snapshot, error) {
	next, err := s.With(e)
	if err != nil {
		return nil, err
	}
	freed := s.raw() - next.raw()
	if freed < 0 {
		return nil, &RefusedError{Reason: fmt.Sprintf("the view would grow by %d tokens", -freed)}
	}
	return next, e.Summary.fit(freed, int64(g.MinFree))
}

// A sumOfEdits is what links that ran one after the other do together.
type sumOfEdits struct {
	e        Edit
	read     []ID    // dropped by links that brought a summary
	explicit []Range // what summaries said themselves that they cover
}

func (sum *sumOfEdits) add(e Edit) {
	sum.e.Drop = append(sum.e.Drop, e.Drop...)
	sum.e.Clear = append(sum.e.Clear, e.Clear...)
	if e.Summary == nil {
		return
	}
	text := *e.Summary
	sum.e.Summary = &text
	switch {
	case text.Text == "":
		sum.read, sum.explicit = nil, nil
	case text.Covers != nil:
		sum.explicit = append(sum.explicit, text.Covers...)
	case e.read != nil:
		sum.read = append(sum.read, e.read...)
	default:
		sum.read = append(sum.read, e.Drop...)
	}
}

func (sum *sumOfEdits) edit() Edit {
	e := sum.e
	if e.Summary == nil || e.Summary.Text == "" {
		return e
	}
	e.read = slices.Clone(sum.read)
	if e.read == nil {
		e.read = []ID{}
	}
	slices.Sort(e.read)
	if sum.explicit != nil {
		e.Summary.Covers = slices.Concat(sum.explicit, rangesOf(e.read))
	}
	return e
}
