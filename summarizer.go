package convo

import (
	"context"
	"fmt"
)

// A Summarizer writes summaries, usually by calling a model. [SummarizerFunc] makes one
// of a function.
type Summarizer interface {
	// Summarize returns a summary of what req describes. It sets Text, and if they are known,
	// Stop, Usage and Model. A summary that is empty, cut off, far longer than req.MaxTokens,
	// or that repeats itself is refused with a [*RefusedError], and the conversation stays as
	// it was. If asking the same again would not help, Summarize returns a RefusedError itself;
	// see [Summarize] for what is asked again.
	//
	// Summarize is called on its own goroutine, without a lock held. Calls for one History do
	// not overlap, with two exceptions: if a call has not returned when its ctx ends, the next
	// may start, and Handoff does not wait for other calls. A Summarizer shared by several
	// histories is called by several goroutines at once.
	//
	// The ctx ends when the ctx of the compaction does, and after Summarize.Timeout. Summarize
	// should return soon after; nothing waits for it, and a later result is discarded.
	Summarize(ctx context.Context, req SummaryRequest) (Summary, error)
}

// SummarizerFunc adapts a function, such as a call of your own model with req.Prompt, to
// a [Summarizer].
type SummarizerFunc func(ctx context.Context, req SummaryRequest) (Summary, error)

// Summarize calls f.
func (f SummarizerFunc) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	return f(ctx, req)
}

// A SummaryRequest describes what a [Summarizer] should summarise. There are two ways to
// use it:
//   - Send Prompt as the only user message of a new request. It contains everything that
//     the model needs.
//   - If Sent is not nil, send Sent again, followed by Instruction as one more user
//     message. Most of that request is in the provider's prompt cache.
//
// Offer the model no tools in either case. The messages are copies, but must not be
// modified, because a wrapper of the Summarizer may use them again.
type SummaryRequest struct {
	// Prompt is a complete prompt: the instruction, the system messages, the previous summary,
	// the pinned messages and the transcript. The middle of long system messages, pinned
	// messages and results is left out.
	Prompt string

	Previous string // the summary to update; empty: there is none

	// Messages are the messages to summarise, in order. Results that another strategy cleared
	// in the same compaction are complete.
	Messages []Message

	// System and Pinned are context, which stays in the view unchanged: the system messages,
	// and older messages that are pinned, or user messages that stay yet. A summary should have
	// what the latter say if there is room, because they leave later.
	System, Pinned []Message

	Focus     string // what the summary should concentrate on; may be empty
	MaxTokens int    // how long the summary may be, as Count counts; a longer one is shortened, see [Summarize]

	// Sent is the snapshot last passed to RecordUsage. It is nil if that snapshot does not show
	// all of Messages and the previous summary, or if something in it has since left the view.
	// Instruction asks for a summary of the messages before it.
	Sent        *Snapshot
	Instruction string

	Count func(string) int // returns the raw tokens of a text; package convo always sets it
}

// String describes the request without its texts.
func (r SummaryRequest) String() string {
	return fmt.Sprintf("request(%s to summarise in at most %s tokens)", counted(len(r.Messages), "message", "messages"), grouped(r.MaxTokens))
}
