package cost

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A rule is a policy without memory but for where it cut and how many results
// it cleared. It is given those and returns new ones, never less.
type rule func(l *layout, r request, limit, cut, cleared int) (int, int)

// ruled makes a policy of a rule.
func ruled(name string, r rule) Policy {
	return Policy{Name: name, Kind: Modelled, Cuts: true, Start: func(c *Conversation, s Setup, m *Meter) (Run, error) {
		return &ruleRun{l: c.plan, rule: r, limit: s.Limit()}, nil
	}}
}

type ruleRun struct {
	l            *layout
	rule         rule
	limit        int
	at           int
	cut, cleared int
}

func (r *ruleRun) Append(convo.Message) error { return nil }
func (r *ruleRun) Sent(convo.Usage) error     { return nil }
func (r *ruleRun) Close() error               { return nil }

func (r *ruleRun) Request() ([]Item, error) {
	now := r.l.requests[r.at]
	r.at++
	if now.atoms > 0 {
		r.cut, r.cleared = r.rule(r.l, now, r.limit, r.cut, r.cleared)
	}
	return r.l.view(now.atoms, r.cut, r.cleared), nil
}

// never sends everything, whatever the limit.
func never() Policy {
	p := ruled("never compacting, unlimited window", func(_ *layout, _ request, _, cut, cleared int) (int, int) {
		return cut, cleared
	})
	p.Cuts, p.Free = false, true
	return p
}

// trim drops the oldest once the request is above the limit, down to a share
// of it.
func trim(percent int) Policy {
	name := fmt.Sprintf("drop the oldest down to %d %%", percent)
	if percent == 100 {
		name = "drop the oldest until it fits, target = trigger"
	}
	return ruled(name, func(l *layout, r request, limit, cut, cleared int) (int, int) {
		if l.tokens(r.atoms, cut, cleared) > limit {
			cut, cleared = cutTo(l, r, limit*percent/100, cut, cleared)
		}
		return cut, cleared
	})
}

// cutTo moves the cut until the request weighs no more than target.
func cutTo(l *layout, r request, target, cut, cleared int) (int, int) {
	for cut < r.newest && (!l.atoms[cut].canCut || l.tokens(r.atoms, cut, max(cleared, l.clear[cut])) > target) {
		cut++
	}
	return cut, max(cleared, l.clear[cut])
}

// rolling clears all but the newest results before every request.
func rolling(keep int) Policy {
	return ruled(fmt.Sprintf("clear all but %d results, each turn", keep), func(l *layout, r request, limit, cut, cleared int) (int, int) {
		cleared = max(cleared, min(r.clears, l.clear[r.atoms]-keep))
		if l.tokens(r.atoms, cut, cleared) > limit {
			cut, cleared = cutTo(l, r, limit, cut, cleared)
		}
		return cut, cleared
	})
}

// batched clears all but the newest results once the request is above the
// limit and that frees enough, and else drops the oldest down to half.
func batched(keep, leastPercent int) Policy {
	name := fmt.Sprintf("clear all but %d results when full, if that frees %d %%; else drop to 50 %%", keep, leastPercent)
	return ruled(name, func(l *layout, r request, limit, cut, cleared int) (int, int) {
		now := l.tokens(r.atoms, cut, cleared)
		if now <= limit {
			return cut, cleared
		}
		deeper := max(cleared, min(r.clears, l.clear[r.atoms]-keep))
		if now-l.tokens(r.atoms, cut, deeper) >= limit*leastPercent/100 {
			cleared = deeper
		}
		if l.tokens(r.atoms, cut, cleared) > limit {
			cut, cleared = cutTo(l, r, limit/2, cut, cleared)
		}
		return cut, cleared
	})
}
