package convo

import "context"

// Truncate is a [CompactionStrategy] that drops the oldest exchanges until the
// goal is reached.
//
// It cuts between exchanges. Inside a turn, the turn's user messages stay at
// the head of what is kept; when a turn begins soon after the cut, the cut
// moves there. The summary goes last: only when nothing else brings the
// request under the limit, and then the report says so.
type Truncate struct{}

// Name returns "truncate".
func (Truncate) Name() string { return "truncate" }

// Compact plans what to drop.
func (Truncate) Compact(_ context.Context, s *Snapshot, g Goal) (Edit, error) {
	target := g.target(s)
	if s.raw() <= target {
		return Edit{}, ErrNoGain
	}
	c := cutTo(s, target, 0)
	e := Edit{Drop: c.drop}
	if g.run != nil && g.run.limit > 0 && c.kept > g.run.limit && s.slot != nil {
		e.Summary = &Summary{}
	}
	if e.isZero() {
		return Edit{}, ErrNoGain
	}
	return e, nil
}
