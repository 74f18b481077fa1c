package convotest

import (
	"context"

	"github.com/seed-c1b73e60/convo"
)

// LeftFault returns the rules that a compaction from before to after breaks.
func LeftFault(before, after *convo.Snapshot) error {
	var c strategyCheck
	c.of = "strategy"
	c.left(before, after, nil)
	return c.err()
}

// CompactFault returns the rules that f breaks as a compaction of h.
func CompactFault(h *convo.History, f func() (convo.Report, error)) error {
	var c strategyCheck
	c.of = "strategy"
	c.compact(h, nil, func(context.Context) result {
		r, err := f()
		return result{r, err}
	})
	return c.err()
}

// Views returns a snapshot of each built-in conversation, by name.
func Views() (map[string]*convo.Snapshot, error) {
	views := make(map[string]*convo.Snapshot)
	for _, conv := range conversations() {
		h, err := conv.history(convo.Options{})
		if err != nil {
			return nil, err
		}
		views[conv.name] = h.Snapshot()
	}
	return views, nil
}

// Floor reports for each entry of s whether the checks count it as floor.
func Floor(s *convo.Snapshot) map[convo.ID]bool {
	floor := make(map[convo.ID]bool)
	for id, x := range exchangesOf(s) {
		floor[id] = x.floor != ""
	}
	return floor
}

// Requests returns the built-in requests, by name.
func Requests() (map[string]convo.SummaryRequest, error) {
	all, err := requests()
	byName := make(map[string]convo.SummaryRequest)
	for _, r := range all {
		byName[r.name] = r.SummaryRequest
	}
	return byName, err
}
