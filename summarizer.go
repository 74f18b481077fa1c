package convo

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Summarizer writes summaries: most of the time, a call of a model.
//
// Summarize runs with no lock held, on the goroutine that asked for the
// compaction, and not twice at once for one History, unless a call has not
// returned after its ctx ended; one that several histories share is called by
// several goroutines at once. It must return soon after ctx has ended; what it
// returns later is thrown away. It returns the
// text, why the model stopped, and what the call used; the History refuses a
// text that is empty, cut off or too long, and stays as it was.
//
// The short form, with a function that calls your model:
//
//	convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
//		text, err := complete(ctx, req.Prompt)
//		return convo.Summary{Text: text}, err
//	})
type Summarizer interface {
	Summarize(ctx context.Context, req SummaryRequest) (Summary, error)
}

// SummarizerFunc makes a function a [Summarizer].
type SummarizerFunc func(ctx context.Context, req SummaryRequest) (Summary, error)

// Summarize calls f.
func (f SummarizerFunc) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	return f(ctx, req)
}

// A SummaryRequest is what a [Summarizer] works from. Its messages are copies;
// leave them as they are, for who wraps a Summarizer may need them again.
//
// Send Prompt as the one user message of a request of its own; it holds all
// that is needed. Or, where Sent is not nil, send Sent again with Instruction
// as one more user message: most of that request is in the provider's prompt
// cache already. Offer no tools either way.
type SummaryRequest struct {
	Prompt string // ready to be sent: instruction, previous summary, pinned messages, transcript

	Previous  string    // the summary to be updated; empty: none
	Messages  []Message // what the summary is to stand for, in order, before anything was cleared
	Pinned    []Message // stay in the view word for word; for context
	Focus     string    // what to dwell on, empty: nothing special
	MaxTokens int       // a longer summary is refused; raw tokens, as Count counts

	// Sent is the snapshot last given to RecordUsage, when the request made of
	// it held all of Messages and the previous summary; else nil. Instruction
	// asks for the summary after it.
	Sent        *Snapshot
	Instruction string

	Count func(string) int
}

// fit says why a summary that a strategy brought may not be used, nil when it
// may. freed is what the edit frees.
func (s *Summary) fit(freed, minFree int64) error {
	if s == nil || s.Text == "" && s.Stop == StopDone {
		return nil
	}
	if err := s.fault(); err != nil {
		return err
	}
	if freed < minFree {
		return &RefusedError{Reason: fmt.Sprintf("it frees %d tokens of at least %d", freed, minFree)}
	}
	return nil
}

// fault says what is wrong with a summary by itself.
func (s *Summary) fault() error {
	switch {
	case s.Stop == StopLength:
		return &RefusedError{Reason: "it is cut off"}
	case s.Stop == StopToolCall:
		return &RefusedError{Reason: "the model called a tool"}
	case s.Stop == StopRefused:
		return &RefusedError{Reason: "the model refused"}
	case s.Stop != StopDone:
		return &RefusedError{Reason: "why it stopped is unknown: " + s.Stop.String()}
	case strings.TrimSpace(s.Text) == "":
		return &RefusedError{Reason: "it is empty"}
	}
	return nil
}

// Summarize returns a summary of the whole view, for a handoff. It changes
// nothing and waits for no compaction. With nil stands for [Extract]; focus
// may be empty. A summary that is empty, cut off or longer than an eighth of
// low water (at least 500 tokens) is a [*RefusedError].
func (h *History) Summarize(ctx context.Context, with Summarizer, focus string) (_ Summary, err error) {
	defer catch(&err, "Options.Tokenizer")
	if h.ident == nil {
		return Summary{}, ErrClosed
	}
	if ctx == nil {
		ctx = context.Background()
	}
	s := h.Snapshot()
	h.mu.Lock()
	limits, sent := h.limits, h.lastSent()
	h.mu.Unlock()
	if len(s.list) == 0 && s.slot == nil {
		return Summary{}, ErrNoGain
	}
	w := writer{
		with:    with,
		window:  limits.Window,
		max:     maxSummary(limits.Low),
		focus:   focus,
		handoff: true,
		s:       s,
		sent:    sent,
		count:   func(text string) int { return clampInt(h.ident.text(text)) },
	}
	w.prepare(s.list)
	sum, err := w.write(ctx)
	if err != nil {
		return Summary{}, err
	}
	sum.Covers = rangesOf(idsOf(s.list))
	if s.slot != nil {
		sum.Covers = joinRanges(slices.Concat(sum.Covers, s.slot.sum.Covers)...)
		sum.Updates = s.slot.sum.Updates + 1
	}
	return sum, nil
}

func idsOf(list []*entry) []ID {
	ids := make([]ID, len(list))
	for i, e := range list {
		ids[i] = e.id
	}
	return ids
}

// maxSummary is how long a summary may be where nobody says: an eighth of low
// water, at least 500.
func maxSummary(low int) int { return max(low/8, 500) }
