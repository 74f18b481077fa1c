package convo

import (
	"context"
	"slices"
)

// Handoff returns a summary of the whole view, for another agent that continues
// the work. It does not change h, does not wait for a running compaction, and
// works after Close too.
//
// The summary is written by the summarizer with; nil means [Extract]. The focus
// says what it should concentrate on, and may be empty. A nil ctx never ends. A
// model is shown no more of a tool result than an eighth of Limits.Window.
//
// The error matches [ErrNoGain] if there is nothing to summarise, a [*RefusedError] if
// the summary is empty, cut off, longer than an eighth of Limits.Low (at least
// 500 tokens), or by a model and repeats itself, and a [*ValueError] if
// Limits.Window is too small for the prompt. Otherwise it is the error of the
// summarizer or of ctx. The zero History returns [ErrClosed].
func (h *History) Handoff(ctx context.Context, with Summarizer, focus string) (_ Summary, err error) {
	defer catch(&err, "Options.Tokenizer")
	if h.ident == nil {
		return Summary{}, ErrClosed
	}
	if ctx == nil {
		ctx = context.Background()
	}
	s := h.Snapshot()
	h.mu.Lock()
	limits := h.limits
	sent, tokens := h.lastSentLocked()
	h.mu.Unlock()
	if len(s.list) == 0 && s.summary == nil {
		return Summary{}, &wordedError{"the conversation is empty, so there is nothing to summarise; append to it first", ErrNoGain}
	}
	w := writer{
		with:       with,
		window:     limits.Window,
		windowName: "Limits.Window",
		maxTokens:  maxSummary(limits.Low),
		focus:      focus,
		s:          s,
		sent:       sent,
		sentTokens: tokens,
		count:      func(text string) int { return clampInt(h.ident.text(text)) },
	}
	for _, e := range s.list {
		read, _ := s.toRead(ctx, e.id)
		w.sources = append(w.sources, source{e.id, read.Message})
	}
	summary, err := w.write(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = errorf("handoff stopped: %w", causeOf(ctx))
		}
		return Summary{}, err
	}
	summary.Covers = rangesOf(idsOf(s.list))
	if s.summary != nil {
		summary.Covers = slices.Concat(s.summary.sum.Covers, summary.Covers)
		summary.Updates = min(s.summary.sum.Updates, maxUpdates-1) + 1
	}
	var notCovered state // the view without what the summary stands for
	notCovered.load(s.sys, nil, nil, 0)
	summary.Covers = notCovered.covering(summary.Covers)
	return summary, nil
}

func idsOf(list []*entry) []ID {
	ids := make([]ID, len(list))
	for i, e := range list {
		ids[i] = e.id
	}
	return ids
}
