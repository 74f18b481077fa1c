package convo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/extract"
	"github.com/seed-c1b73e60/convo/internal/hosts"
	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/text"
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

// Extract is a [Summarizer] that calls no model. Its summary lists what the user said, what the
// assistant said, lines of results, the tools that were called and how often, the paths and
// errors that came up, and the last answer. It is quick, returns the same text for the same
// messages, and fills SummaryRequest.MaxTokens without exceeding it. What no person wrote, see
// [HostMeta], is read like a result.
//
// Up to a third of the room goes to what the user said: the first message, and then those with
// words that few others have. Of the rest it prefers lines with names, such as paths,
// identifiers, dates and amounts. A repeated line is listed once. Of the oldest results above 2
// MB it reads the beginning; Report.Unread counts the rest.
type Extract struct{}

// Summarize extracts a summary from req.Messages, and adds it to req.Previous. If
// req.MaxTokens is not positive, the summary has at most 500 tokens; if req.Count
// is nil, [Heuristic] counts them. The only error is the reason why ctx ended.
func (Extract) Summarize(ctx context.Context, req SummaryRequest) (Summary, error) {
	if ctx.Err() != nil {
		return Summary{}, causeOf(ctx)
	}
	sources := make([]source, len(req.Messages))
	for i := range sources {
		sources[i].msg = &req.Messages[i]
	}
	if req.MaxTokens <= 0 {
		req.MaxTokens = maxSummary(0)
	}
	if req.Count == nil {
		req.Count = Heuristic{}.CountTokens
	}
	n, _ := notesOf(sources)
	return Summary{Text: n.Summary(req.Previous, req.MaxTokens, req.Count)}, nil
}

// nameWeight is the priority of a name by the role of the message that contains it: user
// messages come first, then assistant messages with their calls, then the others.
var nameWeight = map[Role]uint8{RoleUser: 4, RoleAssistant: 3, RoleTool: 2, RoleSystem: 2}

// notesOf reads messages for Extract. It returns how many raw tokens of results it did not read.
func notesOf(sources []source) (n *extract.Notes, unread int64) {
	said, results := 0, 0
	for i := range sources {
		for role, text := range sources[i].msg.texts {
			if role == RoleTool {
				results += len(text)
			} else {
				said += len(text)
			}
		}
	}
	n = new(extract.Notes)
	n.Begin(said, results)
	var alike hosts.Echoes
	for i, src := range slices.Backward(sources) {
		role := src.msg.Role
		if src.msg.isHosts() || role == RoleUser && src.msg.repeats(&alike) {
			role = RoleTool
		}
		n.Next(names.Source{Place: i, Weight: nameWeight[role], Said: role != RoleTool, Paths: role == RoleTool})
		unread += src.note(n, role)
	}
	return n, unread
}

// note adds a message to n. role is its speaker.
func (s *source) note(n *extract.Notes, role Role) (unread int64) {
	m := s.msg
	for media := range m.allMedia {
		if media.Data == "" {
			n.Link(media.URL)
		}
	}
	switch role {
	case RoleUser, RoleSystem:
		for _, text := range m.texts {
			n.Search(text)
		}
		if !m.isEmpty() {
			n.Ask((*asked)(m))
		}
	case RoleAssistant:
		for i, p := range m.Parts {
			switch p := p.(type) {
			case Text:
				n.Say(string(p))
			case ToolCall:
				n.Call(i, p.Name, p.Arguments)
			}
		}
		n.Answer((*asked)(m))
	case RoleTool:
		for i, p := range m.Parts {
			r, ok := p.(ToolResult)
			if ok && r.IsError {
				n.Fail(i, r.Name, r.Text())
			}
			texts := r.Parts
			if !ok { // a user message that no person wrote
				texts = m.Parts[i : i+1]
			}
			for t := range eachOf[Text](texts) {
				unread += sums.Portion(s.tokens, int64(n.Result(string(t))), int64(len(t)))
			}
		}
	}
	return unread
}

// An asked is a message as Extract lists it.
type asked Message

func (m *asked) Text() string { return (*Message)(m).Text() }

// Line returns the texts on one line, with what names the media, and the author.
func (m *asked) Line() string {
	line := text.OneLine(m.Text())
	for media := range (*Message)(m).allMedia {
		line = strings.TrimSpace(fmt.Sprintf("%s [%s: %s]", line, media.label(), text.OneLine(media.place())))
	}
	if line != "" && m.Author != "" {
		line = text.OneLine(m.Author) + ": " + line
	}
	return line
}
