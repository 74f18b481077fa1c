package convo

import (
	"cmp"
	"context"
	"slices"
)

// Native is a [CompactionStrategy] that lets the provider compact the conversation. What
// the provider returns can be read by its own models alone, so the edit also has a text, by
// [Extract] unless With returns one, which all other models get.
//
// The provider is given the beginning of the view, up to and with the user messages of an
// older turn. What stays begins with the answer to these. Signed reasoning in it stays
// bound, as long as system text, tools and model are the same; see [Snapshot.Bound].
// Pinned exchanges that the provider was given stay in the view, after what it made of
// them, and what follows the first of them is no longer bound.
//
// Native should be the first link of a [Chain], because the provider must be given what was
// sent. If the provider refuses, or the newest turn is the only one, the next link runs.
//
//	convo.Chain(convo.Native{With: ask}, convo.Summarize{With: s}, convo.Truncate{})
type Native struct {
	// With sends a snapshot to the provider to be compacted, and returns a summary with
	// Native, Usage and Model, and Text if the provider has written a readable one. The
	// formats of package wire that implement Compactor make the request and read the
	// answer. With must return soon after ctx ends.
	With func(ctx context.Context, s *Snapshot) (Summary, error)
}

// Name returns "native".
func (Native) Name() string { return "native" }

// Compact returns an edit that puts what With returns in place of the oldest entries. It
// returns [ErrNoGain] if there is no older turn, or if too little would be freed,
// g.NoModel if it is set, a [*RefusedError] if With returns no items, and otherwise the
// error of With. The Effort of the edit is set even if there is an error.
func (n Native) Compact(ctx context.Context, s *Snapshot, g Goal) (e Edit, err error) {
	var work Effort
	e.Effort = &work
	switch {
	case n.With == nil:
		return e, &ValueError{Name: "Native.With", Want: "a function that asks the provider"}
	case g.NoModel != nil:
		return e, g.NoModel
	}
	forSummary := int64(maxSummary(cmp.Or(g.Low, clampInt(g.target(s)))))
	cut := s.nativeCut(g.target(s), forSummary)
	drop, freed := s.unpinned(cut)
	if freed+s.summary.tokens()-forSummary < int64(max(g.MinFree, 1)) {
		return e, ErrNoGain
	}
	given := s.state.clipped()
	given.eph = nil
	given.cutTail(cut, true)
	work.Calls = 1
	sum, err := n.With(ctx, &Snapshot{setting: s.setting, state: given})
	if sum.Usage.fault() == nil {
		work.Usage = sum.Usage
	}
	if err != nil {
		return e, &wordedError{"provider's compaction: " + withoutPrefix(err), err}
	}
	if sum.Native == nil || sum.Native.fault() != "" || sum.Stop != StopDone {
		return e, &RefusedError{Reason: "the provider's compaction has no items"}
	}
	if sum.Text, sum.Names, err = n.text(ctx, s, g, sum.Text, drop, int(forSummary)); err != nil {
		return e, err
	}
	sum.Native = sum.Native.clone()
	sum.Native.coverFrom(&s.state, cut)
	e.Drop, e.Summary = drop, &Summary{Text: sum.Text, Names: sum.Names, Native: sum.Native, Usage: work.Usage, Model: sum.Model}
	return e, nil
}

// text returns the text and the names of the summary for other models.
func (n Native) text(ctx context.Context, s *Snapshot, g Goal, text string, drop []ID, most int) (string, string, error) {
	w := writer{with: Extract{}, window: -1, maxTokens: max(most, leastExtract), focus: g.Focus, s: s, count: g.count(s), redact: g.Redact}
	for _, id := range drop {
		w.sources = append(w.sources, source{id, g.original(ctx, s, id).Message})
	}
	w.collectPinned()
	if text == "" {
		sum, err := w.write(ctx)
		if err != nil {
			return "", "", err
		}
		text = sum.Text
	}
	return text, w.names(&Summary{Text: text}, drop, mostNames), nil
}

// nativeCut returns the number of entries to give to the provider: the fewest that leave a
// view within target, or else the most. It is 0 if there is no place for a cut.
func (s *state) nativeCut(target, forSummary int64) (cut int) {
	users, _ := turnUsers(s.list)
	freed := s.summary.tokens()
	for i, e := range s.list[:users] {
		if i > 0 && e.msg.Role == RoleAssistant && endsWithUser(s.list[:i]) {
			cut = i
			if s.raw()-freed+forSummary <= target {
				break
			}
		}
		if !s.isPinned(e.head) {
			freed += e.tokens
		}
	}
	return cut
}

// endsWithUser reports whether a list ends with a user message, notes aside.
func endsWithUser(list []*entry) bool {
	for _, e := range slices.Backward(list) {
		if !e.note {
			return e.msg.Role == RoleUser
		}
	}
	return false
}

// unpinned returns the IDs of those of the first entries that are not pinned, and their raw
// tokens.
func (s *state) unpinned(entries int) (ids []ID, raw int64) {
	for _, e := range s.list[:entries] {
		if !s.isPinned(e.head) {
			ids, raw = append(ids, e.id), raw+e.tokens
		}
	}
	return ids, raw
}
