package convo

import "context"

// Truncate is a [CompactionStrategy] that drops the oldest exchanges until the view is no
// larger than Goal.Target. It calls no model.
//
// It cuts between exchanges. If the cut falls inside a turn, the user messages of that
// turn stay, at the beginning of what is kept; if the next turn begins soon after the
// cut, the cut moves there. The summary is removed only if the request cannot be brought
// under the limit otherwise; then Report.SummaryDropped is set.
type Truncate struct{}

// Name returns "truncate".
func (Truncate) Name() string { return "truncate" }

// Compact returns an edit that drops the oldest exchanges. It returns
// [ErrNoGain] if s is small enough already, or if there is nothing to drop.
func (Truncate) Compact(_ context.Context, s *Snapshot, g Goal) (Edit, error) {
	target := g.target(s)
	if s.raw() <= target {
		return Edit{}, ErrNoGain
	}
	c := cutTo(s, g.room(s), 0, len(s.list))
	e := Edit{Drop: c.drop}
	if g.Limit > 0 && c.remaining > int64(g.Limit) && s.summary != nil {
		e.Summary = &Summary{}
	}
	if e.isZero() {
		return Edit{}, ErrNoGain
	}
	return e, nil
}
