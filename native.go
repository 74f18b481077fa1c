package convo

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// NativeSummary is a [CompactionStrategy] that lets the provider of the model compact the
// conversation. Use it in front of a [Summarize] in a [Chain]:
//
//	convo.Chain(
//		convo.NativeSummary{With: wire.NativeSummarizer(format, post)},
//		convo.Summarize{With: s},
//		convo.Truncate{},
//	)
//
// The summary covers everything up to the user messages of an older turn, and these and
// the notes after them. The answer to them is the first thing that stays, so it follows
// exactly what the model was asked, and signed reasoning in it and after it stays bound;
// see [Snapshot.Unbound]. Unlike for other strategies, user messages of a turn that is cut
// leave with the rest, because the provider has read them. A pinned exchange stays and is
// sent again after the items, which ends the bonds after it.
//
// NativeSummary declines where there is no such place, where signed reasoning of more
// than a quarter of what the edit frees would be lost, and with Options.Redact, since a
// provider compacts what it was sent. Summary.Text is what can be read in the items.
// Where nothing can, Extract writes it from what left, for any other model.
type NativeSummary struct {
	// With asks the provider. It is called with a SummaryRequest whose Sent is the snapshot to
	// compact, and whose Instruction is empty if there is no focus. It returns a Summary with
	// Native. Package wire makes one for each format whose provider compacts.
	With Summarizer

	// KeepTurns is the least number of newest turns that stay. Less than 1 means 1. Turns
	// before them stay while Goal.Target is reached without them.
	KeepTurns int

	Timeout time.Duration // of the call, as for Summarize; 0 means a minute, a negative value no bound
}

// Name returns "native".
func (NativeSummary) Name() string { return "native" }

// String names the summarizer.
func (n NativeSummary) String() string { return fmt.Sprintf("native(with %T)", n.With) }

// Compact returns an edit that drops everything up to the answer to an older turn's user
// messages and puts the provider's items in its place. It returns [ErrNoGain] if there is
// no such answer, or if that would free too little, g.NoModel if it is set, a
// [*RefusedError] for a summary without items, and otherwise the error of With. The call
// is not repeated.
func (n NativeSummary) Compact(ctx context.Context, s *Snapshot, g Goal) (e Edit, err error) {
	w := writer{
		with: n.With, focus: g.Focus, timeout: cmp.Or(n.Timeout, defaultTimeout), inTurn: true,
		s: s, count: g.count(s), maxTokens: max(cmp.Or(g.Low, int(g.target(s)))/8, maxSummary(0)),
	}
	old := s.summary.tokens()
	w.maxTokens = min(w.maxTokens, max(clampInt(old+(s.raw()-s.floorWeight().total()-old)/4), leastExtract))
	e.Effort = &w.work // also returned with every error
	defer catch(&err, "Options.Tokenizer")
	switch {
	case n.With == nil:
		return e, &ValueError{Name: "NativeSummary.With", Want: "a Summarizer that asks the provider, such as wire.NativeSummarizer returns"}
	case g.NoModel != nil:
		return e, g.NoModel
	case g.Redact != nil:
		return e, ErrNoGain
	}
	place := n.place(s, &g, int64(w.maxTokens))
	if place == 0 {
		return e, ErrNoGain
	}
	var missing int64
	for _, old := range s.list[:place] {
		if s.isPinned(old.head) {
			w.pinned = append(w.pinned, old.msg.clone())
			continue
		}
		if !s.summary.hasRead(old.id) {
			missing += old.uncounted()
		}
		e.Drop = append(e.Drop, old.id)
		w.sources = append(w.sources, source{old.id, &old.msg, old.tokens})
	}
	summary, err := w.askProvider(ctx, s.Before(s.list[place].id))
	if err != nil {
		return Edit{Effort: e.Effort}, err
	}
	if summary.Text == "" {
		if summary.Text, err = w.extractOriginals(ctx, &g); err != nil {
			return Edit{Effort: e.Effort}, err
		}
	}
	w.work.Unread = clampInt(missing)
	e.Summary = &Summary{Text: summary.Text, Native: summary.Native, Usage: summary.Usage, Model: summary.Model}
	return e, nil
}

// place returns the index of the first entry to keep, or 0 if there is no place to cut. It
// is the first place at which the target is reached with a summary of so many tokens, or
// else the last one that frees enough.
func (n NativeSummary) place(s *Snapshot, g *Goal, tokens int64) (place int) {
	kept, target := newest(s.list, 0, max(n.KeepTurns, 1)), g.target(s)
	if s.raw() <= target {
		return 0
	}
	left := s.raw() - s.summary.tokens() + tokens + int64(s.SummaryTokens(""))
	most := s.raw() - int64(max(g.MinFree, 1))
	floor := s.floor()
	asked := false // the exchange before is one of the user messages of a turn, or a note after them
	var pinned bool
	for a := range walk(&s.state) {
		if a.from >= kept {
			break
		}
		first := s.list[a.from]
		if asked && first.msg.Role == RoleAssistant && left <= most && !(pinned && s.sealedFrom(a.from) > (s.raw()-left)/4) {
			place = a.from
			if left <= target {
				break
			}
		}
		asked = a.user
		switch {
		case s.isPinned(first.head):
			pinned = true
		case floor.hasUnpinned(a.from):
			return place
		default:
			left -= a.tokens
		}
	}
	return place
}

// sealedFrom returns the raw tokens of the signed reasoning in bound entries from an index
// of the list on.
func (s *Snapshot) sealedFrom(from int) (tokens int64) {
	counter := s.counter()
	for i, bound := range s.signed {
		if !bound || i < from {
			continue
		}
		for r := range eachOf[Reasoning](s.list[i].msg.Parts) {
			tokens += r.tokens(counter)
		}
	}
	return tokens
}

// askProvider calls the summarizer with the snapshot to compact.
func (w *writer) askProvider(ctx context.Context, sent *Snapshot) (summary Summary, err error) {
	w.begin(ctx)
	if w.s.summary != nil {
		w.previous = w.s.summary.sum.Text
	}
	req := SummaryRequest{
		Previous: w.previous, Messages: messagesOf(w.sources), System: w.system, Pinned: w.pinned,
		Focus: w.focus, MaxTokens: w.maxTokens, Sent: sent, Count: w.count,
	}
	if w.focus != "" {
		own := *w
		own.pinned = nil // these messages are part of what is compacted
		req.Instruction = own.task().After()
	}
	bounded, cancel := w.bound(ctx)
	defer cancel()
	if summary, err = w.call(ctx, bounded, req); err != nil {
		return summary, err
	}
	summary.Native.Compacted = sent
	switch err := summary.Native.fault(); {
	case summary.Stop != StopDone:
		return summary, summary.fault()
	case err != nil:
		return summary, &RefusedError{Reason: err.Error()}
	case summary.Native.Format == "":
		return summary, &RefusedError{Reason: "the summarizer returned no native items; give NativeSummary one that asks the provider to compact"}
	}
	return summary, nil
}

// extractOriginals returns a summary of the originals of the sources by Extract.
func (w *writer) extractOriginals(ctx context.Context, g *Goal) (string, error) {
	x := writer{s: w.s, count: w.count, maxTokens: w.maxTokens}
	for _, src := range w.sources {
		read := g.original(ctx, w.s, src.id)
		x.sources = append(x.sources, source{src.id, &read.Message, int64(read.Tokens)})
	}
	summary, err := x.extract(ctx)
	return summary.Text, err
}
