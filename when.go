package convo

import "context"

// When returns the strategy as a [Trigger] that is due when due reports true for the
// status of the History. So a mark below the others, at which only old tool results
// are cleared, takes one line:
//
//	convo.Chain(
//		convo.When(func(s convo.Status) bool { return s.Upper > s.Window*60/100 }, convo.ClearToolResults{}),
//		convo.Summarize{With: s},
//		convo.Truncate{},
//	)
//
// A compaction that starts for another reason runs the strategy as if it stood there
// without When. The strategy keeps its name. If it is a Trigger itself, due takes the
// place of its own Due; of a [Chain], that of all its links. A nil due is never due.
// A strategy that is nil fails with a [*ValueError].
//
// What [Trigger] says about Due holds for the function due. It may be called more than
// once for one compaction.
func When(due func(Status) bool, strategy CompactionStrategy) CompactionStrategy {
	links, ok := strategy.(chain)
	if !ok {
		return when{strategy, due}
	}
	own := make(chain, len(links))
	for i, link := range links {
		own[i] = When(due, link)
	}
	return own
}

// when is a strategy with another Trigger.
type when struct {
	strategy CompactionStrategy
	due      func(Status) bool
}

// Name returns the name of the strategy.
func (w when) Name() string {
	if w.strategy == nil {
		return "nil"
	}
	return w.strategy.Name()
}

// Due calls the function that When was given.
func (w when) Due(s Status) bool { return w.due != nil && w.due(s) }

// Compact calls that of the strategy.
func (w when) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	if w.strategy == nil {
		return Edit{}, &ValueError{Name: "strategy of When", Value: w.strategy, Want: "a strategy"}
	}
	return w.strategy.Compact(ctx, s, g)
}
