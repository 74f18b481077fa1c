package cost

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A rule is a policy that remembers only its last cut and how many results it has
// cleared. It gets these two numbers and returns new ones, which must not be lower.
type rule func(l *layout, r request, limit, cut, cleared int) (int, int)

// ruled returns the policy that follows a rule.
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

// never sends everything, even above the limit.
func never() Policy {
	p := ruled("never compacting, unlimited window", func(_ *layout, _ request, _, cut, cleared int) (int, int) {
		return cut, cleared
	})
	p.Cuts, p.Free = false, true
	return p
}

// trim drops the oldest atoms when a request is above the limit, until it is at
// most the given percentage of the limit.
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

// cutTo moves the cut until the request is at most target tokens.
func cutTo(l *layout, r request, target, cut, cleared int) (int, int) {
	for cut < r.newest && (!l.atoms[cut].canCut || l.tokens(r.atoms, cut, max(cleared, l.clear[cut])) > target) {
		cut++
	}
	return cut, max(cleared, l.clear[cut])
}

// rolling clears all but the newest keep results before every request.
func rolling(keep int) Policy {
	return ruled(fmt.Sprintf("clear all but %d results, each turn", keep), func(l *layout, r request, limit, cut, cleared int) (int, int) {
		cleared = max(cleared, min(r.clears, l.clear[r.atoms]-keep))
		if l.tokens(r.atoms, cut, cleared) > limit {
			cut, cleared = cutTo(l, r, limit, cut, cleared)
		}
		return cut, cleared
	})
}

// batched acts when a request is above the limit. It clears all but the newest
// keep results if that frees enough. If the request is still above the limit, it
// drops the oldest atoms down to half of the limit.
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
